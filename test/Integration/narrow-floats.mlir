// Conversions written as integers, against a definition in double: every f16
// and bf16, and a million f32 numbers of every exponent.
// RUN: varlen-opt %s --varlen-lower-to-llvm=target=generic \
// RUN:   | mlir-translate --mlir-to-llvmir | llc -filetype=obj -relocation-model=pic -o %t.o
// RUN: clang -O1 -Wall -Werror %S/Inputs/narrow-floats.c %t.o -lm -o %t
// RUN: %t | FileCheck %s
// REQUIRES: x86
// CHECK: f16: 0 of 65536 extended wrongly, 0 of 1048576 rounded wrongly
// CHECK: bf16: 0 of 65536 extended wrongly, 0 of 1048576 rounded wrongly

func.func @f16(%bits: memref<?xi16>, %numbers: memref<?xf32>, %extended: memref<?xf32>, %rounded: memref<?xi16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %bits, %c0 : memref<?xi16>
  scf.for %i = %c0 to %n step %c4 {
    %0 = vector.load %bits[%i] : memref<?xi16>, vector<4xi16>
    %1 = arith.bitcast %0 : vector<4xi16> to vector<4xf16>
    %2 = arith.extf %1 : vector<4xf16> to vector<4xf32>
    vector.store %2, %extended[%i] : memref<?xf32>, vector<4xf32>
  }
  %m = memref.dim %numbers, %c0 : memref<?xf32>
  scf.for %i = %c0 to %m step %c4 {
    %0 = vector.load %numbers[%i] : memref<?xf32>, vector<4xf32>
    %1 = arith.truncf %0 : vector<4xf32> to vector<4xf16>
    %2 = arith.bitcast %1 : vector<4xf16> to vector<4xi16>
    vector.store %2, %rounded[%i] : memref<?xi16>, vector<4xi16>
  }
  return
}

func.func @bf16(%bits: memref<?xi16>, %numbers: memref<?xf32>, %extended: memref<?xf32>, %rounded: memref<?xi16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %bits, %c0 : memref<?xi16>
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %bits[%i] : memref<?xi16>
    %1 = arith.bitcast %0 : i16 to bf16
    %2 = arith.extf %1 : bf16 to f32
    memref.store %2, %extended[%i] : memref<?xf32>
  }
  %m = memref.dim %numbers, %c0 : memref<?xf32>
  scf.for %i = %c0 to %m step %c1 {
    %0 = memref.load %numbers[%i] : memref<?xf32>
    %1 = arith.truncf %0 : f32 to bf16
    %2 = arith.bitcast %1 : bf16 to i16
    memref.store %2, %rounded[%i] : memref<?xi16>
  }
  return
}

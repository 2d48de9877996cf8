// A transfer of a vector of rank 2 or more in a loop leaves the stack as it is:
// 200,000 trips would need some 50 MB of it each.
// RUN: varlen-opt %s --varlen-bufferize | FileCheck %s --check-prefix=STACK
// RUN: varlen-run %s --random=1 --entry=read | FileCheck %s
// RUN: varlen-run %s --random=1 --entry=write | FileCheck %s
// RUN: varlen-run %s --random=1 --entry=masked | FileCheck %s
// RUN: varlen-run %s --random=1 --entry=transposed | FileCheck %s

// STACK-NOT: memref.alloca
// CHECK: run

func.func @read(%x: memref<9x7xf32>, %y: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 200000 : index
  %zero = arith.constant 0.0 : f32
  %start = arith.constant dense<0.0> : vector<8x8xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start) -> vector<8x8xf32> {
    %v = vector.transfer_read %x[%i, %c0], %zero : memref<9x7xf32>, vector<8x8xf32>
    %next = arith.addf %acc, %v : vector<8x8xf32>
    scf.yield %next : vector<8x8xf32>
  }
  vector.transfer_write %sum, %y[%c0, %c0] {in_bounds = [true, true]} : vector<8x8xf32>, memref<8x8xf32>
  return
}

func.func @write(%x: memref<f32>, %y: memref<9x7xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 200000 : index
  scf.for %i = %c0 to %n step %c1 {
    %element = memref.load %x[] : memref<f32>
    %v = vector.broadcast %element : f32 to vector<2x4x8xf32>
    %plane = vector.extract %v[0] : vector<4x8xf32> from vector<2x4x8xf32>
    vector.transfer_write %plane, %y[%i, %c0] : vector<4x8xf32>, memref<9x7xf32>
  }
  return
}

func.func @masked(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = arith.constant 200000 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %rows = arith.remui %i, %c5 : index
    %mask = vector.create_mask %rows, %c5 : vector<8x8xi1>
    %v = vector.transfer_read %x[%c0, %c0], %zero, %mask {in_bounds = [true, true]} : memref<8x8xf32>, vector<8x8xf32>
    vector.transfer_write %v, %y[%c0, %c0], %mask {in_bounds = [true, true]} : vector<8x8xf32>, memref<8x8xf32>
  }
  return
}

func.func @transposed(%x: memref<8x4x8xf32>, %y: memref<8x4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 200000 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = vector.transfer_read %x[%c0, %c0, %c0], %zero
        {in_bounds = [true, true, true], permutation_map = affine_map<(a, b, c) -> (c, b, a)>}
        : memref<8x4x8xf32>, vector<8x4x8xf32>
    vector.transfer_write %v, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]} : vector<8x4x8xf32>, memref<8x4x8xf32>
  }
  return
}

// A function has the name of a function that its code calls: in an object the C interface has
// the name, and the call is of libm.

// RUN: varlen-opt %s --emit=obj --header=%t.h -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s
// RUN: FileCheck %s --check-prefix=HEADER < %t.h
// CHECK: T _mlir_ciface_exp
// CHECK-NOT: T exp
// CHECK: U exp
// HEADER: void _mlir_ciface_exp(

// RUN: varlen-run %s --random=0 --entry=exp -o %t.safetensors
// RUN: varlen-run %s --random=0 --entry=exp -o %t.sim.safetensors --device=sim:sm_80

func.func @exp(%x: tensor<40xf64> {varlen.name = "x"}) -> (tensor<40xf64> {varlen.name = "y"}) {
  %e = tensor.empty() : tensor<40xf64>
  %y = linalg.map ins(%x : tensor<40xf64>) outs(%e : tensor<40xf64>) (%a: f64, %o: f64) {
    %b = math.exp %a : f64
    %c = math.cbrt %b : f64
    linalg.yield %c : f64
  }
  return %y : tensor<40xf64>
}

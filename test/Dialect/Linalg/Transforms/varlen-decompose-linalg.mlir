// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-decompose-linalg))" | FileCheck %s
// RUN: varlen-opt %s --varlen-to-cpu | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: func.func @softmax
// CHECK-NOT: linalg.softmax
// CHECK: arith.max
// CHECK: math.exp
// CHECK: arith.divf
// CPU-LABEL: llvm.func @softmax
// CPU-NOT: linalg
func.func @softmax(%x: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

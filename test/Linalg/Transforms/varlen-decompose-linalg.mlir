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

// A constant exponent makes products, which have a vector form; another one is a float.
// CHECK-LABEL: func.func @powers
// CHECK-NOT: fpowi
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[X:.*]], %[[X]]
// CHECK: arith.mulf {{.*}}%[[SQUARE]]
// CHECK: %[[N:.*]] = arith.sitofp %arg2 : i64 to f32
// CHECK: math.powf %{{.*}}, %[[N]]
// CPU-LABEL: llvm.func @powers
// CPU-NOT: llvm.intr.powi
func.func @powers(%x: tensor<?xf32>, %s: f32, %n: i64) -> (tensor<?xf32>, f32) {
  %c3 = arith.constant 3 : i64
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : tensor<?xf32>) {
  ^bb0(%a: f32):
    %0 = math.fpowi %a, %c3 : f32, i64
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %p = math.fpowi %s, %n : f32, i64
  return %y, %p : tensor<?xf32>, f32
}

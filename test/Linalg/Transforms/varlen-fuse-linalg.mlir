// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-fuse-linalg))" | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>

// Named operations, and their producer into a reduction.
// CHECK-LABEL: func.func @into_reduction
// CHECK: linalg.fill
// CHECK-NEXT: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK: math.exp
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @into_reduction(%x: tensor<?x?xf32>, %e: tensor<?x?xf32>, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %row = tensor.empty(%n) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %0 = linalg.exp ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = linalg.reduce { arith.addf } ins(%0 : tensor<?x?xf32>) outs(%zeros : tensor<?xf32>) dimensions = [1]
  return %1 : tensor<?xf32>
}

// Read twice, or by every column: it would be computed more than once.
// CHECK-LABEL: func.func @no_recomputation
// CHECK: %[[EXP:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%[[EXP]]
// CHECK: math.sin
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} :
func.func @no_recomputation(%x: tensor<?xf32>, %y: tensor<?x?xf32>, %e: tensor<?xf32>, %f: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %0 = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %3 = math.sin %a : f32
    linalg.yield %3 : f32
  } -> tensor<?xf32>
  %2 = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%y, %0 : tensor<?x?xf32>, tensor<?xf32>) outs(%f : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %3 = arith.addf %a, %b : f32
    linalg.yield %3 : f32
  } -> tensor<?x?xf32>
  return %2, %1 : tensor<?x?xf32>, tensor<?xf32>
}

// Not into a contraction; each has a fill of its own, of f32 for a sum of bf16.
// CHECK-LABEL: func.func @contractions
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: %[[FILL:.*]] = linalg.fill {{.*}} -> tensor<?x8xf32>
// CHECK: linalg.contract {{.*}} : tensor<?x4xbf16>, tensor<4x8xbf16>) outs(%[[FILL]] : tensor<?x8xf32>)
// CHECK: %[[OTHER:.*]] = linalg.fill {{.*}} -> tensor<?x8xf32>
// CHECK: linalg.contract {{.*}} outs(%[[OTHER]] :
func.func @contractions(%x: tensor<?x4xbf16>, %w: tensor<4x8xbf16>, %n: index, %e: tensor<?x4xbf16>)
    -> (tensor<?x8xbf16>, tensor<?x8xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty(%n) : tensor<?x8xbf16>
  %zeros = linalg.fill ins(%zero : bf16) outs(%empty : tensor<?x8xbf16>) -> tensor<?x8xbf16>
  %0 = linalg.exp ins(%x : tensor<?x4xbf16>) outs(%e : tensor<?x4xbf16>) -> tensor<?x4xbf16>
  %1 = linalg.matmul ins(%0, %w : tensor<?x4xbf16>, tensor<4x8xbf16>) outs(%zeros : tensor<?x8xbf16>) -> tensor<?x8xbf16>
  %2 = linalg.matmul ins(%x, %w : tensor<?x4xbf16>, tensor<4x8xbf16>) outs(%zeros : tensor<?x8xbf16>) -> tensor<?x8xbf16>
  return %1, %2 : tensor<?x8xbf16>, tensor<?x8xbf16>
}

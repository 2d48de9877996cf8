// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-narrow-contractions))" | FileCheck %s

#mn = affine_map<(m, n, k) -> (m, n)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#id = affine_map<(i, j) -> (i, j)>

// What varlen-differentiate makes of a rounded sum: one factor is extended, the
// other one in the body.
// CHECK-LABEL: func.func @cotangent
// CHECK-SAME: (%[[DY:.*]]: tensor<?x64xbf16>, %[[W:.*]]: tensor<32x64xbf16>
// CHECK-NOT: extf
// CHECK: linalg.contract {{.*}} ins(%[[DY]], %[[W]] : tensor<?x64xbf16>, tensor<32x64xbf16>) outs(%{{.*}} : tensor<?x32xf32>)
func.func @cotangent(%dy: tensor<?x64xbf16>, %w: tensor<32x64xbf16>, %z: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %0 = arith.extf %dy : tensor<?x64xbf16> to tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%0, %w : tensor<?x64xf32>, tensor<32x64xbf16>) outs(%z : tensor<?x32xf32>) {
  ^bb0(%a: f32, %b: bf16, %c: f32):
    %2 = arith.extf %b : bf16 to f32
    %3 = arith.mulf %a, %2 : f32
    %4 = arith.addf %c, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}

// Both factors, one by linalg; what else reads the extension keeps it.
// CHECK-LABEL: func.func @both
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]]
// CHECK-NOT: linalg.generic
// CHECK: linalg.contract {{.*}} ins(%[[X]], %[[X]] : tensor<8x8xf16>, tensor<8x8xf16>)
// CHECK: return %{{.*}}, %[[WIDE]]
func.func @both(%x: tensor<8x8xf16>, %e: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = arith.extf %x : tensor<8x8xf16> to tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x8xf16>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f16, %c: f32):
    %3 = arith.extf %a : f16 to f32
    linalg.yield %3 : f32
  } -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%0, %1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2, %0 : tensor<8x8xf32>, tensor<8x8xf32>
}

// A factor of f32 stays one, and so does the other.
// CHECK-LABEL: func.func @one_is_wide
// CHECK: arith.extf
// CHECK: linalg.matmul {{.*}} : tensor<8x8xf32>, tensor<8x8xf32>)
func.func @one_is_wide(%x: tensor<8x8xbf16>, %y: tensor<8x8xf32>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = arith.extf %x : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = linalg.matmul ins(%0, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Two narrow types: f32 is the one that holds both.
// CHECK-LABEL: func.func @different
// CHECK-COUNT-2: arith.extf
// CHECK: linalg.matmul
func.func @different(%x: tensor<8x8xbf16>, %y: tensor<8x8xf16>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = arith.extf %x : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = arith.extf %y : tensor<8x8xf16> to tensor<8x8xf32>
  %2 = linalg.matmul ins(%0, %1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// The body rounds a factor to another type than it was extended from.
// CHECK-LABEL: func.func @rounded
// CHECK: arith.extf
// CHECK: linalg.generic
// CHECK: arith.truncf
func.func @rounded(%x: tensor<8x8xbf16>, %e: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %0 = arith.extf %x : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%0, %0 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %2 = arith.truncf %a : f32 to f16
    %3 = arith.truncf %b : f32 to f16
    %4 = arith.mulf %2, %3 : f16
    %5 = arith.addf %c, %4 : f16
    linalg.yield %5 : f16
  } -> tensor<8x8xf16>
  return %1 : tensor<8x8xf16>
}

// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-tile-linalg{target=avx512_bf16}))" | FileCheck %s
// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-tile-linalg{target=avx512}))" | FileCheck %s --check-prefix=EXTEND

// Both factors are copied as pairs of the contracted loop, twice as much of it in a
// block as of f32; without an instruction for these, as f32.
// CHECK-LABEL: func.func @pairs
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (2, 2) {{.*}} -> (tensor<2x2x256x32x2xbf16>)
// CHECK:   tensor.expand_shape {{.*}} : tensor<512x32xbf16> into tensor<256x2x32xbf16>
// CHECK:   linalg.generic {{.*}} outs(%{{.*}} : tensor<256x32x2xbf16>)
// CHECK-NOT: linalg.index
// CHECK: bufferization.alloc_tensor() : tensor<96x512xbf16>
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x256x2xbf16>, tensor<256x32x2xbf16>) outs(%{{.*}} : tensor<?x32xf32>)
// EXTEND-LABEL: func.func @pairs
// EXTEND: scf.forall (%{{.*}}, %{{.*}}) in (4, 2) {{.*}} -> (tensor<4x2x256x32xf32>)
// EXTEND: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x256xf32>, tensor<256x32xf32>)
func.func @pairs(%x: tensor<512x1024xbf16>, %w: tensor<1024x64xbf16>, %z: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<512x1024xbf16>, tensor<1024x64xbf16>) outs(%z : tensor<512x64xf32>) -> tensor<512x64xf32>
  return %0 : tensor<512x64xf32>
}

// A depth that is odd ends with a pair of which one element is zero, in both.
// CHECK-LABEL: func.func @odd
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK:   linalg.index 2
// CHECK:   arith.select
// CHECK: linalg.copy
// CHECK: linalg.fill {{.*}} -> tensor<?x1xbf16>
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x39x2xbf16>, tensor<39x?x2xbf16>)
func.func @odd(%x: tensor<512x77xbf16>, %w: tensor<77x70xbf16>, %z: tensor<512x70xf32>) -> tensor<512x70xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<512x77xbf16>, tensor<77x70xbf16>) outs(%z : tensor<512x70xf32>) -> tensor<512x70xf32>
  return %0 : tensor<512x70xf32>
}

// Rows of the left factor along the depth: pairs of two rows, as on the right.
// CHECK-LABEL: func.func @transposed
// CHECK: bufferization.alloc_tensor() : tensor<256x96x2xbf16>
// CHECK: tensor.expand_shape
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<256x?x2xbf16>)
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<256x?x2xbf16>, tensor<256x32x2xbf16>)
func.func @transposed(%x: tensor<512x512xbf16>, %w: tensor<512x64xbf16>, %z: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<512x512xbf16>, tensor<512x64xbf16>) outs(%z : tensor<512x64xf32>) -> tensor<512x64xf32>
  return %0 : tensor<512x64xf32>
}

// Of few rows the right factor stays as it is; the left one is converted where
// products are those of f32.
// CHECK-LABEL: func.func @in_order
// CHECK-NOT: linalg.copy
// CHECK: linalg.contract {{.*}} {varlen.in_order} ins(%{{.*}}, %{{.*}} : tensor<4x512xbf16>, tensor<256x512xbf16>)
// EXTEND-LABEL: func.func @in_order
// EXTEND: linalg.copy ins(%{{.*}} : tensor<4x512xbf16>) outs(%{{.*}} : tensor<4x512xf32>)
// EXTEND: linalg.contract {{.*}} {varlen.in_order} ins(%{{.*}}, %{{.*}} : tensor<4x512xf32>, tensor<256x512xbf16>)
func.func @in_order(%x: tensor<4x512xbf16>, %w: tensor<1024x512xbf16>, %z: tensor<4x1024xf32>) -> tensor<4x1024xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<4x512xbf16>, tensor<1024x512xbf16>) outs(%z : tensor<4x1024xf32>) -> tensor<4x1024xf32>
  return %0 : tensor<4x1024xf32>
}

// Panels of pairs cost less: five rows are many.
// CHECK-LABEL: func.func @many
// CHECK-NOT: varlen.in_order
// EXTEND-LABEL: func.func @many
// EXTEND: varlen.in_order
func.func @many(%x: tensor<5x512xbf16>, %w: tensor<1024x512xbf16>, %z: tensor<5x1024xf32>) -> tensor<5x1024xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<5x512xbf16>, tensor<1024x512xbf16>) outs(%z : tensor<5x1024xf32>) -> tensor<5x1024xf32>
  return %0 : tensor<5x1024xf32>
}

// RUN: varlen-opt %s --pass-pipeline="builtin.module(func.func(varlen-tile-linalg{target=avx2}))" | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// The fill, the product and what reads it, in one loop; the right factor's panels
// in another. For few rows, columns in place of panels.
// CHECK-LABEL: func.func @linear
// CHECK: arith.cmpi ule
// CHECK: scf.if
// CHECK:   scf.forall (%{{.*}}) in (1)
// CHECK:     linalg.fill
// CHECK:     linalg.matmul {{.*}} tensor<?x512xf32>, tensor<512x64xf32>
// CHECK:     linalg.generic
// CHECK: } else {
// CHECK: %[[PANELS:.*]] = scf.forall (%{{.*}}, %{{.*}}) in (2, 4)
// CHECK:   linalg.copy ins(%{{.*}} : tensor<256x16xf32>)
// CHECK: scf.forall (%[[B:.*]]) in (%{{.*}}) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<?x64xf32>)
// CHECK:   %[[ROWS:.*]] = affine.min
// CHECK:   linalg.fill ins({{.*}}) outs(%{{.*}} : tensor<?x64xf32>)
// CHECK:   scf.for %{{.*}} = %{{.*}} to %{{.*}} step
// CHECK:     bufferization.alloc_tensor() : tensor<96x256xf32>
// CHECK:     linalg.copy
// CHECK:     scf.for
// CHECK:       linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x256xf32>, tensor<256x16xf32>) outs(%{{.*}} : tensor<?x16xf32>)
// CHECK:   linalg.generic
// CHECK:   tensor.parallel_insert_slice
// CHECK-NOT: linalg.
// CHECK: return
func.func @linear(%x: tensor<?x512xf32>, %w: tensor<512x64xf32>, %bias: tensor<64xf32>, %n: index) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%n) : tensor<?x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x512xf32>, tensor<512x64xf32>) outs(%zeros : tensor<?x64xf32>) -> tensor<?x64xf32>
  %1 = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%0, %bias : tensor<?x64xf32>, tensor<64xf32>) outs(%empty : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %2 = arith.addf %a, %b : f32
    linalg.yield %2 : f32
  } -> tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// Few rows of a product whose right factor has the contracted loop last: columns, too,
// added up in the order of panels.
// CHECK-LABEL: func.func @in_order
// CHECK: %[[FEW:.*]] = arith.cmpi ule, %{{.*}}, %c8
// CHECK: scf.if %[[FEW]]
// CHECK:   scf.forall (%{{.*}}) in (4)
// CHECK:     linalg.contract {{.*}} {varlen.in_order} ins(%{{.*}}, %{{.*}} : tensor<?x512xf32>, tensor<256x512xf32>)
// CHECK: } else {
// CHECK:   scf.forall (%{{.*}}, %{{.*}}) in (2, 64)
// CHECK-NOT: varlen.in_order
// CHECK: return
func.func @in_order(%x: tensor<?x512xf32>, %w: tensor<1024x512xf32>, %z: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<?x512xf32>, tensor<1024x512xf32>) outs(%z : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  return %0 : tensor<?x1024xf32>
}

// Two contracted loops: no panels whose order that could be.
// CHECK-LABEL: func.func @two_depths
// CHECK-NOT: varlen.in_order
// CHECK: return
func.func @two_depths(%x: tensor<4x8x64xf32>, %w: tensor<1024x8x64xf32>, %z: tensor<4x1024xf32>) -> tensor<4x1024xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, j, k) -> (m, j, k)>, affine_map<(m, n, j, k) -> (n, j, k)>, affine_map<(m, n, j, k) -> (m, n)>]
      ins(%x, %w : tensor<4x8x64xf32>, tensor<1024x8x64xf32>) outs(%z : tensor<4x1024xf32>) -> tensor<4x1024xf32>
  return %0 : tensor<4x1024xf32>
}

// A producer that two operations of the loop read is computed once.
// CHECK-LABEL: func.func @twice
// CHECK-COUNT-1: scf.forall
// CHECK-COUNT-1: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK-NOT: scf.forall (
// CHECK: return
func.func @twice(%x: tensor<?x1024xf32>, %n: index) -> tensor<?x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty(%n) : tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?x1024xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>
  %p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x1024xf32>) outs(%empty : tensor<?x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<?x1024xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<?x1024xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p, %sum : tensor<?x1024xf32>, tensor<?xf32>) outs(%empty : tensor<?x1024xf32>) {
  ^bb0(%a: f32, %l: f32, %o: f32):
    %0 = arith.divf %a, %l : f32
    linalg.yield %0 : f32
  } -> tensor<?x1024xf32>
  return %y : tensor<?x1024xf32>
}

// What two loops read is a loop of its own.
// CHECK-LABEL: func.func @shared
// CHECK: scf.forall
// CHECK: linalg.exp
// CHECK: scf.forall
// CHECK: linalg.contract
// CHECK: scf.forall
// CHECK: linalg.contract
func.func @shared(%x: tensor<1024x64xf32>, %u: tensor<64x64xf32>, %v: tensor<64x64xf32>, %z: tensor<1024x64xf32>)
    -> (tensor<1024x64xf32>, tensor<1024x64xf32>) {
  %e = tensor.empty() : tensor<1024x64xf32>
  %p = linalg.exp ins(%x : tensor<1024x64xf32>) outs(%e : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  %0 = linalg.matmul ins(%p, %u : tensor<1024x64xf32>, tensor<64x64xf32>) outs(%z : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  %1 = linalg.matmul ins(%p, %v : tensor<1024x64xf32>, tensor<64x64xf32>) outs(%z : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  return %0, %1 : tensor<1024x64xf32>, tensor<1024x64xf32>
}

// Sums of a product in a narrow type are made in f32.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.extf
// CHECK: linalg.contract {{.*}} -> tensor<?x16xf32>
// CHECK: arith.truncf
func.func @narrow(%x: tensor<?x512xbf16>, %w: tensor<512x64xbf16>, %z: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %0 = linalg.matmul ins(%x, %w : tensor<?x512xbf16>, tensor<512x64xbf16>) outs(%z : tensor<?x64xbf16>) -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// Whole cache lines of the columns that become rows.
// CHECK-LABEL: func.func @transposed
// CHECK: scf.forall (%{{.*}}) in (8)
// CHECK: linalg.transpose ins(%{{.*}} : tensor<1805x128xf32>) outs(%{{.*}} : tensor<128x1805xf32>)
func.func @transposed(%x: tensor<1805x1024xf32>) -> tensor<1024x1805xf32> {
  %e = tensor.empty() : tensor<1024x1805xf32>
  %0 = linalg.transpose ins(%x : tensor<1805x1024xf32>) outs(%e : tensor<1024x1805xf32>) permutation = [1, 0]
  return %0 : tensor<1024x1805xf32>
}

// Too little to wake a thread for.
// CHECK-LABEL: func.func @small
// CHECK-NOT: scf.forall
// CHECK: return
func.func @small(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// In a loop of the user's on threads already.
// CHECK-LABEL: func.func @inside
// CHECK-COUNT-1: scf.forall (
// CHECK-NOT: scf.forall (
// CHECK: return
func.func @inside(%x: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %e = tensor.empty() : tensor<64x4096xf32>
  %0 = scf.forall (%i) in (64) shared_outs(%o = %e) -> tensor<64x4096xf32> {
    %a = tensor.extract_slice %x[%i, 0] [1, 4096] [1, 1] : tensor<64x4096xf32> to tensor<1x4096xf32>
    %b = tensor.extract_slice %o[%i, 0] [1, 4096] [1, 1] : tensor<64x4096xf32> to tensor<1x4096xf32>
    %1 = linalg.exp ins(%a : tensor<1x4096xf32>) outs(%b : tensor<1x4096xf32>) -> tensor<1x4096xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[%i, 0] [1, 4096] [1, 1] : tensor<1x4096xf32> into tensor<64x4096xf32>
    }
  }
  return %0 : tensor<64x4096xf32>
}

// What has no elements needs no tiles, whatever its other extents.
// CHECK-LABEL: func.func @empty
// CHECK-NOT: scf.forall
// CHECK: return
func.func @empty(%x: tensor<0x?xf32>, %o: tensor<0x?xf32>) -> tensor<0x?xf32> {
  %y = linalg.exp ins(%x : tensor<0x?xf32>) outs(%o : tensor<0x?xf32>) -> tensor<0x?xf32>
  return %y : tensor<0x?xf32>
}

// RUN: varlen-opt %s --varlen-choose-copies --split-input-file | FileCheck %s

// Scores read q by columns, dk by rows. What is in columns is a transposed
// tensor, and the map of the product is permuted.

// CHECK: #[[$MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #[[$KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK: #[[$MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: @orders
// CHECK-SAME: %[[ROWS:[^:]*]]: memref<?x8xf32>, %[[COLUMNS:[^:]*]]: memref<8x?xf32>
// CHECK-DAG: %[[Q:.*]] = bufferization.to_tensor %[[ROWS]] restrict : memref<?x8xf32> to tensor<?x8xf32>
// CHECK-DAG: %[[QT:.*]] = bufferization.to_tensor %[[COLUMNS]] restrict : memref<8x?xf32> to tensor<8x?xf32>
// CHECK-NOT: varlen.to_tile
// CHECK: linalg.contract indexing_maps = [#[[$MK]], #[[$KN]], #[[$MN]]] ins(%{{.*}}, %[[QT]] : tensor<16x8xf32>, tensor<8x?xf32>)
// CHECK: linalg.contract indexing_maps = [#[[$MK]], #[[$KN]], #[[$MN]]] ins(%{{.*}}, %[[Q]] : tensor<16x?xf32>, tensor<?x8xf32>)
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @orders(%q: memref<?x8xf32>, %q_t: memref<8x?xf32>, %k: tensor<16x8xf32>, %dk: tensor<16x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %qt = varlen.to_tile %q as rows, %q_t as columns : memref<?x8xf32>, memref<8x?xf32> to tensor<?x8xf32>
    %queries = memref.dim %q, %c0 : memref<?x8xf32>
    %empty = tensor.empty(%queries) : tensor<16x?xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x?xf32>) -> tensor<16x?xf32>
    %s = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%k, %qt : tensor<16x8xf32>, tensor<?x8xf32>) outs(%fill : tensor<16x?xf32>) -> tensor<16x?xf32>
    %d = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%s, %qt : tensor<16x?xf32>, tensor<?x8xf32>) outs(%dk : tensor<16x8xf32>) -> tensor<16x8xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

// -----

// In pairs: a product of the form (m, k) reads its left factor's pairs along a
// row, one of the form (k, m) from two rows; pairs of columns are pairs of rows
// of the transposed tensor.

// CHECK: #[[$MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #[[$KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: @pairs
// CHECK-SAME: %[[Q:[^:]*]]: memref<4x32xbf16>, %[[K:[^:]*]]: memref<16x8xbf16>, %[[KP:[^:]*]]: memref<8x16xbf16>
// CHECK-DAG: %[[QT:.*]] = varlen.to_tile %[[Q]] as row_pairs : memref<4x32xbf16> to tensor<8x16xbf16>
// CHECK-DAG: %[[KROWS:.*]] = bufferization.to_tensor %[[K]] restrict : memref<16x8xbf16> to tensor<16x8xbf16>
// CHECK-DAG: %[[KPAIRS:.*]] = varlen.to_tile %[[KP]] as row_pairs : memref<8x16xbf16> to tensor<16x8xbf16>
// CHECK-NOT: varlen.to_tile
// CHECK: linalg.contract indexing_maps = [#[[$MK]], #[[$KN]], #{{.*}}] ins(%[[KROWS]], %[[QT]] : tensor<16x8xbf16>, tensor<8x16xbf16>)
// CHECK: linalg.contract {{.*}} ins(%[[KPAIRS]], %{{.*}} : tensor<16x8xbf16>, tensor<16x16xbf16>)
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @pairs(%q: memref<4x32xbf16>, %k: memref<16x8xbf16>, %kp: memref<8x16xbf16>, %p: tensor<16x16xbf16>, %s: tensor<16x16xf32>, %o: tensor<8x16xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as column_pairs : memref<4x32xbf16> to tensor<16x8xbf16>
    %kt = varlen.to_tile %k as rows, %kp as row_pairs : memref<16x8xbf16>, memref<8x16xbf16> to tensor<16x8xbf16>
    %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%kt, %qt : tensor<16x8xbf16>, tensor<16x8xbf16>) outs(%s : tensor<16x16xf32>) -> tensor<16x16xf32>
    %1 = linalg.contract indexing_maps = [#km, #kn, #mn] ins(%kt, %p : tensor<16x8xbf16>, tensor<16x16xbf16>) outs(%o : tensor<8x16xf32>) -> tensor<8x16xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 16, vectors = 1, rows = 8, panels = 1, kv_block = 32, kv = pairs>}
  return
}

// -----

// Without a schedule it is not known what products read.

// CHECK-LABEL: @unscheduled
// CHECK: varlen.to_tile %{{.*}} as columns
func.func @unscheduled(%q: memref<6x8xf32>) -> tensor<8x6xf32> {
  %qt = varlen.to_tile %q as columns : memref<6x8xf32> to tensor<8x6xf32>
  return %qt : tensor<8x6xf32>
}

// -----

// A product of a part of the tile reads that part of a copy.

// CHECK-LABEL: @parts
// CHECK-SAME: %[[ROWS:[^:]*]]: memref<?x8xf32>, %[[COLUMNS:[^:]*]]: memref<8x?xf32>
// CHECK-DAG: %[[Q:.*]] = bufferization.to_tensor %[[ROWS]] restrict
// CHECK-DAG: %[[QT:.*]] = bufferization.to_tensor %[[COLUMNS]] restrict
// CHECK-NOT: varlen.to_tile
// CHECK-DAG: %[[ROW:.*]] = tensor.extract_slice %[[Q]][%[[AT:.*]], 0] [16, 8] [1, 1]
// CHECK-DAG: %[[COLUMN:.*]] = tensor.extract_slice %[[QT]][0, %[[AT]]] [8, 16] [1, 1]
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[COLUMN]] : tensor<16x8xf32>, tensor<8x16xf32>)
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[ROW]] : tensor<16x16xf32>, tensor<16x8xf32>)
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @parts(%q: memref<?x8xf32>, %q_t: memref<8x?xf32>, %k: tensor<16x8xf32>, %at: index, %s: tensor<16x16xf32>, %dk: tensor<16x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    %qt = varlen.to_tile %q as rows, %q_t as columns : memref<?x8xf32>, memref<8x?xf32> to tensor<?x8xf32>
    %part = tensor.extract_slice %qt[%at, 0] [16, 8] [1, 1] : tensor<?x8xf32> to tensor<16x8xf32>
    %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%k, %part : tensor<16x8xf32>, tensor<16x8xf32>) outs(%s : tensor<16x16xf32>) -> tensor<16x16xf32>
    %1 = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%0, %part : tensor<16x16xf32>, tensor<16x8xf32>) outs(%dk : tensor<16x8xf32>) -> tensor<16x8xf32>
  } {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 4, panels = 1, kv_block = 32, kv = copy>}
  return
}

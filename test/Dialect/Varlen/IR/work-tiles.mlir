// RUN: varlen-opt %s | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @plain
// CHECK: %tiles = varlen.work_tiles %{{.*}}, %{{.*}} rows(%{{.*}}, %{{.*}}) heads(%{{.*}}, %{{.*}}) mask <full> block_m 1 :
// CHECK-SAME: (memref<?xi32>, memref<4xi32>, index, index, index, index) -> memref<?x10xi64>
func.func @plain(%cu_q: memref<?xi32>, %cu_k: memref<4xi32>, %n: index) -> memref<?x10xi64> {
  %tiles = varlen.work_tiles %cu_q, %cu_k rows(%n, %n) heads(%n, %n)
      mask #varlen.mask<full> block_m 1
      : (memref<?xi32>, memref<4xi32>, index, index, index, index) -> memref<?x10xi64>
  return %tiles : memref<?x10xi64>
}

// An unused list stays: making it checks cu_seqlens.
// CHECK-LABEL: func.func @options
// CHECK: varlen.work_tiles %{{.*}}, %{{.*}} seqused_q(%{{.*}}) seqused_k(%{{.*}}) q_offset(%{{.*}}) rows({{.*}}) heads({{.*}}) mask <window = (512, 0), top_left> block_m 48 :
func.func @options(%cu: memref<?xi64>, %list: memref<?xi64>, %n: index) {
  %tiles = varlen.work_tiles %cu, %cu seqused_q(%list) seqused_k(%list) q_offset(%list)
      rows(%n, %n) heads(%n, %n) mask <window = (512, 0), top_left> block_m 48
      : (memref<?xi64>, memref<?xi64>, memref<?xi64>, memref<?xi64>, memref<?xi64>,
         index, index, index, index) -> memref<?x10xi64>
  return
}

// Of keys in pages.
// CHECK-LABEL: func.func @pages
// CHECK: varlen.work_tiles %{{.*}} seqused_k(%{{.*}}) block_table(%{{.*}}, %{{.*}}, %{{.*}}) rows(
// CHECK-SAME: (memref<?xi64>, memref<?xi64>, memref<?x?xi32>, index, index, index, index, index, index) -> memref<?x10xi64>
func.func @pages(%cu: memref<?xi64>, %used: memref<?xi64>, %table: memref<?x?xi32>, %n: index) {
  %tiles = varlen.work_tiles %cu block_table(%table, %n, %n) seqused_k(%used)
      rows(%n, %n) heads(%n, %n) mask <full> block_m 48
      : (memref<?xi64>, memref<?xi64>, memref<?x?xi32>, index, index, index, index, index,
         index) -> memref<?x10xi64>
  return
}

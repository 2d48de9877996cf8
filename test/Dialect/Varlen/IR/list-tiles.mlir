// RUN: varlen-opt %s | FileCheck %s
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --canonicalize | FileCheck %s

// An unused list stays: making it checks cu_seqlens.
// CHECK-LABEL: func.func @of_queries
// CHECK: %list, %count = varlen.list_tiles !varlen.tile<queries(128)> of %batch loops(1) : memref<?x2xi32>, memref<2xi64>
func.func @of_queries(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %list, %count = varlen.list_tiles !varlen.tile<queries(128)> of %batch loops(1) : memref<?x2xi32>, memref<2xi64>
  return
}

// CHECK-LABEL: func.func @in_parts
// CHECK: %list, %count, %first_parts = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(2) parts(1024, 32)
// CHECK-SAME: : memref<?x2xi32>, memref<3xi64>, memref<?xi32>
func.func @in_parts(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %list, %count, %parts = varlen.list_tiles !varlen.tile<queries(64)> of %batch loops(2) parts(1024, 32)
      : memref<?x2xi32>, memref<3xi64>, memref<?xi32>
  return
}

// Of keys, with weights, where another list has checked the batch.
// CHECK-LABEL: func.func @weights
// CHECK: varlen.list_tiles !varlen.tile<keys(64)> of %batch loops(1) checked(%{{.*}} : memref<2xi64>) by_head weights {
// CHECK-NEXT: ^bb0(%sequence: index, %tile: index, %kv_head: index):
// CHECK-NEXT: %[[WORK:.*]] = arith.index_cast %tile
// CHECK-NEXT: varlen.yield %[[WORK]] : i32
// CHECK-NEXT: } : memref<?x2xi32>, memref<2xi64>
func.func @weights(%cu: memref<?xi32>, %n: index, %checked: memref<2xi64>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %list, %count = varlen.list_tiles !varlen.tile<keys(64)> of %batch loops(1)
      checked(%checked : memref<2xi64>) by_head weights {
  ^bb0(%s: index, %t: index, %h: index):
    %work = arith.index_cast %t : index to i32
    varlen.yield %work : i32
  } : memref<?x2xi32>, memref<2xi64>
  return
}

// CHECK-LABEL: func.func @last_first
// CHECK: varlen.list_tiles !varlen.tile<keys(64)> of %batch loops(1) last_first : memref<?x2xi32>, memref<2xi64>
func.func @last_first(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %list, %count = varlen.list_tiles !varlen.tile<keys(64)> of %batch loops(1) last_first : memref<?x2xi32>, memref<2xi64>
  return
}

// CHECK-LABEL: func.func @reads
// CHECK: %sequence, %tile, %kv_head = varlen.read_tile %{{.*}}[%{{.*}}] heads(%{{.*}}) : memref<?x2xi32>
// CHECK: %q_row, %q_rows, %q_used, %k_row, %k_rows, %k_used = varlen.read_sequence %batch[%sequence] : index, index, index, index, index, index
func.func @reads(%cu: memref<?xi32>, %n: index, %list: memref<?x2xi32>, %item: i32)
    -> (index, index, index, index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %s, %t, %h = varlen.read_tile %list[%item] heads(%n) : memref<?x2xi32>
  %rows:6 = varlen.read_sequence %batch[%s] : index, index, index, index, index, index
  return %t, %h, %rows#0, %rows#5 : index, index, index, index
}

// CHECK-LABEL: func.func @offset
// CHECK: %q_row, %q_rows, %q_used, %k_row, %k_rows, %k_used, %offset = varlen.read_sequence
func.func @offset(%cu: memref<?xi32>, %n: index) -> index {
  %batch = varlen.batch %cu, %cu q_offset(%cu : memref<?xi32>) rows(%n, %n) heads(%n, %n) mask <causal>
      : memref<?xi32>, memref<?xi32>
  %rows:7 = varlen.read_sequence %batch[%n] : index, index, index, index, index, index, index
  return %rows#6 : index
}

// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-assign-schedule{target=avx2},varlen-tile-attn,canonicalize,cse)' --split-input-file | FileCheck %s

// A number of each row and head is a row of one column, a number of each head one that all
// rows share: both are read as rows are. Steps have keys as numbers, and their scales.
// CHECK-LABEL: func.func @packed
// CHECK-SAME: %[[K:[a-z0-9]+]]: memref<?x2x16xi8>
// CHECK-SAME: %[[ROWS:[a-z0-9]+]]: memref<?x2xf32>, %[[HEADS:[a-z0-9]+]]: memref<2xf32>
// CHECK-DAG: %[[KEYS:.*]] = memref.dim %[[K]], %c0
// CHECK-DAG: %[[OFROWS:.*]] = memref.reinterpret_cast %[[ROWS]] to offset: [0], sizes: [%[[KEYS]], 2, 1], strides: [2, 1, 1]
// CHECK-DAG: %[[KSCALE:.*]] = memref.cast %[[OFROWS]]
// CHECK-DAG: %[[OFHEADS:.*]] = memref.reinterpret_cast %[[HEADS]] to offset: [0], sizes: [%[[KEYS]], 2, 1], strides: [0, 1, 1]
// CHECK-DAG: %[[VSCALE:.*]] = memref.cast %[[OFHEADS]]
// CHECK: %[[KTILE:.*]] = varlen.read %[[K]] at %[[B:.*]] : memref<?x2x16xi8>, <keys(128)> -> tensor<128x16xf32>
// CHECK: %[[OFK:.*]] = varlen.read %[[KSCALE]] at %[[B]] : {{.*}}, <keys(128)> -> tensor<128x1xf32>
// CHECK: %[[OFV:.*]] = varlen.read %[[VSCALE]] at %[[B]] : {{.*}}, <keys(128)> -> tensor<128x1xf32>
// CHECK: varlen.online_attn kq {{.*}} k_scale(%[[OFK]] : tensor<128x1xf32>) v_scale(%[[OFV]] : tensor<128x1xf32>)
func.func @packed(%q: memref<?x4x16xbf16>, %k: memref<?x2x16xi8>, %cu: memref<?xi32>,
                  %rows: memref<?x2xf32>, %heads: memref<2xf32>, %out: memref<?x4x16xbf16>,
                  %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse) k_scale(%rows) v_scale(%heads)
      : (memref<?x4x16xbf16>, memref<?x2x16xi8>, memref<?x2x16xi8>, memref<?xi32>,
         memref<?xi32>, memref<?x4x16xbf16>, memref<4x?xf32>, memref<?x2xf32>, memref<2xf32>) -> ()
  return
}

// -----

// In pages a number of each page and head is shared by the rows of a page.
// CHECK-LABEL: func.func @pages
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%{{.*}}, 8, 2, 1], strides: [2, 0, 1, 1]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%{{.*}}, 8, 2, 1], strides: [16, 2, 1, 1]
func.func @pages(%q: memref<?x4x16xf32>, %k: memref<?x8x2x16xf8E4M3FN>, %cu: memref<?xi32>,
                 %used: memref<?xi32>, %table: memref<?x?xi32>, %pages: memref<?x2xf32>,
                 %rows: memref<?x8x2xf32>, %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      k_scale(%pages) v_scale(%rows)
      : (memref<?x4x16xf32>, memref<?x8x2x16xf8E4M3FN>, memref<?x8x2x16xf8E4M3FN>,
         memref<?xi32>, memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>, memref<?x?xi32>,
         memref<?x2xf32>, memref<?x8x2xf32>) -> ()
  return
}

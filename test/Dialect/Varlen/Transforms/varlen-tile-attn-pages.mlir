// RUN: varlen-opt %s --pass-pipeline='builtin.module(varlen-assign-schedule{target=avx2},varlen-tile-attn,canonicalize,cse)' | FileCheck %s

// A batch of pages: as many keys as those of a sequence have, and what the runtime checks.
// CHECK-LABEL: func.func @pages
// CHECK-SAME: %[[Q:.*]]: memref<?x4x16xf32>, %[[K:.*]]: memref<?x8x2x16xf32>, %[[V:.*]]: memref<?x8x2x24xf32>, %[[CU:.*]]: memref<?xi32>, %[[USED:.*]]: memref<?xi32>, %[[TABLE:.*]]: memref<?x?xi32>, %{{.*}}: memref<?x4x24xf32>
// CHECK-DAG: %[[PAGES:.*]] = memref.dim %[[K]], %c0
// CHECK-DAG: %[[WIDTH:.*]] = memref.dim %[[TABLE]], %c1
// CHECK: %[[ROWS:.*]] = arith.muli %[[WIDTH]], %c8
// CHECK: varlen.batch %[[CU]] seqused_k(%[[USED]] : memref<?xi32>) block_table(%[[TABLE]] : memref<?x?xi32>, %[[PAGES]], %c8) rows(%{{.*}}, %[[ROWS]])
// CHECK: varlen.read %[[K]] at %{{.*}} : memref<?x8x2x16xf32>, <keys(
// CHECK: varlen.read %[[V]] at %{{.*}} : memref<?x8x2x24xf32>, <keys(
func.func @pages(%q: memref<?x4x16xf32>, %k: memref<?x8x2x16xf32>, %v: memref<?x8x2x24xf32>,
                 %cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>,
                 %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      : (memref<?x4x16xf32>, memref<?x8x2x16xf32>, memref<?x8x2x24xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>, memref<?x?xi32>) -> ()
  return
}

// RUN: varlen-opt %s --varlen-tile-attn | FileCheck %s --implicit-check-not=arith.constant --implicit-check-not=memref.dim

// Each constant and each extent is there once, whatever asks for it: the checks
// of extents, the batch, or the function itself.

// CHECK-LABEL: @once
// CHECK-DAG: arith.constant 0 : index
// CHECK-DAG: arith.constant 1 : index
// CHECK-DAG: arith.constant 2 : index
// The numbers of three rules about extents.
// CHECK-DAG: arith.constant 5 : index
// CHECK-DAG: arith.constant 6 : index
// CHECK-DAG: arith.constant 67 : index
// CHECK: memref.dim %arg2, %c0
// CHECK: memref.dim %arg1, %c0
// CHECK: memref.dim %arg4, %c0
// CHECK: %[[ROWS:.*]] = memref.dim %arg0, %c0
// CHECK: memref.dim %arg5, %c1
// CHECK: varlen.batch {{.*}} rows(%[[ROWS]],
// CHECK: return %[[ROWS]] : index
func.func @once(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x16xf32>, %cu: memref<?xi32>,
                %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>) -> index {
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 8, panels = 2,
                                              kv_block = 32, kv = copy>}
      : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  %zero = arith.constant 0 : index
  %rows = memref.dim %q, %zero : memref<?x4x16xf32>
  return %rows : index
}

// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-cpu | FileCheck %s

// Without a form for few queries no tile has few: all are in panels, and the
// schedule is around them.

// CHECK: varlen.split_tiles %{{.*}} group %{{.*}} kv_block 32 few 0 :
// CHECK: scf.forall
// CHECK-NOT: varlen.online_attn qk
// CHECK: varlen.online_attn kq
// CHECK-NOT: varlen.online_attn
// CHECK: } else {
// CHECK: varlen.fill_rows
// CHECK: } {varlen.schedule = #varlen.cpu_schedule<lanes = 8,
func.func @f(%q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %cu: memref<?xi32>, %out: memref<?x4x16xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse) {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 2, kv_block = 32, kv = copy>} : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  return
}

// RUN: varlen-opt %s --varlen-tile-attn --varlen-specialize-few --convert-varlen-to-cpu --canonicalize --cse --split-input-file | FileCheck %s

// A block of 16 keys lies in one page of 32: it is read where it is, by the entry of the
// table, whatever that is by now within memory. The table's row is in the list.
// CHECK-LABEL: func.func @blocks_in_pages
// CHECK-SAME: %[[K:[^:]*]]: memref<?x32x2x16xf32>, %[[V:[^:]*]]: memref<?x32x2x24xf32>, %{{.*}}: memref<?xi32>, %[[USED:[^:]*]]: memref<?xi32>, %[[TABLE:[^:]*]]: memref<?x?xi32>
// CHECK-DAG: %[[PAGES:.*]] = memref.dim %[[K]], %c0
// CHECK-DAG: %[[WIDTH:.*]] = memref.dim %[[TABLE]], %c1
// CHECK: varlen.work_tiles %{{.*}} seqused_k(%[[USED]]) block_table(%[[TABLE]], %[[PAGES]], %c32)
// CHECK: %[[ITEM:.*]]:13 = varlen.read_work
// Few queries.
// CHECK: scf.for %[[K0:[^ ]*]] = %{{.*}} to %{{.*}} step %c16
// CHECK-NOT: varlen.prefetch_rows
// CHECK: varlen.load_rows %[[K]] rows(%[[ITEM]]#4, %[[ITEM]]#3, %[[K0]]) valid(%{{.*}}) pages(%[[TABLE]] : memref<?x?xi32>) {one_page}
// CHECK: varlen.load_rows %[[V]] {{.*}} {one_page}
// CHECK: varlen.online_attn qk
// A single panel asks for the block behind, and reads this one by the entry of its page.
// CHECK: scf.for %[[K0:[^ ]*]] = %{{.*}} to %{{.*}} step %c16
// CHECK: scf.if
// CHECK: %[[SLOT:.*]] = arith.divui %[[K0]], %c32
// CHECK: %[[LAST:.*]] = arith.subi %[[WIDTH]], %c1
// CHECK: %[[COLUMN:.*]] = arith.minsi %[[SLOT]], %[[LAST]]
// CHECK: %[[ENTRY:.*]] = memref.load %[[TABLE]][%[[ITEM]]#4, %[[COLUMN]]]
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[ENTRY]] : i32 to index
// CHECK: %[[POSITIVE:.*]] = arith.maxsi %[[INDEX]], %c0
// CHECK: %[[LASTPAGE:.*]] = arith.subi %[[PAGES]], %c1
// CHECK: %[[PAGE:.*]] = arith.minsi %[[POSITIVE]], %[[LASTPAGE]]
// CHECK: %[[KPAGE:.*]] = memref.subview %[[K]][%[[PAGE]], 0, 0, 0] [1, 32, 2, 16]
// CHECK: %[[FIRST:.*]] = arith.remui %[[K0]], %c32
// CHECK: memref.subview %[[KPAGE]][%[[FIRST]], %{{.*}}, 0] [%{{.*}}, 1, 16]
// CHECK: varlen.prefetch_rows %[[K]] {{.*}} {one_page}
// CHECK: varlen.prefetch_rows %[[V]] {{.*}} {one_page}
// CHECK: varlen.online_attn kq
func.func @blocks_in_pages(
    %q: memref<?x4x16xf32>, %k: memref<?x32x2x16xf32>, %v: memref<?x32x2x24xf32>,
    %cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>,
    %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 2, panels = 2, kv_block = 16, kv = copy>}
      : (memref<?x4x16xf32>, memref<?x32x2x16xf32>, memref<?x32x2x24xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>, memref<?x?xi32>) -> ()
  return
}

// -----

// Blocks of 16 keys in pages of 6, which have no whole register blocks of 8 keys, are
// copied in either orientation, and few queries ask for none before.
// CHECK-LABEL: func.func @pages_in_blocks
// CHECK-SAME: %[[K:[^:]*]]: memref<?x6x2x16xbf16>, %[[V:[^:]*]]: memref<?x6x2x24xbf16>
// CHECK: scf.for %[[K0:[^ ]*]] = %{{.*}} to %{{.*}} step %c16
// CHECK-NOT: varlen.prefetch_rows
// CHECK: varlen.read_rows %[[K]] rows(%{{.*}}, %{{.*}}, %[[K0]], %c1) valid(%{{.*}}) pages(%{{.*}} : memref<?x?xi32>) to %{{.*}} as rows :
// CHECK: varlen.read_rows %[[V]] {{.*}} as rows :
// CHECK: varlen.online_attn qk
// CHECK: varlen.read_rows %[[V]] {{.*}} as row_pairs :
// CHECK: varlen.read_rows %[[K]] {{.*}} as rows :
// CHECK: varlen.online_attn kq
func.func @pages_in_blocks(
    %q: memref<?x4x16xbf16>, %k: memref<?x6x2x16xbf16>, %v: memref<?x6x2x24xbf16>,
    %cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>,
    %out: memref<?x4x24xbf16>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 2, panels = 2, kv_block = 16, kv = pairs>}
      : (memref<?x4x16xbf16>, memref<?x6x2x16xbf16>, memref<?x6x2x24xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x24xbf16>, memref<4x?xf32>, memref<?x?xi32>) -> ()
  return
}

// -----

// Pages whose size is known when the function runs: few queries read multiples of 8
// rows where they are, others in a copy.
// CHECK-LABEL: func.func @dynamic_pages
// CHECK-SAME: %[[K:[^:]*]]: memref<?x?x2x16xf32>
// CHECK: %[[ROWS:.*]] = memref.dim %[[K]], %c1
// CHECK: %[[REST:.*]] = arith.remui %[[ROWS]], %c8
// CHECK: %[[INPLACE:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK: scf.if %[[INPLACE]]
// CHECK-NOT: varlen.read_rows
// CHECK: varlen.load_rows %[[K]] {{.*}} pages(%{{.*}} : memref<?x?xi32>) : memref<?x?x2x16xf32> -> tensor<?x16xf32>
// CHECK: varlen.online_attn qk
// CHECK: } else {
// CHECK: varlen.read_rows %[[K]]
// CHECK-NOT: varlen.load_rows
// CHECK: varlen.online_attn qk
// CHECK: varlen.online_attn kq
func.func @dynamic_pages(
    %q: memref<?x4x16xf32>, %k: memref<?x?x2x16xf32>, %v: memref<?x?x2x24xf32>,
    %cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>,
    %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 2, panels = 2, kv_block = 16, kv = copy>}
      : (memref<?x4x16xf32>, memref<?x?x2x16xf32>, memref<?x?x2x24xf32>, memref<?xi32>,
         memref<?xi32>, memref<?x4x24xf32>, memref<4x?xf32>, memref<?x?xi32>) -> ()
  return
}

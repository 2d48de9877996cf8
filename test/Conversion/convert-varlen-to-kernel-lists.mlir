// Lists of tiles, as long as they are operations.
// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel | FileCheck %s

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>

// The list stands where the batch does, which kernels read sequences of; what a CTA takes next is
// counted behind the number of tiles. A tile is read again behind its blocks.
// CHECK-LABEL: func.func @forward
// CHECK: %[[BATCH:.*]] = varlen.batch
// CHECK: %[[LIST:.*]], %[[COUNT:.*]] = varlen.list_tiles !varlen.tile<queries(64)> of %[[BATCH]] loops(1) : memref<?x2xi32>, memref<2xi64>
// CHECK: memref.dim %[[LIST]], %c0
// CHECK: gpu.launch {{.*}} function(@forward_attn)
// CHECK: memref.load %[[COUNT]][%c0]
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (i32, i32)
// CHECK: ^bb0(%[[ITEM:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: %[[S:.*]], %[[TILE:.*]], %[[HEAD:.*]] = varlen.read_tile %[[LIST]][%[[ITEM]]] heads(%c2)
// CHECK-NEXT: %q_row, %q_rows, %q_used, %k_row, %k_rows, %k_used = varlen.read_sequence %[[BATCH]][%[[S]]]
// CHECK: scf.for
// CHECK: kernel.take %[[COUNT]][%c1]
// CHECK-NEXT: varlen.read_tile %[[LIST]][%[[ITEM]]]
// CHECK-NEXT: varlen.read_sequence %[[BATCH]]
// CHECK: memref.dealloc %[[LIST]]
// CHECK: memref.dealloc %[[COUNT]]
func.func @forward(%q: memref<?x2x64xbf16>, %cu: memref<?xi32>, %out: memref<?x2x64xbf16>,
                   %lse: memref<2x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse)
      {mask = #varlen.mask<causal>, varlen.schedule = #gpu}
      : (memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x2x64xbf16>, memref<2x?xf32>) -> ()
  return
}

// A score region that hides keys says how much work a tile is.
// CHECK-LABEL: func.func @hidden
// CHECK: varlen.list_tiles {{.*}} by_head weights {
// CHECK-NEXT: ^bb0(%[[S:.*]]: index, %[[TILE:.*]]: index, %[[HEAD:.*]]: index):
// CHECK-NEXT: varlen.read_sequence %{{.*}}[%[[S]]]
// CHECK: varlen.yield %{{.*}} : i32
func.func @hidden(%q: memref<?x2x64xbf16>, %cu: memref<?xi32>, %prefix: memref<2x?xf32>,
                  %out: memref<?x2x64xbf16>, %lse: memref<2x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) captures(%prefix)
      {mask = #varlen.mask<full>, varlen.schedule = #gpu}
      : (memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x2x64xbf16>, memref<2x?xf32>, memref<2x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %limit: f32) {
        %x = arith.sitofp %j : i32 to f32
        %visible = arith.cmpf olt, %x, %limit : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

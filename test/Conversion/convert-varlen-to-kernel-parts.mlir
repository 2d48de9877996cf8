// RUN: varlen-opt %s --varlen-tile-attn --varlen-split-kv --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

// Parts of 4 x 32 keys, of sequences with up to 32 / 4 queries.

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2, few_part = 4>

// CHECK-LABEL: @causal
func.func @causal(%q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>, %v: memref<?x2x24xbf16>,
                  %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>) {
  // Entries for parts of all keys, beside those for tiles, and where the first part of each
  // sequence is.
  // CHECK: %[[PARTS:.*]] = arith.divui %{{.*}}, %c128
  // CHECK: %[[ENTRIES:.*]] = arith.addi %{{.*}}, %[[PARTS]]
  // CHECK: %[[LIST:.*]] = memref.alloc(%[[ENTRIES]]) : memref<?x2xi32>
  // CHECK: %[[FIRST:.*]] = memref.alloc(%{{.*}}) : memref<?xi32>
  // CHECK: function(@causal_tiles_in_one_cta)
  // CHECK: arith.cmpi sle, %{{.*}}, %c32
  // CHECK: memref.store %{{.*}}, %[[FIRST]]
  // CHECK: function(@causal_tiles_segments)
  // CHECK: arith.cmpi sle, %{{.*}}, %c32
  // CHECK: function(@causal_tiles)
  // CHECK: memref.store %{{.*}}, %[[FIRST]]
  // CHECK: %[[ACC:.*]] = memref.alloc(%[[ROWS:.*]]) : memref<?x1x32xf32>
  // CHECK: %[[ML:.*]] = memref.alloc(%[[ROWS]]) : memref<1x?x2xf32>

  // A part visits its keys among those that the mask leaves, and stores its state.
  // CHECK: function(@causal_attn)
  // CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (i32, i32)
  // CHECK: %[[COUNT:.*]] = arith.select %{{.*}}, %{{.*}}, %c1 : index
  // CHECK: %[[IS_PART:.*]] = arith.cmpi sgt, %[[COUNT]], %c1
  // CHECK: %[[PART:.*]] = arith.select %[[IS_PART]], %{{.*}}, %c0
  // CHECK: %[[BEGIN:.*]] = arith.muli %[[PART]], %c128
  // CHECK: %[[END:.*]] = arith.addi %[[BEGIN]], %c128
  // CHECK: arith.maxsi %[[BEGIN]]
  // CHECK: arith.minsi %{{.*}}, %[[END]]
  // CHECK-COUNT-2: varlen.online_attn qk
  // CHECK: %[[IS_WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c1 : index
  // CHECK: scf.if %[[IS_WHOLE]] {
  // CHECK:   varlen.online_finish
  // CHECK:   kernel.store %{{.*}} to %{{.*}} : tensor<64x32xbf16> to memref<?x8x24xbf16>
  // CHECK: } else {
  // CHECK:   kernel.store %{{.*}} to %[[ACC]] rows(%[[ROW:.*]], %c0, %c0, %c1)
  // CHECK:   kernel.store %{{.*}}, %{{.*}} to %[[ML]] rows(%[[ROW]], %c0, %c0, %c1)
  // CHECK: }

  // States are merged in the order of parts, which is that of the list turned round.
  // CHECK: function(@causal_attn_merge)
  // CHECK: scf.for
  // CHECK: %[[AT:.*]] = memref.load %[[FIRST]]
  // CHECK: %[[LAST:.*]] = arith.index_cast %[[AT]]
  // CHECK: kernel.load %[[ACC]]
  // CHECK: kernel.load %[[ML]]
  // CHECK: scf.for %[[P:.*]] = %c1 to %{{.*}} step %c1
  // CHECK:   arith.subi %[[LAST]], %[[P]]
  // CHECK:   %[[MORE:.*]] = kernel.load %[[ACC]]
  // CHECK:   %[[NUMBERS:.*]]:2 = kernel.load %[[ML]]
  // CHECK:   varlen.online_merge qk %{{.*}}, %{{.*}}, %{{.*}} with %[[MORE]], %[[NUMBERS]]#0, %[[NUMBERS]]#1
  // CHECK: varlen.online_finish
  // CHECK: kernel.store %{{.*}} : tensor<64x32xbf16> to memref<?x8x24xbf16>
  // CHECK: kernel.store %{{.*}} : tensor<64x1xf32> to memref<8x?xf32>
  // CHECK: memref.dealloc %[[ACC]]
  // CHECK: memref.dealloc %[[ML]]
  // CHECK: memref.dealloc %[[FIRST]]
  varlen.attn %q, %k, %v, %cu_q, %cu_k outs(%out, %lse)
      {mask = #varlen.mask<causal>, varlen.schedule = #gpu}
      : (memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x24xbf16>, memref<8x?xf32>) -> ()
  return
}

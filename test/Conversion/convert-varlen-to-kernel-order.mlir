// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel -canonicalize -cse | FileCheck %s

// Tiles of keys add up dq in their order.

// CHECK-LABEL: @gradients
// CHECK-SAME: memref<?xi32>, %[[DQ:[a-z0-9]*]]: memref<?x4x64xbf16>
func.func @gradients(%q: memref<?x4x64xbf16>, %k: memref<?x2x64xbf16>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                     %dq: memref<?x4x64xbf16>, %dk: memref<?x2x64xbf16>, %dv: memref<?x2x64xbf16>) {
  // The last tile is the first of its sequence.
  // CHECK: varlen.list_tiles !varlen.tile<queries(64)>
  // CHECK-NOT: last_first
  // CHECK: %{{.*}}, %[[COUNT:.*]] = varlen.list_tiles !varlen.tile<keys(128)> of %{{.*}} last_first

  // Numbers of each block of 128 queries and head, and a counter for each of 8 warps.
  // CHECK: %[[SUMS:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
  // CHECK: %[[COUNTERS:.*]] = memref.alloc(%{{.*}}) : memref<?xi32>

  // The kernel before clears them.
  // CHECK: gpu.launch {{.*}} function(@gradients_delta)
  // CHECK: scf.for
  // CHECK-NEXT: memref.store %c0_i32, %[[COUNTERS]]
  // CHECK: kernel.store %{{.*}} to %[[DQ]]

  // CHECK: gpu.launch {{.*}} function(@gradients_dqkv)
  // The first item is taken, too.
  // CHECK: kernel.take %[[COUNT]][%c1] to %[[SLOT:.*]] :
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: %[[TAKEN:.*]] = memref.load %[[SLOT]]
  // CHECK-NEXT: %[[FIRST:.*]] = arith.trunci %[[TAKEN]] : i64 to i32
  // CHECK: scf.while (%{{.*}} = %[[FIRST]]
  // Its neighbours' blocks, and its turn.
  // CHECK: %[[HAS_NEXT:.*]] = arith.andi
  // CHECK: %[[HAS_PREVIOUS:.*]] = arith.andi
  // CHECK: %[[NEXT:.*]] = arith.select %{{.*}}, %{{.*}}, %c2147483647_i32 : i32
  // CHECK: %[[PREVIOUS:.*]] = arith.select %{{.*}}, %{{.*}}, %c0_i32 : i32
  // CHECK: %[[TURN:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[G:.*]], %{{.*}}, %{{.*}} = varlen.online_attn_grad kq {{.*}} limits({{.*}} dq(
  // CHECK: %[[IS_FIRST:.*]] = arith.cmpi slt, %[[BLOCK:.*]], %[[NEXT]] : i32
  // CHECK: %[[IS_LAST:.*]] = arith.cmpi sle, %[[PREVIOUS]], %[[BLOCK]] : i32
  // CHECK: %[[TOTAL:.*]] = kernel.add_in_order %[[G]] to %[[SUMS]][%{{.*}}] of %[[COUNTERS]] turn(%[[TURN]], %[[IS_FIRST]], %[[IS_LAST]])
  // CHECK: scf.if %[[IS_LAST]] {
  // CHECK: linalg.generic {{.*}} ins(%[[TOTAL]] :
  // CHECK: arith.mulf
  // CHECK: arith.truncf
  // CHECK: kernel.store %{{.*}} to %[[DQ]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c1) valid(%{{.*}}) : tensor<128x64xbf16> to memref<?x4x64xbf16>
  // CHECK: kernel.add_in_order
  // The next item is what is taken, not a CTA's number further.
  // CHECK: kernel.take %[[COUNT]][%c1] to %[[SLOT]] :
  // CHECK: memref.dealloc %[[SUMS]]
  // CHECK: memref.dealloc %[[COUNTERS]]
  varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu outs(%dq, %dk, %dv) {
    mask = #varlen.mask<causal>, varlen.schedule = #varlen.gpu_grad_schedule<
      dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 2>,
      dk = <warps = 8, block_m = 128, kv_block = 128, stages = 2, ctas = 1, five_products = 1>>
  } : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>) -> ()
  return
}

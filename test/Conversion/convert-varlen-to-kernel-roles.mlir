// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

#gpu = #varlen.gpu_schedule<warps = 8, block_m = 128, kv_block = 32, stages = 3, ctas = 1, producers = 4>

// CHECK-LABEL: @causal
func.func @causal(%q: memref<?x8x64xbf16>, %k: memref<?x2x64xbf16>, %cu: memref<?xi32>,
                  %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  // Twelve warps; 65536 registers are 168 for each thread.
  // CHECK: gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c384, {{.*}}function(@causal_attn)
  // CHECK: %[[KV:.*]] = kernel.ring stages(3) : <memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{.*}}>>
  // CHECK: %[[ITEMS:.*]] = kernel.ring stages(1) : <memref<1x128x64xbf16, {{.*}}>, memref<1xi32, {{.*}}>>
  // CHECK: %[[TAKEN:.*]] = kernel.alloc : memref<1xi64
  // CHECK-NOT: kernel.ring.restart
  // CHECK: gpu.barrier
  // CHECK-NEXT: kernel.roles consumers(8) registers(232) {

  // Consumers: no copies, no barrier. The number of the item comes with its rows, and slots are
  // counted on modulo two turns of each ring.
  // CHECK-NEXT: scf.while (%[[TURN:.*]] = %c0_i32, %{{.*}} = %c0_i32)
  // CHECK-NEXT: %[[SLOT:.*]]:2 = kernel.ring.wait %[[ITEMS]][%[[TURN]]] younger 0
  // CHECK-NEXT: %[[ITEM:.*]] = memref.load %[[SLOT]]#1[%c0]
  // CHECK-NEXT: arith.cmpi slt, %[[ITEM]], %{{.*}} : i32
  // CHECK-NOT: gpu.barrier
  // CHECK: ^bb0(%[[TURN:.*]]: i32, %[[BASE:.*]]: i32):
  // CHECK: kernel.ring.slot %[[ITEMS]][%[[TURN]]]
  // CHECK: %[[END:.*]] = arith.addi %[[BASE]], %{{.*}} : i32
  // CHECK: scf.for %[[I:.*]] = %[[BASE]] to %[[END]]
  // CHECK:   kernel.ring.wait %[[KV]][%[[I]]]
  // CHECK:   varlen.online_attn
  // CHECK:   kernel.ring.release %[[KV]][%[[I]]]
  // CHECK: scf.for %[[I:.*]] = %[[END]] to
  // CHECK:   kernel.ring.wait %[[KV]][%[[I]]]
  // CHECK:   varlen.online_attn
  // CHECK:   kernel.ring.release %[[KV]][%[[I]]]
  // Warps without a row release slots all the same.
  // CHECK: } else {
  // CHECK:   scf.for %[[I:.*]] = %[[BASE]] to
  // CHECK:     kernel.ring.wait %[[KV]][%[[I]]]
  // CHECK:     kernel.ring.release %[[KV]][%[[I]]]
  // CHECK: kernel.ring.release %[[ITEMS]][%[[TURN]]]
  // CHECK: varlen.online_finish
  // CHECK: %[[NEXT:.*]] = arith.addi %[[TURN]], %c1_i32
  // CHECK: arith.remui %[[NEXT]], %c2_i32
  // CHECK: %[[NEXT:.*]] = arith.addi %[[BASE]], %{{.*}}
  // CHECK: arith.remui %[[NEXT]], %c6_i32

  // Producers: the number of the next item is taken, two blocks are copied, then the rows of
  // the tile, the other blocks.
  // CHECK: } producers(4) registers(32) {
  // CHECK: ^bb0(%[[ITEM:.*]]: i32, %[[TURN:.*]]: i32, %[[BASE:.*]]: i32):
  // CHECK: kernel.take %{{.*}} to %[[TAKEN]]
  // CHECK: scf.if
  // CHECK:   kernel.ring.acquire %[[KV]][%[[BASE]]]
  // CHECK-COUNT-2: kernel.copy %arg1
  // CHECK: scf.if
  // CHECK:   %[[SECOND:.*]] = arith.addi %[[BASE]], %c1_i32
  // CHECK:   kernel.ring.acquire %[[KV]][%[[SECOND]]]
  // CHECK-COUNT-2: kernel.copy %arg1
  // CHECK: %[[SLOT:.*]]:2 = kernel.ring.acquire %[[ITEMS]][%[[TURN]]]
  // CHECK-NEXT: kernel.put %[[ITEM]] to %[[SLOT]]#1
  // CHECK-NEXT: kernel.copy %arg0 {{.*}} to %[[SLOT]]#0
  // CHECK-NEXT: kernel.ring.commit %[[ITEMS]]
  // CHECK-NEXT: scf.for %[[I:.*]] = %c2_i32 to
  // CHECK-NEXT:   %[[AT:.*]] = arith.addi %[[BASE]], %[[I]]
  // CHECK-NEXT:   kernel.ring.acquire %[[KV]][%[[AT]]]
  // CHECK-COUNT-2: kernel.copy %arg1
  // CHECK: gpu.barrier
  // CHECK-NEXT: memref.load %[[TAKEN]]
  // CHECK: gpu.barrier
  // The last number is that of no item.
  // CHECK: kernel.ring.acquire %[[ITEMS]]
  // CHECK-NEXT: kernel.put
  // CHECK-NEXT: kernel.ring.commit %[[ITEMS]]
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #gpu, mask = #varlen.mask<causal>}
      : (memref<?x8x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}

#grad = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1, producers = 4>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1, producers = 4>>

// Zeros of the gradient of a table come before a barrier of the consumers; statistics have no
// blocks, and no producers.
// CHECK-LABEL: @queries
// CHECK-SAME: %[[DBIAS:[a-z0-9]*]]: memref<4x?x?xf32>)
func.func @queries(%q: memref<?x4x64xbf16>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                   %bias: memref<4x?x?xf32>, %dq: memref<?x4x64xbf16>, %dk: memref<?x4x64xbf16>,
                   %dv: memref<?x4x64xbf16>, %dbias: memref<4x?x?xf32>) {
  // CHECK: function(@queries_delta)
  // CHECK-NOT: kernel.roles
  // CHECK: function(@queries_dq)
  // CHECK: kernel.roles consumers(4) registers(240) {
  // CHECK: memref.store %{{.*}}, %[[DBIAS]]
  // CHECK: gpu.barrier
  // CHECK: varlen.online_attn_grad qk
  // CHECK: } producers(4) registers(32) {
  // CHECK: function(@queries_dkv)
  // CHECK: kernel.roles consumers(4) registers(240) {
  // CHECK-NOT: gpu.barrier
  // CHECK: varlen.online_attn_grad kq
  // CHECK: } producers(4) registers(32) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dbias)
      captures(%bias) {wrt_captures = array<i64: 0>, varlen.schedule = #grad}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>,
         memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x64xbf16>,
         memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<4x?x?xf32>, memref<4x?x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}

#maps = #varlen.gpu_schedule<warps = 8, block_m = 128, kv_block = 32, stages = 3, ctas = 1, producers = 4, maps = 1>

// Producers make maps of what they copy, those of a CTA side by side: of tiles of queries, of blocks of keys, and of values.
// CHECK-LABEL: @maps(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: memref<?x8x64xbf16>, %[[K:[a-z0-9]*]]: memref<?x8x64xbf16>, %[[V:[a-z0-9]*]]: memref<?x8x64xbf16>,
func.func @maps(%q: memref<?x8x64xbf16>, %k: memref<?x8x64xbf16>, %v: memref<?x8x64xbf16>,
                %cu: memref<?xi32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  // No more CTAs than memory has maps for.
  // CHECK: %[[CTAS:.*]] = arith.minsi %{{.*}}, %c256 : index
  // CHECK: %[[MEMORY:.*]] = memref.alloc() : memref<768x128xi8>
  // CHECK: %[[SOME:.*]] = arith.maxsi %[[CTAS]], %c1
  // CHECK: gpu.launch blocks(%[[BLOCK:[a-z0-9_]+]], {{.*}}) in (%{{.*}} = %[[SOME]],
  // CHECK-NOT: kernel.tensor_map
  // Blocks that nothing cuts are whole.
  // CHECK-COUNT-2: kernel.ring.wait %{{.*}} younger {{[01]}} :
  // CHECK: kernel.ring.wait %{{.*}} younger {{[01]}} whole :
  // CHECK: kernel.ring.wait %{{.*}} younger {{[01]}} :
  // CHECK: } producers(4) registers(32) {
  // CHECK-NEXT: %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c3 : index
  // CHECK-NEXT: kernel.tensor_map %[[Q]] rows(128) to %[[MEMORY]][%[[FIRST]]]
  // CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[FIRST]], %c1 : index
  // CHECK-NEXT: kernel.tensor_map %[[K]] rows(32) to %[[MEMORY]][%[[SECOND]]]
  // CHECK-NEXT: %[[THIRD:.*]] = arith.addi %[[FIRST]], %c2 : index
  // CHECK-NEXT: kernel.tensor_map %[[V]] rows(32) to %[[MEMORY]][%[[THIRD]]]
  // CHECK-NEXT: scf.while
  // CHECK: memref.dealloc %[[MEMORY]]
  varlen.attn %q, %k, %v, %cu, %cu outs(%out, %lse)
      {varlen.schedule = #maps, mask = #varlen.mask<causal>}
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}

// One map of keys that are values, too; none of f32, or of rows that are counted in 64 bits.
// CHECK-LABEL: @shared_map(
// CHECK: memref.alloc() : memref<512x128xi8>
// CHECK-COUNT-2: kernel.tensor_map
// CHECK-NOT: kernel.tensor_map
// CHECK-LABEL: @wide_rows(
// CHECK-NOT: x128xi8
// CHECK-NOT: kernel.tensor_map
// CHECK-LABEL: @no_map(
// CHECK-NOT: x128xi8
// CHECK-NOT: kernel.tensor_map
func.func @shared_map(%q: memref<?x8x64xbf16>, %k: memref<?x8x64xbf16>, %cu: memref<?xi32>,
                      %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse) {varlen.schedule = #maps}
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi32>, memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}
func.func @wide_rows(%q: memref<?x8x64xbf16>, %cu: memref<?xi64>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #maps}
      : (memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?xi64>, memref<?xi64>, memref<?x8x64xbf16>, memref<8x?xf32>) -> ()
  return
}
func.func @no_map(%q: memref<?x8x64xf32>, %cu: memref<?xi32>, %out: memref<?x8x64xf32>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {varlen.schedule = #maps}
      : (memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?x8x64xf32>, memref<?xi32>, memref<?xi32>, memref<?x8x64xf32>, memref<8x?xf32>) -> ()
  return
}

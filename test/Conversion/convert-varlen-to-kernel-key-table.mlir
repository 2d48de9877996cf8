// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s
// RUN: varlen-opt %s --varlen-to-nvvm -o /dev/null

#schedule = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>>

// Tiles of queries look up only; the owner of a tile of keys sums what they have.
// CHECK-LABEL: @keys
// CHECK-SAME: %[[BIAS:[a-z0-9]*]]: memref<4x?xf32>, %{{[a-z0-9]*}}: memref<?x4x64xbf16>
// CHECK-SAME: %[[DBIAS:[a-z0-9]*]]: memref<4x?xf32>)
func.func @keys(%q: memref<?x4x64xbf16>, %k: memref<?x2x64xbf16>, %lse: memref<4x?xf32>,
                %cu: memref<?xi32>, %bias: memref<4x?xf32>, %dq: memref<?x4x64xbf16>,
                %dk: memref<?x2x64xbf16>, %dv: memref<?x2x64xbf16>, %dbias: memref<4x?xf32>) {
  // CHECK: gpu.launch {{.*}} function(@keys_dq)
  // CHECK: varlen.online_attn_grad qk {{.*}} tables(
  // CHECK-NOT: dtables
  // CHECK: gpu.launch {{.*}} function(@keys_dkv)
  // A number of each head of the group for all keys of the tile, in use or not, a key to a
  // thread; the copies that come next begin with a barrier.
  // CHECK: scf.for %[[MEMBER:.*]] = %c0 to %c2 step %c1
  // CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c2
  // CHECK: %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[MEMBER]]
  // CHECK: scf.for %[[KEY:.*]] = %{{.*}} to %{{.*}} step %c128
  // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[KEY]] : index
  // CHECK: memref.store %{{.*}}, %[[DBIAS]][%[[HEAD]], %[[AT]]]
  // CHECK: kernel.ring.restart
  // CHECK: kernel.copy
  // The keys in use of the sequence, and the row of the head of the block for all queries.
  // CHECK: %[[VIEW:.*]] = memref.reinterpret_cast %[[BIAS]] to offset: [%[[K0:.*]]], sizes: [%{{.*}}, %[[KEYS:.*]]], strides: [1, 1]
  // CHECK: %[[DVIEW:.*]] = memref.reinterpret_cast %[[DBIAS]] to offset: [%[[K0]]], sizes: [%{{.*}}, %[[KEYS]]], strides: [1, 1]
  // CHECK: %[[ROW:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: %[[ROWS:.*]] = linalg.fill ins(%[[ROW]] : i64) outs(%{{.*}} : tensor<1x64xi64>)
  // CHECK: varlen.online_attn_grad kq {{.*}} limits({{.*}} tables(%[[VIEW]] : {{.*}} dtables(%[[DVIEW]] : {{.*}} drows(%[[ROWS]] : tensor<1x64xi64>)
  // CHECK: varlen.online_attn_grad kq
  // CHECK-NOT: limits(
  // CHECK-SAME: dtables(
  // CHECK-NOT: dcapture
  varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dbias)
      captures(%bias) {wrt_captures = array<i64: 0>, varlen.schedule = #schedule}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>,
         memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x64xbf16>,
         memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}

// Numbers of keys hide blocks: those of the tile's queries are read once, by all warps, those
// of the keys of a block before its step; a sequence without keys has none.
#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>

// CHECK-LABEL: @packed
// CHECK-SAME: %[[IDS:[a-z0-9]*]]: memref<4x?xf32>
// CHECK: gpu.launch {{.*}} function(@packed_attn)
// CHECK: %[[TILE:.*]]:2 = scf.if %{{.*}} -> (f32, f32) {
// CHECK: memref.load %[[IDS]]
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK: kernel.ring.wait
// CHECK: kernel.ring.wait
// CHECK: %[[BLOCK:.*]]:2 = scf.if %{{.*}} -> (f32, f32) {
// CHECK: memref.load %[[IDS]]
// CHECK-COUNT-9: gpu.shuffle xor
// CHECK: %[[BELOW:.*]] = arith.cmpf ule, %[[TILE]]#0, %[[BLOCK]]#1
// CHECK: %[[ABOVE:.*]] = arith.cmpf ule, %[[BLOCK]]#0, %[[TILE]]#1
// CHECK: %[[MAY:.*]] = arith.andi %[[BELOW]], %[[ABOVE]]
// CHECK: %[[CUT:.*]] = arith.ori
// CHECK: scf.if %[[MAY]]
// CHECK: scf.if %[[CUT]]
func.func @packed(%q: memref<?x4x64xbf16>, %k: memref<?x4x64xbf16>, %cu: memref<?xi32>,
                  %ids: memref<4x?xf32>, %out: memref<?x4x64xbf16>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse) captures(%ids) {varlen.schedule = #gpu}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?xi32>,
         memref<?xi32>, memref<?x4x64xbf16>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %a = varlen.lookup %table[%i] : !varlen.table<f32, keys>
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %visible = arith.cmpf oeq, %a, %b : f32
        varlen.yield %s, %visible : f32, i1
      }
  return
}

// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s
// RUN: varlen-opt %s --varlen-to-nvvm -o /dev/null

#schedule = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>>

// A table of heads: a row of it for each query of a head in memory of the call.
// CHECK-LABEL: @heads
// CHECK-SAME: %[[DBIAS:[a-z0-9]*]]: memref<4x32xf32>)
func.func @heads(%q: memref<?x4x64xbf16>, %k: memref<?x2x64xbf16>, %lse: memref<4x?xf32>,
                 %cu: memref<?xi32>, %bias: memref<4x32xf32>, %dq: memref<?x4x64xbf16>,
                 %dk: memref<?x2x64xbf16>, %dv: memref<?x2x64xbf16>, %dbias: memref<4x32xf32>) {
  // CHECK: %[[ROWS:.*]] = memref.alloc(%{{.*}}) : memref<4x?x32xf32>
  // CHECK: gpu.launch {{.*}} function(@heads_dq)
  // All rows of the tile, in use or not, a warp to each; the copies that come next begin
  // with a barrier.
  // CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step %c4
  // CHECK: scf.for %[[ENTRY:.*]] = %{{.*}} to %c32 step %c32
  // CHECK: memref.store %{{.*}}, %[[ROWS]][%{{.*}}, %{{.*}}, %[[ENTRY]]]
  // CHECK: kernel.ring.restart
  // CHECK: kernel.copy
  // Where the rows of queries begin in the table, and in the memory.
  // CHECK: %[[AT:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x1xi64>)
  // CHECK: %[[DAT:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x1xi64>)
  // CHECK: arith.select %{{.*}}, %{{.*}}, %c-576460752303423488_i64 : i64
  // CHECK: varlen.online_attn_grad qk {{.*}} rows(%[[AT]] : tensor<64x1xi64>) dtables(%[[VIEW:.*]] : memref<?x32xf32, strided<[1, 1]>>) drows(%[[DAT]] : tensor<64x1xi64>)
  // CHECK: varlen.online_attn_grad qk {{.*}} dtables(
  // CHECK: gpu.launch {{.*}} function(@heads_dkv)
  // CHECK: varlen.online_attn_grad kq
  // CHECK-NOT: dtables
  // A warp to an entry of a head, unless cu_seqlens are bad.
  // CHECK: gpu.launch {{.*}} function(@heads_dcapture0)
  // CHECK: %[[TILES:.*]] = memref.load %{{.*}} : memref<3xi64>
  // CHECK: %[[COUNT:.*]] = arith.index_cast %[[TILES]]
  // CHECK: %[[GOOD:.*]] = arith.cmpi sgt, %[[COUNT]], %c-1
  // CHECK: scf.if
  // CHECK: scf.for {{.*}} step %c32 iter_args(%[[S:.*]] = %{{.*}}, %[[LOST:.*]] = %{{.*}}) -> (f32, f32)
  // CHECK: %[[TERM:.*]] = memref.load %[[ROWS]]
  // CHECK: %[[WHOLE:.*]] = arith.subf %[[TERM]], %[[LOST]]
  // CHECK: arith.addf %[[S]], %[[WHOLE]]
  // CHECK-COUNT-5: gpu.shuffle xor
  // CHECK-NOT: arith.subf
  // CHECK: memref.store %{{.*}}, %[[DBIAS]][%{{.*}}, %{{.*}}]
  // CHECK: memref.dealloc %[[ROWS]]
  varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dbias)
      captures(%bias) {wrt_captures = array<i64: 0>, varlen.schedule = #schedule}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>,
         memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x64xbf16>,
         memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<4x32xf32>, memref<4x32xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}

// A table of queries is the memory of its rows itself.
// CHECK-LABEL: @queries
// CHECK-SAME: %[[DBIAS:[a-z0-9]*]]: memref<4x?x?xf32>)
func.func @queries(%q: memref<?x4x64xbf16>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                   %bias: memref<4x?x?xf32>, %dq: memref<?x4x64xbf16>, %dk: memref<?x4x64xbf16>,
                   %dv: memref<?x4x64xbf16>, %dbias: memref<4x?x?xf32>) {
  // CHECK: gpu.launch {{.*}} function(@queries_dq)
  // CHECK: memref.store %{{.*}}, %[[DBIAS]]
  // CHECK: varlen.online_attn_grad qk {{.*}} dtables(
  // CHECK-NOT: dcapture
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dbias)
      captures(%bias) {wrt_captures = array<i64: 0>, varlen.schedule = #schedule}
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

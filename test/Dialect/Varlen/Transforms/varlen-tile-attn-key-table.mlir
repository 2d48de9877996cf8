// RUN: varlen-opt %s --varlen-tile-attn | FileCheck %s

// With an owner for each gradient, as on a GPU, the owner of dk has those of tables of keys,
// and the owner of dq all others.
#gpu = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>,
  dv = <warps = 4, block_m = 64, kv_block = 64, stages = 2, ctas = 1>>

// CHECK-LABEL: func.func @roles
// CHECK-SAME: %[[DBIAS:[a-z0-9]*]]: memref<4x?xf32>, %[[DGAINS:[a-z0-9]*]]: memref<4x?xf32>)
// CHECK: varlen.for_tiles "dq" %{{.*}} of queries(64)
// CHECK-NOT: varlen.clear
// CHECK: varlen.online_attn_grad qk
// CHECK-NOT: dtables
// CHECK-SAME: dcaptures(
// CHECK-SAME: wrt_captures = array<i64: 1>
// CHECK: varlen.for_tiles "dk" %[[T:.*]] of keys(64)
// CHECK: varlen.clear %[[DBIAS]] at %[[T]] : memref<4x?xf32>, <keys(64)>
// CHECK: varlen.online_attn_grad kq
// CHECK-SAME: dtables(%[[DBIAS]] : memref<4x?xf32>) dk(
// CHECK-NOT: dcaptures
// CHECK-SAME: wrt_captures = array<i64: 0>
// CHECK: varlen.for_tiles "dv"
// CHECK-NOT: varlen.clear
// CHECK: varlen.online_attn_grad kq
// CHECK-NOT: dtables
// CHECK-SAME: dv(
// CHECK-NOT: wrt_captures
func.func @roles(%q: memref<?x4x64xbf16>, %k: memref<?x2x64xbf16>, %lse: memref<4x?xf32>,
                 %cu: memref<?xi32>, %bias: memref<4x?xf32>, %gains: memref<4x?xf32>,
                 %dq: memref<?x4x64xbf16>, %dk: memref<?x2x64xbf16>, %dv: memref<?x2x64xbf16>,
                 %dbias: memref<4x?xf32>, %dgains: memref<4x?xf32>) {
  varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu outs(%dq, %dk, %dv, %dbias, %dgains)
      captures(%bias, %gains) {wrt_captures = array<i64: 0, 1>, varlen.schedule = #gpu}
      : (memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>,
         memref<?x4x64xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<4x?xf32>,
         memref<4x?xf32>, memref<4x?xf32>, memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>, %gain: f32) {
        %x = arith.mulf %s, %gain : f32
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %new = arith.addf %x, %b : f32
        varlen.yield %new : f32
      }
  return
}

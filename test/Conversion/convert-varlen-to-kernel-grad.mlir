// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

#together = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 32, kv_block = 128, stages = 3, ctas = 1>>
#apart = #varlen.gpu_grad_schedule<
  dq = <warps = 2, block_m = 32, kv_block = 16, stages = 2, ctas = 1>,
  dk = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>,
  dv = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>>

// CHECK-LABEL: @together
// CHECK-SAME: (%[[DOUT:[a-z0-9]*]]: memref<?x8x24xbf16>, %[[Q:[a-z0-9]*]]: memref<?x8x40xbf16>, %[[K:[a-z0-9]*]]: memref<?x2x40xbf16>, %[[V:[a-z0-9]*]]: memref<?x2x24xbf16>
func.func @together(%dout: memref<?x8x24xbf16>, %q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>,
                    %v: memref<?x2x24xbf16>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>,
                    %cu: memref<?xi32>, %sink: memref<8xf32>, %dq: memref<?x8x40xbf16>,
                    %dk: memref<?x2x40xbf16>, %dv: memref<?x2x24xbf16>, %dsink: memref<8xf32>) {
  // Tiles of queries and of keys; lse and delta once for both.
  // CHECK: gpu.launch {{.*}} function(@together_tiles)
  // CHECK: memref.store %{{.*}}, %[[GOOD:.*]][%{{.*}}] : memref<3xi64>
  // What the first has found about cu_seqlens holds for the second.
  // CHECK: gpu.launch {{.*}} function(@together_key_tiles_segments)
  // CHECK: %[[TILES:.*]] = memref.load %[[GOOD]]
  // CHECK: %[[COUNT:.*]] = arith.index_cast %[[TILES]]
  // CHECK: arith.cmpi slt, %[[COUNT]], %c0
  // CHECK-NOT: llvm.store
  // CHECK: gpu.launch {{.*}} function(@together_key_tiles_merge)
  // CHECK-NOT: llvm.store
  // CHECK: gpu.launch {{.*}} function(@together_key_tiles)
  // CHECK-NOT: llvm.store
  // CHECK: %[[ST:.*]] = memref.alloc(%{{.*}}) : memref<8x?x2xf32>
  // CHECK: %[[TERMS:.*]] = memref.alloc(%{{.*}}) : memref<8x?x1xf32>
  // Rows of tiles that no product reads are loaded where they are used.
  // CHECK: gpu.launch {{.*}} function(@together_delta)
  // CHECK-NOT: kernel.ring
  // CHECK: %[[D:.*]] = kernel.load %[[DOUT]] {{.*}} : memref<?x8x24xbf16> to tensor<64x32xbf16>
  // CHECK: %[[DOT:.*]] = varlen.row_dot %[[D]]
  // CHECK: varlen.online_statistics %[[DOT]]
  // CHECK: kernel.store %{{.*}}, %{{.*}} to %[[ST]] {{.*}} : tensor<64x1xf32>, tensor<64x1xf32> to memref<8x?x2xf32>
  // CHECK: kernel.store %{{.*}} to %[[TERMS]] {{.*}} : tensor<64x1xf32> to memref<8x?x1xf32>

  // CHECK: gpu.launch {{.*}} function(@together_dq)
  // CHECK-COUNT-2: kernel.alloc : memref<1x64x64xbf16
  // CHECK: kernel.ring stages(2) : <memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16
  // CHECK: kernel.copy %[[Q]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c4)
  // CHECK: kernel.copy %[[DOUT]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c4)
  // CHECK: kernel.copy %[[K]]
  // CHECK: kernel.copy %[[V]]
  // CHECK: kernel.load %[[ST]] {{.*}} to tensor<64x1xf32>, tensor<64x1xf32>
  // CHECK: varlen.online_attn_grad qk {{.*}} limits({{.*}} dq(
  // CHECK: varlen.online_attn_grad qk
  // CHECK-NOT: limits
  // CHECK: kernel.store %{{.*}} : tensor<64x48xbf16> to memref<?x8x40xbf16>

  // Heads of the group come one after the other.
  // CHECK: gpu.launch {{.*}} function(@together_dkv)
  // CHECK-COUNT-2: kernel.alloc : memref<1x128x64xbf16
  // CHECK: kernel.ring stages(3) : <memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16
  // CHECK: kernel.copy %[[K]] rows({{.*}}, %c1)
  // CHECK: kernel.copy %[[V]] rows({{.*}}, %c1)
  // CHECK: kernel.copy %[[Q]] rows({{.*}}, %c1)
  // CHECK: kernel.copy %[[DOUT]] rows({{.*}}, %c1)
  // CHECK: kernel.load %[[ST]] {{.*}} valid(%c32) {{.*}} to tensor<1x32xf32>, tensor<1x32xf32>
  // CHECK: varlen.online_attn_grad kq {{.*}} limits({{.*}} dk({{.*}} dv(
  // CHECK: varlen.online_attn_grad kq
  // CHECK-NOT: limits
  // CHECK: kernel.store %{{.*}} : tensor<128x48xbf16> to memref<?x2x40xbf16>
  // CHECK: kernel.store %{{.*}} : tensor<128x32xbf16> to memref<?x2x24xbf16>

  // With bad cu_seqlens the number of tiles is negative.
  // CHECK: gpu.launch {{.*}} function(@together_dsink)
  // CHECK: %[[TILES:.*]] = memref.load %{{.*}} : memref<3xi64>
  // CHECK: %[[COUNT:.*]] = arith.index_cast %[[TILES]]
  // CHECK: arith.cmpi sgt, %[[COUNT]], %c-1
  // CHECK: scf.if
  // What rounding has lost of a lane's sum is carried along.
  // CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[LOST:.*]] = %{{.*}}) -> (f32, f32)
  // CHECK: %[[TERM:.*]] = memref.load %[[TERMS]]
  // CHECK: %[[WHOLE:.*]] = arith.subf %[[TERM]], %[[LOST]]
  // CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[WHOLE]]
  // CHECK: %[[ADDED:.*]] = arith.subf %[[NEXT]], %[[SUM]]
  // CHECK: arith.subf %[[ADDED]], %[[WHOLE]]
  // CHECK: gpu.shuffle
  // CHECK: %[[NEGATED:.*]] = arith.subf
  // CHECK: memref.store %[[NEGATED]], %{{.*}} : memref<8xf32>
  // CHECK: memref.dealloc %[[ST]]
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu sink(%sink) outs(%dq, %dk, %dv, %dsink)
      {mask = #varlen.mask<causal>, varlen.schedule = #together}
      : (memref<?x8x24xbf16>, memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>,
         memref<?x8x24xbf16>, memref<8x?xf32>, memref<?xi32>, memref<?xi32>, memref<8xf32>,
         memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<8xf32>) -> ()
  return
}

// Where the accumulators of both are too large: dv needs no values, and p only.
// CHECK-LABEL: @apart
func.func @apart(%q: memref<?x4x256xbf16>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                 %dq: memref<?x4x256xbf16>, %dk: memref<?x4x256xbf16>, %dv: memref<?x4x256xbf16>) {
  // CHECK: function(@apart_dq)
  // CHECK: function(@apart_dk)
  // CHECK-COUNT-2: kernel.alloc : memref<{{.*}}xbf16
  // CHECK: varlen.online_attn_grad kq
  // CHECK-SAME: dk(
  // CHECK-NOT: dv(
  // CHECK: function(@apart_dv)
  // CHECK: kernel.alloc : memref<{{.*}}xbf16
  // CHECK-NOT: kernel.alloc : memref<{{.*}}xbf16
  // CHECK: varlen.online_attn_grad kq
  // CHECK-NOT: dk(
  // CHECK-SAME: dv(
  // CHECK-NOT: dsink
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv) {varlen.schedule = #apart}
      : (memref<?x4x256xbf16>, memref<?x4x256xbf16>, memref<?x4x256xbf16>, memref<?x4x256xbf16>,
         memref<?x4x256xbf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x256xbf16>, memref<?x4x256xbf16>, memref<?x4x256xbf16>) -> ()
  return
}

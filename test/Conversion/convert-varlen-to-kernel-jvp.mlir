// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>

// Tangents lie beside the rows of a tile, and in the slots of a block; the state has two more
// values. Masked blocks come first, as without tangents.
// CHECK-LABEL: @tangents
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: memref<?x8x40xbf16>, %[[TQ:[a-z0-9]*]]: memref<?x8x40xbf16>, %[[K:[a-z0-9]*]]: memref<?x2x40xbf16>, %[[TK:[a-z0-9]*]]: memref<?x2x40xbf16>, %[[V:[a-z0-9]*]]: memref<?x2x24xbf16>, %[[TV:[a-z0-9]*]]: memref<?x2x24xbf16>
func.func @tangents(%q: memref<?x8x40xbf16>, %tq: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>, %tk: memref<?x2x40xbf16>, %v: memref<?x2x24xbf16>, %tv: memref<?x2x24xbf16>,
                    %cu: memref<?xi32>, %sink: memref<8xf32>, %tsink: memref<8xf32>, %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>, %tout: memref<?x8x24xbf16>, %tlse: memref<8x?xf32>) {
  // CHECK: gpu.launch {{.*}} function(@tangents_tiles)
  // CHECK: gpu.launch {{.*}} function(@tangents_attn)
  // CHECK-COUNT-2: kernel.alloc : memref<1x64x64xbf16
  // CHECK: kernel.ring stages(3) : <memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{[^>]*}}>>
  // CHECK: kernel.copy %[[Q]]
  // CHECK: kernel.copy %[[TQ]]
  // CHECK: kernel.copy %[[K]]
  // CHECK: kernel.copy %[[V]]
  // CHECK: kernel.copy %[[TK]]
  // CHECK: kernel.copy %[[TV]]
  // CHECK: varlen.online_attn_jvp qk ins({{.*}} : tensor<64x48xbf16>, tensor<32x48xbf16>, tensor<32x32xbf16>, tensor<64x48xbf16>, tensor<32x48xbf16>, tensor<32x32xbf16>) limits({{.*}} outs({{.*}} : tensor<64x32xf32>, tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x32xf32>, tensor<64x1xf32>, tensor<64x1xf32>)
  // CHECK: varlen.online_attn_jvp qk
  // CHECK-NOT: limits
  // CHECK: %[[SINK:.*]] = kernel.load %{{.*}} : memref<8xf32> to tensor<64x1xf32>
  // CHECK: %[[TSINK:.*]] = kernel.load %{{.*}} : memref<8xf32> to tensor<64x1xf32>
  // CHECK: varlen.online_finish qk {{.*}} sink(%[[SINK]] : {{.*}}) tsink(%[[TSINK]] :
  // CHECK: kernel.store %{{.*}} : tensor<64x32xbf16> to memref<?x8x24xbf16>
  // CHECK: kernel.store %{{.*}} : tensor<64x1xf32> to memref<8x?xf32>
  // CHECK: kernel.store %{{.*}} : tensor<64x32xbf16> to memref<?x8x24xbf16>
  // CHECK: kernel.store %{{.*}} : tensor<64x1xf32> to memref<8x?xf32>
  varlen.attn_jvp %q, %k, %v, %tq, %tk, %tv, %cu, %cu sink(%sink) tsink(%tsink) outs(%out, %lse, %tout, %tlse)
      {mask = #varlen.mask<causal>, varlen.schedule = #gpu}
      : (memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?xi32>, memref<?xi32>,
         memref<8xf32>, memref<8xf32>, memref<?x8x24xbf16>, memref<8x?xf32>, memref<?x8x24xbf16>, memref<8x?xf32>) -> ()
  return
}

// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse | FileCheck %s

#together = #varlen.gpu_grad_schedule<
  dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>,
  dk = <warps = 4, block_m = 32, kv_block = 64, stages = 3, ctas = 1>>
#apart = #varlen.gpu_grad_schedule<
  dq = <warps = 2, block_m = 32, kv_block = 16, stages = 2, ctas = 1>,
  dk = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>,
  dv = <warps = 2, block_m = 16, kv_block = 32, stages = 2, ctas = 1>>

// The kernels of gradients: tangents lie beside all rows, and four numbers of each query are left
// by the one of statistics.
// CHECK-LABEL: @together
// CHECK-SAME: (%[[DTOUT:[a-z0-9]*]]: memref<?x8x24xbf16>, %[[Q:[a-z0-9]*]]: memref<?x8x40xbf16>, %[[K:[a-z0-9]*]]: memref<?x2x40xbf16>, %[[V:[a-z0-9]*]]: memref<?x2x24xbf16>, %[[TQ:[a-z0-9]*]]: memref<?x8x40xbf16>, %[[TK:[a-z0-9]*]]: memref<?x2x40xbf16>, %[[TV:[a-z0-9]*]]: memref<?x2x24xbf16>, %[[OUT:[a-z0-9]*]]: memref<?x8x24xbf16>, %{{.*}}: memref<8x?xf32>, %[[TOUT:[a-z0-9]*]]: memref<?x8x24xbf16>, %{{.*}}: memref<8x?xf32>, %[[DOUT:[a-z0-9]*]]: memref<?x8x24xbf16>
func.func @together(%dtout: memref<?x8x24xbf16>, %q: memref<?x8x40xbf16>, %k: memref<?x2x40xbf16>, %v: memref<?x2x24xbf16>, %tq: memref<?x8x40xbf16>, %tk: memref<?x2x40xbf16>, %tv: memref<?x2x24xbf16>,
                    %out: memref<?x8x24xbf16>, %lse: memref<8x?xf32>, %tout: memref<?x8x24xbf16>, %tlse: memref<8x?xf32>, %dout: memref<?x8x24xbf16>, %cu: memref<?xi32>, %sink: memref<8xf32>, %tsink: memref<8xf32>,
                    %dq: memref<?x8x40xbf16>, %dk: memref<?x2x40xbf16>, %dv: memref<?x2x24xbf16>, %dsink: memref<8xf32>) {
  // CHECK: %[[ST:.*]] = memref.alloc(%{{.*}}) : memref<8x?x4xf32>
  // CHECK: %[[TERMS:.*]] = memref.alloc(%{{.*}}) : memref<8x?x1xf32>
  // CHECK: gpu.launch {{.*}} function(@together_delta)
  // CHECK-DAG: %[[A:.*]] = kernel.load %[[DTOUT]] {{.*}} : memref<?x8x24xbf16> to tensor<64x32xbf16>
  // CHECK-DAG: %[[B:.*]] = kernel.load %[[OUT]] {{.*}} : memref<?x8x24xbf16> to tensor<64x32xbf16>
  // CHECK-DAG: %[[C:.*]] = kernel.load %[[TOUT]] {{.*}} : memref<?x8x24xbf16> to tensor<64x32xbf16>
  // CHECK-DAG: %[[D:.*]] = kernel.load %[[DOUT]] {{.*}} : memref<?x8x24xbf16> to tensor<64x32xbf16>
  // CHECK-DAG: varlen.row_dot %[[A]], %[[B]]
  // CHECK-DAG: varlen.row_dot %[[A]], %[[C]]
  // CHECK-DAG: varlen.row_dot %[[D]], %[[B]]
  // CHECK: varlen.online_tangent_statistics
  // CHECK: kernel.store %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} to %[[ST]] {{.*}} : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xf32> to memref<8x?x4xf32>
  // CHECK: kernel.store %{{.*}} to %[[TERMS]]

  // CHECK: gpu.launch {{.*}} function(@together_dq)
  // CHECK-COUNT-4: kernel.alloc : memref<1x64x64xbf16
  // CHECK: kernel.ring stages(2) : <memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{[^>]*}}>>
  // CHECK-DAG: kernel.copy %[[Q]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c4)
  // CHECK-DAG: kernel.copy %[[TQ]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c4)
  // CHECK-DAG: kernel.copy %[[DTOUT]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c4)
  // CHECK-DAG: kernel.copy %[[DOUT]] rows(%{{.*}}, %{{.*}}, %{{.*}}, %c4)
  // CHECK-DAG: kernel.copy %[[TK]]
  // CHECK-DAG: kernel.copy %[[TV]]
  // CHECK: kernel.load %[[ST]] {{.*}} to tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x1xf32>
  // CHECK: varlen.online_attn_jvp_grad qk {{.*}} limits({{.*}} dq(%{{[a-z0-9_]+}} : tensor<64x48xf32>) scale
  // CHECK: varlen.online_attn_jvp_grad qk
  // CHECK-NOT: limits
  // CHECK: kernel.store %{{.*}} : tensor<64x48xbf16> to memref<?x8x40xbf16>

  // CHECK: gpu.launch {{.*}} function(@together_dkv)
  // CHECK-COUNT-4: kernel.alloc : memref<1x64x64xbf16
  // CHECK: kernel.ring stages(3) : <memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{.*}}>, memref<1x32x64xbf16, {{[^>]*}}>>
  // CHECK: kernel.load %[[ST]] {{.*}} valid(%c32) {{.*}} to tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>
  // CHECK: varlen.online_attn_jvp_grad kq {{.*}} limits({{.*}} dk({{.*}} dv(
  // CHECK: varlen.online_attn_jvp_grad kq
  // CHECK-NOT: limits
  // CHECK: kernel.store %{{.*}} : tensor<64x48xbf16> to memref<?x2x40xbf16>
  // CHECK: kernel.store %{{.*}} : tensor<64x32xbf16> to memref<?x2x24xbf16>

  // CHECK: gpu.launch {{.*}} function(@together_dsink)
  // CHECK: memref.load %[[TERMS]]
  varlen.attn_jvp_grad %dtout, %q, %k, %v, %tq, %tk, %tv, %out, %lse, %tout, %tlse, %cu, %cu dout(%dout) sink(%sink) tsink(%tsink) outs(%dq, %dk, %dv, %dsink)
      {mask = #varlen.mask<causal>, varlen.schedule = #together}
      : (memref<?x8x24xbf16>, memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<?x8x24xbf16>, memref<8x?xf32>, memref<?x8x24xbf16>, memref<8x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x8x24xbf16>, memref<8xf32>, memref<8xf32>, memref<?x8x40xbf16>, memref<?x2x40xbf16>, memref<?x2x24xbf16>, memref<8xf32>) -> ()
  return
}

// Without a dout one tile of cotangents; the kernel of dv copies no v and no tv.
// CHECK-LABEL: @apart
// CHECK-SAME: %{{[a-z0-9]*}}: memref<?x2x16xf16>, %[[V:[a-z0-9]*]]: memref<?x2x16xf16>, %[[TV:[a-z0-9]*]]: memref<?x2x16xf16>
func.func @apart(%q: memref<?x2x32xf16>, %dtout: memref<?x2x16xf16>, %v: memref<?x2x16xf16>, %tv: memref<?x2x16xf16>, %lse: memref<2x?xf32>, %cu: memref<?xi32>, %dq: memref<?x2x32xf16>, %dk: memref<?x2x32xf16>, %dv: memref<?x2x16xf16>) {
  // CHECK: gpu.launch {{.*}} function(@apart_dq)
  // CHECK-COUNT-3: kernel.alloc : memref<1x32x64xf16
  // CHECK-NOT: kernel.alloc : memref<1x32x64xf16
  // CHECK: gpu.launch {{.*}} function(@apart_dk)
  // CHECK: varlen.online_attn_jvp_grad kq {{.*}} dk(%{{[a-z0-9_]+}} : tensor<32x32xf32>) scale
  // CHECK: gpu.launch {{.*}} function(@apart_dv)
  // CHECK-COUNT-2: kernel.alloc : memref<1x32x64xf16
  // CHECK-NOT: kernel.copy %[[V]]
  // CHECK-NOT: kernel.copy %[[TV]]
  // CHECK: varlen.online_attn_jvp_grad kq {{.*}} dv(%{{[a-z0-9_]+}} : tensor<32x16xf32>) scale
  // CHECK: memref.dealloc
  varlen.attn_jvp_grad %dtout, %q, %q, %v, %q, %q, %tv, %dtout, %lse, %dtout, %lse, %cu, %cu outs(%dq, %dk, %dv) {varlen.schedule = #apart}
      : (memref<?x2x16xf16>, memref<?x2x32xf16>, memref<?x2x32xf16>, memref<?x2x16xf16>, memref<?x2x32xf16>, memref<?x2x32xf16>, memref<?x2x16xf16>, memref<?x2x16xf16>, memref<2x?xf32>, memref<?x2x16xf16>, memref<2x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x2x32xf16>, memref<?x2x32xf16>, memref<?x2x16xf16>) -> ()
  return
}

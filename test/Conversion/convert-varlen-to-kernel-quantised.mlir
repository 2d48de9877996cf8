// RUN: varlen-opt %s --varlen-tile-attn --convert-varlen-to-kernel --convert-tile-lists-to-gpu -canonicalize -cse --split-input-file | FileCheck %s

// Bytes become numbers of q's type on their way to shared memory. Scales of the keys in use are the
// columns of score tiles: of rows and heads, as memory of heads and rows, or of heads, where rows
// share one place.
// CHECK-LABEL: @packed
// CHECK-SAME: %[[K:[^:]*]]: memref<?x2x64xi8>, %{{.*}}: memref<?xi32>, %[[ROWS:[^:]*]]: memref<?x2xf32>, %[[HEADS:[^:]*]]: memref<2xf32>
// CHECK: function(@packed_attn)
// CHECK: kernel.copy %[[K]] rows(%{{.*}}) valid(%{{.*}}) to %{{.*}} : memref<?x2x64xi8>, memref<1x32x64xbf16, #gpu.address_space<workgroup>>
// CHECK: kernel.copy %[[K]] rows(%{{.*}}) valid(%{{.*}}) to %{{.*}} : memref<?x2x64xi8>, memref<1x32x64xbf16, #gpu.address_space<workgroup>>
// CHECK: kernel.load %{{.*}} rows(%{{.*}}) valid(%[[LEFT:.*]]) otherwise %cst{{.*}} : memref<2x?x1xf32, strided<[?, ?, 1], offset: ?>> to tensor<1x32xf32>
// CHECK: kernel.load %{{.*}} rows(%{{.*}}) valid(%[[LEFT]]) otherwise %cst{{.*}} : memref<2x?x1xf32, strided<[?, 0, 1], offset: ?>> to tensor<1x32xf32>
// CHECK: varlen.online_attn qk ins(%{{.*}} : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>) k_scale(%{{.*}} : tensor<1x32xf32>) v_scale(%{{.*}} : tensor<1x32xf32>) limits(
// CHECK: kernel.load %{{.*}} rows(%{{.*}}) valid(%c32) otherwise
func.func @packed(%q: memref<?x8x64xbf16>, %k: memref<?x2x64xi8>, %cu: memref<?xi32>, %rows: memref<?x2xf32>,
                  %heads: memref<2xf32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse) k_scale(%rows) v_scale(%heads)
      {mask = #varlen.mask<causal>,
       varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>}
      : (memref<?x8x64xbf16>, memref<?x2x64xi8>, memref<?x2x64xi8>, memref<?xi32>, memref<?xi32>,
         memref<?x8x64xbf16>, memref<8x?xf32>, memref<?x2xf32>, memref<2xf32>) -> ()
  return
}

// -----

// In pages scales are looked up by the table, once for a block if that is in one page.
// CHECK-LABEL: @pages
// CHECK: kernel.load %{{.*}} rows(%{{.*}}) valid(%{{.*}}) otherwise %{{.*}} pages(%{{.*}} : memref<?x?xi32>) {one_page} : memref<?x64x2x1xf32, strided<[?, ?, ?, 1], offset: ?>> to tensor<1x32xf32>
// CHECK: kernel.load %{{.*}} rows(%{{.*}}) valid(%{{.*}}) otherwise %{{.*}} pages(%{{.*}} : memref<?x?xi32>) {one_page} : memref<?x64x2x1xf32, strided<[?, 0, ?, 1], offset: ?>> to tensor<1x32xf32>
func.func @pages(%q: memref<?x8x64xbf16>, %k: memref<?x64x2x64xf8E4M3FN>, %cu: memref<?xi32>,
                 %used: memref<?xi32>, %table: memref<?x?xi32>, %rows: memref<?x64x2xf32>,
                 %pages: memref<?x2xf32>, %out: memref<?x8x64xbf16>, %lse: memref<8x?xf32>) {
  varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table) outs(%out, %lse)
      k_scale(%rows) v_scale(%pages)
      {mask = #varlen.mask<causal>,
       varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>}
      : (memref<?x8x64xbf16>, memref<?x64x2x64xf8E4M3FN>, memref<?x64x2x64xf8E4M3FN>, memref<?xi32>,
         memref<?xi32>, memref<?x8x64xbf16>, memref<8x?xf32>, memref<?x?xi32>, memref<?x64x2xf32>,
         memref<?x2xf32>) -> ()
  return
}

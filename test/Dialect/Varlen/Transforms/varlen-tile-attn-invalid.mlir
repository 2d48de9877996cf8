// RUN: varlen-opt %s --varlen-tile-attn --split-input-file --verify-diagnostics

// Tiles read and write rows of memory; no target gathers columns.

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>
func.func @input(%q: memref<8x4x16xbf16>, %k: memref<8x4x16xbf16, strided<[?, ?, ?], offset: ?>>,
                 %cu: memref<3xi32>, %l: memref<4x8xf32>) {
  // expected-error @+1 {{expected k to be a memref whose last stride is 1, got 'memref<8x4x16xbf16, strided<[?, ?, ?], offset: ?>>'}}
  varlen.attn %q, %k, %q, %cu, %cu outs(%q, %l) {varlen.schedule = #gpu}
      : (memref<8x4x16xbf16>, memref<8x4x16xbf16, strided<[?, ?, ?], offset: ?>>, memref<8x4x16xbf16>,
         memref<3xi32>, memref<3xi32>, memref<8x4x16xbf16>, memref<4x8xf32>) -> ()
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 3, ctas = 2>
func.func @output(%q: memref<8x4x16xbf16>, %cu: memref<3xi32>,
                  %o: memref<8x4x16xbf16, strided<[64, 1, 4]>>, %l: memref<4x8xf32>) {
  // expected-error @+1 {{expected out to be a memref whose last stride is 1, got 'memref<8x4x16xbf16, strided<[64, 1, 4]>>'}}
  varlen.attn %q, %q, %q, %cu, %cu outs(%o, %l) {varlen.schedule = #gpu}
      : (memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<8x4x16xbf16>, memref<3xi32>, memref<3xi32>,
         memref<8x4x16xbf16, strided<[64, 1, 4]>>, memref<4x8xf32>) -> ()
  return
}

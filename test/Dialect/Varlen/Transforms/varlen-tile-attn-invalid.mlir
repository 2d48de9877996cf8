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

// -----

// Who owns a key adds to no other one.
#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 3, rows = 4, panels = 2, kv_block = 128, kv = copy>
func.func @key_table(%q: memref<?x4x64xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>,
                     %bias: memref<4x?xf32>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%q, %q, %q, %bias) captures(%bias)
      {wrt_captures = array<i64: 0>, varlen.schedule = #cpu}
      : (memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>,
         memref<?x4x64xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x64xf32>, memref<?x4x64xf32>, memref<?x4x64xf32>, memref<4x?xf32>,
         memref<4x?xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        // expected-error@+1 {{expected the position of the key for an index in a table of keys whose gradient is computed in tiles}}
        %b = varlen.lookup %table[%i] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}

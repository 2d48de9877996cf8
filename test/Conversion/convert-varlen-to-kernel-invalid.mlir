// RUN: varlen-opt %s -split-input-file -verify-diagnostics --convert-varlen-to-kernel --convert-tile-lists-to-gpu

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @no_schedule(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected a #varlen.gpu_schedule under varlen.schedule}}
  varlen.for_tiles "a" %t of queries(64) in %batch {
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @other_block(%cu: memref<?xi32>, %n: index, %c: i1) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  scf.if %c {
    // expected-error@+1 {{expected to be in the block of its batch}}
    varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    }
  }
  return
}

// -----

func.func @no_list(%cu: memref<?xi32>, %n: index) {
  // expected-error@+1 {{expected a loop over tiles of queries or keys, got none}}
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @heads(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
  }
  // expected-error@+1 {{expected one varlen.sum_rows, and nothing else, in a loop over heads}}
  varlen.for_tiles "b" %t of heads in %batch {
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @sums(%cu: memref<?xi32>, %n: index, %rows: memref<4x?x32xf32>, %sums: memref<4x32xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
  }
  // expected-error@+1 {{expected one varlen.sum_rows, and nothing else, in a loop over heads}}
  varlen.for_tiles "b" %t of heads in %batch {
    varlen.sum_rows %rows to %sums at %t : memref<4x?x32xf32> to memref<4x32xf32>, !varlen.tile<heads>
    varlen.sum_rows %rows to %sums at %t : memref<4x?x32xf32> to memref<4x32xf32>, !varlen.tile<heads>
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @late_clear(%cu: memref<?xi32>, %n: index, %k: memref<?x4x64xbf16>, %rows: memref<4x?x32xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      %0 = varlen.read %k at %b : memref<?x4x64xbf16>, !varlen.tile<keys(32)> -> tensor<32x64xbf16>
    }
    // expected-error@+1 {{expected the tile of its loop, before the loop over blocks}}
    varlen.clear %rows at %t : memref<4x?x32xf32>, !varlen.tile<queries(64)>
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @clear_of_block(%cu: memref<?xi32>, %n: index, %t: !varlen.tile<keys(64)>, %rows: memref<4x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %own of keys(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected the tile of its loop, before the loop over blocks}}
    varlen.clear %rows at %t : memref<4x?xf32>, !varlen.tile<keys(64)>
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 32, kv_block = 64, stages = 2, ctas = 1>

func.func @gradient_of_queries(%cu: memref<?xi32>, %n: index, %q: memref<?x4x64xbf16>, %dk: tensor<64x64xf32>,
                            %m: tensor<1x32xf32>, %table: memref<4x32xf32>, %rows: memref<4x?x32xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of keys(64) in %batch attributes {varlen.schedule = #gpu} {
    %0 = varlen.read %q at %t : memref<?x4x64xbf16>, !varlen.tile<keys(64)> -> tensor<64x64xbf16>
    varlen.for_blocks %b of queries(32) by_head meeting %t : !varlen.tile<keys(64)> {
      %1 = varlen.read %q at %b : memref<?x4x64xbf16>, !varlen.tile<queries(32) by_head> -> tensor<32x64xbf16>
      // expected-error@+1 {{expected gradients of tables in a loop over tiles of queries on a GPU, got tiles '!varlen.tile<keys(64)>'}}
      %2 = varlen.online_attn_grad kq at(%b, %t : !varlen.tile<queries(32) by_head>, !varlen.tile<keys(64)>)
          ins(%1, %0, %0, %1, %m, %m : tensor<32x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<1x32xf32>, tensor<1x32xf32>)
          tables(%table : memref<4x32xf32>) dtables(%rows : memref<4x?x32xf32>)
          dk(%dk : tensor<64x64xf32>) scale 1.0 {wrt_captures = array<i64: 0>}
          score (%s: f32, %i: i32, %j: i32, %bias: !varlen.table<f32>) {
            %x = varlen.lookup %bias[%j] : !varlen.table<f32>
            %new = arith.addf %s, %x : f32
            varlen.yield %new : f32
          }
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @gradient_of_keys(%cu: memref<?xi32>, %n: index, %q: memref<?x4x64xbf16>, %dq: tensor<64x64xf32>,
                            %m: tensor<64x1xf32>, %table: memref<4x?xf32>, %sums: memref<4x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %0 = varlen.read %q at %t : memref<?x4x64xbf16>, !varlen.tile<queries(64)> -> tensor<64x64xbf16>
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      %1 = varlen.read %q at %b : memref<?x4x64xbf16>, !varlen.tile<keys(32)> -> tensor<32x64xbf16>
      // expected-error@+1 {{expected gradients of tables of keys in a loop over tiles of keys on a GPU, got tiles '!varlen.tile<queries(64)>'}}
      %2 = varlen.online_attn_grad qk at(%t, %b : !varlen.tile<queries(64)>, !varlen.tile<keys(32)>)
          ins(%0, %1, %1, %0, %m, %m : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>, tensor<64x64xbf16>, tensor<64x1xf32>, tensor<64x1xf32>)
          tables(%table : memref<4x?xf32>) dtables(%sums : memref<4x?xf32>)
          dq(%dq : tensor<64x64xf32>) scale 1.0 {wrt_captures = array<i64: 0>}
          score (%s: f32, %i: i32, %j: i32, %bias: !varlen.table<f32, keys>) {
            %x = varlen.lookup %bias[%j] : !varlen.table<f32, keys>
            %new = arith.addf %s, %x : f32
            varlen.yield %new : f32
          }
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @two_loops(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
    }
    // expected-error@+1 {{expected one loop over blocks for each tile}}
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @effect(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{is not known to tile loops on a GPU}}
    %x = memref.load %cu[%n] : memref<?xi32>
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @pairs(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of keys(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected blocks of keys, or of queries by_head}}
    varlen.for_blocks %b of queries(32) meeting %t : !varlen.tile<keys(64)> {
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @no_reads(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected reads of the rows of a block, got none}}
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @read_of_tile(%cu: memref<?xi32>, %n: index, %q: memref<?x4x64xbf16>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      // expected-error@+1 {{expected reads of the block and steps in a loop over blocks on a GPU}}
      %0 = varlen.read %q at %t : memref<?x4x64xbf16>, !varlen.tile<queries(64)> -> tensor<64x64xbf16>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @f64(%cu: memref<?xi32>, %n: index, %k: memref<?x4x64xf64>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      // expected-error@+1 {{expected rows of one element type, f16, bf16 or f32, as they are in memory, got 'memref<?x4x64xf64>' as 'tensor<32x64xf64>'}}
      %0 = varlen.read %k at %b : memref<?x4x64xf64>, !varlen.tile<keys(32)> -> tensor<32x64xf64>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @converted(%cu: memref<?xi32>, %n: index, %k: memref<?x4x64xbf16>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      // expected-error@+1 {{as they are in memory, got 'memref<?x4x64xbf16>' as 'tensor<32x64xf32>'}}
      %0 = varlen.read %k at %b : memref<?x4x64xbf16>, !varlen.tile<keys(32)> -> tensor<32x64xf32>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @shared_rows(%cu: memref<?xi32>, %n: index, %k: memref<?x4x64xbf16>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    varlen.for_blocks %b of keys(33) meeting %t : !varlen.tile<queries(64)> {
      // expected-error@+1 {{expected a multiple of 8 rows, of less than 2^31 bytes, in shared memory, got 'tensor<33x64xbf16>'}}
      %0 = varlen.read %k at %b : memref<?x4x64xbf16>, !varlen.tile<keys(33)> -> tensor<33x64xbf16>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @shared_bytes(%cu: memref<?xi32>, %n: index, %k: memref<?x4x4611686018427387904xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      // expected-error@+1 {{of less than 2^31 bytes, in shared memory, got 'tensor<32x4611686018427387904xf32>'}}
      %0 = varlen.read %k at %b : memref<?x4x4611686018427387904xf32>, !varlen.tile<keys(32)> -> tensor<32x4611686018427387904xf32>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @numbers(%cu: memref<?xi32>, %n: index, %k: memref<?x4x64xbf16>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected one number for rows that are not in use, got several}}
    %0:2 = varlen.read %rows at %t otherwise (inf, 0.0) : !varlen.rows<2 x f32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>, tensor<64x1xf32>
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      %1 = varlen.read %k at %b : memref<?x4x64xbf16>, !varlen.tile<keys(32)> -> tensor<32x64xbf16>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

// A step of another tile.
func.func @step(%cu: memref<?xi32>, %n: index, %q: memref<?x4x64xbf16>, %a: tensor<64x64xf32>,
                %m: tensor<64x1xf32>, %other: !varlen.tile<queries(64)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %0 = varlen.read %q at %t : memref<?x4x64xbf16>, !varlen.tile<queries(64)> -> tensor<64x64xbf16>
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      %1 = varlen.read %q at %b : memref<?x4x64xbf16>, !varlen.tile<keys(32)> -> tensor<32x64xbf16>
      // expected-error@+1 {{expected a step at the tile and the block of its loops}}
      %2:3 = varlen.online_attn qk at(%other, %b : !varlen.tile<queries(64)>, !varlen.tile<keys(32)>)
          ins(%0, %1, %1 : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>)
          outs(%a, %m, %m : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 1.0
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

// Two steps: one score decides which blocks are hidden.
func.func @two_steps(%cu: memref<?xi32>, %n: index, %q: memref<?x4x64xbf16>, %a: tensor<64x64xf32>,
                     %m: tensor<64x1xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %0 = varlen.read %q at %t : memref<?x4x64xbf16>, !varlen.tile<queries(64)> -> tensor<64x64xbf16>
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      %1 = varlen.read %q at %b : memref<?x4x64xbf16>, !varlen.tile<keys(32)> -> tensor<32x64xbf16>
      %s:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(64)>, !varlen.tile<keys(32)>)
          ins(%0, %1, %1 : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>)
          outs(%a, %m, %m : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 1.0
      // expected-error@+1 {{expected one step in a loop over blocks}}
      %r:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(64)>, !varlen.tile<keys(32)>)
          ins(%0, %1, %1 : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>)
          outs(%s#0, %s#1, %s#2 : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 1.0
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

// A step in a loop over tiles that has no loop over blocks.
func.func @step_of_tile(%cu: memref<?xi32>, %n: index, %q: tensor<64x64xbf16>, %k: tensor<32x64xbf16>, %a: tensor<64x64xf32>,
                        %m: tensor<64x1xf32>, %keys: !varlen.tile<keys(32)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected a step at the tile and the block of its loops}}
    %0:3 = varlen.online_attn qk at(%t, %keys : !varlen.tile<queries(64)>, !varlen.tile<keys(32)>)
        ins(%q, %k, %k : tensor<64x64xbf16>, tensor<32x64xbf16>, tensor<32x64xbf16>)
        outs(%a, %m, %m : tensor<64x64xf32>, tensor<64x1xf32>, tensor<64x1xf32>) scale 1.0
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @tile_outside(%cu: memref<?xi32>, %n: index, %q: memref<?x4x64xbf16>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %0 = varlen.read %q at %t : memref<?x4x64xbf16>, !varlen.tile<queries(64)> -> tensor<64x64xbf16>
    varlen.for_blocks %b of keys(32) meeting %t : !varlen.tile<queries(64)> {
      %1 = varlen.read %q at %b : memref<?x4x64xbf16>, !varlen.tile<keys(32)> -> tensor<32x64xbf16>
      %2 = arith.addf %0, %0 : tensor<64x64xbf16>
    }
    // expected-error@+1 {{expected rows of a tile to be used in its loop over blocks or outside of it, got both}}
    varlen.write %0 to %q at %t otherwise (0.0) : tensor<64x64xbf16> -> memref<?x4x64xbf16>, !varlen.tile<queries(64)>
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @scratch(%cu: memref<?xi32>, %n: index, %rows: !varlen.rows<1 x f32>, %m: tensor<64x1xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected varlen.rows of the batch of its loop}}
    varlen.write %m to %rows at %t otherwise (0.0) : tensor<64x1xf32> -> !varlen.rows<1 x f32>, !varlen.tile<queries(64)>
  }
  return
}

// -----

func.func @batch(%batch: !varlen.batch) {
  // expected-error@+1 {{expected a batch that a varlen.batch makes}}
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>} {
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @sequences(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected tiles of queries, keys or heads on a GPU, got '!varlen.tile<sequences>'}}
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #gpu} {
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @rows_element(%cu: memref<?xi32>, %n: index, %lse: memref<4x?xf32>, %dout: memref<?x4x64xf64>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected rows of one element type, f16, bf16 or f32, as they are in memory, got 'memref<?x4x64xf64>' as 'tensor<64x64xf64>'}}
    %0 = varlen.read %dout at %t : memref<?x4x64xf64>, !varlen.tile<queries(64)> -> tensor<64x64xf64>
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @in_a_kernel(%cu: memref<?xi32>, %n: index) {
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
             threads(%tx, %ty, %tz) in (%lx = %n, %ly = %n, %lz = %n) {
    // expected-error@+1 {{is in a kernel, which cannot launch others: expected attention in host code}}
    %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
    varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    }
    gpu.terminator
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @parts(%cu: memref<?xi32>, %n: index, %a: tensor<64x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected blocks(0), one part for tiles of sequences with many queries, on a GPU, got blocks(4)}}
    %s = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(64)> -> tensor<64x64xf32> {
      %r = varlen.for_blocks %b of keys(32) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<64x64xf32>) {
        varlen.yield %x : tensor<64x64xf32>
      }
      varlen.yield %r : tensor<64x64xf32>
    } merge(%x with %y) {
      varlen.yield %x : tensor<64x64xf32>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @parts_load(%cu: memref<?xi32>, %n: index, %a: tensor<64x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %s = varlen.for_parts %p of %t blocks(0) few(4) : !varlen.tile<queries(64)> -> tensor<64x64xf32> {
      // expected-error@+1 {{expected a loop over blocks, and what it begins with, in a part on a GPU}}
      %w = memref.load %cu[%n] : memref<?xi32>
      %r = varlen.for_blocks %b of keys(32) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<64x64xf32>) {
        varlen.yield %x : tensor<64x64xf32>
      }
      varlen.yield %r : tensor<64x64xf32>
    } merge(%x with %y) {
      varlen.yield %x : tensor<64x64xf32>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @merge_load(%cu: memref<?xi32>, %n: index, %a: tensor<64x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    %s = varlen.for_parts %p of %t blocks(0) few(4) : !varlen.tile<queries(64)> -> tensor<64x64xf32> {
      %r = varlen.for_blocks %b of keys(32) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<64x64xf32>) {
        varlen.yield %x : tensor<64x64xf32>
      }
      varlen.yield %r : tensor<64x64xf32>
    } merge(%x with %y) {
      // expected-error@+1 {{expected 'merge' without effects on memory on a GPU}}
      %w = memref.load %cu[%n] : memref<?xi32>
      varlen.yield %x : tensor<64x64xf32>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @parts_f16(%cu: memref<?xi32>, %n: index, %a: tensor<64x64xf16>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected a state of f32, with static extents and 64 rows, on a GPU, got 'tensor<64x64xf16>'}}
    %s = varlen.for_parts %p of %t blocks(0) few(4) : !varlen.tile<queries(64)> -> tensor<64x64xf16> {
      %r = varlen.for_blocks %b of keys(32) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<64x64xf16>) {
        varlen.yield %x : tensor<64x64xf16>
      }
      varlen.yield %r : tensor<64x64xf16>
    } merge(%x with %y) {
      varlen.yield %x : tensor<64x64xf16>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @parts_dynamic(%cu: memref<?xi32>, %n: index, %a: tensor<64x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected a state of f32, with static extents and 64 rows, on a GPU, got 'tensor<64x?xf32>'}}
    %s = varlen.for_parts %p of %t blocks(0) few(4) : !varlen.tile<queries(64)> -> tensor<64x?xf32> {
      %r = varlen.for_blocks %b of keys(32) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<64x?xf32>) {
        varlen.yield %x : tensor<64x?xf32>
      }
      varlen.yield %r : tensor<64x?xf32>
    } merge(%x with %y) {
      varlen.yield %x : tensor<64x?xf32>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @parts_rows(%cu: memref<?xi32>, %n: index, %a: tensor<32x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected a state of f32, with static extents and 64 rows, on a GPU, got 'tensor<32x64xf32>'}}
    %s = varlen.for_parts %p of %t blocks(0) few(4) : !varlen.tile<queries(64)> -> tensor<32x64xf32> {
      %r = varlen.for_blocks %b of keys(32) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<32x64xf32>) {
        varlen.yield %x : tensor<32x64xf32>
      }
      varlen.yield %r : tensor<32x64xf32>
    } merge(%x with %y) {
      varlen.yield %x : tensor<32x64xf32>
    }
  }
  return
}

// -----

#gpu = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 1>

func.func @parts_of_keys(%cu: memref<?xi32>, %n: index, %a: tensor<64x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of keys(64) in %batch attributes {varlen.schedule = #gpu} {
    // expected-error@+1 {{expected parts of a tile of queries on a GPU}}
    %s = varlen.for_parts %p of %t blocks(0) few(4) : !varlen.tile<keys(64)> -> tensor<64x64xf32> {
      %r = varlen.for_blocks %b of queries(32) by_head meeting %p : !varlen.tile<keys(64)> iter_args(%x = %a) -> (tensor<64x64xf32>) {
        varlen.yield %x : tensor<64x64xf32>
      }
      varlen.yield %r : tensor<64x64xf32>
    } merge(%x with %y) {
      varlen.yield %x : tensor<64x64xf32>
    }
  }
  return
}

// -----

func.func @other_user(%cu: memref<?xi32>, %n: index) -> !varlen.batch {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected varlen.for_tiles and varlen.rows to be all that uses a batch}}
  return %batch : !varlen.batch
}

// -----

func.func @other_user_of_rows(%cu: memref<?xi32>, %n: index) -> !varlen.rows<1 x f32> {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<1 x f32>
  // expected-error@+1 {{expected varlen.free_rows, and operations in a varlen.for_tiles, to be all that uses varlen.rows}}
  return %rows : !varlen.rows<1 x f32>
}

// -----

func.func @keys_in_pages(%cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>, %n: index) {
  %batch = varlen.batch %cu seqused_k(%used : memref<?xi32>)
      block_table(%table : memref<?x?xi32>, %n, %n) rows(%n, %n) heads(%n, %n) mask <full>
      : memref<?xi32>
  // expected-error@+1 {{expected tiles of queries in a batch with a block_table, got '!varlen.tile<keys(64)>'}}
  varlen.for_tiles "keys" %t of keys(64) in %batch {
  }
  return
}

// -----

func.func @append_of_tensors(%k: tensor<?x2x16xf32>, %cu: tensor<?xi32>, %used: tensor<?xi32>,
                             %cache: tensor<4x8x2x16xf32>) -> tensor<4x8x2x16xf32> {
  // expected-error@+1 {{expected memrefs, got tensors; bufferize before}}
  %0:2 = varlen.append %k, %k, %cu seqused_k(%used) outs(%cache, %cache)
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x8x2x16xf32>,
         tensor<4x8x2x16xf32>) -> (tensor<4x8x2x16xf32>, tensor<4x8x2x16xf32>)
  return %0#0 : tensor<4x8x2x16xf32>
}

// -----

func.func @append_in_a_kernel(%k: memref<?x2x16xf32>, %cu: memref<?xi32>, %used: memref<?xi32>,
                              %cache: memref<4x8x2x16xf32>, %v_cache: memref<4x8x2x16xf32>, %n: index) {
  gpu.launch blocks(%a, %b, %c) in (%ga = %n, %gb = %n, %gc = %n)
             threads(%d, %e, %f) in (%td = %n, %te = %n, %tf = %n) {
    // expected-error@+1 {{is in a kernel, which cannot launch others: expected an append in host code}}
    varlen.append %k, %k, %cu seqused_k(%used) outs(%cache, %v_cache)
        : (memref<?x2x16xf32>, memref<?x2x16xf32>, memref<?xi32>, memref<?xi32>, memref<4x8x2x16xf32>,
           memref<4x8x2x16xf32>) -> ()
    gpu.terminator
  }
  return
}

// RUN: varlen-opt %s -split-input-file -verify-diagnostics --convert-varlen-to-cpu

// The two forms of a loop over queries.

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @orientation(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    varlen.if_few %f of %t : !varlen.tile<queries(4)> of !varlen.tile<queries(16)> {
      %qt = varlen.read %q at %f : memref<?x2x4xf32>, !varlen.tile<queries(4)> -> tensor<4x4xf32>
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x4xf32>, tensor<1x4xf32>
      %s:3 = varlen.for_blocks %b of keys(16) meeting %f : !varlen.tile<queries(4)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
        %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
        %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
        // expected-error@+1 {{expected orientation qk of few queries on a CPU, got kq}}
        %r:3 = varlen.online_attn kq at(%f, %b : !varlen.tile<queries(4)>, !varlen.tile<keys(16)>)
            ins(%qt, %kt, %vt : tensor<4x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
            outs(%acc, %m, %l : tensor<8x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) scale 0.5
        varlen.yield %r#0, %r#1, %r#2 : tensor<8x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
      }
    } else {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @no_blocks(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected both regions to visit blocks, in parts or not}}
    varlen.if_few %f of %t : !varlen.tile<queries(4)> of !varlen.tile<queries(16)> {
    } else {
    }
  }
  return
}

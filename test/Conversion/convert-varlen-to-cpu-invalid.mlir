// RUN: varlen-opt %s -split-input-file -verify-diagnostics --convert-varlen-to-cpu

func.func @no_schedule(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected a #varlen.cpu_schedule under varlen.schedule}}
  varlen.for_tiles "a" %t of queries(16) in %batch {
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @scratch(%cu: memref<?xi32>, %n: index, %rows: !varlen.rows<1 x f32>, %m: tensor<16x1xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected varlen.rows of the batch of its loop}}
    varlen.write %m to %rows at %t otherwise (0.0) : tensor<16x1xf32> -> !varlen.rows<1 x f32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @other_block(%cu: memref<?xi32>, %n: index, %c: i1) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  scf.if %c {
    // expected-error@+1 {{expected to be in the block of its batch}}
    varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    }
  }
  return
}

// -----

func.func @heads(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected one varlen.sum_rows, and nothing else, in a loop over heads}}
  varlen.for_tiles "a" %t of heads in %batch {
  }
  return
}

// -----

func.func @heads_alone(%cu: memref<?xi32>, %n: index, %sinks: memref<4xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<1 x f32>
  // expected-error@+1 {{expected a loop over the rows of the heads before}}
  varlen.for_tiles "a" %t of heads in %batch {
    varlen.sum_rows %rows to %sinks at %t negated : !varlen.rows<1 x f32> to memref<4xf32>, !varlen.tile<heads>
  }
  return
}

// -----

// The runtime's name for something else.
// expected-note@+1 {{the name stands for this}}
func.func private @varlen_extent_error()

func.func @name(%cu: memref<?xi32>, %n: index) {
  // expected-error@+1 {{needs the runtime function 'varlen_extent_error' of type '(i64, i64, i64) -> ()'}}
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) fault(%n, %n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @effect(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{is not known to tile loops on a CPU}}
    %x = memref.load %cu[%n] : memref<?xi32>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @read_elsewhere(%cu: memref<?xi32>, %n: index, %lse: memref<2x?xf32>, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected a read at the tile of its loop}}
    %0 = varlen.read %lse at %other : memref<2x?xf32>, !varlen.tile<queries(16)> -> tensor<16x1xf32>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @two_loops(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> {
    }
    // expected-error@+1 {{expected one loop over blocks for each tile}}
    varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @other_tile(%cu: memref<?xi32>, %n: index, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected blocks of the tile of their loop}}
    varlen.for_blocks %b of keys(16) meeting %other : !varlen.tile<queries(16)> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @keys(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected tiles of queries or sequences on a CPU, got '!varlen.tile<keys(16)>'}}
  varlen.for_tiles "a" %t of keys(16) in %batch attributes {varlen.schedule = #cpu} {
    varlen.for_blocks %b of queries(16) meeting %t : !varlen.tile<keys(16)> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @tile_size(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected tiles of 16 queries, as many as the panels of the schedule have, got 8}}
  varlen.for_tiles "a" %t of queries(8) in %batch attributes {varlen.schedule = #cpu} {
    varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(8)> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @block_size(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected blocks of 16 keys, the kv_block of the schedule, got 8}}
    varlen.for_blocks %b of keys(8) meeting %t : !varlen.tile<queries(16)> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @no_step(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected a step that takes the iter_args as they are and is yielded}}
    varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @other_op(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> {
      // expected-error@+1 {{expected reads and one step in a loop over blocks on a CPU}}
      %x = memref.load %cu[%n] : memref<?xi32>
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @two_steps(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      // expected-error@+1 {{expected reads and one step in a loop over blocks on a CPU}}
      %r2:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @gradient_of_queries(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %k: memref<?x1x4xf32>, %lse: memref<2x?xf32>, %zeros: tensor<16x4xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %l = varlen.read %lse at %t : memref<2x?xf32>, !varlen.tile<queries(16)> -> tensor<1x16xf32>
    %s = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%dq = %zeros) -> (tensor<16x4xf32>) {
      %kt = varlen.read %k at %b : memref<?x1x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      // expected-error@+1 {{expected sums whose columns are queries, got 'tensor<16x4xf32>'}}
      %r = varlen.online_attn_grad kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %l : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<1x16xf32>, tensor<1x16xf32>)
          dq(%dq : tensor<16x4xf32>) scale 0.5
      varlen.yield %r : tensor<16x4xf32>
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @step_of_other(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>, %other: !varlen.tile<keys(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      // expected-error@+1 {{expected a step at the tile and the block of its loops}}
      %r:3 = varlen.online_attn kq at(%t, %other : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @orientation(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init qk scale 0.5 : tensor<16x8xf32>, tensor<16x1xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x8xf32>, tensor<16x1xf32>, tensor<16x1xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      // expected-error@+1 {{expected orientation kq on a CPU, got qk}}
      %r:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<16x8xf32>, tensor<16x1xf32>, tensor<16x1xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<16x8xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    }
    %o, %e = varlen.online_finish qk %s#0, %s#1, %s#2 scale 0.5 : tensor<16x8xf32>, tensor<16x1xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @q_of_block(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      // expected-error@+1 {{expected q to be rows that are read at the tile}}
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%kt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @k_outside(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>, %kt: tensor<16x4xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      // expected-error@+1 {{expected k to be rows that are read at the block}}
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// Columns that memory does not have.
func.func @padded(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected rows of 4 x 'f32', got 'tensor<16x8xf32>'}}
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x8xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// 16 bits are widened as they are read.
func.func @narrow(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf16>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      // expected-error@+1 {{expected rows of 8 x 'f32', got 'tensor<16x8xf16>'}}
      %vt = varlen.read %v at %b : memref<?x1x8xf16>, !varlen.tile<keys(16)> -> tensor<16x8xf16>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf16>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// Types that differ in memory, though not as tiles.
func.func @mixed(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf16>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf16>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      // expected-error@+1 {{expected rows of one element type in memory, got 'f32' and, of v, 'f16'}}
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @otherwise(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      // expected-error@+1 {{expected 0 for rows that are not in use, got 1}}
      %vt = varlen.read %v at %b otherwise (1.0) : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = pairs>

func.func @pairs_of_f32(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected rows of bf16 for kv = pairs, got 'memref<?x2x4xf32>'}}
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = pairs>

func.func @odd_pairs(%cu: memref<?xi32>, %n: index, %q: memref<?x2x5xbf16>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected an even number of columns for kv = pairs, got 'memref<?x2x5xbf16>'}}
    %qt = varlen.read %q at %t : memref<?x2x5xbf16>, !varlen.tile<queries(16)> -> tensor<16x5xbf16>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x5xbf16>, !varlen.tile<keys(16)> -> tensor<16x5xbf16>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x5xbf16>, tensor<16x5xbf16>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// The state of a query stays where it is.
func.func @yield_other(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    // expected-error@+1 {{expected a step that takes the iter_args as they are and is yielded}}
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#2, %r#1 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @inits(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    // expected-error@+1 {{expected a state that begins with one operation, as varlen.online_init}}
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %l0, %l = %m0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @sink(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>, %sink: tensor<1x16xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    // expected-error@+1 {{expected operands that are numbers of the tile, or computed of it, got 'tensor<1x16xf32>'}}
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 sink(%sink : tensor<1x16xf32>) scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @write_elsewhere(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    // expected-error@+1 {{expected a write at the tile of its loop}}
    varlen.write %o to %out at %other otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @write_q(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    // expected-error@+1 {{expected rows that are read to be operands of a step or of varlen.row_dot on a CPU}}
    varlen.write %qt to %q at %t otherwise (0.0) : tensor<16x4xf32> -> memref<?x2x4xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @times(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    // expected-error@+1 {{expected rows without 'times' on a CPU}}
    varlen.write %o to %out at %t otherwise (0.0) times 2.0 : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

// Columns that memory does not have.
func.func @dropped(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x6xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
          outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    // expected-error@+1 {{expected rows of 6 columns, as memory has them, got 8}}
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x6xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

// Rows of out are queries, those of acc are not.
#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @turned(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x16xf32>, %out: memref<?x2x16xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<16x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x16xf32>, !varlen.tile<keys(16)> -> tensor<16x16xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x16xf32>)
          outs(%acc, %m, %l : tensor<16x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<16x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<16x16xf32>, tensor<1x16xf32>
    // expected-error@+1 {{expected queries to be the columns of 'tensor<16x16xf32>', not the rows}}
    %a:3 = varlen.online_merge kq %o, %s#1, %s#2 with %o, %s#1, %s#2 scale 0.5 : tensor<16x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x16xf32> -> memref<?x2x16xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @write_state(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x16xf32>, %out: memref<?x2x16xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<16x16xf32>, tensor<1x16xf32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_blocks %b of keys(16) meeting %t : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<16x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
      %vt = varlen.read %v at %b : memref<?x1x16xf32>, !varlen.tile<keys(16)> -> tensor<16x16xf32>
      %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x16xf32>)
          outs(%acc, %m, %l : tensor<16x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
      varlen.yield %r#0, %r#1, %r#2 : tensor<16x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<16x16xf32>, tensor<1x16xf32>
    // expected-error@+1 {{expected numbers of the tile, or rows that are computed of it, got 'tensor<16x16xf32>'}}
    varlen.write %s#0 to %out at %t otherwise (0.0) : tensor<16x16xf32> -> memref<?x2x16xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_effect(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    // expected-error@+1 {{is not known to tile loops on a CPU}}
    %x = memref.load %cu[%n] : memref<?xi32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_block_effect(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      // expected-error@+1 {{is not known to tile loops on a CPU}}
      %x = memref.load %cu[%n] : memref<?xi32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_block_size(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %little: tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    // expected-error@+1 {{expected blocks of 16 keys, the kv_block of the schedule, got 8}}
    %dq = varlen.for_blocks %b of keys(8) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(8)> -> tensor<8x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%little : tensor<8x8xf32>) -> tensor<8x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(8)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<8x8xf32>) dv(%dk0 : tensor<8x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<8x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(8)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<8x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(8)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_q(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      // expected-error@+1 {{expected q to be rows that are read at the tile}}
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%any, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_otherwise(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected 0 for rows that are not in use, got 1.000000e+00}}
    %qt = varlen.read %q at %t otherwise (1.0) : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_columns(%cu: memref<?xi32>, %n: index, %q: memref<?x2x6xf32>, %k: memref<?x1x6xf32>, %any: tensor<?x6xf32>, %few: tensor<16x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected rows of 8 x 'f32', got 'tensor<?x6xf32>'}}
    %qt = varlen.read %q at %t : memref<?x2x6xf32>, !varlen.tile<sequences> -> tensor<?x6xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x6xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x6xf32>) -> tensor<?x6xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x6xf32> {
      %kt = varlen.read %k at %b : memref<?x1x6xf32>, !varlen.tile<keys(16)> -> tensor<16x6xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x6xf32>) -> tensor<16x6xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x6xf32>, tensor<16x6xf32>, tensor<16x6xf32>, tensor<?x6xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x6xf32>) dk(%dk0 : tensor<16x6xf32>) dv(%dk0 : tensor<16x6xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x6xf32> -> memref<?x1x6xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x6xf32> -> memref<?x1x6xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x6xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x6xf32> -> memref<?x2x6xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_k(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      // expected-error@+1 {{expected k to be rows that are read at the block}}
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %few, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_orientation(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<?x1xf32>, tensor<?x1xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      // expected-error@+1 {{expected orientation kq on a CPU, got qk}}
      %r:3 = varlen.online_attn_grad qk natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_statistics(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>, %e: tensor<1x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      // expected-error@+1 {{expected numbers of queries to be read or computed at the tile, got 'tensor<1x?xf32>'}}
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %e : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_sum(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%any : tensor<?x8xf32>) -> tensor<?x8xf32>
    // expected-error@+1 {{expected sums that start from linalg.fill of 0, of the varlen.size of the sequence}}
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_multiple(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    // expected-error@+1 {{expected multiples of 16, the queries of a panel, got 8}}
    %size = varlen.size of %t multiple 8 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_start(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      // expected-error@+1 {{expected sums of keys that start from linalg.fill of 0, of static extents}}
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%few : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_yield(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    // expected-error@+1 {{expected sums of the step, and nothing else, to go from block to block}}
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %sum : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_write_otherwise(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    // expected-error@+1 {{expected 0 for rows that are not in use, got 1.0}}
    varlen.write %dq to %q at %t otherwise (1.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_no_blocks(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected one loop over the blocks of each sequence}}
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_no_step(%cu: memref<?xi32>, %n: index) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected one step, got none}}
    varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_computed(%cu: memref<?xi32>, %n: index, %x: memref<?x2x8xf32>, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %0 = varlen.read %x at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    // expected-error@+1 {{'varlen.row_dot' op is not known to tile loops on a CPU}}
    %1 = varlen.row_dot %0, %0 : tensor<?x8xf32> -> tensor<?x1xf32>
    varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_numbers(%cu: memref<?xi32>, %n: index, %lse: memref<2x?xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected numbers of varlen.rows, which are read where they are, got 'memref<2x?xf32>'}}
    %0 = varlen.read %lse at %t : memref<2x?xf32>, !varlen.tile<sequences> -> tensor<1x?xf32>
    varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_clear(%cu: memref<?xi32>, %n: index, %table: memref<2x?x8xf32>, %other: !varlen.tile<sequences>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected the tile of its loop, before the step}}
    varlen.clear %table at %other : memref<2x?x8xf32>, !varlen.tile<sequences>
    varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_write_other(%cu: memref<?xi32>, %n: index, %x: memref<?x2x8xf32>, %any: tensor<?x8xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected sums of the sequence, rows to memory of T x H x D, numbers to other, got 'tensor<?x8xf32>'}}
    varlen.write %any to %x at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
    varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_write_elsewhere(%cu: memref<?xi32>, %n: index, %x: memref<?x2x8xf32>, %any: tensor<?x8xf32>, %other: !varlen.tile<sequences>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    // expected-error@+1 {{expected a write at the tile of its loop}}
    varlen.write %any to %x at %other otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
    varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_not_carried(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      // expected-error@+1 {{expected sums of queries to go from block to block}}
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%dq0 : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_two_steps(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %any: tensor<?x8xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      // expected-error@+1 {{expected one step in a loop over blocks, got another}}
      %r2:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @sequences_late_clear(%cu: memref<?xi32>, %n: index, %q: memref<?x2x8xf32>, %k: memref<?x1x8xf32>, %table: memref<2x?xf32>, %few: tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : !varlen.rows<2 x f32>
  varlen.for_tiles "a" %t of sequences in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x8xf32>, !varlen.tile<sequences> -> tensor<?x8xf32>
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<sequences> -> tensor<1x?xf32>, tensor<1x?xf32>
    %size = varlen.size of %t multiple 16 : !varlen.tile<sequences>
    %empty = tensor.empty(%size) : tensor<?x8xf32>
    %dq0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    %dq = varlen.for_blocks %b of keys(16) of %t : !varlen.tile<sequences> iter_args(%sum = %dq0) -> tensor<?x8xf32> {
      %kt = varlen.read %k at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
      %dk0 = linalg.fill ins(%zero : f32) outs(%few : tensor<16x8xf32>) -> tensor<16x8xf32>
      %r:3 = varlen.online_attn_grad kq natural at(%t, %b : !varlen.tile<sequences>, !varlen.tile<keys(16)>)
          ins(%qt, %kt, %kt, %qt, %l, %d : tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<?x8xf32>, tensor<1x?xf32>, tensor<1x?xf32>)
          dq(%sum : tensor<?x8xf32>) dk(%dk0 : tensor<16x8xf32>) dv(%dk0 : tensor<16x8xf32>) scale 0.125
      varlen.write %r#1 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      varlen.write %r#2 to %k at %b otherwise (0.0) : tensor<16x8xf32> -> memref<?x1x8xf32>, !varlen.tile<keys(16)>
      // expected-error@+1 {{expected the tile of its loop, before the step}}
      varlen.clear %table at %b : memref<2x?xf32>, !varlen.tile<keys(16)>
      varlen.yield %r#0 : tensor<?x8xf32>
    }
    varlen.write %dq to %q at %t otherwise (0.0) : tensor<?x8xf32> -> memref<?x2x8xf32>, !varlen.tile<sequences>
  }
  return
}

// -----

func.func @batch(%batch: !varlen.batch) {
  // expected-error@+1 {{expected a batch that a varlen.batch makes}}
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>} {
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @statistics_read(%cu: memref<?xi32>, %n: index, %lse: memref<4x?xf32>, %dout: tensor<64x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #cpu} {
    %0 = varlen.read %lse at %t : memref<4x?xf32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
    // expected-error@+1 {{expected rows that are read at the tile, got 'tensor<64x64xf32>'}}
    %dot = varlen.row_dot %dout, %dout : tensor<64x64xf32> -> tensor<64x1xf32>
    %l, %d = varlen.online_statistics %dot, %0 : tensor<64x1xf32>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @statistics_columns(%cu: memref<?xi32>, %n: index, %lse: memref<4x?xf32>, %dout: memref<?x4x60xf32>, %out: memref<?x4x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #cpu} {
    %0 = varlen.read %lse at %t : memref<4x?xf32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
    %1 = varlen.read %dout at %t : memref<?x4x60xf32>, !varlen.tile<queries(64)> -> tensor<64x64xf32>
    %2 = varlen.read %out at %t : memref<?x4x64xf32>, !varlen.tile<queries(64)> -> tensor<64x64xf32>
    // expected-error@+1 {{expected rows of one head_dim, got 'memref<?x4x60xf32>' and 'memref<?x4x64xf32>'}}
    %dot = varlen.row_dot %1, %2 : tensor<64x64xf32> -> tensor<64x1xf32>
    %l, %d = varlen.online_statistics %dot, %0 : tensor<64x1xf32>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1, kv_block = 16, kv = copy>

func.func @statistics_other(%cu: memref<?xi32>, %n: index, %lse: memref<4x?xf32>, %dout: memref<?x4x64xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(64) in %batch attributes {varlen.schedule = #cpu} {
    %0 = varlen.read %lse at %t : memref<4x?xf32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
    %1 = varlen.read %dout at %t : memref<?x4x64xf32>, !varlen.tile<queries(64)> -> tensor<64x64xf32>
    %dot = varlen.row_dot %1, %1 : tensor<64x64xf32> -> tensor<64x1xf32>
    %l, %d = varlen.online_statistics %dot, %0 : tensor<64x1xf32>
    // expected-error@+1 {{'arith.addf' op is not known to tile loops on a CPU}}
    %sum = arith.addf %l, %d : tensor<64x1xf32>
  }
  return
}

// -----

func.func @two_sums(%cu: memref<?xi32>, %n: index, %rows: memref<4x?x9xf32>, %sums: memref<4x9xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected one varlen.sum_rows, and nothing else, in a loop over heads}}
  varlen.for_tiles "a" %t of heads in %batch {
    varlen.sum_rows %rows to %sums at %t : memref<4x?x9xf32> to memref<4x9xf32>, !varlen.tile<heads>
    varlen.sum_rows %rows to %sums at %t : memref<4x?x9xf32> to memref<4x9xf32>, !varlen.tile<heads>
  }
  return
}

// -----

func.func @heads_other(%cu: memref<?xi32>, %n: index, %x: memref<4xf32>, %zero: f32) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  // expected-error@+1 {{expected one varlen.sum_rows, and nothing else, in a loop over heads}}
  varlen.for_tiles "a" %t of heads in %batch {
    memref.store %zero, %x[%n] : memref<4xf32>
  }
  return
}

// -----

func.func @heads_scratch(%cu: memref<?xi32>, %n: index, %rows: !varlen.rows<1 x f32>, %sinks: memref<4xf32>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of heads in %batch {
    // expected-error@+1 {{expected varlen.rows of the batch of its loop}}
    varlen.sum_rows %rows to %sinks at %t : !varlen.rows<1 x f32> to memref<4xf32>, !varlen.tile<heads>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @parts_of_other(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    // expected-error@+1 {{expected blocks of the tile of their loop}}
    %s:3 = varlen.for_parts %p of %other blocks(4) few(4) : !varlen.tile<queries(16)> -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      %r:3 = varlen.for_blocks %b of keys(16) meeting %p : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
        %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
        %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
        %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
            ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
            outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
        varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
      }
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    } merge(%acc1, %m1, %l1 with %acc2, %m2, %l2) {
      %u:3 = varlen.online_merge kq %acc1, %m1, %l1 with %acc2, %m2, %l2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      varlen.yield %u#0, %u#1, %u#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @in_part(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    %s:3 = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(16)> -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      %r:3 = varlen.for_blocks %b of keys(16) meeting %p : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
        %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
        %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
        %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
            ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
            outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
        varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
      }
      // expected-error@+1 {{expected the beginning of a state, as varlen.online_init, and a loop over blocks in a part on a CPU}}
      %m3 = arith.addf %r#1, %r#1 : tensor<1x16xf32>
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    } merge(%acc1, %m1, %l1 with %acc2, %m2, %l2) {
      %u:3 = varlen.online_merge kq %acc1, %m1, %l1 with %acc2, %m2, %l2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      varlen.yield %u#0, %u#1, %u#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @no_merge(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    // expected-error@+1 {{expected one operation on each query by itself, as varlen.online_merge, in 'merge'}}
    %s:3 = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(16)> -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      %r:3 = varlen.for_blocks %b of keys(16) meeting %p : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
        %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
        %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
        %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
            ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
            outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
        varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
      }
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    } merge(%acc1, %m1, %l1 with %acc2, %m2, %l2) {
      varlen.yield %acc1, %m1, %l1 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @merge_order(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    // expected-error@+1 {{expected one operation on each query by itself, as varlen.online_merge, in 'merge'}}
    %s:3 = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(16)> -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      %r:3 = varlen.for_blocks %b of keys(16) meeting %p : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
        %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
        %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
        %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
            ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
            outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
        varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
      }
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    } merge(%acc1, %m1, %l1 with %acc2, %m2, %l2) {
      %u:3 = varlen.online_merge kq %acc2, %m2, %l2 with %acc1, %m1, %l1 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      varlen.yield %u#0, %u#1, %u#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
  }
  return
}

// -----

#cpu = #varlen.cpu_schedule<lanes = 8, vectors = 1, rows = 8, panels = 2, kv_block = 16, kv = copy>

func.func @merge_more(%cu: memref<?xi32>, %n: index, %q: memref<?x2x4xf32>, %v: memref<?x1x8xf32>, %out: memref<?x2x8xf32>, %other: !varlen.tile<queries(16)>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "a" %t of queries(16) in %batch attributes {varlen.schedule = #cpu} {
    %qt = varlen.read %q at %t : memref<?x2x4xf32>, !varlen.tile<queries(16)> -> tensor<16x4xf32>
    // expected-error@+1 {{expected one operation on each query by itself, as varlen.online_merge, in 'merge'}}
    %s:3 = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(16)> -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
      %acc0, %m0, %l0 = varlen.online_init kq scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      %r:3 = varlen.for_blocks %b of keys(16) meeting %p : !varlen.tile<queries(16)> iter_args(%acc = %acc0, %m = %m0, %l = %l0) -> (tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) {
        %kt = varlen.read %q at %b : memref<?x2x4xf32>, !varlen.tile<keys(16)> -> tensor<16x4xf32>
        %vt = varlen.read %v at %b : memref<?x1x8xf32>, !varlen.tile<keys(16)> -> tensor<16x8xf32>
        %r:3 = varlen.online_attn kq at(%t, %b : !varlen.tile<queries(16)>, !varlen.tile<keys(16)>)
            ins(%qt, %kt, %vt : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x8xf32>)
            outs(%acc, %m, %l : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) scale 0.5
        varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
      }
      varlen.yield %r#0, %r#1, %r#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    } merge(%acc1, %m1, %l1 with %acc2, %m2, %l2) {
      %u:3 = varlen.online_merge kq %acc1, %m1, %l1 with %acc2, %m2, %l2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      %u2:3 = varlen.online_merge kq %u#0, %u#1, %u#2 with %acc2, %m2, %l2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
      varlen.yield %u#0, %u#1, %u#2 : tensor<8x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>
    }
    %o, %e = varlen.online_finish kq %s#0, %s#1, %s#2 scale 0.5 : tensor<8x16xf32>, tensor<1x16xf32>
    varlen.write %o to %out at %t otherwise (0.0) : tensor<16x8xf32> -> memref<?x2x8xf32>, !varlen.tile<queries(16)>
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

// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expected queries, keys, heads or sequences, got rows}}
func.func private @axis(!varlen.tile<rows(64)>)

// -----

func.func @mask(%cu: memref<?xi32>, %n: index) {
  // expected-error@+1 {{expected a mask, got #varlen<orientation qk>}}
  varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask (#varlen<orientation qk>) : memref<?xi32>, memref<?xi32>
}

// -----

// expected-error@+1 {{expected a number of rows of keys from 1 to 65536, got none}}
func.func private @no_size(!varlen.tile<keys>)

// -----

// expected-error@+1 {{expected a number of rows of queries from 1 to 65536, got 0}}
func.func private @empty(!varlen.tile<queries(0)>)

// -----

// expected-error@+1 {{expected no number of rows for heads, got 4}}
func.func private @heads(!varlen.tile<heads(4)>)

// -----

// expected-error@+1 {{expected 'by_head' for queries only, got keys}}
func.func private @by_head(!varlen.tile<keys(64) by_head>)

// -----

// expected-error@+1 {{expected a positive number of values, got 0}}
func.func private @columns(!varlen.rows<0 x f32>)

// -----

// expected-error@+1 {{expected values of f32 or f64, got 'bf16'}}
func.func private @element(!varlen.rows<2 x bf16>)

// -----

func.func @entries(%cu: memref<4xi32>, %used: memref<4xi32>, %n: index) {
  // expected-error@+1 {{expected seqused_k to have one entry for each of the 3 sequences, got 4}}
  %batch = varlen.batch %cu, %cu seqused_k(%used : memref<4xi32>) rows(%n, %n) heads(%n, %n)
      mask <full> : memref<4xi32>, memref<4xi32>
  return
}

// -----

func.func @owner(%batch: !varlen.batch) {
  // expected-error@+1 {{expected tiles of all heads of a group, got '!varlen.tile<queries(64) by_head>'}}
  varlen.for_tiles "a" %t of queries(64) by_head in %batch {
  }
  return
}

// -----

func.func @name(%batch: !varlen.batch) {
  // expected-error@+1 {{expected a name, got none}}
  varlen.for_tiles "" %t of queries(64) in %batch {
  }
  return
}

// -----

func.func @no_tile(%batch: !varlen.batch) {
  // expected-error@+1 {{expected the body to have one argument, a tile}}
  "varlen.for_tiles"(%batch) <{name = "a"}> ({
    "varlen.yield"() : () -> ()
  }) : (!varlen.batch) -> ()
  return
}

// -----

func.func @yields(%batch: !varlen.batch, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected to yield nothing, got 1 values}}
  varlen.for_tiles "a" %t of queries(64) in %batch {
    varlen.yield %a : tensor<4x4xf32>
  }
  return
}

// -----

func.func @own_axis(%batch: !varlen.batch) {
  varlen.for_tiles "a" %t of queries(64) in %batch {
    // expected-error@+1 {{expected blocks of keys meeting queries, of queries meeting keys or of keys of sequences, got queries meeting queries}}
    varlen.for_blocks %b of queries(64) meeting %t : !varlen.tile<queries(64)> {
    }
  }
  return
}

// -----

func.func @own_queries(%batch: !varlen.batch) {
  varlen.for_tiles "a" %t of sequences in %batch {
    // expected-error@+1 {{got queries of sequences}}
    varlen.for_blocks %b of queries(64) of %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

func.func @relation(%batch: !varlen.batch) {
  varlen.for_tiles "a" %t of sequences in %batch {
    // expected-error@+1 {{expected 'of' sequences and 'meeting' other tiles, got '!varlen.tile<sequences>'}}
    varlen.for_blocks %b of keys(64) meeting %t : !varlen.tile<sequences> {
    }
  }
  return
}

// -----

func.func @multiple(%t: !varlen.tile<sequences>) {
  // expected-error@+1 {{attribute 'multiple' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %n = varlen.size of %t multiple 0 : !varlen.tile<sequences>
  return
}

// -----

func.func @rows_of_sequences(%q: memref<?x4x64xf32>, %t: !varlen.tile<sequences>) {
  // expected-error@+1 {{expected a dynamic number of rows of 64 columns or more, got 'tensor<64x64xf32>'}}
  %0 = varlen.read %q at %t : memref<?x4x64xf32>, !varlen.tile<sequences> -> tensor<64x64xf32>
  return
}

// -----

func.func @types(%batch: !varlen.batch, %a: tensor<4x4xf32>) {
  varlen.for_tiles "a" %t of queries(64) in %batch {
    %0:2 = varlen.for_blocks %b of keys(64) meeting %t : !varlen.tile<queries(64)>
        // expected-error@+1 {{expected a type for each of the 1 iter_args, got 2}}
        iter_args(%x = %a) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    }
  }
  return
}

// -----

func.func @yielded(%batch: !varlen.batch, %a: tensor<4x4xf32>, %c: tensor<4x1xf32>) {
  varlen.for_tiles "a" %t of queries(64) in %batch {
    // expected-error@+1 {{expected yielded values of the types of the inits ('tensor<4x4xf32>'), got ('tensor<4x1xf32>')}}
    %0 = varlen.for_blocks %b of keys(64) meeting %t : !varlen.tile<queries(64)>
        iter_args(%x = %a) -> (tensor<4x4xf32>) {
      varlen.yield %c : tensor<4x1xf32>
    }
  }
  return
}

// -----

func.func @read_columns(%q: memref<?x4x64xf32>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected 64 rows of 64 columns or more, got 'tensor<64x32xf32>'}}
  %0 = varlen.read %q at %t : memref<?x4x64xf32>, !varlen.tile<queries(64)> -> tensor<64x32xf32>
  return
}

// -----

func.func @dynamic_columns(%q: memref<?x4x?xf32>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected 64 rows of a static number of columns, got 'memref<?x4x?xf32>'}}
  %0 = varlen.read %q at %t : memref<?x4x?xf32>, !varlen.tile<queries(64)> -> tensor<64x32xf32>
  return
}

// -----

func.func @read_element(%q: memref<?x4x64xbf16>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected values of 'bf16' or 'f32', got 'f16'}}
  %0 = varlen.read %q at %t : memref<?x4x64xbf16>, !varlen.tile<queries(64)> -> tensor<64x64xf16>
  return
}

// -----

func.func @read_rows(%lse: memref<4x?xf32>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected a number for each row of '!varlen.tile<queries(64)>', got 'tensor<32x1xf32>'}}
  %0 = varlen.read %lse at %t : memref<4x?xf32>, !varlen.tile<queries(64)> -> tensor<32x1xf32>
  return
}

// -----

func.func @read_values(%rows: !varlen.rows<2 x f32>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected a value for each of the 2 that memory has of a row, got 1}}
  %0 = varlen.read %rows at %t : !varlen.rows<2 x f32>, !varlen.tile<queries(64)> -> tensor<64x1xf32>
  return
}

// -----

func.func @read_keys(%rows: !varlen.rows<1 x f32>, %t: !varlen.tile<keys(64)>) {
  // expected-error@+1 {{expected a tile of queries or sequences of '!varlen.rows<1 x f32>', got '!varlen.tile<keys(64)>'}}
  %0 = varlen.read %rows at %t : !varlen.rows<1 x f32>, !varlen.tile<keys(64)> -> tensor<64x1xf32>
  return
}

// -----

func.func @read_heads(%q: memref<?x4x64xf32>, %t: !varlen.tile<heads>) {
  // expected-error@+1 {{expected a tile of queries, keys or sequences of 'memref<?x4x64xf32>', got '!varlen.tile<heads>'}}
  %0 = varlen.read %q at %t : memref<?x4x64xf32>, !varlen.tile<heads> -> tensor<1x64xf32>
  return
}

// -----

func.func @write_heads(%gain: tensor<1x1xf32>, %gains: memref<4xf32>, %t: !varlen.tile<heads>) {
  // expected-error@+1 {{expected a tile of queries or sequences of 'memref<4xf32>', got '!varlen.tile<heads>'}}
  varlen.write %gain to %gains at %t otherwise (0.0) : tensor<1x1xf32> -> memref<4xf32>, !varlen.tile<heads>
  return
}

// -----

func.func @read_inside(%batch: !varlen.batch) {
  varlen.for_tiles "a" %t of queries(64) in %batch {
    %q = memref.alloc() : memref<8x4x64xf32>
    // expected-error@+1 {{expected memory that is defined outside of the loop over tiles}}
    %0 = varlen.read %q at %t : memref<8x4x64xf32>, !varlen.tile<queries(64)> -> tensor<64x64xf32>
  }
  return
}

// -----

func.func @otherwise(%rows: !varlen.rows<2 x f32>, %a: tensor<64x1xf32>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected 2 numbers in 'otherwise', one for each value, got 1}}
  varlen.write %a, %a to %rows at %t otherwise (inf) : tensor<64x1xf32>, tensor<64x1xf32> -> !varlen.rows<2 x f32>, !varlen.tile<queries(64)>
  return
}

// -----

func.func @write_element(%q: memref<?x4x64xf32>, %a: tensor<64x64xbf16>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected values of 'f32' or a wider type, got 'bf16'}}
  varlen.write %a to %q at %t otherwise (0.0) : tensor<64x64xbf16> -> memref<?x4x64xf32>, !varlen.tile<queries(64)>
  return
}

// -----

func.func @either(%q: tensor<4x8xf32>, %m: tensor<4x1xf32>, %lo: tensor<4x1xi32>, %k0: i32,
                  %t: !varlen.tile<queries(64)>, %b: !varlen.tile<keys(64)>) {
  // expected-error@+1 {{expected either limits or tiles, got both}}
  %0:3 = varlen.online_attn qk at(%t, %b : !varlen.tile<queries(64)>, !varlen.tile<keys(64)>)
      ins(%q, %q, %q : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
      limits(%lo, %lo, %k0 : tensor<4x1xi32>, tensor<4x1xi32>, i32)
      outs(%q, %m, %m : tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>) scale 1.0
  return
}

// -----

func.func @swapped(%q: tensor<4x8xf32>, %m: tensor<4x1xf32>,
                   %t: !varlen.tile<queries(64)>, %b: !varlen.tile<keys(64)>) {
  // expected-error@+1 {{expected tiles of queries and keys, got keys and queries}}
  %0:3 = varlen.online_attn qk at(%b, %t : !varlen.tile<keys(64)>, !varlen.tile<queries(64)>)
      ins(%q, %q, %q : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
      outs(%q, %m, %m : tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>) scale 1.0
  return
}

// -----

func.func @init_rows() {
  // expected-error@+1 {{expected m to be 1 x queries = 1 x 8 in orientation kq, got 'tensor<4x1xf32>'}}
  %0:3 = varlen.online_init kq scale 1.0 : tensor<4x8xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @init_scale() {
  // expected-error@+1 {{expected scale to be positive and finite, got -1}}
  %0:3 = varlen.online_init qk scale -1.0 : tensor<4x8xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @init_element() {
  // expected-error@+1 {{expected acc, m and l of one type, f32 or f64, got 'bf16' for acc}}
  %0:3 = varlen.online_init qk scale 1.0 : tensor<4x8xbf16>, tensor<4x1xbf16>
  return
}

// -----

func.func @init_dynamic() {
  // expected-error@+1 {{expected static extents, got 'tensor<?x8xf32>'}}
  %0:3 = varlen.online_init qk scale 1.0 : tensor<?x8xf32>, tensor<?x1xf32>
  return
}

// -----

func.func @finish_rows(%acc: tensor<4x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error@+1 {{expected m to be queries x 1 = 4 x 1 in orientation qk, got 'tensor<8x1xf32>'}}
  %0:2 = varlen.online_finish qk %acc, %m, %m scale 1.0 : tensor<4x8xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @finish_sink(%acc: tensor<4x8xf32>, %m: tensor<4x1xf32>, %sink: tensor<1x4xf32>) {
  // expected-error@+1 {{expected a sink of the type of m, 'tensor<4x1xf32>', got 'tensor<1x4xf32>'}}
  %0:2 = varlen.online_finish qk %acc, %m, %m sink(%sink : tensor<1x4xf32>) scale 1.0 : tensor<4x8xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @finish_scale(%acc: tensor<4x8xf32>, %m: tensor<4x1xf32>) {
  // expected-error@+1 {{expected scale to be positive and finite, got 0}}
  %0:2 = varlen.online_finish qk %acc, %m, %m scale 0.0 : tensor<4x8xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @finish_element(%acc: tensor<4x8xf32>, %m: tensor<4x1xf64>) {
  // expected-error@+1 {{expected acc, m and l of one type, f32 or f64, got 'f64' for m}}
  %0:2 = varlen.online_finish qk %acc, %m, %m scale 1.0 : tensor<4x8xf32>, tensor<4x1xf64>
  return
}

// -----

func.func @merge_rows(%acc: tensor<4x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error@+1 {{expected m to be queries x 1 = 4 x 1 in orientation qk, got 'tensor<8x1xf32>'}}
  %0:3 = varlen.online_merge qk %acc, %m, %m with %acc, %m, %m scale 1.0 : tensor<4x8xf32>, tensor<8x1xf32>
  return
}

// -----

func.func @merge_scale(%acc: tensor<4x8xf32>, %m: tensor<4x1xf32>) {
  // expected-error@+1 {{scale}}
  %0:3 = varlen.online_merge qk %acc, %m, %m with %acc, %m, %m scale 0.0 : tensor<4x8xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @row_dot(%dout: tensor<4x8xf32>) {
  // expected-error@+1 {{expected a result of 4 x 1, a number for each row, got 'tensor<1x4xf32>'}}
  %0 = varlen.row_dot %dout, %dout : tensor<4x8xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @row_dot_element(%dout: tensor<4x8xf64>) {
  // expected-error@+1 {{expected lhs of a type that accumulates in 'f32', the type of the result, got 'f64'}}
  %0 = varlen.row_dot %dout, %dout : tensor<4x8xf64> -> tensor<4x1xf32>
  return
}

// -----

func.func @statistics_rows(%lse: tensor<4x8xf32>) {
  // expected-error@+1 {{expected a number for each query, R x 1 or 1 x R, got 'tensor<4x8xf32>'}}
  %0:2 = varlen.online_statistics %lse, %lse : tensor<4x8xf32>
  return
}

// -----

func.func @statistics_dlse(%lse: tensor<4x1xf32>, %dlse: tensor<8x1xf32>) {
  // expected-error@+1 {{expected dlse of the type of lse, 'tensor<4x1xf32>', got 'tensor<8x1xf32>'}}
  %0:2 = varlen.online_statistics %lse, %lse dlse(%dlse : tensor<8x1xf32>) : tensor<4x1xf32>
  return
}

// -----

func.func @statistics_sink(%lse: tensor<1x4xf32>, %sink: tensor<4x1xf32>) {
  // expected-error@+1 {{expected a sink of the type of lse, 'tensor<1x4xf32>', got 'tensor<4x1xf32>'}}
  %0:3 = varlen.online_statistics %lse, %lse sink(%sink : tensor<4x1xf32>) : tensor<1x4xf32>
  return
}

// -----

func.func @no_columns(%q: memref<?x4x0xf32>, %t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected rows of a column at least, got 'memref<?x4x0xf32>'}}
  %0 = varlen.read %q at %t : memref<?x4x0xf32>, !varlen.tile<queries(64)> -> tensor<64x8xf32>
  return
}

// -----

func.func @parts_size(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{attribute 'blocks' failed to satisfy constraint}}
  %s = varlen.for_parts %p of %t blocks(-1) few(4) : !varlen.tile<queries(64)> -> tensor<4x4xf32> {
    %r = varlen.for_blocks %b of keys(64) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<4x4xf32>) {
      varlen.yield %x : tensor<4x4xf32>
    }
    varlen.yield %r : tensor<4x4xf32>
  } merge(%x with %y) {
    varlen.yield %x : tensor<4x4xf32>
  }
  return
}

// -----

func.func @parts_axis(%t: !varlen.tile<sequences>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected a tile of queries or keys, got '!varlen.tile<sequences>'}}
  %s = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<sequences> -> tensor<4x4xf32> {
    %r = varlen.for_blocks %b of keys(64) of %p : !varlen.tile<sequences> iter_args(%x = %a) -> (tensor<4x4xf32>) {
      varlen.yield %x : tensor<4x4xf32>
    }
    varlen.yield %r : tensor<4x4xf32>
  } merge(%x with %y) {
    varlen.yield %x : tensor<4x4xf32>
  }
  return
}

// -----

func.func @parts_other(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected one varlen.for_blocks in the body, over the blocks of the part}}
  %s = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(64)> -> tensor<4x4xf32> {
    %r = varlen.for_blocks %b of keys(64) meeting %t : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<4x4xf32>) {
      varlen.yield %x : tensor<4x4xf32>
    }
    varlen.yield %r : tensor<4x4xf32>
  } merge(%x with %y) {
    varlen.yield %x : tensor<4x4xf32>
  }
  return
}

// -----

func.func @parts_merge(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected 'merge' to yield a state of ('tensor<4x4xf32>'), got ('tensor<4x4xf32>', 'tensor<4x4xf32>')}}
  %s = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(64)> -> tensor<4x4xf32> {
    %r = varlen.for_blocks %b of keys(64) meeting %p : !varlen.tile<queries(64)> iter_args(%x = %a) -> (tensor<4x4xf32>) {
      varlen.yield %x : tensor<4x4xf32>
    }
    varlen.yield %r : tensor<4x4xf32>
  } merge(%x with %y) {
    varlen.yield %x, %y : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return
}

// -----

func.func @parts_no_loop(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected one varlen.for_blocks in the body}}
  %s = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(64)> -> tensor<4x4xf32> {
    varlen.yield %a : tensor<4x4xf32>
  } merge(%x with %y) {
    varlen.yield %x : tensor<4x4xf32>
  }
  return
}

// -----

func.func @parts_arguments(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  %s = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(64)> -> tensor<4x4xf32> {
    varlen.yield %a : tensor<4x4xf32>
  // expected-error@+1 {{expected a value for each of the 1 results, got 2}}
  } merge(%x, %z with %y) {
    varlen.yield %x : tensor<4x4xf32>
  }
  return
}

// -----

func.func @parts_no_state(%t: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected a state, got no results}}
  "varlen.for_parts"(%t) <{blocks = 4 : i64, few = 4 : i64}> ({
  ^bb0(%p: !varlen.tile<queries(64)>):
    "varlen.yield"() : () -> ()
  }, {
    "varlen.yield"() : () -> ()
  }) : (!varlen.tile<queries(64)>) -> ()
  return
}

// -----

func.func @parts_tile(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected the body to have one argument, a '!varlen.tile<queries(64)>'}}
  %s = "varlen.for_parts"(%t) <{blocks = 4 : i64, few = 4 : i64}> ({
  ^bb0(%p: !varlen.tile<queries(32)>):
    "varlen.yield"(%a) : (tensor<4x4xf32>) -> ()
  }, {
  ^bb0(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>):
    "varlen.yield"(%x) : (tensor<4x4xf32>) -> ()
  }) : (!varlen.tile<queries(64)>) -> tensor<4x4xf32>
  return
}

// -----

func.func @parts_states(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected 'merge' to have two states as arguments, of ('tensor<4x4xf32>'), got ('tensor<4x4xf32>')}}
  %s = "varlen.for_parts"(%t) <{blocks = 4 : i64, few = 4 : i64}> ({
  ^bb0(%p: !varlen.tile<queries(64)>):
    "varlen.yield"(%a) : (tensor<4x4xf32>) -> ()
  }, {
  ^bb0(%x: tensor<4x4xf32>):
    "varlen.yield"(%x) : (tensor<4x4xf32>) -> ()
  }) : (!varlen.tile<queries(64)>) -> tensor<4x4xf32>
  return
}

// -----

func.func @parts_other_state(%t: !varlen.tile<queries(64)>, %a: tensor<4x4xf32>) {
  // expected-error@+1 {{expected the results of the varlen.for_blocks to be the state of a part, of ('tensor<4x4xf32>')}}
  %s = varlen.for_parts %p of %t blocks(4) few(4) : !varlen.tile<queries(64)> -> tensor<4x4xf32> {
    varlen.for_blocks %b of keys(64) meeting %p : !varlen.tile<queries(64)> {
    }
    varlen.yield %a : tensor<4x4xf32>
  } merge(%x with %y) {
    varlen.yield %x : tensor<4x4xf32>
  }
  return
}

// -----

func.func @batch_both(%cu: memref<?xi32>, %table: memref<?x?xi32>, %n: index) {
  // expected-error@+1 {{expected cu_k or a block_table, got both}}
  %batch = varlen.batch %cu, %cu block_table(%table : memref<?x?xi32>, %n, %n) rows(%n, %n)
      heads(%n, %n) mask <full> : memref<?xi32>, memref<?xi32>
  return
}

// -----

func.func @batch_lengths(%cu: memref<?xi32>, %table: memref<?x?xi32>, %n: index) {
  // expected-error@+1 {{expected seqused_k with a block_table, got none}}
  %batch = varlen.batch %cu block_table(%table : memref<?x?xi32>, %n, %n) rows(%n, %n)
      heads(%n, %n) mask <full> : memref<?xi32>
  return
}

// -----

func.func @batch_table(%cu: memref<4xi32>, %used: memref<3xi32>, %table: memref<4x?xi32>,
                       %n: index) {
  // expected-error@+1 {{expected block_table to have one row for each of the 3 sequences, got 4}}
  %batch = varlen.batch %cu seqused_k(%used : memref<3xi32>)
      block_table(%table : memref<4x?xi32>, %n, %n) rows(%n, %n) heads(%n, %n) mask <full>
      : memref<4xi32>
  return
}

// -----

func.func @read_pages(%cu: memref<?xi32>, %n: index, %K: memref<?x8x4x40xbf16>) {
  %batch = varlen.batch %cu, %cu rows(%n, %n) heads(%n, %n) mask <full>
      : memref<?xi32>, memref<?xi32>
  varlen.for_tiles "dk" %t of keys(64) in %batch {
    // expected-error@+1 {{expected memory without pages at '!varlen.tile<keys(64)>' of a batch without a block_table, got 'memref<?x8x4x40xbf16>'}}
    %k = varlen.read %K at %t : memref<?x8x4x40xbf16>, !varlen.tile<keys(64)> -> tensor<64x40xbf16>
  }
  return
}

// -----

func.func @read_no_pages(%cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>,
                         %n: index, %K: memref<?x4x40xbf16>) {
  %batch = varlen.batch %cu seqused_k(%used : memref<?xi32>)
      block_table(%table : memref<?x?xi32>, %n, %n) rows(%n, %n) heads(%n, %n) mask <full>
      : memref<?xi32>
  varlen.for_tiles "dk" %t of keys(64) in %batch {
    // expected-error@+1 {{expected memory of pages at '!varlen.tile<keys(64)>' of a batch with a block_table, got 'memref<?x4x40xbf16>'}}
    %k = varlen.read %K at %t : memref<?x4x40xbf16>, !varlen.tile<keys(64)> -> tensor<64x40xbf16>
  }
  return
}

// -----

func.func @write_pages(%cu: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x?xi32>,
                       %n: index, %K: memref<?x8x4x40xbf16>, %k: tensor<64x40xbf16>) {
  %batch = varlen.batch %cu seqused_k(%used : memref<?xi32>)
      block_table(%table : memref<?x?xi32>, %n, %n) rows(%n, %n) heads(%n, %n) mask <full>
      : memref<?xi32>
  varlen.for_tiles "dk" %t of keys(64) in %batch {
    // expected-error@+1 {{expected memory without pages, got 'memref<?x8x4x40xbf16>'}}
    varlen.write %k to %K at %t otherwise (0.0)
        : tensor<64x40xbf16> -> memref<?x8x4x40xbf16>, !varlen.tile<keys(64)>
  }
  return
}

// -----

func.func @read_quantised(%k: memref<?x4x64xi8>, %t: !varlen.tile<keys(64)>) {
  // expected-error@+1 {{expected values of 'i8', f16, bf16 or 'f32', got 'f64'}}
  %0 = varlen.read %k at %t : memref<?x4x64xi8>, !varlen.tile<keys(64)> -> tensor<64x64xf64>
  return
}

// -----

func.func @in_order_at_tile(%batch: !varlen.batch, %dQ: memref<?x16x64xbf16>, %part: tensor<64x64xf32>) {
  varlen.for_tiles "dq" %t of queries(64) in %batch {
    // expected-error@+1 {{expected a block of queries by_head, got '!varlen.tile<queries(64)>'}}
    varlen.add_in_order %part to %dQ at %t : tensor<64x64xf32> -> memref<?x16x64xbf16>, !varlen.tile<queries(64)>
  }
  return
}

// -----

func.func @in_order_of_numbers(%batch: !varlen.batch, %lse: memref<16x?xf32>, %part: tensor<64x1xf32>) {
  varlen.for_tiles "dq" %t of keys(64) in %batch {
    varlen.for_blocks %b of queries(64) by_head meeting %t : !varlen.tile<keys(64)> {
      // expected-error@+1 {{expected memory of T x H x D, got 'memref<16x?xf32>'}}
      varlen.add_in_order %part to %lse at %b : tensor<64x1xf32> -> memref<16x?xf32>, !varlen.tile<queries(64) by_head>
    }
  }
  return
}

// -----

func.func @in_order_of_bf16(%batch: !varlen.batch, %dQ: memref<?x16x64xbf16>, %part: tensor<64x64xbf16>) {
  varlen.for_tiles "dq" %t of keys(64) in %batch {
    varlen.for_blocks %b of queries(64) by_head meeting %t : !varlen.tile<keys(64)> {
      // expected-error@+1 {{expected a part of f32, got 'tensor<64x64xbf16>'}}
      varlen.add_in_order %part to %dQ at %b : tensor<64x64xbf16> -> memref<?x16x64xbf16>, !varlen.tile<queries(64) by_head>
    }
  }
  return
}

// -----

func.func @in_order_of_other_rows(%batch: !varlen.batch, %dQ: memref<?x16x64xbf16>, %part: tensor<32x64xf32>) {
  varlen.for_tiles "dq" %t of keys(64) in %batch {
    varlen.for_blocks %b of queries(64) by_head meeting %t : !varlen.tile<keys(64)> {
      // expected-error@+1 {{expected 64 rows of 64 columns or more, got 'tensor<32x64xf32>'}}
      varlen.add_in_order %part to %dQ at %b : tensor<32x64xf32> -> memref<?x16x64xbf16>, !varlen.tile<queries(64) by_head>
    }
  }
  return
}

// RUN: varlen-opt %s --split-input-file --verify-diagnostics

func.func @attn_c19_rank(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %table: tensor<4xf32>) {
  // expected-error@+1 {{expected capture compatible with 'tensor<4x4xf32>', got 'tensor<4xf32>'}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%table)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c19_heads(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %table: tensor<4x7x9xf32>) {
  // expected-error@+1 {{expected capture compatible with 'tensor<4x8x9xf32>', got 'tensor<4x7x9xf32>'}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%table)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4x7x9xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        varlen.yield %s : f32
      }
  return
}

// -----

// Numbers have no third extent.
func.func @attn_c19_numbers(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %table: tensor<4x8x9xf32>) {
  // expected-error@+1 {{expected capture compatible with 'tensor<4x8xf32>', got 'tensor<4x8x9xf32>'}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%table)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4x8x9xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: f32) {
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c20_static(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %table: tensor<4x9xf32>) {
  // expected-error@+1 {{expected a score region of 'f32', 'i32', 'i32', 'f32': the score, the positions of query and key, and a number of each capture, or a row of it as '!varlen.table<f32>', got 'f32', 'i32', 'i32', 'tensor<9xf32>'}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%table)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4x9xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: tensor<9xf32>) {
        varlen.yield %s : f32
      }
  return
}

// -----

// A table is for lookups only.
func.func @attn_c20_extract(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %table: tensor<4x9xf32>) {
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%table)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4x9xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        // expected-error@+1 {{expected operations of arith and math on numbers, and varlen.lookup, in a score region}}
        %b = builtin.unrealized_conversion_cast %a : !varlen.table<f32> to f32
        varlen.yield %s : f32
      }
  return
}

// -----

// expected-error@+1 {{expected numbers of f32 or f64, got 'bf16'}}
func.func @type(%a: !varlen.table<bf16>)

// -----

func.func @step_tables(%q: tensor<32x64xf32>, %acc: tensor<64x32xf32>, %m: tensor<1x32xf32>) {
  // expected-error@+1 {{expected 1 tables, as many as the score region looks up in, got 0}}
  %0:3 = varlen.online_attn kq
      ins(%q, %q, %q : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>)
      captures(%m : tensor<1x32xf32>)
      outs(%acc, %m, %m : tensor<64x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 1.0
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @step_rows(%q: tensor<32x64xf32>, %acc: tensor<64x32xf32>, %m: tensor<1x32xf32>,
                     %table: memref<?x9xf32>) {
  // expected-error@+1 {{expected rows of 1 tables, those of a step without tiles, got 0}}
  %0:3 = varlen.online_attn kq
      ins(%q, %q, %q : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>)
      tables(%table : memref<?x9xf32>)
      outs(%acc, %m, %m : tensor<64x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 1.0
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @step_shape(%q: tensor<32x64xf32>, %acc: tensor<64x32xf32>, %m: tensor<1x32xf32>,
                      %table: memref<?x9xf32>, %rows: tensor<32x1xi64>) {
  // expected-error@+1 {{expected rows to be 1 x queries = 1 x 32 in orientation kq, got 'tensor<32x1xi64>'}}
  %0:3 = varlen.online_attn kq
      ins(%q, %q, %q : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>)
      tables(%table : memref<?x9xf32>) rows(%rows : tensor<32x1xi64>)
      outs(%acc, %m, %m : tensor<64x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 1.0
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @gather(%table: memref<?x9xf32>, %row: vector<4xi64>, %i: vector<8xi32>) {
  // expected-error@+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = varlen.gather %table[%row, %i] : memref<?x9xf32>, vector<4xi64>, vector<8xi32> -> vector<8xf32>
  return
}

// -----

func.func @gather_scalar(%table: memref<?x9xf32>, %row: i64, %i: vector<8xi32>) {
  // expected-error@+1 {{expected a row and an index for each entry, got 'i64' and 'vector<8xi32>' for 'vector<8xf32>'}}
  %0 = varlen.gather %table[%row, %i] : memref<?x9xf32>, i64, vector<8xi32> -> vector<8xf32>
  return
}

// -----

func.func @gather_type(%table: memref<?x9xf32>, %row: i64, %i: i32) {
  // expected-error@+1 {{expected entries of 'f32', got 'f64'}}
  %0 = varlen.gather %table[%row, %i] : memref<?x9xf32>, i64, i32 -> f64
  return
}

// -----

func.func @scatter_rows(%values: tensor<?x8xf32>, %i: tensor<?x8xi32>, %table: memref<?x9xf32>,
                        %rows: tensor<1x4xi64>) {
  // expected-error@+1 {{expected a row for each query, R x 1 or 1 x C of the 'tensor<?x8xf32>', got 'tensor<1x4xi64>'}}
  varlen.scatter_add %values at %i to %table[%rows]
      : tensor<?x8xf32>, tensor<?x8xi32>, memref<?x9xf32>, tensor<1x4xi64>
  return
}

// -----

func.func @scatter_index(%values: tensor<?x8xf32>, %i: tensor<4x8xi32>, %table: memref<?x9xf32>,
                         %rows: tensor<1x8xi64>) {
  // expected-error@+1 {{expected an index for each of the values, got 'tensor<4x8xi32>' for 'tensor<?x8xf32>'}}
  varlen.scatter_add %values at %i to %table[%rows]
      : tensor<?x8xf32>, tensor<4x8xi32>, memref<?x9xf32>, tensor<1x8xi64>
  return
}

// -----

// A number for each row of k, not of q.
func.func @attn_c19_keys(%q: tensor<8x4x16xf32>, %k: tensor<9x4x16xf32>, %cu: tensor<3xi32>,
                         %table: tensor<4x8xf32>) {
  // expected-error@+1 {{expected capture compatible with 'tensor<4x9xf32>', got 'tensor<4x8xf32>'}}
  %0:2 = varlen.attn %q, %k, %k, %cu, %cu captures(%table)
      : (tensor<8x4x16xf32>, tensor<9x4x16xf32>, tensor<9x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32, keys>) {
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c19_keys_rank(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %table: tensor<4x8x8xf32>) {
  // expected-error@+1 {{expected capture compatible with 'tensor<4x8xf32>', got 'tensor<4x8x8xf32>'}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%table)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4x8x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32, keys>) {
        varlen.yield %s : f32
      }
  return
}

// -----

// expected-error@+1 {{expected 'keys'}}
func.func @type_of(%a: !varlen.table<f32, queries>)

// -----

// expected-error@+1 {{expected numbers of f32 or f64, got 'f16'}}
func.func @type_of_keys(%a: !varlen.table<f16, keys>)

// -----

// The owner of keys sums for these alone.
func.func @step_key(%q: tensor<32x64xf32>, %m: tensor<1x32xf32>, %table: memref<?x9xf32>,
                    %rows: tensor<1x32xi64>, %i: tensor<1x32xi32>, %first: i32) {
  %0:3 = varlen.online_attn_grad kq
      ins(%q, %q, %q, %q, %m, %m : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>,
          tensor<32x64xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      positions(%i, %first : tensor<1x32xi32>, i32)
      tables(%table : memref<?x9xf32>) rows(%rows : tensor<1x32xi64>)
      dtables(%table : memref<?x9xf32>) drows(%rows : tensor<1x32xi64>)
      dq(%q : tensor<32x64xf32>) dk(%q : tensor<32x64xf32>) dv(%q : tensor<32x64xf32>)
      scale 1.0 {wrt_captures = array<i64: 0>}
      score (%s: f32, %query: i32, %key: i32, %a: !varlen.table<f32, keys>) {
        // expected-error@+1 {{expected the position of the key for an index in a table of keys whose gradient is computed in tiles}}
        %b = varlen.lookup %a[%query] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return
}

// -----

func.func @clear_keys(%memory: memref<4x?x9xf32>, %tile: !varlen.tile<keys(128)>) {
  // expected-error@+1 {{expected memory of H x T at a tile of keys, got 'memref<4x?x9xf32>'}}
  varlen.clear %memory at %tile : memref<4x?x9xf32>, !varlen.tile<keys(128)>
  return
}

// -----

func.func @clear_queries(%memory: memref<4x?xf32>, %tile: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected memory of H x T x M at a tile of rows, got 'memref<4x?xf32>'}}
  varlen.clear %memory at %tile : memref<4x?xf32>, !varlen.tile<queries(64)>
  return
}

// -----

func.func @sum_rows_tile(%rows: memref<4x?x9xf32>, %sums: memref<4x9xf32>, %tile: !varlen.tile<queries(64)>) {
  // expected-error@+1 {{expected a tile of heads, got '!varlen.tile<queries(64)>'}}
  varlen.sum_rows %rows to %sums at %tile : memref<4x?x9xf32> to memref<4x9xf32>, !varlen.tile<queries(64)>
  return
}

// -----

func.func @sum_rows_table(%rows: memref<4x?x9xf32>, %sums: memref<4xf32>, %tile: !varlen.tile<heads>) {
  // expected-error@+1 {{expected sums compatible with 'tensor<4x9xf32>', got 'memref<4xf32>'}}
  varlen.sum_rows %rows to %sums at %tile : memref<4x?x9xf32> to memref<4xf32>, !varlen.tile<heads>
  return
}

// -----

func.func @sum_rows_scratch(%rows: !varlen.rows<1 x f64>, %sums: memref<4xf32>, %tile: !varlen.tile<heads>) {
  // expected-error@+1 {{expected sums compatible with 'tensor<?xf64>', got 'memref<4xf32>'}}
  varlen.sum_rows %rows to %sums at %tile : !varlen.rows<1 x f64> to memref<4xf32>, !varlen.tile<heads>
  return
}

// -----

func.func @sum_rows_values(%rows: !varlen.rows<2 x f32>, %sums: memref<4x2xf32>, %tile: !varlen.tile<heads>) {
  // expected-error@+1 {{expected scratch with one value of each row, got '!varlen.rows<2 x f32>'}}
  varlen.sum_rows %rows to %sums at %tile : !varlen.rows<2 x f32> to memref<4x2xf32>, !varlen.tile<heads>
  return
}

// -----

func.func @add_keys_rows(%values: tensor<?x8xf32>, %table: memref<?x9xf32>, %first: i32,
                         %rows: tensor<1x4xi64>) {
  // expected-error@+1 {{expected a row for each query, R x 1 or 1 x C of the 'tensor<?x8xf32>', got 'tensor<1x4xi64>'}}
  varlen.add_keys %values to %table[%rows, %first]
      : tensor<?x8xf32>, memref<?x9xf32>, tensor<1x4xi64>
  return
}

// -----

func.func @add_keys_type(%values: tensor<?x8xf64>, %table: memref<?x9xf32>, %first: i32,
                         %rows: tensor<1x8xi64>) {
  // expected-error@+1 {{expected values of 'f32', got 'f64'}}
  varlen.add_keys %values to %table[%rows, %first]
      : tensor<?x8xf64>, memref<?x9xf32>, tensor<1x8xi64>
  return
}

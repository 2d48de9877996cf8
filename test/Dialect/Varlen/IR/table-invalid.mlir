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

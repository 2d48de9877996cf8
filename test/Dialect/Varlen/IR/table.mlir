// RUN: varlen-opt %s | FileCheck %s
// The default and the generic form read back as the same, and bytecode too.
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --emit-bytecode | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

// A table of heads, one of queries, and numbers between them.
// CHECK-LABEL: func.func @attn
// CHECK: varlen.attn {{.*}} captures(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) :
// CHECK-SAME: score (%score: f32, %query: i32, %key: i32, %table: !varlen.table<f32>, %capture: f32, %table_0: !varlen.table<f32>) {
// CHECK: varlen.lookup %table[%{{.*}}] : !varlen.table<f32>
// CHECK: varlen.lookup %table_0[%key] : !varlen.table<f32>
func.func @attn(%q: tensor<?x4x16xbf16>, %cu: tensor<?xi32>, %buckets: tensor<4x32xf32>,
                %gains: tensor<4x?xf32>, %bias: tensor<4x?x?xf32>) -> tensor<?x4x16xbf16> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%buckets, %gains, %bias)
      : (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?xi32>,
         tensor<?xi32>, tensor<4x32xf32>, tensor<4x?xf32>, tensor<4x?x?xf32>)
      -> (tensor<?x4x16xbf16>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %of_distance: !varlen.table<f32>, %gain: f32,
             %of_key: !varlen.table<f32>) {
        %distance = arith.subi %j, %i : i32
        %a = varlen.lookup %of_distance[%distance] : !varlen.table<f32>
        %b = varlen.lookup %of_key[%j] : !varlen.table<f32>
        %x = arith.mulf %gain, %s : f32
        %y = arith.addf %x, %a : f32
        %new = arith.addf %y, %b : f32
        varlen.yield %new : f32
      }
  return %out : tensor<?x4x16xbf16>
}

// The gradient of a table has its shape; more is known of extents than the types say.
// CHECK-LABEL: func.func @grad
// CHECK: varlen.attn_grad {{.*}}wrt_captures = array<i64: 0, 1>
// CANONICAL-LABEL: func.func @grad
// CANONICAL: -> (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<4x?xf64>, tensor<4x?x7xf64>)
func.func @grad(%q: tensor<?x4x16xf64>, %lse: tensor<4x?xf64>, %cu: tensor<?xi32>,
                %buckets: tensor<4x?xf64>, %bias: tensor<4x?x7xf64>) -> tensor<4x?x7xf64> {
  %0:5 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      captures(%buckets, %bias) {wrt_captures = array<i64: 0, 1>}
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>,
         tensor<?x4x16xf64>, tensor<4x?xf64>, tensor<?xi32>, tensor<?xi32>,
         tensor<4x?xf64>, tensor<4x?x7xf64>)
      -> (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<4x?xf64>,
          tensor<4x?x7xf64>)
      score (%s: f64, %i: i32, %j: i32, %a: !varlen.table<f64>, %b: !varlen.table<f64>) {
        %x = varlen.lookup %a[%i] : !varlen.table<f64>
        %y = varlen.lookup %b[%j] : !varlen.table<f64>
        %z = arith.addf %x, %y : f64
        %new = arith.addf %s, %z : f64
        varlen.yield %new : f64
      }
  return %0#4 : tensor<4x?x7xf64>
}

// What a table says of visible keys stays; what positions say becomes the mask.
// CANONICAL-LABEL: func.func @visible
// CANONICAL: varlen.attn {{.*}} {mask = #varlen.mask<causal>}
// CANONICAL: varlen.lookup
// CANONICAL: varlen.yield %score, %{{.*}} : f32, i1
func.func @visible(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %flags: tensor<4x?x9xf32>)
    -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%flags)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4x?x9xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32>) {
        %behind = arith.subi %i, %j : i32
        %flag = varlen.lookup %table[%behind] : !varlen.table<f32>
        %no = arith.constant 0.0 : f32
        %marked = arith.cmpf une, %flag, %no : f32
        %causal = arith.cmpi sle, %j, %i : i32
        %visible = arith.andi %marked, %causal : i1
        varlen.yield %s, %visible : f32, i1
      }
  return %out : tensor<?x4x16xf32>
}

// A table of keys has a number for each row of k, and so has its gradient.
// CHECK-LABEL: func.func @keys
// CHECK: score (%score: f32, %query: i32, %key: i32, %table: !varlen.table<f32, keys>) {
// CHECK: varlen.lookup %table[%key] : !varlen.table<f32, keys>
// CANONICAL-LABEL: func.func @keys
// CANONICAL: -> (tensor<?x4x16xf32>, tensor<9x2x16xf32>, tensor<9x2x16xf32>, tensor<4x9xf32>)
func.func @keys(%q: tensor<?x4x16xf32>, %k: tensor<9x2x16xf32>, %lse: tensor<4x?xf32>,
                %cu: tensor<?xi32>, %bias: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %0:4 = varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu captures(%bias)
      {wrt_captures = array<i64: 0>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<9x2x16xf32>, tensor<9x2x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x9xf32>)
      -> (tensor<?x4x16xf32>, tensor<9x2x16xf32>, tensor<9x2x16xf32>, tensor<4x9xf32>)
      score (%s: f32, %i: i32, %j: i32, %of_key: !varlen.table<f32, keys>) {
        %b = varlen.lookup %of_key[%j] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return %0#3 : tensor<4x9xf32>
}

// Steps take views of tables, and the row of each query.
// CHECK-LABEL: func.func @step
// CHECK: varlen.online_attn kq ins({{.*}}) tables(%{{.*}} : memref<?x32xf32, strided<[1, 1], offset: ?>>) rows(%{{.*}} : tensor<1x32xi64>) outs(
func.func @step(%q: tensor<32x64xf32>, %k: tensor<?x64xf32>, %acc: tensor<64x32xf32>,
                %m: tensor<1x32xf32>, %table: memref<?x32xf32, strided<[1, 1], offset: ?>>,
                %rows: tensor<1x32xi64>) -> tensor<64x32xf32> {
  %0:3 = varlen.online_attn kq
      ins(%q, %k, %k : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
      tables(%table : memref<?x32xf32, strided<[1, 1], offset: ?>>)
      rows(%rows : tensor<1x32xi64>)
      outs(%acc, %m, %m : tensor<64x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 1.0
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        %c = arith.constant 3 : i32
        %x = varlen.lookup %a[%c] : !varlen.table<f32>
        %y = arith.addf %s, %x : f32
        varlen.yield %y : f32
      }
  return %0#0 : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @entries
// CHECK: varlen.gather %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x32xf32, strided<[1, 1]>>, i64, i32 -> f32
// CHECK: varlen.gather {{.*}} vector<8xi64>, vector<8xi32> -> vector<8xf32>
// CHECK: varlen.scatter_add %{{.*}} at %{{.*}} to %{{.*}}[%{{.*}}]
// CHECK: varlen.add_keys %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] : tensor<?x8xf32>, memref<?x32xf32, strided<[1, 1]>>, tensor<1x8xi64>
func.func @entries(%table: memref<?x32xf32, strided<[1, 1]>>, %row: i64, %i: i32,
                   %rows: vector<8xi64>, %is: vector<8xi32>, %values: tensor<?x8xf32>,
                   %at: tensor<?x8xi32>, %of: tensor<1x8xi64>) -> (f32, vector<8xf32>) {
  %0 = varlen.gather %table[%row, %i] : memref<?x32xf32, strided<[1, 1]>>, i64, i32 -> f32
  %1 = varlen.gather %table[%rows, %is]
      : memref<?x32xf32, strided<[1, 1]>>, vector<8xi64>, vector<8xi32> -> vector<8xf32>
  varlen.scatter_add %values at %at to %table[%of]
      : tensor<?x8xf32>, tensor<?x8xi32>, memref<?x32xf32, strided<[1, 1]>>, tensor<1x8xi64>
  varlen.add_keys %values to %table[%of, %i]
      : tensor<?x8xf32>, memref<?x32xf32, strided<[1, 1]>>, tensor<1x8xi64>
  return %0, %1 : f32, vector<8xf32>
}

// RUN: varlen-opt %s | FileCheck %s
// The default and the generic form read back as the same, and bytecode too.
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --emit-bytecode | varlen-opt | FileCheck %s
// RUN: varlen-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

// A score, positions and numbers of captures, of a head and of a query of each head.
// CHECK-LABEL: func.func @attn
// CHECK: varlen.attn {{.*}} captures(%{{.*}}, %{{.*}}) {mask = #varlen.mask<causal>}
// CHECK-SAME: score (%score: f32, %query: i32, %key: i32, %capture: f32, %capture_0: f32) {
// CHECK: %[[DISTANCE:.*]] = arith.subi %key, %query : i32
// CHECK: varlen.yield %{{.*}} : f32
func.func @attn(%q: tensor<?x4x16xbf16>, %cu: tensor<?xi32>, %slopes: tensor<4xf32>,
                %gains: tensor<4x?xf32>) -> tensor<?x4x16xbf16> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%slopes, %gains)
      {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>, tensor<4x?xf32>)
      -> (tensor<?x4x16xbf16>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %slope: f32, %gain: f32) {
        %distance = arith.subi %j, %i : i32
        %x = arith.sitofp %distance : i32 to f32
        %y = arith.mulf %slope, %x : f32
        %z = arith.mulf %gain, %s : f32
        %new = arith.addf %y, %z : f32
        varlen.yield %new : f32
      }
  return %out : tensor<?x4x16xbf16>
}

// The gradients of captures come last.
// CHECK-LABEL: func.func @grad
// CHECK: %dq, %dk, %dv, %dsink, %dcapture = varlen.attn_grad {{.*}} sink(%{{.*}}) captures(%{{.*}}, %{{.*}}) {wrt_captures = array<i64: 1>}
// CHECK-SAME: score (%score: f64,
func.func @grad(%q: tensor<?x4x16xf64>, %lse: tensor<4x?xf64>, %cu: tensor<?xi32>,
                %slopes: tensor<4xf64>) -> tensor<4x?xf64> {
  %0:5 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu sink(%slopes)
      captures(%slopes, %lse) {wrt_captures = array<i64: 1>}
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>,
         tensor<?x4x16xf64>, tensor<4x?xf64>, tensor<?xi32>, tensor<?xi32>, tensor<4xf64>,
         tensor<4xf64>, tensor<4x?xf64>)
      -> (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<4xf64>,
          tensor<4x?xf64>)
      score (%s: f64, %i: i32, %j: i32, %slope: f64, %x: f64) {
        %y = arith.mulf %s, %x : f64
        varlen.yield %y : f64
      }
  return %0#4 : tensor<4x?xf64>
}

// A region that changes nothing goes, and its captures with it.
// CANONICAL-LABEL: func.func @identity
// CANONICAL: varlen.attn %{{[^)]*}} :
// CANONICAL-NOT: score
// CANONICAL: return
func.func @identity(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %c: tensor<4xf32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%c)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %x: f32) {
        %one = arith.constant 1.0 : f32
        %y = arith.mulf %s, %one : f32
        varlen.yield %y : f32
      }
  return %out : tensor<?x4x16xf32>
}

// The alignment of a mask that hides nothing says where queries are.
// CANONICAL-LABEL: func.func @alignment
// CANONICAL: {mask = #varlen.mask<full, top_left>}
func.func @alignment(%q: tensor<8x4x16xf32>, %cu: tensor<?xi32>) -> tensor<8x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<full, top_left>}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %x = arith.sitofp %i : i32 to f32
        %y = arith.addf %s, %x : f32
        varlen.yield %y : f32
      }
  return %out : tensor<8x4x16xf32>
}

// Steps take positions and captures as tiles.
// CHECK-LABEL: func.func @step
// CHECK: varlen.online_attn kq ins({{.*}}) positions(%{{.*}}, %{{.*}} : tensor<1x32xi32>, i32) captures(%{{.*}} : tensor<1x32xf32>) outs({{.*}}) scale 1.000000e+00 score (
func.func @step(%q: tensor<32x64xf32>, %k: tensor<?x64xf32>, %acc: tensor<64x32xf32>,
                %m: tensor<1x32xf32>, %position: tensor<1x32xi32>, %key: i32) -> tensor<64x32xf32> {
  %0:3 = varlen.online_attn kq
      ins(%q, %k, %k : tensor<32x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
      positions(%position, %key : tensor<1x32xi32>, i32) captures(%m : tensor<1x32xf32>)
      outs(%acc, %m, %m : tensor<64x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>) scale 1.0
      score (%s: f32, %i: i32, %j: i32, %c: f32) {
        %x = arith.sitofp %j : i32 to f32
        %y = arith.addf %s, %x : f32
        varlen.yield %y : f32
      }
  return %0#0 : tensor<64x32xf32>
}

// A factor of probabilities, beside whether the key is visible and without that: it is no
// score, so that the region stays, and what it hides moves to the mask.
// CHECK-LABEL: func.func @factor
// CHECK: varlen.yield %score, %{{.*}} : f32, f32
// CHECK: varlen.yield %score, %{{.*}}, %capture : f32, i1, f32
// CANONICAL-LABEL: func.func @factor
// CANONICAL: varlen.yield %score, %{{.*}} : f32, f32
// CANONICAL: varlen.attn {{.*}} {mask = #varlen.mask<causal>}
// CANONICAL: varlen.yield %score, %capture : f32, f32
func.func @factor(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %gains: tensor<4x?xf32>)
    -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %factor = arith.sitofp %j : i32 to f32
        varlen.yield %s, %factor : f32, f32
      }
  %1:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%gains)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %gain: f32) {
        %visible = arith.cmpi sle, %j, %i : i32
        varlen.yield %s, %visible, %gain : f32, i1, f32
      }
  return %0#0, %1#0 : tensor<?x4x16xf32>, tensor<?x4x16xf32>
}

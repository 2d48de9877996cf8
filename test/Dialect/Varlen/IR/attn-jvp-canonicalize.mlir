// RUN: varlen-opt %s -canonicalize | FileCheck %s

// Casts are read through, and results get the extents that operands know.
// CHECK-LABEL: func.func @casts
// CHECK: varlen.attn_jvp %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg1, %arg1
// CHECK-SAME: -> (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>)
func.func @casts(%q: tensor<8x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %d = tensor.cast %q : tensor<8x4x16xf32> to tensor<?x4x16xf32>
  %0:4 = varlen.attn_jvp %d, %d, %d, %d, %d, %d, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0#2 : tensor<?x4x16xf32>
}

// A tsink of zeros is none, a scale of the default neither, and a score that
// changes nothing goes with its captures.
// CHECK-LABEL: func.func @defaults
// CHECK: varlen.attn_jvp {{.*}} sink(%arg2) : {{.*}} -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>){{$}}
func.func @defaults(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %sink: tensor<4xf32>) -> tensor<?x4x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu sink(%sink) tsink(%zero) captures(%sink) {scale = 0.25 : f32}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %gain: f32) {
        varlen.yield %s : f32
      }
  return %0#2 : tensor<?x4x16xf32>
}

// A score that hides keys by a distance goes to the mask; what tangents belong to
// stays.
// CHECK-LABEL: func.func @absorbed
// CHECK: varlen.attn_jvp {{.*}} tcaptures(%arg2) captures(%arg2) {mask = #varlen.mask<causal>, wrt_captures = array<i64: 0>}
// CHECK: varlen.yield %{{.*}} : f32
func.func @absorbed(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %gain: tensor<4xf32>) -> tensor<?x4x16xf32> {
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu tcaptures(%gain) captures(%gain) {wrt_captures = array<i64: 0>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %g: f32) {
        %visible = arith.cmpi sle, %j, %i : i32
        %p = arith.mulf %s, %g : f32
        varlen.yield %p, %visible : f32, i1
      }
  return %0#2 : tensor<?x4x16xf32>
}

// Unused, it is gone.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) {
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

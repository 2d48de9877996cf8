// A tile of an attention with a score is one with the same region, on its part of the
// captures; queries keep their positions.
// REQUIRES: plugin
// RUN: %mlir-opt-plugin %s --transform-interpreter --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK: scf.for
// CHECK-DAG: tensor.extract_slice %{{.*}}[0, %[[ROW:.*]]] [4, %{{.*}}] [1, 1] : tensor<4x?xf32>
// CHECK: varlen.attn {{.*}} q_offset(%{{.*}}) captures(%{{.*}}, %{{.*}}) : {{.*}} score (%score: f32, %query: i32, %key: i32
func.func @rows(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %slopes: tensor<4xf32>,
                %gains: tensor<4x?xf32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%slopes, %gains)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>, tensor<4x?xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %slope: f32, %gain: f32) {
        %x = arith.sitofp %i : i32 to f32
        %y = arith.mulf %slope, %x : f32
        %z = arith.mulf %gain, %s : f32
        %new = arith.addf %y, %z : f32
        varlen.yield %new : f32
      }
  return %out : tensor<?x4x16xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %attn tile_sizes [0, 32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func.func @heads
// CHECK: scf.for
// CHECK-DAG: tensor.extract_slice %{{.*}}[%{{.*}}] [2] [1] : tensor<4xf32> to tensor<2xf32>
// CHECK: varlen.attn_grad {{.*}} captures(%{{.*}}) {wrt_captures = array<i64: 0>}
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[%{{.*}}] [2] [1] : tensor<2xf32> into tensor<4xf32>
func.func @heads(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>,
                 %gains: tensor<4xf32>) -> tensor<4xf32> {
  %dq, %dk, %dv, %dgains = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      captures(%gains) {wrt_captures = array<i64: 0>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
      score (%s: f32, %i: i32, %j: i32, %gain: f32) {
        %new = arith.mulf %gain, %s : f32
        varlen.yield %new : f32
      }
  return %dgains : tensor<4xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op) {
    %grad = transform.structured.match ops{["varlen.attn_grad"]} in %module
        : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %grad tile_sizes [2]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// REQUIRES: plugin
// RUN: not %mlir-opt-plugin %s --transform-interpreter --split-input-file 2>&1 | FileCheck %s

// Two query heads of a group of three and one of the next have no key heads
// that each serve equally many of them.

func.func @cuts_groups(%q: tensor<?x6x8xf32>, %k: tensor<?x2x8xf32>, %cu: tensor<?xi64>) -> tensor<?x6x8xf32> {
  // CHECK: error: 'varlen.attn' op expected tiles of heads that hold whole groups of 3 query heads or divide one, got size 2
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
    : (tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<?x6x8xf32>, tensor<6x?xf32>)
  return %out : tensor<?x6x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %attn tile_sizes [2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Nothing is known of the size of the groups.

func.func @unknown_groups(%q: tensor<?x?x8xf32>, %k: tensor<?x2x8xf32>, %cu: tensor<?xi64>) -> tensor<?x?x8xf32> {
  // CHECK: error: 'varlen.attn' op expected tiles of one head where the number of query heads in a group is dynamic, got size unknown
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
    : (tensor<?x?x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<?x?x8xf32>, tensor<?x?xf32>)
  return %out : tensor<?x?x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %attn tile_sizes [2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The tile of a loop says which rows a step is of; no type says it of some.

func.func @step_at(%queries: !varlen.tile<queries(32)>, %keys: !varlen.tile<keys(16)>, %q: tensor<32x64xf32>, %k: tensor<16x64xf32>,
                   %acc: tensor<32x64xf32>, %m: tensor<32x1xf32>) -> tensor<32x64xf32> {
  // CHECK: error: 'varlen.online_attn' op expected limits or nothing hidden for a step to be tiled, got rows of a tile loop
  %0:3 = varlen.online_attn qk at(%queries, %keys : !varlen.tile<queries(32)>, !varlen.tile<keys(16)>)
    ins(%q, %k, %k : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>)
    outs(%acc, %m, %m : tensor<32x64xf32>, tensor<32x1xf32>, tensor<32x1xf32>) scale 0.125
  return %0#0 : tensor<32x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["varlen.online_attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %step tile_sizes [8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// All keys of a tile share a state.

func.func @key_states(%q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %acc: tensor<32x64xf32>, %m: tensor<32x1xf32>) -> tensor<32x64xf32> {
  // CHECK: error: 'varlen.online_attn' op expected parts of the keys that run in parallel, each with a state, got a partial result for each key of a tile
  %0:3 = varlen.online_attn qk ins(%q, %k, %k : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>)
    outs(%acc, %m, %m : tensor<32x64xf32>, tensor<32x1xf32>, tensor<32x1xf32>) scale 0.125
  return %0#0 : tensor<32x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["varlen.online_attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %fill:3, %split, %merge, %loop = transform.structured.tile_reduction_using_for %step by tile_sizes = [0, 8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

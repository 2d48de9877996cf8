// REQUIRES: plugin
// RUN: %mlir-opt-plugin %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// A tile of heads and rows: the key heads of its groups, cu_q clamped to its
// rows, and an offset that keeps each query's position under the mask.

// CHECK-LABEL: func @heads_and_rows(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x6x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x2x8xf32>, %[[V:[a-z0-9]+]]: tensor<?x2x4xf32>, %[[CU_Q:[a-z0-9]+]]: tensor<3xi32>, %[[CU_K:[a-z0-9]+]]: tensor<3xi32>, %[[SINK:[a-z0-9]+]]: tensor<6xf32>
// CHECK:         scf.for %[[H:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %c3
// CHECK:           scf.for %[[ROW:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %c16
// CHECK:             %[[ROWS:[a-z0-9]+]] = affine.min
// CHECK:             %[[KV:[a-z0-9]+]] = affine.apply #{{.*}}(%[[H]])
// CHECK:             %[[Q_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[Q]][%[[ROW]], %[[H]], 0] [%[[ROWS]], 3, 8]
// CHECK:             %[[K_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[K]][0, %[[KV]], 0] [%{{.*}}, 1, 8]
// CHECK:             %[[V_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[V]][0, %[[KV]], 0] [%{{.*}}, 1, 4]
// CHECK:             %[[SINK_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[SINK]][%[[H]]] [3]
// CHECK:             %[[CU_TILE:[a-z0-9_]+]] = linalg.generic
// CHECK-SAME:          ins(%[[CU_Q]] : tensor<3xi32>)
// CHECK:               arith.maxsi
// CHECK:               arith.minsi
// CHECK:             %[[OFFSET:[a-z0-9_]+]] = linalg.generic
// CHECK:             %[[OUT:[a-z0-9_]+]], %[[LSE:[a-z0-9_]+]] = varlen.attn %[[Q_TILE]], %[[K_TILE]], %[[V_TILE]], %[[CU_TILE]], %[[CU_K]]
// CHECK-SAME:          q_offset(%[[OFFSET]]) sink(%[[SINK_TILE]]) {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32, some.attribute}
// CHECK-SAME:          -> (tensor<?x3x4xf32>, tensor<3x?xf32>)
// CHECK:             tensor.insert_slice %[[OUT]] into %{{.*}}[%[[ROW]], %[[H]], 0] [%[[ROWS]], 3, 4]
// CHECK:             tensor.insert_slice %[[LSE]] into %{{.*}}[%[[H]], %[[ROW]]] [3, %[[ROWS]]]
func.func @heads_and_rows(%q: tensor<?x6x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>, %sink: tensor<6xf32>) -> (tensor<?x6x4xf32>, tensor<6x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k sink(%sink) {mask = #varlen.mask<causal>, scale = 0.25 : f32, some.attribute}
    : (tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<6xf32>)
    -> (tensor<?x6x4xf32>, tensor<6x?xf32>)
  return %out, %lse : tensor<?x6x4xf32>, tensor<6x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %attn tile_sizes [3, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Without a mask positions do not matter: no offset, not even the one there is.
// Whole heads are not sliced.

// CHECK-LABEL: func @rows(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<64x6x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x2x8xf32>, %[[CU:[a-z0-9]+]]: tensor<?xi64>, %[[USED:[a-z0-9]+]]: tensor<?xi64>
// CHECK:         scf.forall (%{{.*}}) in (4)
// CHECK:           %[[ROW:[a-z0-9]+]] = affine.apply
// CHECK:           %[[Q_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[Q]][%[[ROW]], 0, 0] [16, 6, 8]
// CHECK:           %[[CU_TILE:[a-z0-9_]+]] = linalg.generic
// CHECK:           %[[USED_TILE:[a-z0-9_]+]] = linalg.generic
// CHECK:           varlen.attn %[[Q_TILE]], %[[K]], %[[K]], %[[CU_TILE]], %[[CU]] seqused_q(%[[USED_TILE]]) seqused_k(%[[USED]]) :
// CHECK:           tensor.parallel_insert_slice
// CHECK:           tensor.parallel_insert_slice
func.func @rows(%q: tensor<64x6x8xf32>, %k: tensor<?x2x8xf32>, %cu: tensor<?xi64>, %used: tensor<?xi64>) -> (tensor<64x6x8xf32>, tensor<6x64xf32>) {
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu seqused_q(%used) seqused_k(%used) q_offset(%used)
    : (tensor<64x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<64x6x8xf32>, tensor<6x64xf32>)
  return %out, %lse : tensor<64x6x8xf32>, tensor<6x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %attn tile_sizes [0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Heads only: what is said of the rows stays as it is. Part of a group has one
// key head, and that is known of any number of heads only if they come singly.

// CHECK-LABEL: func @heads(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x?x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x?x8xf32>, %[[CU:[a-z0-9]+]]: tensor<?xi64>
// CHECK:         scf.for %[[H:[a-z0-9]+]] =
// CHECK:           %[[GROUP:.*]] = arith.divui
// CHECK:           %[[KV:.*]] = arith.divui %[[H]], %[[GROUP]]
// CHECK:           %[[K_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[K]][0, %[[KV]], 0] [%{{.*}}, 1, 8]
// CHECK:           varlen.attn %{{.*}}, %[[K_TILE]], %[[K_TILE]], %[[CU]], %[[CU]] {mask = #varlen.mask<causal>} :
func.func @heads(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>, %cu: tensor<?xi64>) -> tensor<?x?x8xf32> {
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu {mask = #varlen.mask<causal>}
    : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<?x?x8xf32>, tensor<?x?xf32>)
  return %out : tensor<?x?x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %attn tile_sizes [1, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// An attention joins the loop of a tiled consumer, and takes the producer of
// its queries along.

// CHECK-LABEL: func @fuse(
// CHECK-NOT:     varlen.attn
// CHECK:         scf.for
// CHECK:           linalg.tanh
// CHECK-SAME:        tensor<4x2x8xf32>
// CHECK:           varlen.attn
// CHECK-SAME:        -> (tensor<4x2x8xf32>, tensor<2x4xf32>)
// CHECK:           linalg.exp
// CHECK-SAME:        tensor<4x2x8xf32>
// CHECK-NOT:     varlen.attn
func.func @fuse(%x: tensor<16x2x8xf32>, %k: tensor<?x2x8xf32>, %cu: tensor<?xi64>) -> tensor<16x2x8xf32> {
  %empty = tensor.empty() : tensor<16x2x8xf32>
  %q = linalg.tanh ins(%x : tensor<16x2x8xf32>) outs(%empty : tensor<16x2x8xf32>) -> tensor<16x2x8xf32>
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
    : (tensor<16x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<16x2x8xf32>, tensor<2x16xf32>)
  %exp = linalg.exp ins(%out : tensor<16x2x8xf32>) outs(%empty : tensor<16x2x8xf32>) -> tensor<16x2x8xf32>
  return %exp : tensor<16x2x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %exp = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %exp tile_sizes [4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A tile of a gradient is some kv heads with the query heads of their groups.

// CHECK-LABEL: func @gradient(
// CHECK-SAME:    %[[DOUT:[a-z0-9]+]]: tensor<?x12x4xf32>, %[[Q:[a-z0-9]+]]: tensor<?x12x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x4x8xf32>, %[[V:[a-z0-9]+]]: tensor<?x4x4xf32>, %[[OUT:[a-z0-9]+]]: tensor<?x12x4xf32>, %[[LSE:[a-z0-9]+]]: tensor<12x?xf32>, %[[CU:[a-z0-9]+]]: tensor<3xi32>, %[[SINK:[a-z0-9]+]]: tensor<12xf32>
// CHECK:         scf.for %[[KV:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %c2
// CHECK:           %[[H:[a-z0-9]+]] = affine.apply #{{.*}}(%[[KV]])
// CHECK-DAG:       %[[DOUT_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[DOUT]][0, %[[H]], 0] [%{{.*}}, 6, 4]
// CHECK-DAG:       %[[Q_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[Q]][0, %[[H]], 0] [%{{.*}}, 6, 8]
// CHECK-DAG:       %[[K_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[K]][0, %[[KV]], 0] [%{{.*}}, 2, 8]
// CHECK-DAG:       %[[V_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[V]][0, %[[KV]], 0] [%{{.*}}, 2, 4]
// CHECK-DAG:       %[[OUT_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[OUT]][0, %[[H]], 0] [%{{.*}}, 6, 4]
// CHECK-DAG:       %[[LSE_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[LSE]][%[[H]], 0] [6, %{{.*}}]
// CHECK-DAG:       %[[SINK_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[SINK]][%[[H]]] [6]
// CHECK:           %[[DQ:[a-z0-9_]+]], %[[DK:[a-z0-9_]+]], %[[DV:[a-z0-9_]+]], %[[DSINK:[a-z0-9_]+]] = varlen.attn_grad %[[DOUT_TILE]], %[[Q_TILE]], %[[K_TILE]], %[[V_TILE]], %[[OUT_TILE]], %[[LSE_TILE]], %[[CU]], %[[CU]]
// CHECK-SAME:        dlse(%[[LSE_TILE]]) sink(%[[SINK_TILE]]) {mask = #varlen.mask<causal>, some.attribute}
// CHECK-SAME:        -> (tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<6xf32>)
// CHECK-DAG:       tensor.insert_slice %[[DQ]] into %{{.*}}[0, %{{.*}}, 0] [%{{.*}}, 6, 8]
// CHECK-DAG:       tensor.insert_slice %[[DK]] into %{{.*}}[0, %[[KV]], 0] [%{{.*}}, 2, 8]
// CHECK-DAG:       tensor.insert_slice %[[DV]] into %{{.*}}[0, %[[KV]], 0] [%{{.*}}, 2, 4]
// CHECK-DAG:       tensor.insert_slice %[[DSINK]] into %{{.*}}[%{{.*}}] [6]
func.func @gradient(%dout: tensor<?x12x4xf32>, %q: tensor<?x12x8xf32>, %k: tensor<?x4x8xf32>, %v: tensor<?x4x4xf32>, %out: tensor<?x12x4xf32>,
                    %lse: tensor<12x?xf32>, %cu: tensor<3xi32>, %sink: tensor<12xf32>)
                    -> (tensor<?x12x8xf32>, tensor<?x4x8xf32>, tensor<?x4x4xf32>, tensor<12xf32>) {
  %0:4 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu dlse(%lse) sink(%sink)
    {mask = #varlen.mask<causal>, some.attribute}
    : (tensor<?x12x4xf32>, tensor<?x12x8xf32>, tensor<?x4x8xf32>, tensor<?x4x4xf32>, tensor<?x12x4xf32>, tensor<12x?xf32>,
       tensor<3xi32>, tensor<3xi32>, tensor<12x?xf32>, tensor<12xf32>)
    -> (tensor<?x12x8xf32>, tensor<?x4x8xf32>, tensor<?x4x4xf32>, tensor<12xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<?x12x8xf32>, tensor<?x4x8xf32>, tensor<?x4x4xf32>, tensor<12xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %grad = transform.structured.match ops{["varlen.attn_grad"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %grad tile_sizes [2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The group may be known at run time only.

// CHECK-LABEL: func @gradient_dynamic(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x?x8xf32>
// CHECK:         scf.for %[[KV:[a-z0-9]+]] =
// CHECK:           %[[GROUP:.*]] = arith.divui
// CHECK:           %[[H:.*]] = arith.muli %[[KV]], %[[GROUP]]
// CHECK:           tensor.extract_slice %[[X]][0, %[[H]], 0] [%{{.*}}, %{{.*}}, 8]
// CHECK:           varlen.attn_grad
// CHECK-SAME:        -> (tensor<?x?x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>)
func.func @gradient_dynamic(%x: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>, %lse: tensor<?x?xf32>, %cu: tensor<?xi64>) -> tensor<?x?x8xf32> {
  %0:3 = varlen.attn_grad %x, %x, %k, %k, %x, %lse, %cu, %cu
    : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?xf32>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>)
  return %0#0 : tensor<?x?x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %grad = transform.structured.match ops{["varlen.attn_grad"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %grad tile_sizes [1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A gradient joins the loop of a consumer of its keys' gradient.

// CHECK-LABEL: func @gradient_fuse(
// CHECK-NOT:     varlen.attn_grad
// CHECK:         scf.for
// CHECK:           varlen.attn_grad
// CHECK-SAME:        -> (tensor<16x4x8xf32>, tensor<16x2x8xf32>, tensor<16x2x8xf32>)
// CHECK:           linalg.exp
// CHECK-SAME:        tensor<16x2x8xf32>
// CHECK-NOT:     varlen.attn_grad
func.func @gradient_fuse(%q: tensor<16x8x8xf32>, %k: tensor<16x4x8xf32>, %lse: tensor<8x16xf32>, %cu: tensor<?xi64>) -> tensor<16x4x8xf32> {
  %empty = tensor.empty() : tensor<16x4x8xf32>
  %0:3 = varlen.attn_grad %q, %q, %k, %k, %q, %lse, %cu, %cu
    : (tensor<16x8x8xf32>, tensor<16x8x8xf32>, tensor<16x4x8xf32>, tensor<16x4x8xf32>, tensor<16x8x8xf32>, tensor<8x16xf32>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<16x8x8xf32>, tensor<16x4x8xf32>, tensor<16x4x8xf32>)
  %exp = linalg.exp ins(%0#1 : tensor<16x4x8xf32>) outs(%empty : tensor<16x4x8xf32>) -> tensor<16x4x8xf32>
  return %exp : tensor<16x4x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %exp = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %exp tile_sizes [0, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A tile of a merge: both parts of its heads and rows.

// CHECK-LABEL: func @merge(
// CHECK-SAME:    %[[O:[a-z0-9]+]]: tensor<?x6x8xf32>, %[[L:[a-z0-9]+]]: tensor<6x?xf32>, %[[P:[a-z0-9]+]]: tensor<?x6x8xf32>, %[[M:[a-z0-9]+]]: tensor<6x?xf32>
// CHECK:         scf.for %[[H:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %c2
// CHECK:           scf.for %[[ROW:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %c16
// CHECK:             %[[ROWS:[a-z0-9]+]] = affine.min
// CHECK:             %[[O_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[O]][%[[ROW]], %[[H]], 0] [%[[ROWS]], 2, 8]
// CHECK:             %[[L_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[L]][%[[H]], %[[ROW]]] [2, %[[ROWS]]]
// CHECK:             %[[P_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[P]][%[[ROW]], %[[H]], 0] [%[[ROWS]], 2, 8]
// CHECK:             %[[M_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[M]][%[[H]], %[[ROW]]] [2, %[[ROWS]]]
// CHECK:             %[[OUT:[a-z0-9_]+]], %[[LSE:[a-z0-9_]+]] = varlen.merge %[[O_TILE]], %[[L_TILE]], %[[P_TILE]], %[[M_TILE]] {some.attribute}
// CHECK:             tensor.insert_slice %[[OUT]] into %{{.*}}[%[[ROW]], %[[H]], 0] [%[[ROWS]], 2, 8]
// CHECK:             tensor.insert_slice %[[LSE]] into %{{.*}}[%[[H]], %[[ROW]]] [2, %[[ROWS]]]
func.func @merge(%o: tensor<?x6x8xf32>, %l: tensor<6x?xf32>, %p: tensor<?x6x8xf32>, %m: tensor<6x?xf32>) -> (tensor<?x6x8xf32>, tensor<6x?xf32>) {
  %out, %lse = varlen.merge %o, %l, %p, %m {some.attribute}
    : (tensor<?x6x8xf32>, tensor<6x?xf32>, tensor<?x6x8xf32>, tensor<6x?xf32>) -> (tensor<?x6x8xf32>, tensor<6x?xf32>)
  return %out, %lse : tensor<?x6x8xf32>, tensor<6x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %merge = transform.structured.match ops{["varlen.merge"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %merge tile_sizes [2, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A merge and both of its attentions join the loop of a consumer.

// CHECK-LABEL: func @merge_fuse(
// CHECK-NOT:     varlen
// CHECK:         scf.for
// CHECK:           varlen.attn {{.*}} -> (tensor<16x2x8xf32>, tensor<2x16xf32>)
// CHECK:           varlen.attn {{.*}} -> (tensor<16x2x8xf32>, tensor<2x16xf32>)
// CHECK:           varlen.merge {{.*}} -> (tensor<16x2x8xf32>, tensor<2x16xf32>)
// CHECK:           linalg.exp
// CHECK-NOT:     varlen
func.func @merge_fuse(%q: tensor<16x6x8xf32>, %k: tensor<?x3x8xf32>, %l: tensor<?x3x8xf32>, %cu: tensor<?xi64>) -> tensor<16x6x8xf32> {
  %empty = tensor.empty() : tensor<16x6x8xf32>
  %o, %m = varlen.attn %q, %k, %k, %cu, %cu
    : (tensor<16x6x8xf32>, tensor<?x3x8xf32>, tensor<?x3x8xf32>, tensor<?xi64>, tensor<?xi64>) -> (tensor<16x6x8xf32>, tensor<6x16xf32>)
  %p, %n = varlen.attn %q, %l, %l, %cu, %cu
    : (tensor<16x6x8xf32>, tensor<?x3x8xf32>, tensor<?x3x8xf32>, tensor<?xi64>, tensor<?xi64>) -> (tensor<16x6x8xf32>, tensor<6x16xf32>)
  %out, %lse = varlen.merge %o, %m, %p, %n
    : (tensor<16x6x8xf32>, tensor<6x16xf32>, tensor<16x6x8xf32>, tensor<6x16xf32>) -> (tensor<16x6x8xf32>, tensor<6x16xf32>)
  %exp = linalg.exp ins(%out : tensor<16x6x8xf32>) outs(%empty : tensor<16x6x8xf32>) -> tensor<16x6x8xf32>
  return %exp : tensor<16x6x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %exp = transform.structured.match ops{["linalg.exp"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %loop = transform.structured.fuse %exp tile_sizes [0, 2] {apply_cleanup}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Keys in pages: a tile of heads has them of all pages, and the table is whole.

// CHECK-LABEL: func @pages(
// CHECK-SAME:    %[[K:[a-z0-9]+]]: tensor<?x16x2x8xf32>, %[[V:[a-z0-9]+]]: tensor<?x16x2x4xf32>
// CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: tensor<2x?xi32>)
// CHECK:             %[[K_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[K]][0, 0, %[[KV:.*]], 0] [%{{.*}}, 16, 1, 8]
// CHECK:             %[[V_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[V]][0, 0, %[[KV]], 0] [%{{.*}}, 16, 1, 4]
// CHECK:             varlen.attn %{{.*}}, %[[K_TILE]], %[[V_TILE]], %{{.*}} seqused_k(%{{.*}}) q_offset(%{{.*}}) block_table(%[[TABLE]])
// CHECK-SAME:          -> (tensor<?x3x4xf32>, tensor<3x?xf32>)
func.func @pages(%q: tensor<?x6x8xf32>, %k: tensor<?x16x2x8xf32>, %v: tensor<?x16x2x4xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>, %table: tensor<2x?xi32>) -> (tensor<?x6x4xf32>, tensor<6x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table) {mask = #varlen.mask<causal>}
    : (tensor<?x6x8xf32>, tensor<?x16x2x8xf32>, tensor<?x16x2x4xf32>, tensor<3xi32>, tensor<2xi32>, tensor<2x?xi32>)
    -> (tensor<?x6x4xf32>, tensor<6x?xf32>)
  return %out, %lse : tensor<?x6x4xf32>, tensor<6x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %attn tile_sizes [3, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Quantised keys: a tile of heads has their scales, wherever the heads are in these.

// CHECK-LABEL: func @quantised(
// CHECK-SAME:    %[[K:[a-z0-9]+]]: tensor<?x16x2x8xi8>
// CHECK-SAME:    %[[ROWS:[a-z0-9]+]]: tensor<?x16x2xf32>, %[[EACH:[a-z0-9]+]]: tensor<2xf32>)
// CHECK:             %[[ROWS_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[ROWS]][0, 0, %[[KV:.*]]] [%{{.*}}, 16, 1]
// CHECK:             %[[EACH_TILE:[a-z0-9_]+]] = tensor.extract_slice %[[EACH]][%[[KV]]] [1]
// CHECK:             varlen.attn {{.*}} k_scale(%[[ROWS_TILE]]) v_scale(%[[EACH_TILE]])
func.func @quantised(%q: tensor<?x6x8xf32>, %k: tensor<?x16x2x8xi8>, %cu: tensor<3xi32>, %used: tensor<2xi32>, %table: tensor<2x?xi32>, %rows: tensor<?x16x2xf32>, %each: tensor<2xf32>) -> (tensor<?x6x8xf32>, tensor<6x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table) k_scale(%rows) v_scale(%each)
    : (tensor<?x6x8xf32>, tensor<?x16x2x8xi8>, tensor<?x16x2x8xi8>, tensor<3xi32>, tensor<2xi32>, tensor<2x?xi32>, tensor<?x16x2xf32>, tensor<2xf32>)
    -> (tensor<?x6x8xf32>, tensor<6x?xf32>)
  return %out, %lse : tensor<?x6x8xf32>, tensor<6x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %attn tile_sizes [3, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// Attentions in destination-passing style: bufferization writes into the buffers
// of the destinations, tiling into parts of them.

// REQUIRES: plugin
// DEFINE: %{bufferize} = --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize --cse --canonicalize
// RUN: %mlir-opt-plugin %s --transform-interpreter --canonicalize --cse %{bufferize} --split-input-file | FileCheck %s
// RUN: %mlir-opt-plugin %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=TILED

// CHECK-LABEL: func @attn(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?x6x8xf32>, %[[CU:[a-z0-9]+]]: memref<3xi32>, %[[O:[a-z0-9]+]]: memref<?x6x8xf32>, %[[L:[a-z0-9]+]]: memref<6x?xf32>
// CHECK-NEXT:    varlen.attn %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] outs(%[[O]], %[[L]]) {mask = #varlen.mask<causal>, some.attribute}
// CHECK-NEXT:    return %[[O]], %[[L]]
func.func @attn(%q: tensor<?x6x8xf32>, %cu: tensor<3xi32>, %o: tensor<?x6x8xf32>, %l: tensor<6x?xf32>) -> (tensor<?x6x8xf32>, tensor<6x?xf32>) {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l) {mask = #varlen.mask<causal>, some.attribute}
    : (tensor<?x6x8xf32>, tensor<?x6x8xf32>, tensor<?x6x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<?x6x8xf32>, tensor<6x?xf32>)
    -> (tensor<?x6x8xf32>, tensor<6x?xf32>)
  return %out, %lse : tensor<?x6x8xf32>, tensor<6x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}

// -----

// Gradients, one in a part of a larger tensor.

// CHECK-LABEL: func @gradient(
// CHECK-SAME:    %[[ALL:[a-z0-9]+]]: memref<3x16x6x8xf32>, %[[DK:[a-z0-9]+]]: memref<16x6x8xf32>, %[[DV:[a-z0-9]+]]: memref<16x6x8xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         %[[DQ:.*]] = memref.subview %[[ALL]][1, 0, 0, 0]
// CHECK-NOT:     memref.alloc
// CHECK:         varlen.attn_grad {{.*}} outs(%[[DQ]], %[[DK]], %[[DV]])
// CHECK-NOT:     memref.copy
// CHECK:         return %[[ALL]], %[[DK]], %[[DV]]
func.func @gradient(%all: tensor<3x16x6x8xf32>, %dk: tensor<16x6x8xf32>, %dv: tensor<16x6x8xf32>, %q: tensor<16x6x8xf32>, %lse: tensor<6x16xf32>, %cu: tensor<3xi32>)
    -> (tensor<3x16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>) {
  %dq = tensor.extract_slice %all[1, 0, 0, 0] [1, 16, 6, 8] [1, 1, 1, 1] : tensor<3x16x6x8xf32> to tensor<16x6x8xf32>
  %0:3 = varlen.attn_grad_into %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv)
    : (tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<6x16xf32>,
       tensor<3xi32>, tensor<3xi32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>)
    -> (tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>)
  %1 = tensor.insert_slice %0#0 into %all[1, 0, 0, 0] [1, 16, 6, 8] [1, 1, 1, 1] : tensor<16x6x8xf32> into tensor<3x16x6x8xf32>
  return %1, %0#1, %0#2 : tensor<3x16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}

// -----

// A destination that is an operand too, or is read later, is not overwritten;
// what is in it is not copied, for it is not read there.

// CHECK-LABEL: func @conflicts(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<16x6x8xf32>, %[[CU:[a-z0-9]+]]: memref<3xi32>, %[[L:[a-z0-9]+]]: memref<6x16xf32>
// CHECK-DAG:     %[[OUT:.*]] = memref.alloc() {{.*}} : memref<16x6x8xf32>
// CHECK-DAG:     %[[LSE:.*]] = memref.alloc() {{.*}} : memref<6x16xf32>
// CHECK-NOT:     memref.copy
// CHECK:         varlen.attn %[[Q]], {{.*}} outs(%[[OUT]], %[[LSE]])
// CHECK:         return %[[OUT]], %[[LSE]], %[[L]]
func.func @conflicts(%q: tensor<16x6x8xf32>, %cu: tensor<3xi32>, %l: tensor<6x16xf32>) -> (tensor<16x6x8xf32>, tensor<6x16xf32>, tensor<6x16xf32>) {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%q, %l)
    : (tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<16x6x8xf32>, tensor<6x16xf32>)
    -> (tensor<16x6x8xf32>, tensor<6x16xf32>)
  return %out, %lse, %l : tensor<16x6x8xf32>, tensor<6x16xf32>, tensor<6x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}

// -----

// Tiles of heads and rows write where they belong. The rows of a sequence that
// are in a tile are small vectors of its own.

// TILED-LABEL: func @tile(
// TILED-SAME:    %[[O:[a-z0-9]+]]: tensor<16x6x8xf32>, %[[L:[a-z0-9]+]]: tensor<6x16xf32>
// TILED:         scf.forall (%{{.*}}, %{{.*}}) in (2, 4) shared_outs(%[[OS:.*]] = %[[O]], %[[LS:.*]] = %[[L]])
// TILED-DAG:       %[[H:.*]] = affine.apply #{{.*}}(%{{.*}})
// TILED-DAG:       %[[ROW:.*]] = affine.apply #{{.*}}(%{{.*}})
// TILED:           %[[O_TILE:.*]] = tensor.extract_slice %[[OS]][%[[ROW]], %[[H]], 0] [4, 3, 8]
// TILED:           %[[L_TILE:.*]] = tensor.extract_slice %[[LS]][%[[H]], %[[ROW]]] [3, 4]
// TILED:           varlen.attn_into {{.*}} outs(%[[O_TILE]], %[[L_TILE]]) {mask = #varlen.mask<causal>} {{.*}} -> (tensor<4x3x8xf32>, tensor<3x4xf32>)

// CHECK-LABEL: func @tile(
// CHECK-NOT:     memref.alloc{{.*}}xf32
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @tile(%q: tensor<16x6x8xf32>, %k: tensor<16x2x8xf32>, %cu: tensor<3xi32>, %o: tensor<16x6x8xf32>, %l: tensor<6x16xf32>) -> (tensor<16x6x8xf32>, tensor<6x16xf32>) {
  %out, %lse = varlen.attn_into %q, %k, %k, %cu, %cu outs(%o, %l) {mask = #varlen.mask<causal>}
    : (tensor<16x6x8xf32>, tensor<16x2x8xf32>, tensor<16x2x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<16x6x8xf32>, tensor<6x16xf32>)
    -> (tensor<16x6x8xf32>, tensor<6x16xf32>)
  return %out, %lse : tensor<16x6x8xf32>, tensor<6x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn_into"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %attn tile_sizes [3, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A tile of gradients.

// TILED-LABEL: func @tile_gradient(
// TILED:         scf.for %[[KV:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[DQS:.*]] = %{{.*}}, %[[DKS:.*]] = %{{.*}}, %[[DVS:.*]] = %{{.*}}, %[[DSINKS:.*]] = %{{.*}})
// TILED-DAG:       %[[DQ:.*]] = tensor.extract_slice %[[DQS]][0, %[[H:.*]], 0] [16, 3, 8]
// TILED-DAG:       %[[DK:.*]] = tensor.extract_slice %[[DKS]][0, %[[KV]], 0] [16, 1, 8]
// TILED-DAG:       %[[DV:.*]] = tensor.extract_slice %[[DVS]][0, %[[KV]], 0] [16, 1, 8]
// TILED-DAG:       %[[DSINK:.*]] = tensor.extract_slice %[[DSINKS]][%[[H]]] [3]
// TILED:           varlen.attn_grad_into {{.*}} outs(%[[DQ]], %[[DK]], %[[DV]], %[[DSINK]])

// CHECK-LABEL: func @tile_gradient(
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @tile_gradient(%q: tensor<16x6x8xf32>, %k: tensor<16x2x8xf32>, %lse: tensor<6x16xf32>, %sink: tensor<6xf32>, %cu: tensor<3xi32>,
                         %dq: tensor<16x6x8xf32>, %dk: tensor<16x2x8xf32>, %dv: tensor<16x2x8xf32>, %dsink: tensor<6xf32>)
                         -> (tensor<16x6x8xf32>, tensor<16x2x8xf32>, tensor<16x2x8xf32>, tensor<6xf32>) {
  %0:4 = varlen.attn_grad_into %q, %q, %k, %k, %q, %lse, %cu, %cu sink(%sink) outs(%dq, %dk, %dv, %dsink)
    : (tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x2x8xf32>, tensor<16x2x8xf32>, tensor<16x6x8xf32>, tensor<6x16xf32>,
       tensor<3xi32>, tensor<3xi32>, tensor<6xf32>, tensor<16x6x8xf32>, tensor<16x2x8xf32>, tensor<16x2x8xf32>, tensor<6xf32>)
    -> (tensor<16x6x8xf32>, tensor<16x2x8xf32>, tensor<16x2x8xf32>, tensor<6xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<16x6x8xf32>, tensor<16x2x8xf32>, tensor<16x2x8xf32>, tensor<6xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %grad = transform.structured.match ops{["varlen.attn_grad_into"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %grad tile_sizes [1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

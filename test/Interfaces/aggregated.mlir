// REQUIRES: plugin
// RUN: not %mlir-opt-plugin %s --transform-interpreter --mlir-print-ir-after-failure --split-input-file 2>&1 | FileCheck %s

// varlen.attn decomposes where an upstream transform asks for it. That transform
// has one result for the operations that define the new values, so after the
// work is done it complains that two results come from two operations or, as
// here, twice from one.

// CHECK: transform.structured.decompose_interface expected to produce 1 results (actually produced 2)

// CHECK-LABEL: func @attn
// CHECK-NOT:     varlen.attn
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             linalg.generic
func.func @attn(%q: tensor<?x2x8xf32>, %cu: tensor<?xi32>) -> (tensor<?x2x8xf32>, tensor<2x?xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x2x8xf32>, tensor<2x?xf32>)
  return %out, %lse : tensor<?x2x8xf32>, tensor<2x?xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %attn = transform.structured.match ops{["varlen.attn"]} in %root : (!transform.any_op) -> !transform.any_op
    %done = transform.structured.decompose_interface %attn : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// Its gradient, whose results come from one loop as well.

// CHECK: transform.structured.decompose_interface expected to produce 1 results (actually produced 3)

// CHECK-LABEL: func @attn_grad
// CHECK-NOT:     varlen.attn_grad
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               linalg.generic
func.func @attn_grad(%q: tensor<?x2x8xf32>, %lse: tensor<2x?xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>) {
  %0:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
    : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>,
       tensor<2x?xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %grad = transform.structured.match ops{["varlen.attn_grad"]} in %root : (!transform.any_op) -> !transform.any_op
    %done = transform.structured.decompose_interface %grad : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

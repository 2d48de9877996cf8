// REQUIRES: plugin
// RUN: not %mlir-opt-plugin %s --transform-interpreter --mlir-print-ir-after-failure 2>&1 | FileCheck %s

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

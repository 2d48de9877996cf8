// An attention goes into the loop that makes its queries, tile by tile. Only queries
// say which tile that is. Upstream has the transform for its own tests so far.

// REQUIRES: plugin
// RUN: %mlir-opt-plugin %s --transform-interpreter --canonicalize --cse | FileCheck %s
// RUN: sed 's/%q, %k, %k, %cu/%x, %q, %q, %cu/' %s | not %mlir-opt-plugin --transform-interpreter 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: 'varlen.attn_into' op failed to fuse consumer of slice

// CHECK-LABEL: func @consumer(
// CHECK-SAME:    %{{[a-z0-9]+}}: tensor<16x6x8xf32>, %[[KEYS:[a-z0-9]+]]: tensor<16x6x8xf32>, %{{[a-z0-9]+}}: tensor<3xi32>
// CHECK-NOT:     varlen.attn_into
// CHECK:         scf.for %[[H:[a-z0-9]+]] = %{{.*}} iter_args(%{{.*}} = %{{.*}}, %[[O:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK:           %[[Q:.*]] = linalg.tanh {{.*}} -> tensor<16x3x8xf32>
// CHECK-DAG:       %[[K:.*]] = tensor.extract_slice %[[KEYS]][0, %[[H]], 0] [16, 3, 8]
// CHECK-DAG:       %[[O_TILE:.*]] = tensor.extract_slice %[[O]][0, %[[H]], 0] [16, 3, 8]
// CHECK-DAG:       %[[L_TILE:.*]] = tensor.extract_slice %[[L]][%[[H]], 0] [3, 16]
// CHECK:           varlen.attn_into %[[Q]], %[[K]], %[[K]], {{.*}} outs(%[[O_TILE]], %[[L_TILE]])
// CHECK-NOT:     varlen.attn_into
// CHECK:         return
func.func @consumer(%x: tensor<16x6x8xf32>, %k: tensor<16x6x8xf32>, %cu: tensor<3xi32>, %s: tensor<16x6x8xf32>, %o: tensor<16x6x8xf32>, %l: tensor<6x16xf32>)
    -> (tensor<16x6x8xf32>, tensor<6x16xf32>) {
  %q = linalg.tanh ins(%x : tensor<16x6x8xf32>) outs(%s : tensor<16x6x8xf32>) -> tensor<16x6x8xf32>
  %out, %lse = varlen.attn_into %q, %k, %k, %cu, %cu outs(%o, %l)
    : (tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<16x6x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<16x6x8xf32>, tensor<6x16xf32>)
    -> (tensor<16x6x8xf32>, tensor<6x16xf32>)
  return %out, %lse : tensor<16x6x8xf32>, tensor<6x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %tanh = transform.structured.match ops{["linalg.tanh"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %tanh tile_sizes [0, 3]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %attn = transform.structured.match ops{["varlen.attn_into"]} in %root : (!transform.any_op) -> !transform.any_op
    %a, %b = transform.test.fuse_consumer %attn into (%loop)
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

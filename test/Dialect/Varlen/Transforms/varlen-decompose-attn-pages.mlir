// RUN: varlen-opt %s --varlen-decompose-attn --canonicalize | FileCheck %s

// The rows of the pages of a sequence, as many as it has keys, become a packed tensor, of
// which the rest is as without pages.
// CHECK-LABEL: func.func @pages
// CHECK-SAME: %{{.*}}: tensor<?x4x16xf32>, %[[K:.*]]: tensor<?x8x2x16xf32>, %[[V:.*]]: tensor<?x8x2x24xf32>, %{{.*}}: tensor<?xi32>, %[[USED:.*]]: tensor<?xi32>, %[[TABLE:.*]]: tensor<?x?xi32>)
// CHECK: scf.for %[[S:.*]] = %c0
// CHECK: %[[LENGTH:.*]] = tensor.extract %[[USED]][%[[S]]]
// CHECK: %[[ROWS:.*]] = arith.index_cast %[[LENGTH]] : i32 to index
// CHECK: %[[EMPTY:.*]] = tensor.empty(%[[ROWS]]) : tensor<?x2x16xf32>
// CHECK: %[[KEYS:.*]] = linalg.generic {{.*}} outs(%[[EMPTY]]
// CHECK: %[[KEY:.*]] = linalg.index 0
// CHECK: %[[SLOT:.*]] = arith.divui %[[KEY]], %c8
// CHECK: %[[ENTRY:.*]] = tensor.extract %[[TABLE]][%[[S]], %[[SLOT]]]
// CHECK: %[[PAGE:.*]] = arith.index_cast %[[ENTRY]] : i32 to index
// CHECK: %[[ROW:.*]] = arith.remui %[[KEY]], %c8
// CHECK: tensor.extract %[[K]][%[[PAGE]], %[[ROW]], %{{.*}}, %{{.*}}]
// CHECK: %[[EMPTYV:.*]] = tensor.empty(%[[ROWS]]) : tensor<?x2x24xf32>
// CHECK: %[[VALUES:.*]] = linalg.generic {{.*}} outs(%[[EMPTYV]]
// CHECK: tensor.extract %[[V]]
// CHECK: tensor.extract_slice %[[KEYS]][0, %[[HEAD:[^,]*]], 0] [%[[ROWS]], 1, 16]
// CHECK: tensor.extract_slice %[[VALUES]][0, %[[HEAD]], 0] [%[[ROWS]], 1, 24]
func.func @pages(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>, %v: tensor<?x8x2x24xf32>,
                 %cu: tensor<?xi32>, %used: tensor<?xi32>, %table: tensor<?x?xi32>)
    -> (tensor<?x4x24xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x24xf32>, tensor<?xi32>,
         tensor<?xi32>, tensor<?x?xi32>) -> (tensor<?x4x24xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x24xf32>, tensor<4x?xf32>
}

// RUN: varlen-opt %s --varlen-decompose-attn --canonicalize --split-input-file | FileCheck %s

// The rows of a head become what they stand for, in f32: times the number of each row.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<?x2x16xi8>, %{{.*}}: tensor<?xi32>, %[[SCALE:[a-z0-9]+]]: tensor<?x2xf32>
// CHECK: %[[HEAD:.*]] = arith.divsi %{{.*}}, %c2
// CHECK: %[[KEYS:.*]] = tensor.extract_slice %[[K]][%[[FIRST:[^,]*]], %[[HEAD]], 0]
// CHECK: %[[VALUES:.*]] = tensor.extract_slice %[[K]][%[[FIRST]], %[[HEAD]], 0]
// CHECK: linalg.generic {{.*}} ins(%[[KEYS]] : tensor<?x16xi8>) outs(%{{.*}} : tensor<?x16xf32>)
// CHECK: %[[NUMBER:.*]] = arith.sitofp %{{.*}} : i8 to f32
// CHECK: %[[ROW:.*]] = linalg.index 0
// CHECK: %[[PLACE:.*]] = arith.addi %[[FIRST]], %[[ROW]]
// CHECK: %[[FACTOR:.*]] = tensor.extract %[[SCALE]][%[[PLACE]], %[[HEAD]]]
// CHECK: arith.mulf %[[NUMBER]], %[[FACTOR]]
// Without a scale values are converted alone.
// CHECK: linalg.generic {{.*}} ins(%[[VALUES]] : tensor<?x16xi8>)
// CHECK: arith.sitofp
// CHECK-NEXT: linalg.yield
func.func @rows(%q: tensor<?x4x16xbf16>, %k: tensor<?x2x16xi8>, %cu: tensor<?xi32>,
                %scale: tensor<?x2xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu k_scale(%scale)
      : (tensor<?x4x16xbf16>, tensor<?x2x16xi8>, tensor<?x2x16xi8>, tensor<?xi32>,
         tensor<?xi32>, tensor<?x2xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x16xbf16>, tensor<4x?xf32>
}

// -----

// In pages the table says where the number of a row, or that of its page, is; a number of
// each head is there for all rows.
// CHECK-LABEL: func.func @pages
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<?x?xi32>, %[[PAGES:[a-z0-9]+]]: tensor<?x2xf32>, %[[HEADS:[a-z0-9]+]]: tensor<2xf32>
// CHECK: scf.for %[[S:.*]] = %c0
// CHECK: arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK: %[[KEY:.*]] = linalg.index 0
// CHECK: %[[SLOT:.*]] = arith.divui %[[KEY]], %c8
// CHECK: %[[ENTRY:.*]] = tensor.extract %[[TABLE]][%[[S]], %[[SLOT]]]
// CHECK: %[[PAGE:.*]] = arith.index_cast %[[ENTRY]]
// CHECK: tensor.extract %[[PAGES]][%[[PAGE]], %[[HEAD:.*]]]
// CHECK: arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK: tensor.extract %[[HEADS]][%[[HEAD]]]
func.func @pages(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf8E4M3FN>, %cu: tensor<?xi32>,
                 %used: tensor<?xi32>, %table: tensor<?x?xi32>, %pages: tensor<?x2xf32>,
                 %heads: tensor<2xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
      k_scale(%pages) v_scale(%heads)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf8E4M3FN>, tensor<?x8x2x16xf8E4M3FN>,
         tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?x2xf32>, tensor<2xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
}

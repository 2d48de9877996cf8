// RUN: varlen-opt %s --split-input-file --verify-roundtrip | FileCheck %s
// RUN: varlen-opt %s --split-input-file --resolve-ranked-shaped-type-result-dims --canonicalize --cse | FileCheck %s --check-prefix=DIM
// RUN: varlen-opt %s --split-input-file --varlen-decompose-attn --canonicalize --cse | FileCheck %s --check-prefix=LINALG

// Results get their names; of an extent any operand may know it.
// CHECK-LABEL: func.func @partly
// CHECK: %out, %lse = varlen.merge %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {some.attribute} : (tensor<?x4x?xbf16>, tensor<?x8xf32>, tensor<?x?x16xbf16>, tensor<?x?xf32>) -> (tensor<8x4x16xbf16>, tensor<4x8xf32>)
func.func @partly(%o: tensor<?x4x?xbf16>, %l: tensor<?x8xf32>, %p: tensor<?x?x16xbf16>, %m: tensor<?x?xf32>)
    -> (tensor<8x4x16xbf16>, tensor<4x8xf32>) {
  %out, %lse = varlen.merge %o, %l, %p, %m {some.attribute}
      : (tensor<?x4x?xbf16>, tensor<?x8xf32>, tensor<?x?x16xbf16>, tensor<?x?xf32>) -> (tensor<8x4x16xbf16>, tensor<4x8xf32>)
  return %out, %lse : tensor<8x4x16xbf16>, tensor<4x8xf32>
}

// -----

// Extents of the results are those of a part; the op goes.
// DIM-LABEL: func.func @extents
// DIM-SAME: %[[O:[a-z0-9]+]]: tensor<?x4x16xf64>
// DIM-DAG: %[[C4:.*]] = arith.constant 4 : index
// DIM-DAG: %[[ROWS:.*]] = tensor.dim %[[O]], %{{.*}}
// DIM-NOT: varlen.merge
// DIM: return %[[ROWS]], %[[C4]], %[[ROWS]]
func.func @extents(%o: tensor<?x4x16xf64>, %l: tensor<4x?xf64>) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %out, %lse = varlen.merge %o, %l, %o, %l
      : (tensor<?x4x16xf64>, tensor<4x?xf64>, tensor<?x4x16xf64>, tensor<4x?xf64>) -> (tensor<?x?x16xf64>, tensor<4x?xf64>)
  %rows = tensor.dim %out, %c0 : tensor<?x?x16xf64>
  %heads = tensor.dim %out, %c1 : tensor<?x?x16xf64>
  %rows1 = tensor.dim %lse, %c1 : tensor<4x?xf64>
  return %rows, %heads, %rows1 : index, index, index
}

// -----

// One pass over lse makes the weights, one over out uses them; f16 is rounded
// once.
// LINALG-LABEL: func.func @linalg
// LINALG-SAME: %[[O:[a-z0-9]+]]: tensor<?x4x16xf16>, %[[L:[a-z0-9]+]]: tensor<4x?xf32>, %[[P:[a-z0-9]+]]: tensor<?x4x16xf16>, %[[M:[a-z0-9]+]]: tensor<4x?xf32>
// LINALG: %[[ROWS:.*]]:3 = linalg.generic {{.*}} ins(%[[L]], %[[M]] :
// LINALG: ^bb0(%[[A:[a-z0-9_]+]]: f32, %[[B:[a-z0-9_]+]]: f32, %{{.*}}: f32
// LINALG: %[[TOP:.*]] = arith.maximumf %[[A]], %[[B]]
// LINALG: %[[NONE:.*]] = arith.cmpf oeq, %[[TOP]], %{{.*}}
// LINALG: %[[BASE:.*]] = arith.select %[[NONE]], %{{.*}}, %[[TOP]]
// LINALG: math.exp
// LINALG: math.exp
// LINALG: math.log
// LINALG: %[[OUT:.*]] = linalg.generic {{.*}} ins(%[[O]], %[[P]], %[[ROWS]]#1, %[[ROWS]]#2 :
// LINALG-COUNT-1: arith.truncf
// LINALG: return %[[OUT]], %[[ROWS]]#0
func.func @linalg(%o: tensor<?x4x16xf16>, %l: tensor<4x?xf32>, %p: tensor<?x4x16xf16>, %m: tensor<4x?xf32>)
    -> (tensor<?x4x16xf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.merge %o, %l, %p, %m
      : (tensor<?x4x16xf16>, tensor<4x?xf32>, tensor<?x4x16xf16>, tensor<4x?xf32>) -> (tensor<?x4x16xf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x16xf16>, tensor<4x?xf32>
}

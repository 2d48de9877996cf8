// RUN: varlen-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse | FileCheck %s

// The extents of the results are extents of q and v.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[K:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[V:[a-z0-9]+]]: tensor<?x?x?xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[ROWS:.*]] = tensor.dim %[[Q]], %[[C0]]
// CHECK-DAG: %[[HEADS:.*]] = tensor.dim %[[Q]], %[[C1]]
// CHECK-DAG: %[[DIM:.*]] = tensor.dim %[[V]], %[[C2]]
// CHECK: return %[[ROWS]], %[[HEADS]], %[[DIM]], %[[HEADS]], %[[ROWS]] :
func.func @dynamic(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>,
                   %cu: tensor<?xi32>) -> (index, index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  %rows = tensor.dim %out, %c0 : tensor<?x?x?xf32>
  %heads = tensor.dim %out, %c1 : tensor<?x?x?xf32>
  %dim = tensor.dim %out, %c2 : tensor<?x?x?xf32>
  %lse_heads = tensor.dim %lse, %c0 : tensor<?x?xf32>
  %lse_rows = tensor.dim %lse, %c1 : tensor<?x?xf32>
  return %rows, %heads, %dim, %lse_heads, %lse_rows : index, index, index, index, index
}

// An extent that only an operand's type knows is a constant.
// CHECK-LABEL: func.func @known_by_operand
// CHECK: %[[C4:.*]] = arith.constant 4 : index
// CHECK-NOT: varlen.attn
// CHECK: return %[[C4]]
func.func @known_by_operand(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> index {
  %c1 = arith.constant 1 : index
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x?x16xf32>, tensor<?x?xf32>)
  %heads = tensor.dim %out, %c1 : tensor<?x?x16xf32>
  return %heads : index
}

// What the result's type says goes before what q says.
// CHECK-LABEL: func.func @partly_known_by_result
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x16xf32>
// CHECK: %[[ROWS:.*]] = tensor.dim %[[Q]], %{{.*}}
// CHECK: return %[[ROWS]]
func.func @partly_known_by_result(%q: tensor<?x?x16xf32>, %cu: tensor<?xi32>) -> index {
  %c0 = arith.constant 0 : index
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x?xf32>)
  %rows = tensor.dim %out, %c0 : tensor<?x4x16xf32>
  return %rows : index
}

// The extents of gradients are those of what they are the gradients of.
// CHECK-LABEL: func.func @attn_grad
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[K:[a-z0-9]+]]: tensor<?x?x?xf32>, %[[V:[a-z0-9]+]]: tensor<?x?x?xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[DQ:.*]] = tensor.dim %[[Q]], %[[C0]]
// CHECK-DAG: %[[DK:.*]] = tensor.dim %[[K]], %[[C1]]
// CHECK-DAG: %[[DV:.*]] = tensor.dim %[[V]], %[[C2]]
// CHECK-DAG: %[[DSINK:.*]] = tensor.dim %[[Q]], %[[C1]]
// CHECK-NOT: varlen.attn_grad
// CHECK: return %[[DQ]], %[[DK]], %[[DV]], %[[DSINK]] :
func.func @attn_grad(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>,
                     %lse: tensor<?x?xf32>, %cu: tensor<?xi32>, %sink: tensor<?xf32>)
    -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0:4 = varlen.attn_grad %v, %q, %k, %v, %v, %lse, %cu, %cu sink(%sink)
      : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>,
         tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>)
      -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?xf32>)
  %dq = tensor.dim %0#0, %c0 : tensor<?x?x?xf32>
  %dk = tensor.dim %0#1, %c1 : tensor<?x?x?xf32>
  %dv = tensor.dim %0#2, %c2 : tensor<?x?x?xf32>
  %dsink = tensor.dim %0#3, %c0 : tensor<?xf32>
  return %dq, %dk, %dv, %dsink : index, index, index, index
}

// The results of a step have the extents of its inits.
// CHECK-LABEL: func.func @online_attn
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: tensor<?x?xf32>, %[[M:[a-z0-9]+]]: tensor<?x1xf32>
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[DIM:.*]] = tensor.dim %[[ACC]], %[[C1]]
// CHECK-DAG: %[[QUERIES:.*]] = tensor.dim %[[M]], %[[C0]]
// CHECK: return %[[DIM]], %[[QUERIES]], %[[C1]]
func.func @online_attn(%q: tensor<?x?xf32>, %acc: tensor<?x?xf32>, %m: tensor<?x1xf32>,
                       %l: tensor<?x1xf32>) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %q, %q : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%acc, %m, %l : tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
      scale 0.125
  %dim = tensor.dim %acc1, %c1 : tensor<?x?xf32>
  %queries = tensor.dim %m1, %c0 : tensor<?x1xf32>
  %one = tensor.dim %m1, %c1 : tensor<?x1xf32>
  return %dim, %queries, %one : index, index, index
}

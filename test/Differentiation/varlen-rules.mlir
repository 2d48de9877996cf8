// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate=function=attn \
// RUN:   --varlen-differentiate=function=out_alone \
// RUN:   --varlen-differentiate=function=into \
// RUN:   | FileCheck %s

// All clauses travel along; the lse has a cotangent like everything else.
// CHECK-LABEL: func.func @attn_vjp(
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x64xf32>, %[[K:.*]]: tensor<?x2x64xf32>, %[[V:.*]]: tensor<?x2x32xf32>, %[[CU_Q:.*]]: tensor<?xi32>, %[[CU_K:.*]]: tensor<?xi32>, %[[USED:.*]]: tensor<?xi32>, %[[SINK:.*]]: tensor<4xf32>, %[[D0:.*]]: tensor<?x4x32xf32>, %[[D1:.*]]: tensor<4x?xf32>) -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<4xf32>) {
// CHECK-NEXT: %[[A:.*]], %[[B:.*]] = varlen.attn %[[Q]], %[[K]], %[[V]], %[[CU_Q]], %[[CU_K]] seqused_k(%[[USED]]) sink(%[[SINK]]) {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32} : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x32xf32>, tensor<4x?xf32>)
// CHECK-NEXT: %[[C:.*]], %[[D:.*]], %[[E:.*]], %[[F:.*]] = varlen.attn_grad %[[D0]], %[[Q]], %[[K]], %[[V]], %[[A]], %[[B]], %[[CU_Q]], %[[CU_K]] dlse(%[[D1]]) seqused_k(%[[USED]]) sink(%[[SINK]]) {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32} : (tensor<?x4x32xf32>, tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<?x4x32xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<4xf32>)
// CHECK-NEXT: return %[[C]], %[[D]], %[[E]], %[[F]] : tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<4xf32>
func.func @attn(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x32xf32>,
                %cu_q: tensor<?xi32>, %cu_k: tensor<?xi32>, %used: tensor<?xi32>, %sink: tensor<4xf32>)
    -> (tensor<?x4x32xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_k(%used) sink(%sink)
      {mask = #varlen.mask<causal>, scale = 0.25 : f32}
      : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<?xi32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x32xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x32xf32>, tensor<4x?xf32>
}

// An unused lse has none.
// CHECK-LABEL: func.func @out_alone_vjp(
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x64xbf16>, %[[CU:.*]]: tensor<?xi32>, %[[D:.*]]: tensor<?x4x64xbf16>) -> tensor<?x4x64xbf16> {
// CHECK-NEXT: %[[A:.*]], %[[B:.*]] = varlen.attn %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
// CHECK-NEXT: %[[C:.*]], %[[E:.*]], %[[F:.*]] = varlen.attn_grad %[[D]], %[[Q]], %[[Q]], %[[Q]], %[[A]], %[[B]], %[[CU]], %[[CU]] : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
// CHECK-NEXT: %[[G:.*]] = arith.addf %[[C]], %[[E]] : tensor<?x4x64xbf16>
// CHECK-NEXT: %[[H:.*]] = arith.addf %[[G]], %[[F]] : tensor<?x4x64xbf16>
// CHECK-NEXT: return %[[H]] : tensor<?x4x64xbf16>
func.func @out_alone(%q: tensor<?x4x64xbf16>, %cu: tensor<?xi32>) -> tensor<?x4x64xbf16> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return %out : tensor<?x4x64xbf16>
}

// Destinations are not read: their cotangents are zero.
// CHECK-LABEL: func.func @into_vjp(
// CHECK-SAME: %[[Q:.*]]: tensor<8x4x64xf32>, %[[CU:.*]]: tensor<?xi32>, %[[O:.*]]: tensor<8x4x64xf32>, %[[L:.*]]: tensor<4x8xf32>, %[[D:.*]]: tensor<8x4x64xf32>)
// CHECK: %[[A:.*]], %[[B:.*]] = varlen.attn_into %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] outs(%[[O]], %[[L]])
// CHECK-NEXT: varlen.attn_grad %[[D]], %[[Q]], %[[Q]], %[[Q]], %[[A]], %[[B]], %[[CU]], %[[CU]] :
// CHECK-DAG: %[[DO:.*]] = linalg.fill {{.*}} -> tensor<8x4x64xf32>
// CHECK-DAG: %[[DL:.*]] = linalg.fill {{.*}} -> tensor<4x8xf32>
// CHECK: return %{{.*}}, %[[DO]], %[[DL]] : tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<4x8xf32>
func.func @into(%q: tensor<8x4x64xf32>, %cu: tensor<?xi32>, %o: tensor<8x4x64xf32>, %l: tensor<4x8xf32>) -> tensor<8x4x64xf32> {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
      : (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<8x4x64xf32>, tensor<4x8xf32>)
      -> (tensor<8x4x64xf32>, tensor<4x8xf32>)
  return %out : tensor<8x4x64xf32>
}

// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate="function=attn mode=forward" \
// RUN:   --varlen-differentiate="function=score mode=forward wrt=k,gain" \
// RUN:   --varlen-differentiate="function=merge mode=forward" \
// RUN:   --varlen-differentiate="function=jvp mode=forward" \
// RUN:   | FileCheck %s

// One operation has the results and their tangents; all clauses travel along.
// CHECK-LABEL: func.func @attn_jvp(
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x64xf32>, %[[K:.*]]: tensor<?x2x64xf32>, %[[V:.*]]: tensor<?x2x32xf32>, %[[CU_Q:.*]]: tensor<?xi32>, %[[CU_K:.*]]: tensor<?xi32>, %[[USED:.*]]: tensor<?xi32>, %[[SINK:.*]]: tensor<4xf32>, %[[TQ:.*]]: tensor<?x4x64xf32>, %[[TK:.*]]: tensor<?x2x64xf32>, %[[TV:.*]]: tensor<?x2x32xf32>, %[[TSINK:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[OUT:.*]], %[[LSE:.*]], %[[TOUT:.*]], %[[TLSE:.*]] = varlen.attn_jvp %[[Q]], %[[K]], %[[V]], %[[TQ]], %[[TK]], %[[TV]], %[[CU_Q]], %[[CU_K]] seqused_k(%[[USED]]) sink(%[[SINK]]) tsink(%[[TSINK]]) {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32}
// CHECK-NEXT: return %[[OUT]], %[[LSE]], %[[TOUT]], %[[TLSE]]
func.func @attn(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x32xf32>,
                %cu_q: tensor<?xi32>, %cu_k: tensor<?xi32>, %used: tensor<?xi32>, %sink: tensor<4xf32>)
    -> (tensor<?x4x32xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_k(%used) sink(%sink)
      {mask = #varlen.mask<causal>, scale = 0.25 : f32}
      : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<?xi32>, tensor<?xi32>,
         tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x32xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x32xf32>, tensor<4x?xf32>
}

// Only captures that vary have tangents; rows without one have zeros.
// CHECK-LABEL: func.func @score_jvp(
// CHECK-SAME: %[[TK:[^:]*]]: tensor<?x4x64xf32> {varlen.name = "tk"}, %[[TG:[^:]*]]: tensor<4xf32> {varlen.name = "tgain"})
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<?x4x64xf32>
// CHECK: varlen.attn_jvp %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[ZERO]], %[[TK]], %{{.*}} tcaptures(%[[TG]]) captures(%{{.*}}, %{{.*}}) {wrt_captures = array<i64: 1>}
// CHECK: arith.mulf %{{.*}}, %capture_{{.*}} : f32
func.func @score(%q: tensor<?x4x64xf32>, %k: tensor<?x4x64xf32> {varlen.name = "k"}, %cu: tensor<?xi32>, %bias: tensor<4xf32>,
                 %gain: tensor<4xf32> {varlen.name = "gain"}) -> tensor<?x4x64xf32> {
  %out, %lse = varlen.attn %q, %k, %q, %cu, %cu captures(%bias, %gain)
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<?xi32>,
         tensor<4xf32>, tensor<4xf32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
      score (%s: f32, %query: i32, %key: i32, %b: f32, %g: f32) {
        %0 = arith.mulf %s, %g : f32
        %1 = arith.addf %0, %b : f32
        varlen.yield %1 : f32
      }
  return %out : tensor<?x4x64xf32>
}

// A part without a key adds to no tangent, whatever its own are.
// CHECK-LABEL: func.func @merge_jvp(
// CHECK: %{{.*}}, %[[LSE:.*]] = varlen.merge
// CHECK: %[[W0:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[LSE]] :
// CHECK: math.exp
// CHECK: arith.select
// CHECK: %[[W1:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[LSE]] :
// CHECK: linalg.generic {{.*}} ins(%[[W0]], %[[W1]],
// CHECK: %[[TOUT:.*]] = linalg.generic {{.*}} ins(%[[W0]], %[[W1]],
// CHECK: arith.cmpf oeq
// CHECK: arith.select
// CHECK: arith.cmpf oeq
// CHECK: arith.select
// CHECK: return %{{.*}}, %[[TOUT]]
func.func @merge(%a: tensor<?x4x16xf32>, %la: tensor<4x?xf32>, %b: tensor<?x4x16xf32>, %lb: tensor<4x?xf32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.merge %a, %la, %b, %lb
      : (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out : tensor<?x4x16xf32>
}

// What has no rule of the forward mode is decomposed: tangents.
// CHECK-LABEL: func.func @jvp_jvp(
// CHECK-NOT: varlen.attn_jvp
// CHECK: scf.for
func.func @jvp(%q: tensor<?x4x16xf32>, %t: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse, %tout, %tlse = varlen.attn_jvp %q, %q, %q, %t, %t, %t, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %tout : tensor<?x4x16xf32>
}

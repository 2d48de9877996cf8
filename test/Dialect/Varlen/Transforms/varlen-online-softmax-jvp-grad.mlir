// RUN: varlen-opt %s --varlen-online-softmax --canonicalize | FileCheck %s

// Twelve products, those of dv before the ones that are not read for it; p is computed from lse, and
// what is made of it is hidden by value: a p of 0 does not hide a NaN. Weights are rounded for
// products alone.

// CHECK-LABEL: @step
// CHECK-SAME: (%[[Q:.*]]: tensor<32x64xbf16>, %[[K:.*]]: tensor<16x64xbf16>, %[[V:.*]]: tensor<16x48xbf16>, %[[TQ:.*]]: tensor<32x64xbf16>, %[[TK:.*]]: tensor<16x64xbf16>, %[[TV:.*]]: tensor<16x48xbf16>, %[[DTOUT:.*]]: tensor<32x48xbf16>, %[[DOUT:.*]]: tensor<32x48xbf16>,
// CHECK-SAME: %[[LSE:.*]]: tensor<32x1xf32>, %[[DELTA:.*]]: tensor<32x1xf32>, %[[TLSE:.*]]: tensor<32x1xf32>, %[[TDELTA:.*]]: tensor<32x1xf32>, %[[LIMIT:.*]]: tensor<32x1xi32>, %{{.*}}: i32, %[[DQ:.*]]: tensor<32x64xf32>, %[[DK:.*]]: tensor<16x64xf32>, %[[DV:.*]]: tensor<16x48xf32>)
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[S:.*]] = linalg.contract {{.*}} ins(%[[Q]], %[[K]] :
// CHECK: %[[TS0:.*]] = linalg.contract {{.*}} ins(%[[TQ]], %[[K]] :
// CHECK: %[[TS:.*]] = linalg.contract {{.*}} ins(%[[Q]], %[[TK]] : {{.*}}) outs(%[[TS0]] :
// CHECK: math.exp2
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[LIMIT]], %[[LIMIT]] :
// CHECK: varlen.hide %{{.*}} with %[[ZERO]]
// CHECK: %[[TP0:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[TS]], %[[TLSE]] :
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[B]], %[[SCALE]] : f32
// CHECK-NEXT: %[[CHANGE:.*]] = arith.subf %[[SCALED]], %[[C]] : f32
// CHECK-NEXT: arith.mulf %[[A]], %[[CHANGE]] : f32
// CHECK: %[[TP:.*]] = linalg.generic {{.*}} ins(%[[TP0]], %[[LIMIT]], %[[LIMIT]] :
// CHECK: %[[NTP:.*]] = linalg.generic {{.*}} ins(%[[TP]] : {{.*}}) outs(%{{.*}} : tensor<32x16xbf16>)
// CHECK: %[[NP:.*]] = linalg.generic {{.*}} ins(%[[P]] : {{.*}}) outs(%{{.*}} : tensor<32x16xbf16>)
// CHECK: %[[DV0:.*]] = linalg.contract {{.*}} ins(%[[NTP]], %[[DTOUT]] : {{.*}}) outs(%[[DV]] :
// CHECK: %[[DV1:.*]] = linalg.contract {{.*}} ins(%[[NP]], %[[DOUT]] : {{.*}}) outs(%[[DV0]] :
// CHECK: %[[DP:.*]] = linalg.contract {{.*}} ins(%[[DTOUT]], %[[V]] :
// CHECK: %[[TDP0:.*]] = linalg.contract {{.*}} ins(%[[DTOUT]], %[[TV]] :
// CHECK: %[[TDP:.*]] = linalg.contract {{.*}} ins(%[[DOUT]], %[[V]] : {{.*}}) outs(%[[TDP0]] :
// CHECK: %[[DS0:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[DP]], %[[DELTA]] :
// CHECK: %[[DS:.*]] = linalg.generic {{.*}} ins(%[[DS0]], %[[LIMIT]], %[[LIMIT]] :
// CHECK: %[[TDS0:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[TS]], %[[TLSE]], %[[DP]], %[[DELTA]], %[[TDP]], %[[TDELTA]] :
// CHECK: arith.subf
// CHECK: math.fma
// CHECK-NEXT: arith.mulf
// CHECK: %[[TDS:.*]] = linalg.generic {{.*}} ins(%[[TDS0]], %[[LIMIT]], %[[LIMIT]] :
// CHECK: %[[NDS:.*]] = linalg.generic {{.*}} ins(%[[DS]] : {{.*}}) outs(%{{.*}} : tensor<32x16xbf16>)
// CHECK: %[[NTDS:.*]] = linalg.generic {{.*}} ins(%[[TDS]] : {{.*}}) outs(%{{.*}} : tensor<32x16xbf16>)
// CHECK: %[[DK0:.*]] = linalg.contract {{.*}} ins(%[[NTDS]], %[[Q]] : {{.*}}) outs(%[[DK]] :
// CHECK: %[[DK1:.*]] = linalg.contract {{.*}} ins(%[[NDS]], %[[TQ]] : {{.*}}) outs(%[[DK0]] :
// CHECK: %[[DQ0:.*]] = linalg.contract {{.*}} ins(%[[NTDS]], %[[K]] : {{.*}}) outs(%[[DQ]] :
// CHECK: %[[DQ1:.*]] = linalg.contract {{.*}} ins(%[[NDS]], %[[TK]] : {{.*}}) outs(%[[DQ0]] :
// CHECK: return %[[DQ1]], %[[DK1]], %[[DV1]]
func.func @step(%q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x48xbf16>, %tq: tensor<32x64xbf16>, %tk: tensor<16x64xbf16>, %tv: tensor<16x48xbf16>, %dtout: tensor<32x48xbf16>, %dout: tensor<32x48xbf16>,
                %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %tlse: tensor<32x1xf32>, %tdelta: tensor<32x1xf32>, %limit: tensor<32x1xi32>, %k0: i32,
                %dq: tensor<32x64xf32>, %dk: tensor<16x64xf32>, %dv: tensor<16x48xf32>) -> (tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>) {
  %g:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %k, %v, %tq, %tk, %tv, %dtout : tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x48xbf16>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x48xbf16>, tensor<32x48xbf16>)
      dout(%dout : tensor<32x48xbf16>)
      statistics(%lse, %delta, %tlse, %tdelta : tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      limits(%limit, %limit, %k0 : tensor<32x1xi32>, tensor<32x1xi32>, i32)
      dq(%dq : tensor<32x64xf32>) dk(%dk : tensor<16x64xf32>) dv(%dv : tensor<16x48xf32>) scale 0.125
  return %g#0, %g#1, %g#2 : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>
}

// dq alone: eight products, six of scores, and no p or tp to multiply with.
// CHECK-LABEL: @queries
// CHECK-COUNT-3: linalg.contract
// CHECK: math.exp2
// CHECK-COUNT-5: linalg.contract
// CHECK-NOT: linalg.contract
func.func @queries(%q: tensor<16x8xbf16>, %n: tensor<16x1xf32>, %dq: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %g = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<16x8xbf16>, tensor<16x8xbf16>, tensor<16x8xbf16>, tensor<16x8xbf16>, tensor<16x8xbf16>, tensor<16x8xbf16>, tensor<16x8xbf16>)
      dout(%q : tensor<16x8xbf16>)
      statistics(%n, %n, %n, %n : tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>) dq(%dq : tensor<16x8xf32>) scale 0.125
  return %g : tensor<16x8xf32>
}

// dv alone: no product with v or tv, which delta and tdelta are of, too.
// CHECK-LABEL: @values
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<8x4xbf16>, %[[DELTA:[a-z0-9]*]]: tensor<1x16xf32>
// CHECK-NOT: ins({{.*}}%[[V]]
// CHECK-COUNT-3: linalg.contract
// CHECK: math.exp2
// CHECK-NOT: ins({{.*}}%[[DELTA]]
// CHECK-COUNT-2: linalg.contract
// CHECK-NOT: linalg.contract
func.func @values(%v: tensor<8x4xbf16>, %delta: tensor<1x16xf32>, %q: tensor<16x8xbf16>, %k: tensor<8x8xbf16>, %dout: tensor<16x4xbf16>, %n: tensor<1x16xf32>, %dv: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %g = varlen.online_attn_jvp_grad kq
      ins(%q, %k, %v, %q, %k, %v, %dout : tensor<16x8xbf16>, tensor<8x8xbf16>, tensor<8x4xbf16>, tensor<16x8xbf16>, tensor<8x8xbf16>, tensor<8x4xbf16>, tensor<16x4xbf16>)
      dout(%dout : tensor<16x4xbf16>)
      statistics(%n, %delta, %n, %delta : tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) dv(%dv : tensor<8x4xf32>) scale 0.125
  return %g : tensor<8x4xf32>
}

// A score region: p is of the new scores, and both cotangents go back through it. Its factor
// multiplies dp and tdp, and, behind the softmax, p and tp. A capture gets what tds has of it.
// CHECK-LABEL: @score
// CHECK: %[[F:.*]] = linalg.generic {{.*}} ins(%arg{{[0-9]+}} : tensor<8x1xf32>) outs(%{{.*}} : tensor<8x8xf32>)
// CHECK: %[[TOTAL:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK: return %{{.*}}, %[[TOTAL]]
func.func @score(%q: tensor<8x4xf32>, %n: tensor<8x1xf32>, %gain: tensor<8x1xf32>, %factor: tensor<8x1xf32>) -> (tensor<8x4xf32>, tensor<8x1xf32>) {
  %g:4 = varlen.online_attn_jvp_grad qk natural
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %n, %n : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      captures(%gain, %factor : tensor<8x1xf32>, tensor<8x1xf32>) tcaptures(%n : tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%q : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) dcaptures(%n : tensor<8x1xf32>)
      scale 1.0 {tangent_captures = array<i64: 0>, wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %x: f32, %f: f32) {
        %y = arith.mulf %s, %x : f32
        varlen.yield %y, %f : f32, f32
      }
  return %g#2, %g#3 : tensor<8x4xf32>, tensor<8x1xf32>
}

// What rows have: tdelta is 0 without a key, and the term of a sink has the change of its weight.
// CHECK-LABEL: @statistics
// CHECK-SAME: (%[[DOT:.*]]: tensor<8x1xf32>, %[[MORE:.*]]: tensor<8x1xf32>, %[[LSE:.*]]: tensor<8x1xf32>, %[[DELTA:.*]]: tensor<8x1xf32>, %[[TLSE:.*]]: tensor<8x1xf32>, %[[DLSE:.*]]: tensor<8x1xf32>, %[[SINK:.*]]: tensor<8x1xf32>, %[[TSINK:.*]]: tensor<8x1xf32>)
// CHECK: %[[TDELTA:.*]] = linalg.generic {{.*}} ins(%[[LSE]], %[[DOT]], %[[MORE]], %[[DLSE]] :
// CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[D:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[X:.*]] = arith.subf %[[SUM]], %[[D]] : f32
// CHECK-NEXT: %[[NONE:.*]] = arith.cmpf oeq, %[[L]], %{{.*}} : f32
// CHECK-NEXT: arith.select %[[NONE]], %{{.*}}, %[[X]] : f32
// CHECK: linalg.generic {{.*}} ins(%[[SINK]], %[[LSE]], %[[DELTA]], %[[TLSE]], %[[TDELTA]], %[[TSINK]] :
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %[[E:.*]]: f32, %[[TL:.*]]: f32, %[[TD:.*]]: f32, %[[T:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[CHANGE:.*]] = arith.subf %[[T]], %[[TL]] : f32
// CHECK-NEXT: math.fma %[[CHANGE]], %[[E]], %[[TD]] : f32
func.func @statistics(%dot: tensor<8x1xf32>, %more: tensor<8x1xf32>, %lse: tensor<8x1xf32>, %delta: tensor<8x1xf32>, %tlse: tensor<8x1xf32>, %dlse: tensor<8x1xf32>, %sink: tensor<8x1xf32>, %tsink: tensor<8x1xf32>)
    -> (tensor<8x1xf32>, tensor<8x1xf32>) {
  %tdelta, %term = varlen.online_tangent_statistics dots(%dot, %more : tensor<8x1xf32>, tensor<8x1xf32>) %lse, %delta, %tlse dlse(%dlse : tensor<8x1xf32>)
      sink(%sink : tensor<8x1xf32>) tsink(%tsink : tensor<8x1xf32>) natural : tensor<8x1xf32>
  return %tdelta, %term : tensor<8x1xf32>, tensor<8x1xf32>
}

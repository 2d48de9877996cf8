// RUN: varlen-opt %s --varlen-online-softmax --canonicalize | FileCheck %s

// The tangents of scores are two products; they are 0 where a score is hidden, and no sum is
// relative to a tangent. What follows is multiplied by p, not p by what follows.

// CHECK-LABEL: @step
// CHECK-SAME: (%[[Q:.*]]: tensor<32x64xbf16>, %[[K:.*]]: tensor<16x64xbf16>, %[[V:.*]]: tensor<16x48xbf16>, %[[TQ:.*]]: tensor<32x64xbf16>, %[[TK:.*]]: tensor<16x64xbf16>, %[[TV:.*]]: tensor<16x48xbf16>, %[[LIMIT:.*]]: tensor<32x1xi32>, %{{.*}}: i32, %[[ACC:.*]]: tensor<32x48xf32>, %[[M:.*]]: tensor<32x1xf32>
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[S:.*]] = linalg.contract {{.*}} ins(%[[Q]], %[[K]] : {{.*}}) outs(%{{.*}} : tensor<32x16xf32>)
// CHECK: %[[TS0:.*]] = linalg.contract {{.*}} ins(%[[TQ]], %[[K]] : {{.*}}) outs(%{{.*}} : tensor<32x16xf32>)
// CHECK: %[[TS:.*]] = linalg.contract {{.*}} ins(%[[Q]], %[[TK]] : {{.*}}) outs(%[[TS0]] : tensor<32x16xf32>)
// CHECK: varlen.hide %{{.*}} with %[[LOWEST]]
// CHECK: %[[SEEN:.*]] = linalg.generic {{.*}} ins(%[[TS]], %[[LIMIT]], %[[LIMIT]] : {{.*}})
// CHECK: varlen.hide %{{.*}} with %[[ZERO]]
// CHECK: varlen.weight
// CHECK: %[[TP:.*]] = linalg.generic {{.*}} ins(%[[P:.*]], %[[SEEN]] :
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[B]], %[[SCALE]] : f32
// CHECK-NEXT: arith.mulf %[[A]], %[[SCALED]] : f32
// CHECK: %[[NARROW:.*]] = linalg.generic {{.*}} ins(%[[P]] : {{.*}}) outs(%{{.*}} : tensor<32x16xbf16>)
// CHECK: %[[TNARROW:.*]] = linalg.generic {{.*}} ins(%[[TP]] : {{.*}}) outs(%{{.*}} : tensor<32x16xbf16>)
// The sum that takes the place of tl in out's tangent is of terms as the product reads them.
// CHECK: linalg.generic {{.*}} ins(%[[TNARROW]] : {{.*}}) outs(%{{.*}} : tensor<32x1xf32>)
// CHECK-NEXT: ^bb0(%[[READ:.*]]: bf16, %[[SUM:.*]]: f32):
// CHECK-NEXT: %[[TERM:.*]] = arith.extf %[[READ]] : bf16 to f32
// CHECK-NEXT: arith.addf %[[SUM]], %[[TERM]] : f32
// CHECK: linalg.contract {{.*}} ins(%[[NARROW]], %[[V]] :
// CHECK: %[[PART:.*]] = linalg.contract {{.*}} ins(%[[TNARROW]], %[[V]] :
// CHECK: linalg.contract {{.*}} ins(%[[NARROW]], %[[TV]] : {{.*}}) outs(%[[PART]] :
func.func @step(%q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %v: tensor<16x48xbf16>, %tq: tensor<32x64xbf16>, %tk: tensor<16x64xbf16>, %tv: tensor<16x48xbf16>,
                %limit: tensor<32x1xi32>, %k0: i32, %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>)
    -> (tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>) {
  %s:6 = varlen.online_attn_jvp qk
      ins(%q, %k, %v, %tq, %tk, %tv : tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x48xbf16>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x48xbf16>)
      limits(%limit, %limit, %k0 : tensor<32x1xi32>, tensor<32x1xi32>, i32)
      outs(%acc, %m, %m, %acc, %m, %m : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return %s#0, %s#1, %s#2, %s#3, %s#4, %s#5 : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>
}

// Beside a factor of the score region, as dropout has one, tl_rounded has p * ts without the
// factor and what rounding it with the factor adds, 0 where the factor is.
// CHECK-LABEL: @factor
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<32x16xbf16>, tensor<32x16xf32>, tensor<32x16xf32>) outs(%{{.*}} : tensor<32x1xf32>)
// CHECK-NEXT: ^bb0(%[[READ:.*]]: bf16, %[[KEPT:.*]]: f32, %[[EXACT:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[READ]] : bf16 to f32
// CHECK-NEXT: %[[ERROR:.*]] = arith.subf %[[WIDE]], %[[KEPT]] : f32
// CHECK-NEXT: %[[TERM:.*]] = arith.addf %[[EXACT]], %[[ERROR]] : f32
// CHECK-NEXT: arith.addf %[[SUM]], %[[TERM]] : f32
func.func @factor(%q: tensor<32x64xbf16>, %k: tensor<16x64xbf16>, %acc: tensor<32x64xf32>, %m: tensor<32x1xf32>) -> tensor<32x1xf32> {
  %s:6 = varlen.online_attn_jvp qk
      ins(%q, %k, %k, %q, %k, %k : tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<32x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>)
      captures(%m : tensor<32x1xf32>)
      outs(%acc, %m, %m, %acc, %m, %m : tensor<32x64xf32>, tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x64xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 1.0 {wrt_captures = array<i64>} score (%s: f32, %i: i32, %j: i32, %f: f32) {
        varlen.yield %s, %f : f32, f32
      }
  return %s#5 : tensor<32x1xf32>
}

// A capped score: its derivative multiplies the tangent of the product.
// CHECK-LABEL: @score
// CHECK: %[[TS:.*]] = linalg.contract
// CHECK: linalg.generic
// CHECK: math.tanh
// CHECK: %[[TANH:.*]] = math.tanh
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[TANH]], %[[TANH]] : f32
// CHECK: arith.subf %{{.*}}, %[[SQUARE]] : f32
// CHECK: linalg.yield %{{.*}}, %{{.*}} : f32, f32
func.func @score(%q: tensor<32x64xf32>, %acc: tensor<32x64xf32>, %m: tensor<32x1xf32>) -> tensor<32x64xf32> {
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %q, %q, %q : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>)
      outs(%acc, %m, %m, %acc, %m : tensor<32x64xf32>, tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x64xf32>, tensor<32x1xf32>)
      scale 1.0 score (%s: f32, %i: i32, %j: i32) {
        %r = math.tanh %s : f32
        varlen.yield %r : f32
      }
  return %s#3 : tensor<32x64xf32>
}

// The end: nothing of the tangents of a row without a key, and the weight of the sink times
// its tangent.
// CHECK-LABEL: @finish
// CHECK-SAME: (%[[ACC:.*]]: tensor<32x48xf32>, %[[M:.*]]: tensor<32x1xf32>, %[[L:.*]]: tensor<32x1xf32>, %[[TACC:.*]]: tensor<32x48xf32>, %[[TL:.*]]: tensor<32x1xf32>, %[[SINK:.*]]: tensor<32x1xf32>, %[[TSINK:.*]]: tensor<32x1xf32>)
// CHECK: %[[TLSE:.*]] = linalg.generic {{.*}} ins(%[[TL]], %[[FACTOR:.*]], %[[SINK]], %[[TSINK]], %{{.*}} :
// CHECK: linalg.generic {{.*}} ins(%[[TACC]], %[[ACC]], %[[TLSE]], %[[FACTOR]] :
// CHECK-NEXT: ^bb0(%[[T:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[F:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[CHANGE:.*]] = arith.mulf %[[B]], %[[A]] : f32
// CHECK-NEXT: %[[SUM:.*]] = arith.subf %[[T]], %[[CHANGE]] : f32
// CHECK-NEXT: %[[X:.*]] = arith.mulf %[[SUM]], %[[F]] : f32
// CHECK-NEXT: %[[NONE:.*]] = arith.cmpf oeq, %[[F]], %{{.*}} : f32
// CHECK-NEXT: arith.select %[[NONE]], %{{.*}}, %[[X]] : f32
func.func @finish(%acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>, %tacc: tensor<32x48xf32>, %tl: tensor<32x1xf32>, %sink: tensor<32x1xf32>, %tsink: tensor<32x1xf32>)
    -> (tensor<32x48xf32>, tensor<32x1xf32>) {
  %e:4 = varlen.online_finish qk %acc, %m, %l tangents(%tacc, %tl : tensor<32x48xf32>, tensor<32x1xf32>)
      sink(%sink : tensor<32x1xf32>) tsink(%tsink : tensor<32x1xf32>) scale 0.125 : tensor<32x48xf32>, tensor<32x1xf32>
  return %e#2, %e#3 : tensor<32x48xf32>, tensor<32x1xf32>
}

// Where p was rounded tlse is of the exact sum, and out's tangent of the rounded one.
// CHECK-LABEL: @finish_rounded
// CHECK-SAME: (%{{.*}}: tensor<32x48xf32>, %{{.*}}: tensor<32x1xf32>, %[[TACC:.*]]: tensor<32x48xf32>, %[[TL:.*]]: tensor<32x1xf32>, %[[ROUNDED:.*]]: tensor<32x1xf32>)
// CHECK: %[[TLSE:.*]] = linalg.generic {{.*}} ins(%[[TL]], %[[FACTOR:[a-z0-9]+]] :
// CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[ROUNDED]], %[[FACTOR]] :
// CHECK: %[[TOUT:.*]] = linalg.generic {{.*}} ins(%[[TACC]], %{{.*}}, %[[MEAN]], %[[FACTOR]] :
// CHECK: return %[[TOUT]], %[[TLSE]]
func.func @finish_rounded(%acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %tacc: tensor<32x48xf32>, %tl: tensor<32x1xf32>, %rounded: tensor<32x1xf32>)
    -> (tensor<32x48xf32>, tensor<32x1xf32>) {
  %e:4 = varlen.online_finish qk %acc, %m, %m tangents(%tacc, %tl, %rounded : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125 rounded : tensor<32x48xf32>, tensor<32x1xf32>
  return %e#2, %e#3 : tensor<32x48xf32>, tensor<32x1xf32>
}

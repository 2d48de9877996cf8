// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate="function=grad" \
// RUN:   --varlen-differentiate="function=linear" \
// RUN:   --varlen-differentiate="function=jvp" \
// RUN:   --varlen-differentiate="function=captures wrt=gain,bias" \
// RUN:   --varlen-differentiate="function=third" \
// RUN:   | FileCheck %s --check-prefix=REVERSE
// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate="function=grad mode=forward" \
// RUN:   --varlen-differentiate="function=linear mode=forward" \
// RUN:   | FileCheck %s --check-prefix=FORWARD
// RUN: not varlen-opt %s --varlen-differentiate="function=factor" 2>&1 | FileCheck %s --check-prefix=FACTOR

// The cotangent of dout is the tangent of out along those of the gradients; q, k and v get
// the gradients of that. What out and lse have is part of what q, k and v have.
// REVERSE-LABEL: func.func @grad_vjp(
// REVERSE-SAME: %[[D:[^:]*]]: tensor<?x4x24xf32> {varlen.name = "dout"}, %[[Q:[^:]*]]: tensor<?x4x16xf32> {varlen.name = "q"}, %[[K:[^:]*]]: tensor<?x2x16xf32> {varlen.name = "k"}, %[[V:[^:]*]]: tensor<?x2x24xf32> {varlen.name = "v"}, {{.*}}, %[[CU:[^:]*]]: tensor<?xi32>, %[[TQ:[^:]*]]: tensor<?x4x16xf32>, %[[TK:[^:]*]]: tensor<?x2x16xf32>, %[[TV:[^:]*]]: tensor<?x2x24xf32>)
// REVERSE: %[[OUT:.*]], %[[LSE:.*]], %[[TOUT:.*]], %[[TLSE:.*]] = varlen.attn_jvp %[[Q]], %[[K]], %[[V]], %[[TQ]], %[[TK]], %[[TV]], %[[CU]], %[[CU]] {mask = #varlen.mask<causal>}
// REVERSE-NEXT: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = varlen.attn_jvp_grad %[[D]], %[[Q]], %[[K]], %[[V]], %[[TQ]], %[[TK]], %[[TV]], %[[OUT]], %[[LSE]], %[[TOUT]], %[[TLSE]], %[[CU]], %[[CU]] {mask = #varlen.mask<causal>}
// REVERSE: return %[[TOUT]], %[[DQ]], %[[DK]], %[[DV]], %{{[^,]*}}, %{{[^,]*}} :

// The tangents of the gradients are made of the same operation, with the tangent of dout.
// FORWARD-LABEL: func.func @grad_jvp(
// FORWARD: %[[OUT:.*]], %[[LSE:.*]], %[[TOUT:.*]], %[[TLSE:.*]] = varlen.attn_jvp
// FORWARD: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = varlen.attn_jvp_grad %{{.*}}, %[[OUT]], %[[LSE]], %[[TOUT]], %[[TLSE]], %{{[^,]*}}, %{{[^,]*}} dout(%{{.*}}) {mask = #varlen.mask<causal>}
// FORWARD: return %{{.*}}, %[[DQ]], %[[DK]], %[[DV]] :
func.func @grad(%dout: tensor<?x4x24xf32> {varlen.name = "dout"}, %q: tensor<?x4x16xf32> {varlen.name = "q"}, %k: tensor<?x2x16xf32> {varlen.name = "k"}, %v: tensor<?x2x24xf32> {varlen.name = "v"},
                %out: tensor<?x4x24xf32> {varlen.name = "out"}, %lse: tensor<4x?xf32> {varlen.name = "lse"}, %cu: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return %dq, %dk, %dv : tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>
}

// Gradients are linear in dout and dlse.
// REVERSE-LABEL: func.func @linear_vjp(
// REVERSE-NOT: varlen.attn_jvp_grad
// REVERSE: return
// FORWARD-LABEL: func.func @linear_jvp(
// FORWARD-NOT: varlen.attn_jvp
// FORWARD: %[[DQ:.*]], %{{.*}}, %{{.*}} = varlen.attn_grad %arg2,
// FORWARD: return %{{.*}}, %[[DQ]]
func.func @linear(%dout: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %c1 = arith.constant 1 : index
  %q = tensor.empty(%c1) : tensor<?x4x16xf32>
  %lse = tensor.empty(%c1) : tensor<4x?xf32>
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %q, %q, %q, %lse, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return %dq : tensor<?x4x16xf32>
}

// The tangents have gradients by the tangents of operands and by operands, which are the
// gradients of an attention and those of its tangents.
// REVERSE-LABEL: func.func @jvp_vjp(
// REVERSE: %[[OUT:.*]], %[[LSE:.*]], %[[TOUT:.*]], %[[TLSE:.*]] = varlen.attn_jvp
// REVERSE: varlen.attn_grad %[[DTOUT:arg[0-9]+]], %{{.*}}, %[[OUT]], %[[LSE]],
// REVERSE: varlen.attn_jvp_grad %[[DTOUT]], %{{.*}}, %[[OUT]], %[[LSE]], %[[TOUT]], %[[TLSE]], %{{.*}} dout(
func.func @jvp(%q: tensor<?x4x16xf32>, %t: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
  %out, %lse, %tout, %tlse = varlen.attn_jvp %q, %q, %q, %t, %t, %t, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out, %tout : tensor<?x4x16xf32>, tensor<?x4x16xf32>
}

// A capture that varies without a gradient has a tangent of zeros.
// REVERSE-LABEL: func.func @captures_vjp(
// REVERSE-SAME: %[[GAIN:[^:]*]]: tensor<4xf32> {varlen.name = "gain"}, %[[BIAS:[^:]*]]: tensor<4xf32> {varlen.name = "bias"}, %[[TGAIN:[^:]*]]: tensor<4xf32>)
// REVERSE: varlen.attn_jvp {{.*}} tcaptures(%[[TGAIN]], %[[ZERO:[^)]*]]) captures(%[[GAIN]], %[[BIAS]]) {wrt_captures = array<i64: 0, 1>}
// REVERSE: %{{.*}}, %{{.*}}, %{{.*}}, %[[DGAIN:.*]], %[[DBIAS:.*]] = varlen.attn_jvp_grad {{.*}} tcaptures(%[[TGAIN]], %[[ZERO]]) captures(%[[GAIN]], %[[BIAS]]) {wrt_captures = array<i64: 0, 1>}
// REVERSE: return %[[DGAIN]], %[[DBIAS]] :
func.func @captures(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>, %gain: tensor<4xf32> {varlen.name = "gain"}, %bias: tensor<4xf32> {varlen.name = "bias"})
    -> tensor<4xf32> {
  %dq, %dk, %dv, %dgain = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%gain, %bias) {wrt_captures = array<i64: 0>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
      score (%s: f32, %i: i32, %j: i32, %g: f32, %b: f32) {
        %0 = arith.mulf %s, %g : f32
        %1 = arith.addf %0, %b : f32
        varlen.yield %1 : f32
      }
  return %dgain : tensor<4xf32>
}

// Its own derivatives have no rule: it is decomposed.
// REVERSE-LABEL: func.func @third_vjp(
// REVERSE-NOT: varlen.attn_jvp_grad
// REVERSE: scf.for
// REVERSE: return
func.func @third(%dtout: tensor<?x4x16xf32>, %q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %dq, %dk, %dv = varlen.attn_jvp_grad %dtout, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return %dq : tensor<?x4x16xf32>
}

// A factor of probabilities has no derivative, of the second order neither.
// FACTOR: error: 'varlen.attn_grad' op expected a factor of probabilities without a derivative by a capture whose gradient is wanted, got one with that by capture 0
func.func @factor(%cu: tensor<?xi32>, %gain: tensor<4xf32>) -> tensor<?x4x16xf32> {
  %c1 = arith.constant 1 : index
  %q = tensor.empty(%c1) : tensor<?x4x16xf32>
  %lse = tensor.empty(%c1) : tensor<4x?xf32>
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%gain)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
      score (%s: f32, %i: i32, %j: i32, %g: f32) {
        varlen.yield %s, %g : f32, f32
      }
  return %dq : tensor<?x4x16xf32>
}

// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// Rows of q are queries, also where keys are the rows of scores.
func.func @q(
    %q: tensor<64x32xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<1x32xf32>, %delta: tensor<1x32xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected q to be queries x head_dim = 32 x 64 in orientation kq, got 'tensor<64x32xf32>'}}
  %r = varlen.online_attn_grad kq
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<64x32xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// Keys with another head_dim.
func.func @k(
    %q: tensor<32x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected k to be keys x head_dim = 16 x 64 in orientation qk, got 'tensor<16x32xf32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x32xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// Fewer values than keys.
func.func @v(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<15x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected v to be keys x value head_dim = 16 x 48 in orientation qk, got 'tensor<15x48xf32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<15x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// Another value head_dim.
func.func @dout(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x40xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected dout to be queries x value head_dim = 32 x 48 in orientation qk, got 'tensor<32x40xf32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x40xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// A statistic as kq has it.
func.func @lse(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<1x32xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected lse to be queries x 1 = 32 x 1 in orientation qk, got 'tensor<1x32xf32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<1x32xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// A statistic as qk has it.
func.func @delta(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<1x32xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected delta to be 1 x queries = 1 x 32 in orientation kq, got 'tensor<32x1xf32>'}}
  %r = varlen.online_attn_grad kq
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<1x32xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// A gradient has the shape of what it is of.
func.func @dq(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<64x32xf32>) {
  // expected-error @below {{expected dq to be queries x head_dim = 32 x 64 in orientation qk, got 'tensor<64x32xf32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<64x32xf32>) scale 0.125
  return
}

// -----

// A gradient of the keys with one key more.
func.func @dk(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dk: tensor<17x64xf32>) {
  // expected-error @below {{expected dk to be keys x head_dim = 16 x 64 in orientation qk, got 'tensor<17x64xf32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dk(%dk : tensor<17x64xf32>) scale 0.125
  return
}

// -----

// A gradient of the values with the head_dim of keys.
func.func @dv(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dv: tensor<16x64xf32>) {
  // expected-error @below {{expected dv to be keys x value head_dim = 16 x 48 in orientation qk, got 'tensor<16x64xf32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dv(%dv : tensor<16x64xf32>) scale 0.125
  return
}

// -----

// Limits have one value per query.
func.func @hi(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>,
    %lo: tensor<32x1xi32>, %hi: tensor<16x1xi32>, %k0: i32) {
  // expected-error @below {{expected hi to be queries x 1 = 32 x 1 in orientation qk, got 'tensor<16x1xi32>'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      limits(%lo, %hi, %k0 : tensor<32x1xi32>, tensor<16x1xi32>, i32)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// There must be something that is hidden.
func.func @seen(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>, %begin: index, %end: index) {
  // expected-error @below {{expected limits beside 'seen', got none}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      seen(%begin, %end) dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// Sums in a narrow type.
func.func @narrow(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xbf16>) {
  // expected-error @below {{expected lse, delta and the gradients of one type, f32 or f64, got 'bf16' for dq}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xbf16>) scale 0.125
  return
}

// -----

// Statistics of two types.
func.func @statistics(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf64>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected lse, delta and the gradients of one type, f32 or f64, got 'f64' for delta}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf64>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// f64 does not accumulate in f32.
func.func @wide(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf64>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected dout of a type that accumulates in 'f32', the type of lse, got 'f64'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf64>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// q and k are the factors of one product.
func.func @qk_types(
    %q: tensor<32x64xbf16>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected q and k of one element type, got 'bf16' and 'f32'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xbf16>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// v and dout are the factors of one product.
func.func @v_types(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf16>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected v and dout of one element type, got 'f32' and 'f16'}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf16>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.125
  return
}

// -----

// A scale of zero.
func.func @scale(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>, %dout: tensor<32x48xf32>,
    %lse: tensor<32x1xf32>, %delta: tensor<32x1xf32>, %dq: tensor<32x64xf32>) {
  // expected-error @below {{expected scale to be positive and finite, got 0}}
  %r = varlen.online_attn_grad qk
      ins(%q, %k, %v, %dout, %lse, %delta : tensor<32x64xf32>, tensor<16x64xf32>,
          tensor<16x48xf32>, tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      dq(%dq : tensor<32x64xf32>) scale 0.0
  return
}

// -----

// Nothing to compute.
func.func @none(%t: tensor<8x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected at least one of dq, dk and dv, got none}}
  varlen.online_attn_grad qk
      ins(%t, %t, %t, %t, %m, %m : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>,
          tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 1.0
  return
}

// -----

// The generic form can have one limit.
func.func @one_limit(%t: tensor<8x8xf32>, %m: tensor<8x1xf32>, %lo: tensor<8x1xi32>) {
  // expected-error @below {{expected all of the limits lo, hi and k0 or none, got 1 of 3}}
  %0 = "varlen.online_attn_grad"(%t, %t, %t, %t, %m, %m, %lo, %t) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0>,
      orientation = #varlen<orientation qk>, scale = 1.0 : f64}>
      : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>,
         tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xi32>, tensor<8x8xf32>)
      -> tensor<8x8xf32>
  return
}

// -----

// One result for each destination.
func.func @results(%t: tensor<8x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<8x8xf32>' are incompatible with return type(s) of operation 'tensor<8x8xf32>', 'tensor<8x8xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:2 = "varlen.online_attn_grad"(%t, %t, %t, %t, %m, %m, %t) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0>,
      orientation = #varlen<orientation qk>, scale = 1.0 : f64}>
      : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>,
         tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x8xf32>)
      -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return
}

// -----

func.func @dcaptures(%q: tensor<8x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected dcaptures for each of the 1 wrt_captures, got 0}}
  %0 = varlen.online_attn_grad qk
      ins(%q, %q, %q, %q, %m, %m : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>,
          tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      captures(%m : tensor<8x1xf32>) dq(%q : tensor<8x8xf32>) scale 1.0
      {wrt_captures = array<i64: 0>}
      score (%s: f32, %i: i32, %j: i32, %x: f32) { varlen.yield %x : f32 }
  return
}

// -----

func.func @factor(%q: tensor<8x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected a factor of probabilities without a derivative by a capture whose gradient is wanted, got one with that by capture 0}}
  %0:2 = varlen.online_attn_grad qk
      ins(%q, %q, %q, %q, %m, %m : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>,
          tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      captures(%m : tensor<8x1xf32>) dq(%q : tensor<8x8xf32>) dcaptures(%m : tensor<8x1xf32>)
      scale 1.0 {wrt_captures = array<i64: 0>}
      score (%s: f32, %i: i32, %j: i32, %x: f32) { varlen.yield %s, %x : f32, f32 }
  return
}

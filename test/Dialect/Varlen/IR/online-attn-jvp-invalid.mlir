// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// A tangent of q with another head_dim.
func.func @tq(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x5xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %tacc: tensor<8x4xf32>, %tl: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tq of the type of q, 'tensor<8x4xf32>', got 'tensor<8x5xf32>'}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x5xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>)
      scale 1.0
  return
}

// -----

// A tangent of another type.
func.func @tv(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xbf16>, %tacc: tensor<8x4xf32>, %tl: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tv of the type of v, 'tensor<8x4xf32>', got 'tensor<8x4xbf16>'}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>)
      outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>)
      scale 1.0
  return
}

// -----

// A tangent of acc with too few queries.
func.func @tacc(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %tacc: tensor<7x4xf32>, %tl: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tacc of the type of acc, 'tensor<8x4xf32>', got 'tensor<7x4xf32>'}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<7x4xf32>, tensor<8x1xf32>)
      scale 1.0
  return
}

// -----

// A tangent of l in another orientation.
func.func @tl(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %tacc: tensor<8x4xf32>, %tl: tensor<1x8xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tl of the type of l, 'tensor<8x1xf32>', got 'tensor<1x8xf32>'}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<1x8xf32>)
      scale 1.0
  return
}

// -----

// No sum of rounded terms.
func.func @no_tl_rounded(%q: tensor<8x4xf16>, %m: tensor<8x1xf32>, %acc: tensor<8x4xf32>) {
  // expected-error @below {{expected tl_rounded beside v of 'f16' and l of 'f32', got none}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %q, %q, %q : tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>)
      outs(%acc, %m, %m, %acc, %m : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>)
      scale 1.0
  return
}

// -----

// A sum of rounded terms in another orientation.
func.func @tl_rounded(%q: tensor<8x4xf16>, %m: tensor<8x1xf32>, %acc: tensor<8x4xf32>, %other: tensor<1x8xf32>) {
  // expected-error @below {{expected tl_rounded of the type of l, 'tensor<8x1xf32>', got 'tensor<1x8xf32>'}}
  %s:6 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %q, %q, %q : tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>, tensor<8x4xf16>)
      outs(%acc, %m, %m, %acc, %m, %other : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<1x8xf32>)
      scale 1.0
  return
}

// -----

// No tangent of a capture.
func.func @no_tcapture(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %tacc: tensor<8x4xf32>, %tl: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tcaptures for each of the 1 wrt_captures that are no tables, got 0}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      captures(%m : tensor<8x1xf32>) outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>)
      scale 1.0 {wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %g: f32) {
        %r = arith.mulf %s, %g : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// A tangent of a capture in another orientation.
func.func @tcapture_type(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %tacc: tensor<8x4xf32>, %tl: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tcaptures of the type of m, 'tensor<8x1xf32>', got 'tensor<8x4xf32>'}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      captures(%m : tensor<8x1xf32>) tcaptures(%q : tensor<8x4xf32>) outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>)
      scale 1.0 {wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %g: f32) {
        %r = arith.mulf %s, %g : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// A number that no capture has.
func.func @number(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %tacc: tensor<8x4xf32>, %tl: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected wrt_captures to be ascending numbers of the 1 captures, got 1}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      captures(%m : tensor<8x1xf32>) tcaptures(%m : tensor<8x1xf32>) outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>)
      scale 1.0 {wrt_captures = array<i64: 1>} score (%s: f32, %i: i32, %j: i32, %g: f32) {
        %r = arith.mulf %s, %g : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// A table without its tangent.
func.func @no_ttable(%q: tensor<8x4xf32>, %m: tensor<8x1xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %tacc: tensor<8x4xf32>, %tl: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected a score region of}}
  %s:5 = varlen.online_attn_jvp qk
      ins(%q, %q, %q, %tq, %tk, %tv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      tables(%table : memref<?x?xf32>) rows(%rows : tensor<8x1xi64>) outs(%q, %m, %m, %tacc, %tl : tensor<8x4xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x4xf32>, tensor<8x1xf32>)
      scale 1.0 {wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %t: !varlen.table<f32>) {
        %r = varlen.lookup %t[%i] : !varlen.table<f32>
        varlen.yield %r : f32
      }
  return
}

// -----

// Tangents of one of two states.
func.func @merge(%acc: tensor<8x4xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected tangents of both states, or of none, got 2 and 0}}
  %u:5 = varlen.online_merge qk %acc, %m, %m tangents(%acc, %m : tensor<8x4xf32>, tensor<8x1xf32>)
      with %acc, %m, %m scale 0.125 : tensor<8x4xf32>, tensor<8x1xf32>
  return
}

// -----

// The tangent of l alone.
func.func @finish(%acc: tensor<8x4xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected no tangents, or those of acc and l, of ('tensor<8x4xf32>', 'tensor<8x1xf32>'), and maybe tl_rounded of 'tensor<8x1xf32>', got ('tensor<8x1xf32>')}}
  %e:4 = varlen.online_finish qk %acc, %m, %m tangents(%m : tensor<8x1xf32>) scale 0.125 : tensor<8x4xf32>, tensor<8x1xf32>
  return
}

// -----

// A tangent of no sink.
func.func @tsink(%acc: tensor<8x4xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected a sink and tangents beside a tsink}}
  %e:4 = varlen.online_finish qk %acc, %m, %m tangents(%acc, %m : tensor<8x4xf32>, tensor<8x1xf32>) tsink(%m : tensor<8x1xf32>)
      scale 0.125 : tensor<8x4xf32>, tensor<8x1xf32>
  return
}

// -----

// A state that begins with a tangent of another type.
func.func @init() {
  // expected-error @below {{expected no tangents, or those of acc and l, of ('tensor<8x4xf32>', 'tensor<8x1xf32>'), and maybe tl_rounded of 'tensor<8x1xf32>', got ('tensor<8x4xf32>', 'tensor<1x8xf32>')}}
  %s:5 = varlen.online_init qk scale 0.125 : tensor<8x4xf32>, tensor<8x1xf32> tangents(tensor<8x4xf32>, tensor<1x8xf32>)
  return
}

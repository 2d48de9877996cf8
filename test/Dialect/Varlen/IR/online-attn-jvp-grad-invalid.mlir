// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// A tangent of q with another head_dim.
func.func @tq(%q: tensor<8x4xf32>, %tq: tensor<8x5xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tq of the type of q, 'tensor<8x4xf32>', got 'tensor<8x5xf32>'}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x5xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// A tangent of k of fewer keys.
func.func @tk(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<7x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tk of the type of k, 'tensor<8x4xf32>', got 'tensor<7x4xf32>'}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<7x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// A tangent of v of another type.
func.func @tv(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xbf16>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tv of the type of v, 'tensor<8x4xf32>', got 'tensor<8x4xbf16>'}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// A cotangent with another value head_dim.
func.func @dtout(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x5xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected dtout to be queries x value head_dim = 8 x 4 in orientation qk, got 'tensor<8x5xf32>'}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x5xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// Cotangents of two types.
func.func @dout(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x3xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected dout of the type of dtout, 'tensor<8x4xf32>', got 'tensor<8x3xf32>'}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      dout(%dout : tensor<8x3xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// A statistic as kq has it.
func.func @tlse(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<1x8xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tlse to be queries x 1 = 8 x 1 in orientation qk, got 'tensor<1x8xf32>'}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<1x8xf32>, tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// A statistic of another type.
func.func @tdelta(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf64>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected lse, delta, tlse, tdelta and the gradients of one type, f32 or f64, got 'f64' for tdelta}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf64>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// A gradient of too few keys.
func.func @dk(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<7x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected dk to be keys x head_dim = 8 x 4 in orientation qk, got 'tensor<7x4xf32>'}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<7x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0
  return
}

// -----

// No tangent of a capture.
func.func @no_tcapture(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected tcaptures for each of the 1 tangent_captures that are no tables, got 0}}
  %s:4 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      captures(%n : tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) dcaptures(%n : tensor<8x1xf32>) scale 1.0 {tangent_captures = array<i64: 0>, wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %g: f32) {
        %r = arith.mulf %s, %g : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// No gradient of a capture.
func.func @no_dcapture(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected dcaptures for each of the 1 wrt_captures, got 0}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      captures(%n : tensor<8x1xf32>) tcaptures(%n : tensor<8x1xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0 {tangent_captures = array<i64: 0>, wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %g: f32) {
        %r = arith.mulf %s, %g : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// No gradient of a table.
func.func @no_dtable(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected dtables for each of the 1 tables of wrt_captures, got 0}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      tables(%table, %table : memref<?x?xf32>, memref<?x?xf32>) rows(%rows, %rows : tensor<8x1xi64>, tensor<8x1xi64>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0 {tangent_captures = array<i64: 0>, wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %t: !varlen.table<f32>) {
        %c = arith.constant 0 : i32
        %e = varlen.lookup %t[%c] : !varlen.table<f32>
        %r = arith.addf %s, %e : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// A gradient of a table without its rows.
func.func @no_drows(%q: tensor<8x4xf32>, %tq: tensor<8x4xf32>, %tk: tensor<8x4xf32>, %tv: tensor<8x4xf32>, %dtout: tensor<8x4xf32>, %dout: tensor<8x4xf32>, %tlse: tensor<8x1xf32>, %tdelta: tensor<8x1xf32>, %dk: tensor<8x4xf32>, %n: tensor<8x1xf32>, %table: memref<?x?xf32>, %rows: tensor<8x1xi64>) {
  // expected-error @below {{expected rows of 1 dtables, those of a step without tiles, got 0}}
  %s:3 = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %tq, %tk, %tv, %dtout : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %tlse, %tdelta : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      tables(%table, %table : memref<?x?xf32>, memref<?x?xf32>) rows(%rows, %rows : tensor<8x1xi64>, tensor<8x1xi64>) dtables(%table : memref<?x?xf32>)
      dq(%q : tensor<8x4xf32>) dk(%dk : tensor<8x4xf32>) dv(%q : tensor<8x4xf32>) scale 1.0 {tangent_captures = array<i64: 0>, wrt_captures = array<i64: 0>} score (%s: f32, %i: i32, %j: i32, %t: !varlen.table<f32>) {
        %c = arith.constant 0 : i32
        %e = varlen.lookup %t[%c] : !varlen.table<f32>
        %r = arith.addf %s, %e : f32
        varlen.yield %r : f32
      }
  return
}

// -----

// Nothing that tdelta is made of.
func.func @no_dots(%n: tensor<8x1xf32>) {
  // expected-error @below {{expected at least one of dots, got none}}
  %t = "varlen.online_tangent_statistics"(%n, %n, %n) <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 0, 0, 0>}> : (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  return
}

// -----

// A product of fewer queries.
func.func @dots(%n: tensor<8x1xf32>, %dot: tensor<7x1xf32>) {
  // expected-error @below {{expected dots of the type of lse, 'tensor<8x1xf32>', got 'tensor<7x1xf32>'}}
  %t = varlen.online_tangent_statistics dots(%dot : tensor<7x1xf32>) %n, %n, %n : tensor<8x1xf32>
  return
}

// -----

// A tangent of no sink.
func.func @tsink(%n: tensor<8x1xf32>) {
  // expected-error @below {{expected a sink beside a tsink}}
  %t = varlen.online_tangent_statistics dots(%n : tensor<8x1xf32>) %n, %n, %n tsink(%n : tensor<8x1xf32>) : tensor<8x1xf32>
  return
}

// -----

// Not a number for each query.
func.func @rows(%n: tensor<8x4xf32>) {
  // expected-error @below {{expected a number for each query, R x 1 or 1 x R, got 'tensor<8x4xf32>'}}
  %t = varlen.online_tangent_statistics dots(%n : tensor<8x4xf32>) %n, %n, %n : tensor<8x4xf32>
  return
}

// -----

// Nothing to add to.
func.func @nothing(%q: tensor<8x4xf32>, %n: tensor<8x1xf32>) {
  // expected-error @below {{expected at least one of dq, dk and dv, got none}}
  varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %n, %n : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 1.0
  return
}

// -----

// Tangents of a capture that is not there.
func.func @tangent_captures(%q: tensor<8x4xf32>, %n: tensor<8x1xf32>) {
  // expected-error @below {{expected tangent_captures to be ascending numbers of the 0 captures, got 1}}
  %dq = varlen.online_attn_jvp_grad qk
      ins(%q, %q, %q, %q, %q, %q, %q : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
      statistics(%n, %n, %n, %n : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) dq(%q : tensor<8x4xf32>) scale 1.0 {tangent_captures = array<i64: 1>}
  return
}

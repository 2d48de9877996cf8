// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// The rules of its own have a test here and a place in docs/attn-jvp.md, and the
// reverse; the others are tested with varlen.attn.
// RUN: grep -o "attn_jvp_c[0-9][0-9]*" %s | sort -u > %t.tests
// RUN: grep -o "attn_jvp_c[0-9][0-9]*" %varlen-src/docs/attn-jvp.md | sort -u > %t.docs
// RUN: diff %t.tests %t.docs
// RUN: grep -o "attn_jvp_c[0-9][0-9]*" %varlen-src/lib/Dialect/Varlen/IR/AttnVerifier.cpp | sort -u > %t.verifier
// RUN: diff %t.tests %t.verifier

// A tangent without heads.
func.func @attn_c1(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %t: tensor<?x16xf32>) {
  // expected-error @below {{operand #3 must be rank-3 tensor or memref of f16, bf16, f32 or f64, but got 'tensor<?x16xf32>'}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %t, %q, %q, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Two results of four.
func.func @attn_jvp_c1(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected four results and no outs on tensors, got 2 results and 0 outs}}
  %0:2 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A tangent of k with other heads.
func.func @attn_jvp_c2_tk(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected tk compatible with 'tensor<?x2x16xf32>', got 'tensor<?x4x16xf32>'}}
  %0:4 = varlen.attn_jvp %q, %k, %k, %q, %q, %k, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A tangent of another type.
func.func @attn_jvp_c2_type(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %t: tensor<?x4x16xbf16>) {
  // expected-error @below {{'varlen.attn_jvp' op expected tv compatible with 'tensor<?x4x16xf32>', got 'tensor<?x4x16xbf16>'}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %t, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xbf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A tangent of the sink with too few numbers.
func.func @attn_jvp_c2_tsink(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %s: tensor<4xf32>, %t: tensor<3xf32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected tsink compatible with 'tensor<4xf32>', got 'tensor<3xf32>'}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu sink(%s) tsink(%t) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<3xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A tangent of out with the head_dim of q.
func.func @attn_jvp_c3(%q: tensor<?x4x16xf32>, %v: tensor<?x4x24xf32>, %cu: tensor<?xi32>, %o: tensor<?x4x24xf32>, %l: tensor<4x?xf32>, %t: tensor<?x4x16xf32>) {
  // expected-error @below {{'varlen.attn_jvp_into' op expected tout compatible with 'tensor<?x4x24xf32>', got 'tensor<?x4x16xf32>'}}
  %0:4 = varlen.attn_jvp_into %q, %q, %v, %q, %q, %v, %cu, %cu outs(%o, %l, %t, %l) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x24xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) -> (tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A tangent of no sink.
func.func @attn_jvp_c4(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %t: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected a sink beside tsink}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu tsink(%t) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A capture whose tangent is missing.
func.func @attn_jvp_c5(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %c: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected a tangent of each of the 1 captures of wrt_captures, got 0}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu captures(%c) {wrt_captures = array<i64: 0>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) score (%s: f32, %i: i32, %j: i32, %g: f32) {
        varlen.yield %g : f32
      }
  return
}

// -----

// The tangent of a capture that there is not.
func.func @attn_grad_c6(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %c: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected wrt_captures to be ascending numbers of the 1 captures, got 1}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu tcaptures(%c) captures(%c) {wrt_captures = array<i64: 1>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) score (%s: f32, %i: i32, %j: i32, %g: f32) {
        varlen.yield %g : f32
      }
  return
}

// -----

// The tangent of a capture with another shape.
func.func @attn_jvp_c2_capture(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %c: tensor<4xf32>, %t: tensor<3xf32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected tcapture compatible with 'tensor<4xf32>', got 'tensor<3xf32>'}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu tcaptures(%t) captures(%c) {wrt_captures = array<i64: 0>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<3xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) score (%s: f32, %i: i32, %j: i32, %g: f32) {
        varlen.yield %g : f32
      }
  return
}

// -----

// A state with tangents has the largest score of all keys.
func.func @schedule(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected a rescale_threshold of an attention without tangents only, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2, rescale_threshold = 8>}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2, rescale_threshold = 8>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Sums have tangents in registers, too.
func.func @schedule(%q: tensor<?x4x1024xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp' op expected head_dim of v to be at most 512, as a multiprocessor has 65536 registers for accumulators of 64 rows and their tangents, got 1024}}
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>} : (tensor<?x4x1024xf32>, tensor<?x4x1024xf32>, tensor<?x4x1024xf32>, tensor<?x4x1024xf32>, tensor<?x4x1024xf32>, tensor<?x4x1024xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x1024xf32>, tensor<4x?xf32>, tensor<?x4x1024xf32>, tensor<4x?xf32>)
  return
}

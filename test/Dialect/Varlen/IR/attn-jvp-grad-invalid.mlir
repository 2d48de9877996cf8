// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// The rules of its own have a test here and a place in docs/attn-jvp-grad.md, and the
// reverse; the others are tested with varlen.attn, varlen.attn_grad and varlen.attn_jvp.
// RUN: grep -o "attn_jvp_grad_c[0-9][0-9]*" %s | sort -u > %t.tests
// RUN: grep -o "attn_jvp_grad_c[0-9][0-9]*" %varlen-src/docs/attn-jvp-grad.md | sort -u > %t.docs
// RUN: diff %t.tests %t.docs
// RUN: grep -o "attn_jvp_grad_c[0-9][0-9]*" %varlen-src/lib/Dialect/Varlen/IR/AttnVerifier.cpp | sort -u > %t.verifier
// RUN: diff %t.tests %t.verifier

// A cotangent without heads.
func.func @attn_c1(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<?x16xf32>) {
  // expected-error @below {{operand #0 must be rank-3 tensor or memref of f16, bf16, f32 or f64, but got 'tensor<?x16xf32>'}}
  %0:3 = varlen.attn_jvp_grad %t, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu : (tensor<?x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// Two gradients of three.
func.func @attn_jvp_grad_c1(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected three results and no outs on tensors, got 2 results and 0 outs}}
  %0:2 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// No gradient of a sink.
func.func @attn_jvp_grad_c1_sink(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %s: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected four results and no outs on tensors, got 3 results and 0 outs}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu sink(%s) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A cotangent of tout with other heads.
func.func @attn_jvp_grad_c2_dtout(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<?x2x16xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected dtout compatible with 'tensor<?x4x16xf32>', got 'tensor<?x2x16xf32>'}}
  %0:3 = varlen.attn_jvp_grad %t, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu : (tensor<?x2x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A tangent of out with another head_dim.
func.func @attn_jvp_grad_c2_tout(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<?x4x8xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected tout compatible with 'tensor<?x4x16xf32>', got 'tensor<?x4x8xf32>'}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %t, %l, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x8xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A cotangent of out of another type.
func.func @attn_jvp_grad_c2_dout(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<?x4x16xbf16>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected dout compatible with 'tensor<?x4x16xf32>', got 'tensor<?x4x16xbf16>'}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu dout(%t) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x16xbf16>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A tangent of lse with queries first.
func.func @attn_jvp_grad_c3_tlse(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<8x4xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected tlse compatible with 'tensor<4x?xf32>', got 'tensor<8x4xf32>'}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %t, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<8x4xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A cotangent of tlse with queries first.
func.func @attn_jvp_grad_c3_dtlse(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<8x4xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected dtlse compatible with 'tensor<4x?xf32>', got 'tensor<8x4xf32>'}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu dtlse(%t) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<8x4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A tangent of another type.
func.func @attn_jvp_c2(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<?x4x16xbf16>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected tv compatible with 'tensor<?x4x16xf32>', got 'tensor<?x4x16xbf16>'}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %t, %q, %l, %q, %l, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xbf16>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A tangent of no sink.
func.func @attn_jvp_c4(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %t: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected a sink beside tsink}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu tsink(%t) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A capture whose tangent is missing.
func.func @attn_jvp_c5(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %c: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected a tangent of each of the 1 captures of wrt_captures, got 0}}
  %0:4 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu captures(%c) {wrt_captures = array<i64: 0>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>) score (%s: f32, %i: i32, %j: i32, %g: f32) {
        varlen.yield %g : f32
      }
  return
}

// -----

// A gradient of q with the heads of others.
func.func @attn_grad_c4(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected dq compatible with 'tensor<?x4x16xf32>', got 'tensor<?x2x16xf32>'}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x2x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// -----

// A gradient of a capture with too few numbers.
func.func @attn_grad_c7(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %c: tensor<4xf32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected dcapture compatible with 'tensor<4xf32>', got 'tensor<3xf32>'}}
  %0:4 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu tcaptures(%c) captures(%c) {wrt_captures = array<i64: 0>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xf32>) score (%s: f32, %i: i32, %j: i32, %g: f32) {
        varlen.yield %g : f32
      }
  return
}

// -----

// The schedule of an attention without gradients.
func.func @schedule(%q: tensor<?x4x16xbf16>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected a #varlen.gpu_grad_schedule for gradients on a GPU, got #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu {varlen.schedule = #varlen.gpu_schedule<warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>} : (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<4x?xf32>, tensor<?x4x16xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>)
  return
}

// -----

// Sums of gradients fill the registers; they have no tangents beside them.
func.func @registers(%q: tensor<?x4x1040xbf16>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  // expected-error @below {{'varlen.attn_jvp_grad' op expected head_dim of q to be at most 1024, as a multiprocessor has 65536 registers for accumulators of 64 rows, got 1040}}
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu {varlen.schedule = #varlen.gpu_grad_schedule<dq = <warps = 4, block_m = 64, kv_block = 32, stages = 2, ctas = 2>, dk = <warps = 4, block_m = 32, kv_block = 64, stages = 2, ctas = 2>>} : (tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<4x?xf32>, tensor<?x4x1040xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>, tensor<?x4x1040xbf16>)
  return
}

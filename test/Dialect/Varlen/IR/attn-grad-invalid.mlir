// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// Every rule of the reference page has a test here, and the reverse: those of
// varlen.attn that hold here too, and those of the gradient itself.
// RUN: grep -o "attn_\(grad_\)*c[0-9][0-9]*" %s | sort -u > %t.tests
// RUN: grep -o "attn_\(grad_\)*c[0-9][0-9]*" %varlen-src/docs/attn-grad.md | sort -u > %t.docs
// RUN: diff %t.tests %t.docs
// RUN: grep -o "attn_grad_c[0-9][0-9]*" %s | sort -u > %t.own
// RUN: grep -o "attn_grad_c[0-9][0-9]*" %varlen-src/lib/Dialect/Varlen/IR/AttnVerifier.cpp | sort -u > %t.verifier
// RUN: diff %t.own %t.verifier

// A cotangent without heads.
func.func @attn_c1_dout(
    %dout: tensor<?x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x24xf32>,
    %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{operand #0 must be rank-3 tensor or memref of f16, bf16, f32 or f64, but got 'tensor<?x24xf32>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// An lse of a narrow type.
func.func @attn_c1_lse(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xbf16>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{operand #5 must be rank-2 tensor or memref of f32 or f64, but got 'tensor<4x?xbf16>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xbf16>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// A memref among tensors.
func.func @attn_c2_mixed(
    %dout: memref<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected operands that are all tensors or all memrefs, got a tensor for q and a memref for dout}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (memref<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// The same for an optional operand.
func.func @attn_c2_mixed_optional(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>, %dlse: memref<4x?xf32>) {
  // expected-error @below {{expected operands that are all tensors or all memrefs, got a tensor for q and a memref for dlse}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, memref<4x?xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// One bf16 among f32.
func.func @attn_c3(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xbf16>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected q, k and v of one element type, got 'f32', 'bf16' and 'f32'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xbf16>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xbf16>, tensor<?x2x24xf32>)
  return
}

// -----

// A value is missing.
func.func @attn_c4(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<10x2x16xf32>,
    %v: tensor<9x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected k and v to have the same number of rows, got 10 and 9}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<10x2x16xf32>, tensor<9x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<10x2x16xf32>, tensor<9x2x24xf32>)
  return
}

// -----

// Fewer value heads than key heads.
func.func @attn_c5(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x1x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected k and v to have the same number of heads, got 2 and 1}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x1x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x1x24xf32>)
  return
}

// -----

// Queries and keys that have no dot product.
func.func @attn_c6(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x32xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected q and k to have the same head_dim, got 16 and 32}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x32xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x32xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// No head_dim.
func.func @attn_c7(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x0xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected positive head_dim of v, got 0}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x0xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x0xf32>)
  return
}

// -----

// Four query heads cannot share three kv heads evenly.
func.func @attn_c8(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x3x16xf32>,
    %v: tensor<?x3x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected query heads to be a multiple of kv heads, got 4 and 3}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x3x16xf32>, tensor<?x3x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x3x16xf32>, tensor<?x3x24xf32>)
  return
}

// -----

// i32 and i64 cu_seqlens.
func.func @attn_c9(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi64>) {
  // expected-error @below {{expected cu_q, cu_k, seqused and q_offset of one integer type, got 'i32' for cu_q and 'i64' for cu_k}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi64>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// Another number of sequences for the keys.
func.func @attn_c10(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<4xi32>) {
  // expected-error @below {{expected cu_q and cu_k to have the same number of entries, got 3 and 4}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<4xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// Three offsets for two sequences.
func.func @attn_c11(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>, %q_offset: tensor<3xi32>) {
  // expected-error @below {{expected q_offset to have one entry for each of the 2 sequences, got 3}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k q_offset(%q_offset)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// Two sinks for four heads.
func.func @attn_c12(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>, %sink: tensor<2xf32>) {
  // expected-error @below {{expected sink to have one entry for each of the 4 query heads, got 2}}
  %0:4 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k sink(%sink)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<2xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<4xf32>)
  return
}

// -----

// A scale that is no scale.
func.func @attn_c13(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale to be positive and finite, got -1}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k {scale = -1.0 : f32}
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// A window that is neither a bound nor open.
func.func @attn_c16(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected window bounds >= -1 (-1 is open), got (-2, 0)}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k {mask = #varlen.mask<window = (-2, 0)>}
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// Constant cu_seqlens that decrease.
func.func @attn_c17(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>) {
  %cu_k = arith.constant dense<[0, 7, 5]> : tensor<3xi32>
  // expected-error @below {{cu_seqlens_k[2] = 5 is smaller than cu_seqlens_k[1] = 7: cu_seqlens must not decrease}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// More rows in use than there are.
func.func @attn_c18(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_k: tensor<3xi32>) {
  %cu_q = arith.constant dense<[0, 3, 7]> : tensor<3xi32>
  %seqused_q = arith.constant dense<[3, 5]> : tensor<2xi32>
  // expected-error @below {{seqused_q[1] = 5: expected 0 to 4, the length of the sequence's slot in cu_seqlens_q}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k seqused_q(%seqused_q)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<2xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// Tensors need results.
func.func @attn_grad_c1_no_results(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected three results and no outs on tensors, got 0 results and 0 outs}}
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> ()
  return
}

// -----

// A sink has a gradient.
func.func @attn_grad_c1_too_few(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>, %sink: tensor<4xf32>) {
  // expected-error @below {{expected four results and no outs on tensors, got 3 results and 0 outs}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k sink(%sink)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// No sink, no gradient of it.
func.func @attn_grad_c1_too_many(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected three results and no outs on tensors, got 4 results and 0 outs}}
  %0:4 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<4xf32>)
  return
}

// -----

// Results and buffers at once.
func.func @attn_grad_c1_outs(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>, %dq: memref<?x4x16xf32>, %dk: memref<?x2x16xf32>,
    %dv: memref<?x2x24xf32>) {
  // expected-error @below {{expected three results and no outs on tensors, got 3 results and 3 outs}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k outs(%dq, %dk, %dv)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, memref<?x4x16xf32>,
         memref<?x2x16xf32>, memref<?x2x24xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// Memrefs need buffers to write.
func.func @attn_grad_c1_memrefs(
    %dout: memref<?x4x24xf32>, %q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>,
    %v: memref<?x2x24xf32>, %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>, %cu_q: memref<3xi32>,
    %cu_k: memref<3xi32>, %dq: memref<?x4x16xf32>, %dk: memref<?x2x16xf32>) {
  // expected-error @below {{expected three outs and no results on memrefs, got 0 results and 2 outs}}
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k outs(%dq, %dk)
      : (memref<?x4x24xf32>, memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x24xf32>,
         memref<?x4x24xf32>, memref<4x?xf32>, memref<3xi32>, memref<3xi32>, memref<?x4x16xf32>,
         memref<?x2x16xf32>)
      -> ()
  return
}

// -----

// A cotangent of the shape of q.
func.func @attn_grad_c2_dout(
    %dout: tensor<?x4x16xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected dout compatible with 'tensor<?x4x24xf32>', got 'tensor<?x4x16xf32>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// An out of another type.
func.func @attn_grad_c2_out(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xbf16>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected out compatible with 'tensor<?x4x24xf32>', got 'tensor<?x4x24xbf16>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xbf16>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// What q leaves open, dout says.
func.func @attn_grad_c2_rows(
    %dout: tensor<5x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<6x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected out compatible with 'tensor<5x4x24xf32>', got 'tensor<6x4x24xf32>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<5x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<6x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// A row of lse is a head.
func.func @attn_grad_c3_lse(
    %dout: tensor<?x4x24xf32>, %q: tensor<8x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<8x4xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected lse compatible with 'tensor<4x8xf32>', got 'tensor<8x4xf32>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<8x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<8x4xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// A cotangent of lse with too many heads.
func.func @attn_grad_c3_dlse(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>, %dlse: tensor<8x?xf32>) {
  // expected-error @below {{expected dlse compatible with 'tensor<4x?xf32>', got 'tensor<8x?xf32>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<8x?xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// A gradient of the shape of out.
func.func @attn_grad_c4_dq(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected dq compatible with 'tensor<?x4x16xf32>', got 'tensor<?x4x24xf32>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x24xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// A gradient of keys for each query head.
func.func @attn_grad_c4_dk(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected dk compatible with 'tensor<?x2x16xf32>', got 'tensor<?x4x16xf32>'}}
  %0:3 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x2x24xf32>)
  return
}

// -----

// A buffer of another type.
func.func @attn_grad_c4_dv(
    %dout: memref<?x4x24xf32>, %q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>,
    %v: memref<?x2x24xf32>, %out: memref<?x4x24xf32>, %lse: memref<4x?xf32>, %cu_q: memref<3xi32>,
    %cu_k: memref<3xi32>, %dq: memref<?x4x16xf32>, %dk: memref<?x2x16xf32>,
    %dv: memref<?x2x24xf16>) {
  // expected-error @below {{expected dv compatible with 'tensor<?x2x24xf32>', got 'memref<?x2x24xf16>'}}
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k outs(%dq, %dk, %dv)
      : (memref<?x4x24xf32>, memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x24xf32>,
         memref<?x4x24xf32>, memref<4x?xf32>, memref<3xi32>, memref<3xi32>, memref<?x4x16xf32>,
         memref<?x2x16xf32>, memref<?x2x24xf16>)
      -> ()
  return
}

// -----

// A gradient of the sinks that is no vector.
func.func @attn_grad_c5(
    %dout: tensor<?x4x24xf32>, %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>,
    %v: tensor<?x2x24xf32>, %out: tensor<?x4x24xf32>, %lse: tensor<4x?xf32>, %cu_q: tensor<3xi32>,
    %cu_k: tensor<3xi32>, %sink: tensor<4xf32>) {
  // expected-error @below {{expected dsink compatible with 'tensor<4xf32>', got 'tensor<?x4x16xf32>'}}
  %0:4 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k sink(%sink)
      : (tensor<?x4x24xf32>, tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<?x4x24xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>, tensor<?x4x16xf32>)
  return
}

// -----

func.func @attn_grad_c6(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<3xi32>,
                        %slopes: tensor<4xf32>) {
  // expected-error @below {{expected wrt_captures to be ascending numbers of the 1 captures, got 1}}
  %dq, %dk, %dv, %d = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%slopes)
      {wrt_captures = array<i64: 1>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
      score (%s: f32, %i: i32, %j: i32, %c: f32) { varlen.yield %s : f32 }
  return
}

// -----

func.func @attn_grad_c7(%q: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %cu: memref<3xi32>,
                        %slopes: memref<4xf32>, %dslopes: memref<3xf32>) {
  // expected-error @below {{expected dcapture compatible with 'tensor<4xf32>', got 'memref<3xf32>'}}
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%slopes)
      outs(%q, %q, %q, %dslopes) {wrt_captures = array<i64: 0>}
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>,
         memref<?x4x16xf32>, memref<4x?xf32>, memref<3xi32>, memref<3xi32>,
         memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<3xf32>,
         memref<4xf32>) -> ()
      score (%s: f32, %i: i32, %j: i32, %c: f32) { varlen.yield %s : f32 }
  return
}

// -----

// attn_c19, attn_c20, attn_c21 and attn_c22 are those of varlen.attn.
func.func @attn_c20(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected a score region of 'f32', 'i32', 'i32'}}
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
      score (%s: f32) { varlen.yield %s : f32 }
  return
}

// -----

// The factor is smooth in what the table has, through a function and a choice.
func.func @attn_grad_c8(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<3xi32>,
                        %gains: tensor<4xf32>, %table: tensor<4x8xf32>) {
  // expected-error @below {{expected a factor of probabilities without a derivative by a capture whose gradient is wanted, got one with that by capture 1}}
  %0:5 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%gains, %table)
      {wrt_captures = array<i64: 0, 1>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>,
         tensor<4x8xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>,
          tensor<4x8xf32>)
      score (%s: f32, %i: i32, %j: i32, %gain: f32, %t: !varlen.table<f32>) {
        %new = arith.mulf %s, %gain : f32
        %zero = arith.constant 0.0 : f32
        %positive = arith.cmpf ogt, %gain, %zero : f32
        %x = varlen.lookup %t[%j] : !varlen.table<f32>
        %y = math.exp %x : f32
        %factor = arith.select %positive, %y, %zero : f32
        varlen.yield %new, %factor : f32, f32
      }
  return
}

// -----

func.func @attn_c22(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected mask, scale, wrt_captures, and attributes of a dialect, got 'wrt_capture': did you mean 'wrt_captures'?}}
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu {wrt_capture = array<i64: 0>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// Every rule of the reference page has a test here, and the reverse.
// RUN: grep -o "attn_c[0-9][0-9]*" %s | sort -u > %t.tests
// RUN: grep -o "attn_c[0-9][0-9]*" %varlen-src/docs/attn.md | sort -u > %t.docs
// RUN: grep -o "attn_c[0-9][0-9]*" %varlen-src/lib/Dialect/Varlen/IR/AttnVerifier.cpp | sort -u > %t.verifier
// RUN: diff %t.tests %t.docs
// RUN: diff %t.verifier %t.docs

// A query tensor without heads.
func.func @attn_c1_rank(
    %q: tensor<?x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{operand #0 must be rank-3 tensor or memref of f16, bf16, f32 or f64, but got 'tensor<?x16xf32>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Integers cannot be attended to.
func.func @attn_c1_element(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xi16>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{operand #2 must be rank-3 or rank-4 tensor or memref of f16, bf16, f32, f64, i8 or f8E4M3FN, but got 'tensor<?x2x16xi16>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xi16>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// cu_seqlens of floats.
func.func @attn_c1_cu(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xf32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{operand #3 must be rank-1 tensor or memref of i32 or i64, but got 'tensor<3xf32>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xf32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A memref among tensors.
func.func @attn_c2_mixed(
    %q: tensor<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected operands that are all tensors or all memrefs, got a tensor for q and a memref for k}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, memref<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// The same for an optional operand.
func.func @attn_c2_mixed_optional(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>, %sink: memref<4xf32>) {
  // expected-error @below {{expected operands that are all tensors or all memrefs, got a tensor for q and a memref for sink}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k sink(%sink)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>, memref<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Tensors need results.
func.func @attn_c2_tensors_without_results(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected two results and no outs on tensors, got 0 results and 0 outs}}
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> ()
  return
}

// -----

// Results and buffers at once.
func.func @attn_c2_tensors_with_outs(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>,
    %out_buffer: memref<?x4x16xf32>, %lse_buffer: memref<4x?xf32>) {
  // expected-error @below {{expected two results and no outs on tensors, got 2 results and 2 outs}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k outs(%out_buffer, %lse_buffer)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>, memref<?x4x16xf32>, memref<4x?xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Memrefs need buffers to write.
func.func @attn_c2_memrefs_without_outs(
    %q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x16xf32>,
    %cu_q: memref<3xi32>, %cu_k: memref<3xi32>) {
  // expected-error @below {{expected two outs and no results on memrefs, got 0 results and 0 outs}}
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>,
         memref<3xi32>, memref<3xi32>)
      -> ()
  return
}

// -----

// Memrefs give no tensors.
func.func @attn_c2_memrefs_with_results(
    %q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x16xf32>,
    %cu_q: memref<3xi32>, %cu_k: memref<3xi32>) {
  // expected-error @below {{expected two outs and no results on memrefs, got 2 results and 0 outs}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>,
         memref<3xi32>, memref<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// One bf16 among f32.
func.func @attn_c3(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xbf16>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected q, k and v of one element type, got 'f32', 'bf16' and 'f32'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xbf16>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A value is missing.
func.func @attn_c4(
    %q: tensor<?x4x16xf32>, %k: tensor<10x2x16xf32>, %v: tensor<9x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected k and v to have the same number of rows, got 10 and 9}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<10x2x16xf32>, tensor<9x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Fewer value heads than key heads.
func.func @attn_c5(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x1x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected k and v to have the same number of heads, got 2 and 1}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x1x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Queries and keys that have no dot product.
func.func @attn_c6(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected q and k to have the same head_dim, got 16 and 32}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x32xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// No head_dim.
func.func @attn_c7_head_dim(
    %q: tensor<?x4x0xf32>, %k: tensor<?x2x0xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected positive head_dim of q, got 0}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x0xf32>, tensor<?x2x0xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Values without elements.
func.func @attn_c7_value_head_dim(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x0xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected positive head_dim of v, got 0}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x0xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x0xf32>, tensor<4x?xf32>)
  return
}

// -----

// No heads.
func.func @attn_c7_heads(
    %q: tensor<?x4x16xf32>, %k: tensor<?x0x16xf32>, %v: tensor<?x0x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected positive heads of k, got 0}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x0x16xf32>, tensor<?x0x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Six query heads cannot share four kv heads evenly.
func.func @attn_c8(
    %q: tensor<?x6x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected query heads to be a multiple of kv heads, got 6 and 4}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x6x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x6x16xf32>, tensor<6x?xf32>)
  return
}

// -----

// The kv heads are known from v alone.
func.func @attn_c8_v(
    %q: tensor<?x4x16xf32>, %k: tensor<?x?x16xf32>, %v: tensor<?x3x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected query heads to be a multiple of kv heads, got 4 and 3}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x?x16xf32>, tensor<?x3x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// i32 and i64 cu_seqlens.
func.func @attn_c9_cu(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi64>) {
  // expected-error @below {{expected cu_q, cu_k, seqused and q_offset of one integer type, got 'i32' for cu_q and 'i64' for cu_k}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi64>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// The same for an optional list.
func.func @attn_c9_q_offset(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>, %q_offset: tensor<2xi64>) {
  // expected-error @below {{expected cu_q, cu_k, seqused and q_offset of one integer type, got 'i32' for cu_q and 'i64' for q_offset}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k q_offset(%q_offset)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>, tensor<2xi64>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Two sequences of queries, three of keys.
func.func @attn_c10_differ(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<4xi32>) {
  // expected-error @below {{expected cu_q and cu_k to have the same number of entries, got 3 and 4}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<4xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// cu_seqlens always has its leading 0.
func.func @attn_c10_empty(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<0xi32>, %cu_k: tensor<?xi32>) {
  // expected-error @below {{expected at least one entry in cu_q, got 0}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<0xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// As many entries as cu_seqlens, one too many.
func.func @attn_c11_seqused_q(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>, %seqused_q: tensor<3xi32>) {
  // expected-error @below {{expected seqused_q to have one entry for each of the 2 sequences, got 3}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%seqused_q)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// The number of sequences is known from cu_k alone.
func.func @attn_c11_seqused_k(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<?xi32>, %cu_k: tensor<3xi32>, %seqused_k: tensor<1xi32>) {
  // expected-error @below {{expected seqused_k to have one entry for each of the 2 sequences, got 1}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_k(%seqused_k)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<?xi32>, tensor<3xi32>, tensor<1xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// The lists disagree with each other.
func.func @attn_c11_q_offset(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<?xi32>, %cu_k: tensor<?xi32>, %seqused_k: tensor<5xi32>,
    %q_offset: tensor<4xi32>) {
  // expected-error @below {{expected q_offset to have one entry for each of the 5 sequences, got 4}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_k(%seqused_k) q_offset(%q_offset)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<?xi32>, tensor<?xi32>, tensor<5xi32>, tensor<4xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A sink for each kv head.
func.func @attn_c12_heads(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>, %sink: tensor<2xf32>) {
  // expected-error @below {{expected sink to have one entry for each of the 4 query heads, got 2}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k sink(%sink)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>, tensor<2xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// An f32 sink for f64.
func.func @attn_c12_type(
    %q: tensor<?x4x16xf64>, %k: tensor<?x2x16xf64>, %v: tensor<?x2x16xf64>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>, %sink: tensor<4xf32>) {
  // expected-error @below {{expected sink to have the compute type 'f64', got 'f32'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k sink(%sink)
      : (tensor<?x4x16xf64>, tensor<?x2x16xf64>, tensor<?x2x16xf64>,
         tensor<3xi32>, tensor<3xi32>, tensor<4xf32>)
      -> (tensor<?x4x16xf64>, tensor<4x?xf64>)
  return
}

// -----

// A scale of -1.
func.func @attn_c13_negative(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale to be positive and finite, got -1}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {scale = -1.0 : f32}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A scale of 0.
func.func @attn_c13_zero(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale to be positive and finite, got 0}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {scale = 0.0 : f32}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A scale of NaN.
func.func @attn_c13_nan(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale to be positive and finite, got NaN}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {scale = 0x7FC00000 : f32}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A scale of NaN.
func.func @attn_c13_large(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale from 2^-126 to 2^126, got 9.99999968E+37}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {scale = 1.0e38 : f32}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A scale of NaN.
func.func @attn_c13_small(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale from 2^-126 to 2^126, got 9.9999461E-41}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {scale = 1.0e-40 : f32}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A scale of NaN.
func.func @attn_c13_type(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale of type 'f32' with elements of type 'f32', got 'f64'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {scale = 0.25 : f64}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A scale of +Inf.
func.func @attn_c13_infinite(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected scale to be positive and finite, got +Inf}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {scale = 0x7F800000 : f32}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// out has the head_dim of v, not of q.
func.func @attn_c14_shape(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x24xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected out compatible with 'tensor<?x4x24xf32>', got 'tensor<?x4x16xf32>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x24xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// out has the type of q.
func.func @attn_c14_type(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected out compatible with 'tensor<?x4x16xf32>', got 'tensor<?x4x16xbf16>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xbf16>, tensor<4x?xf32>)
  return
}

// -----

// The same for a buffer.
func.func @attn_c14_buffer(
    %q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x16xf32>,
    %cu_q: memref<3xi32>, %cu_k: memref<3xi32>,
    %out_buffer: memref<?x2x16xf32>, %lse_buffer: memref<4x?xf32>) {
  // expected-error @below {{expected out compatible with 'tensor<?x4x16xf32>', got 'memref<?x2x16xf32>'}}
  varlen.attn %q, %k, %v, %cu_q, %cu_k outs(%out_buffer, %lse_buffer)
      : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>,
         memref<3xi32>, memref<3xi32>, memref<?x2x16xf32>, memref<4x?xf32>)
      -> ()
  return
}

// -----

// lse is heads by rows.
func.func @attn_c15_shape(
    %q: tensor<8x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected lse compatible with 'tensor<4x8xf32>', got 'tensor<8x4xf32>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<8x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<8x4xf32>)
  return
}

// -----

// lse of f64 is f64.
func.func @attn_c15_type(
    %q: tensor<?x4x16xf64>, %k: tensor<?x2x16xf64>, %v: tensor<?x2x16xf64>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected lse compatible with 'tensor<4x?xf64>', got 'tensor<4x?xf32>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf64>, tensor<?x2x16xf64>, tensor<?x2x16xf64>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf64>, tensor<4x?xf32>)
  return
}

// -----

// The same for a buffer.
func.func @attn_c15_buffer(
    %q: memref<?x4x16xf32>, %k: memref<?x2x16xf32>, %v: memref<?x2x16xf32>,
    %cu_q: memref<3xi32>, %cu_k: memref<3xi32>,
    %out_buffer: memref<?x4x16xf32>, %lse_buffer: memref<2x?xf32>) {
  // expected-error @below {{expected lse compatible with 'tensor<4x?xf32>', got 'memref<2x?xf32>'}}
  varlen.attn %q, %k, %v, %cu_q, %cu_k outs(%out_buffer, %lse_buffer)
      : (memref<?x4x16xf32>, memref<?x2x16xf32>, memref<?x2x16xf32>,
         memref<3xi32>, memref<3xi32>, memref<?x4x16xf32>, memref<2x?xf32>)
      -> ()
  return
}

// -----

// -1 is the only open bound.
func.func @attn_c16(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  // expected-error @below {{expected window bounds >= -1 (-1 is open), got (-2, 0)}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k {mask = #varlen.mask<window = (-2, 0)>}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// cu_seqlens that start late.
func.func @attn_c17_start(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_k: tensor<3xi32>) {
  %cu_q = arith.constant dense<[1, 2, 4]> : tensor<3xi32>
  // expected-error @below {{cu_seqlens_q[0] = 1: cu_seqlens must start at 0}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// cu_seqlens that go back, in i64.
func.func @attn_c17_decrease(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi64>) {
  %cu_k = arith.constant dense<[0, 7, 5]> : tensor<3xi64>
  // expected-error @below {{cu_seqlens_k[2] = 5 is smaller than cu_seqlens_k[1] = 7: cu_seqlens must not decrease}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi64>, tensor<3xi64>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// More queries than there are rows.
func.func @attn_c17_end(
    %q: tensor<8x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_k: tensor<3xi32>) {
  %cu_q = arith.constant dense<[0, 4, 9]> : tensor<3xi32>
  // expected-error @below {{cu_seqlens_q[2] = 9 is larger than the 8 rows of q: cu_seqlens must end within them}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<8x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

// The rows of k are known from v alone.
func.func @attn_c17_end_v(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<8x2x16xf32>,
    %cu_q: tensor<3xi32>) {
  %cu_k = arith.constant dense<[0, 4, 9]> : tensor<3xi32>
  // expected-error @below {{cu_seqlens_k[2] = 9 is larger than the 8 rows of k: cu_seqlens must end within them}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<8x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A negative number of rows.
func.func @attn_c18_negative(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>) {
  %seqused_k = arith.constant dense<[2, -1]> : tensor<2xi32>
  // expected-error @below {{seqused_k[1] = -1: expected 0 or more}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_k(%seqused_k)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>, tensor<2xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// More rows than the slot has.
func.func @attn_c18_slot(
    %q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
    %cu_k: tensor<3xi32>) {
  %cu_q = arith.constant dense<[0, 4, 8]> : tensor<3xi32>
  %seqused_q = arith.constant dense<[4, 5]> : tensor<2xi32>
  // expected-error @below {{seqused_q[1] = 5: expected 0 to 4, the length of the sequence's slot in cu_seqlens_q}}
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%seqused_q)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>,
         tensor<3xi32>, tensor<3xi32>, tensor<2xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// The generic form can have one buffer.
func.func @attn_c2_one_out(%q: memref<?x4x16xf32>, %cu: memref<3xi32>) {
  // expected-error @below {{expected two outs and no results on memrefs, got 0 results and 1 outs}}
  "varlen.attn"(%q, %q, %q, %cu, %cu, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0>}>
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>,
         memref<3xi32>, memref<3xi32>, memref<?x4x16xf32>) -> ()
  return
}

// -----

func.func @attn_c19(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %bias: tensor<3x8xf32>) {
  // expected-error @below {{expected capture compatible with 'tensor<4x?xf32>', got 'tensor<3x8xf32>'}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%bias)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<3x8xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %b: f32) { varlen.yield %s : f32 }
  return
}

// -----

func.func @attn_c19_element(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %bias: tensor<4xf64>) {
  // expected-error @below {{expected capture compatible with 'tensor<4xf32>', got 'tensor<4xf64>'}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%bias)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4xf64>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %b: f32) { varlen.yield %s : f32 }
  return
}

// -----

func.func @attn_c20_captures(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %bias: tensor<4xf32>) {
  // expected-error @below {{expected a score region beside captures}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%bias)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c20_arguments(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected a score region of 'f32', 'i32', 'i32': the score, the positions of query and key, and a number of each capture, or a row of it as '!varlen.table<f32>', got 'f32'}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32) { varlen.yield %s : f32 }
  return
}

// -----

func.func @attn_c20_yield(%q: tensor<?x4x16xf64>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected the score region to end with varlen.yield of one 'f64', the score, of 'i1' too if it hides keys, and of 'f64' if it has a factor of probabilities, got 'f64', 'i32'}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf64>, tensor<4x?xf64>)
      score (%s: f64, %i: i32, %j: i32) { varlen.yield %s, %i : f64, i32 }
  return
}

// -----

func.func @attn_c20_operations(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{expected operations of arith and math on numbers, and varlen.lookup, in a score region}}
        %v = vector.broadcast %s : f32 to vector<4xf32>
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c20_yield_order(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{and of 'f32' if it has a factor of probabilities, got 'f32', 'f32', 'i1'}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %factor = arith.constant 2.0 : f32
        %visible = arith.cmpi sle, %j, %i : i32
        varlen.yield %s, %factor, %visible : f32, f32, i1
      }
  return
}

// -----

func.func @attn_c20_factor(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected positions and captures to say what a probability is multiplied by, got what depends on the score}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %factor = math.absf %s : f32
        varlen.yield %s, %factor : f32, f32
      }
  return
}

// -----

func.func @attn_c20_visible(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected positions and captures to say whether a key is visible, got what depends on the score}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %zero = arith.constant 0.0 : f32
        %twice = arith.addf %s, %s : f32
        %positive = arith.cmpf ogt, %twice, %zero : f32
        varlen.yield %s, %positive : f32, i1
      }
  return
}

// -----

// Nothing from outside but by captures.
func.func @attn_c20_isolated(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %x: f32) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{use of undeclared SSA value name}}
        %y = arith.mulf %s, %x : f32
        varlen.yield %y : f32
      }
  return
}

// -----

func.func @attn_c21(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %table: tensor<4x0xf32>) {
  // expected-error@+1 {{expected a table with an entry at least, got 'tensor<4x0xf32>'}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu captures(%table)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<4x0xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %a: !varlen.table<f32>) {
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c22_misspelled(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected mask, scale, and attributes of a dialect, got 'msk': did you mean 'mask'?}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu {msk = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c22_scale(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got 'scal': did you mean 'scale'?}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal>, scal = 2.0 : f32}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// What a mask is made of, without the mask.
func.func @attn_c22_mask(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got 'causal': did you mean 'mask'?}}
  %0:2 = varlen.attn %q, %q, %q, %cu, %cu {causal}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// In the generic form, too.
func.func @attn_c22_generic(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got 'window': did you mean 'mask'?}}
  %0:2 = "varlen.attn"(%q, %q, %q, %cu, %cu)
      <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
      {window = 3 : i64}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Numbers that not every target computes with.
func.func @attn_c20_numbers(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{expected numbers of f16, bf16, f32 and f64, of index, and of integers with 1 to 64 bits in a score region, got 'f8E4M3FN'}}
        %x = arith.truncf %s : f32 to f8E4M3FN
        %y = arith.extf %x : f8E4M3FN to f32
        varlen.yield %y : f32
      }
  return
}

// -----

func.func @attn_c20_wide(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{integers with 1 to 64 bits in a score region, got 'i128'}}
        %x = arith.extsi %i : i32 to i128
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c20_power(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{is no operation of score regions: expected products, or math.powf of floats}}
        %x = math.ipowi %i, %j : i32
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c20_clamp(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{is no operation of score regions: expected arith.maximumf and arith.minimumf}}
        %x = math.clampf %s to [%s, %s] : f32
        varlen.yield %x : f32
      }
  return
}

// -----

func.func @attn_c20_scaling(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{is no operation of score regions: expected arith.mulf, and arith.extf or arith.truncf}}
        %x = arith.scaling_truncf %s, %s : f32, f32 to f16
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c20_rounding(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %near = arith.truncf %s to_nearest_even : f32 to f16
        // expected-error @below {{expected to round to nearest even in a score region}}
        %x = arith.truncf %s downward : f32 to f16
        varlen.yield %s : f32
      }
  return
}

// -----

func.func @attn_c20_extended(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        // expected-error @below {{is no operation of score regions: expected operations on wider integers}}
        %low, %high = arith.mulsi_extended %i, %j : i32
        varlen.yield %s : f32
      }
  return
}

// -----

// Keys in pages without a table.
func.func @attn_c23_rank(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected k of rank 3 without a block_table, got 'tensor<?x8x2x16xf32>'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// A table, and values without pages.
func.func @attn_c23_values(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>,
                           %v: tensor<?x2x16xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>,
                           %table: tensor<2x?xi32>) {
  // expected-error @below {{expected v of rank 4 with a block_table, got 'tensor<?x2x16xf32>'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x2x16xf32>, tensor<3xi32>,
         tensor<2xi32>, tensor<2x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c23_both(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>, %cu: tensor<3xi32>,
                         %used: tensor<2xi32>, %table: tensor<2x?xi32>) {
  // expected-error @below {{expected cu_k or a block_table, got both}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<2xi32>, tensor<2x?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c23_none(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected cu_k or a block_table, got none}}
  %out, %lse = varlen.attn %q, %k, %k, %cu
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// How many keys a sequence has, nothing else says.
func.func @attn_c23_lengths(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>,
                            %cu: tensor<3xi32>, %table: tensor<2x?xi32>) {
  // expected-error @below {{expected seqused_k with a block_table, got none}}
  %out, %lse = varlen.attn %q, %k, %k, %cu block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<3xi32>,
         tensor<2x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c24(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>, %cu: tensor<3xi32>,
                    %used: tensor<?xi32>, %table: tensor<3x?xi32>) {
  // expected-error @below {{expected block_table to have one row for each of the 2 sequences, got 3}}
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<3xi32>,
         tensor<?xi32>, tensor<3x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// In pages a key has no row of its own that a table of keys could have.
func.func @attn_c25(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>, %cu: tensor<3xi32>,
                    %used: tensor<2xi32>, %table: tensor<2x?xi32>, %bias: tensor<4x?xf32>) {
  // expected-error @below {{expected no table of keys with a block_table, got capture 0}}
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) captures(%bias) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<3xi32>,
         tensor<2xi32>, tensor<4x?xf32>, tensor<2x?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%score: f32, %query: i32, %key: i32, %row: !varlen.table<f32, keys>) {
        %b = varlen.lookup %row[%key] : !varlen.table<f32, keys>
        %new = arith.addf %score, %b : f32
        varlen.yield %new : f32
      }
  return
}

// -----

func.func @attn_c26(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>, %cu: tensor<3xi32>,
                    %table: tensor<2x5xi32>) {
  %used = arith.constant dense<[40, 41]> : tensor<2xi32>
  // expected-error @below {{seqused_k[1] = 41: expected 0 to 40, the rows of 5 pages of 8}}
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<3xi32>,
         tensor<2xi32>, tensor<2x5xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c4_pages(%q: tensor<?x4x16xf32>, %k: tensor<6x8x2x16xf32>,
                         %v: tensor<5x8x2x16xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>,
                         %table: tensor<2x?xi32>) {
  // expected-error @below {{expected k and v to have the same number of pages, got 6 and 5}}
  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<6x8x2x16xf32>, tensor<5x8x2x16xf32>, tensor<3xi32>,
         tensor<2xi32>, tensor<2x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c4_page_rows(%q: tensor<?x4x16xf32>, %k: tensor<?x8x2x16xf32>,
                             %v: tensor<?x4x2x16xf32>, %cu: tensor<3xi32>,
                             %used: tensor<2xi32>, %table: tensor<2x?xi32>) {
  // expected-error @below {{expected k and v to have the same rows in a page, got 8 and 4}}
  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x4x2x16xf32>, tensor<3xi32>,
         tensor<2xi32>, tensor<2x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c7_page(%q: tensor<?x4x16xf32>, %k: tensor<?x0x2x16xf32>, %cu: tensor<3xi32>,
                        %used: tensor<2xi32>, %table: tensor<2x?xi32>) {
  // expected-error @below {{expected positive rows in a page of k, got 0}}
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table)
      : (tensor<?x4x16xf32>, tensor<?x0x2x16xf32>, tensor<?x0x2x16xf32>, tensor<3xi32>,
         tensor<2xi32>, tensor<2x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Quantised queries would be another attention.
func.func @attn_c1_query(%q: tensor<?x4x16xi8>, %k: tensor<?x2x16xi8>, %cu: tensor<3xi32>) {
  // expected-error @below {{operand #0 must be rank-3 tensor or memref of f16, bf16, f32 or f64, but got 'tensor<?x4x16xi8>'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
      : (tensor<?x4x16xi8>, tensor<?x2x16xi8>, tensor<?x2x16xi8>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c1_scale(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xi8>, %cu: tensor<3xi32>,
                         %scale: tensor<2xf16>) {
  // expected-error @below {{operand #5 must be rank-1, rank-2 or rank-3 tensor or memref of f32, but got 'tensor<2xf16>'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu k_scale(%scale)
      : (tensor<?x4x16xf32>, tensor<?x2x16xi8>, tensor<?x2x16xi8>, tensor<3xi32>,
         tensor<3xi32>, tensor<2xf16>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c27_types(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xi8>,
                          %v: tensor<?x2x16xf8E4M3FN>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected quantised k and v of one element type, got 'i8' and 'f8E4M3FN'}}
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x2x16xi8>, tensor<?x2x16xf8E4M3FN>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c27_query(%q: tensor<?x4x16xf64>, %k: tensor<?x2x16xi8>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected q of f16, bf16 or f32 beside k and v of 'i8', got 'f64'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu
      : (tensor<?x4x16xf64>, tensor<?x2x16xi8>, tensor<?x2x16xi8>, tensor<3xi32>,
         tensor<3xi32>) -> (tensor<?x4x16xf64>, tensor<4x?xf64>)
  return
}

// -----

func.func @attn_c28_floats(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %cu: tensor<3xi32>,
                           %scale: tensor<2xf32>) {
  // expected-error @below {{expected k and v of i8 or f8E4M3FN beside v_scale, got 'f32'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu v_scale(%scale)
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<3xi32>,
         tensor<3xi32>, tensor<2xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c28_finite(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xi8>, %cu: tensor<3xi32>) {
  %scale = arith.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  // expected-error @below {{expected finite numbers in k_scale, got NaN}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu k_scale(%scale)
      : (tensor<?x4x16xf32>, tensor<?x2x16xi8>, tensor<?x2x16xi8>, tensor<3xi32>,
         tensor<3xi32>, tensor<2xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c29_heads(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xi8>, %cu: tensor<3xi32>,
                          %scale: tensor<3xf32>) {
  // expected-error @below {{expected k_scale compatible with 'tensor<2xf32>', got 'tensor<3xf32>'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu k_scale(%scale)
      : (tensor<?x4x16xf32>, tensor<?x2x16xi8>, tensor<?x2x16xi8>, tensor<3xi32>,
         tensor<3xi32>, tensor<3xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

// Rows without pages have no more than a number for each row and head.
func.func @attn_c29_rank(%q: tensor<?x4x16xf32>, %k: tensor<9x2x16xi8>, %cu: tensor<3xi32>,
                         %scale: tensor<9x8x2xf32>) {
  // expected-error @below {{expected k_scale compatible with 'tensor<9x2xf32>', got 'tensor<9x8x2xf32>'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu, %cu k_scale(%scale)
      : (tensor<?x4x16xf32>, tensor<9x2x16xi8>, tensor<9x2x16xi8>, tensor<3xi32>,
         tensor<3xi32>, tensor<9x8x2xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

// -----

func.func @attn_c29_pages(%q: tensor<?x4x16xf32>, %k: tensor<6x8x2x16xi8>, %cu: tensor<3xi32>,
                          %used: tensor<2xi32>, %table: tensor<2x?xi32>,
                          %scale: tensor<6x4x2xf32>) {
  // expected-error @below {{expected v_scale compatible with 'tensor<6x8x2xf32>', got 'tensor<6x4x2xf32>'}}
  %out, %lse = varlen.attn %q, %k, %k, %cu seqused_k(%used) block_table(%table) v_scale(%scale)
      : (tensor<?x4x16xf32>, tensor<6x8x2x16xi8>, tensor<6x8x2x16xi8>, tensor<3xi32>,
         tensor<2xi32>, tensor<2x?xi32>, tensor<6x4x2xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return
}

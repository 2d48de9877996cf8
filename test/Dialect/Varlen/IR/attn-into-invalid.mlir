// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// The rules of varlen.attn hold for varlen.attn_into; attn-invalid.mlir has them.

func.func @memrefs(%q: memref<8x4x16xf32>, %cu: memref<3xi32>, %o: tensor<8x4x16xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{expected operands that are all tensors, got a memref for q}}
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
      : (memref<8x4x16xf32>, memref<8x4x16xf32>, memref<8x4x16xf32>, memref<3xi32>, memref<3xi32>, tensor<8x4x16xf32>, tensor<4x8xf32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @buffers(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %o: memref<8x4x16xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{operand #5 must be rank-3 tensor of f16, bf16, f32 or f64, but got 'memref<8x4x16xf32>'}}
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, memref<8x4x16xf32>, tensor<4x8xf32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

// A destination with other rows than the queries.
func.func @extents(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %o: tensor<9x4x16xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{expected out compatible with 'tensor<8x4x16xf32>', got 'tensor<9x4x16xf32>'}}
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<9x4x16xf32>, tensor<4x8xf32>)
      -> (tensor<9x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

// A result that knows more than its destination.
func.func @tied(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %o: tensor<?x4x16xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{expected type of operand #5 ('tensor<?x4x16xf32>') to match type of corresponding result ('tensor<8x4x16xf32>')}}
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%o, %l)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<?x4x16xf32>, tensor<4x8xf32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

// With a sink there are four destinations.
func.func @gradients(%q: tensor<8x4x16xf32>, %lse: tensor<4x8xf32>, %cu: tensor<3xi32>, %sink: tensor<4xf32>) {
  // expected-error @below {{expected four outs and four results, got 3 results and 3 outs}}
  %0:3 = varlen.attn_grad_into %q, %q, %q, %q, %q, %lse, %cu, %cu sink(%sink) outs(%q, %q, %q)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>,
         tensor<3xi32>, tensor<3xi32>, tensor<4xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
      -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
  return
}

// -----

func.func @attn_c22(%q: tensor<8x4x16xf32>, %lse: tensor<4x8xf32>, %cu: tensor<3xi32>) {
  // expected-error @below {{expected mask, scale, and attributes of a dialect, got 'masc': did you mean 'mask'?}}
  %0:2 = varlen.attn_into %q, %q, %q, %cu, %cu outs(%q, %lse) {masc = #varlen.mask<causal>}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>,
         tensor<8x4x16xf32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

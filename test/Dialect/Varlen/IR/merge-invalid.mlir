// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @rank(%o: tensor<8x16xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{operand #0 must be rank-3 tensor of f16, bf16, f32 or f64, but got 'tensor<8x16xf32>'}}
  %out, %lse = varlen.merge %o, %l, %o, %l
      : (tensor<8x16xf32>, tensor<4x8xf32>, tensor<8x16xf32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @elements(%o: tensor<8x4x16xf32>, %l: tensor<4x8xf32>, %p: tensor<8x4x16xbf16>) {
  // expected-error @below {{expected out1 compatible with 'tensor<8x4x16xf32>', got 'tensor<8x4x16xbf16>'}}
  %out, %lse = varlen.merge %o, %l, %p, %l
      : (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xbf16>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lse_element(%o: tensor<8x4x16xf64>, %l: tensor<4x8xf32>) {
  // expected-error @below {{expected lse0 compatible with 'tensor<4x8xf64>', got 'tensor<4x8xf32>'}}
  %out, %lse = varlen.merge %o, %l, %o, %l
      : (tensor<8x4x16xf64>, tensor<4x8xf32>, tensor<8x4x16xf64>, tensor<4x8xf32>) -> (tensor<8x4x16xf64>, tensor<4x8xf32>)
  return
}

// -----

func.func @rows(%o: tensor<8x4x16xf32>, %l: tensor<4x8xf32>, %p: tensor<9x4x16xf32>) {
  // expected-error @below {{expected out1 compatible with 'tensor<8x4x16xf32>', got 'tensor<9x4x16xf32>'}}
  %out, %lse = varlen.merge %o, %l, %p, %l
      : (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<9x4x16xf32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

// lse is heads x rows.
func.func @lse_shape(%o: tensor<8x4x16xf32>, %l: tensor<8x4xf32>) {
  // expected-error @below {{expected lse0 compatible with 'tensor<4x8xf32>', got 'tensor<8x4xf32>'}}
  %out, %lse = varlen.merge %o, %l, %o, %l
      : (tensor<8x4x16xf32>, tensor<8x4xf32>, tensor<8x4x16xf32>, tensor<8x4xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @result(%o: tensor<8x4x16xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{inferred type(s) 'tensor<8x4x16xf32>', 'tensor<4x8xf32>' are incompatible with return type(s) of operation 'tensor<8x4x24xf32>', 'tensor<4x8xf32>'}}
  %out, %lse = varlen.merge %o, %l, %o, %l
      : (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>) -> (tensor<8x4x24xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @attn_c22(%o: tensor<8x4x16xf32>, %l: tensor<4x8xf32>) {
  // expected-error @below {{expected no attributes but those of a dialect, got 'scale'}}
  %out, %lse = varlen.merge %o, %l, %o, %l {scale = 2.0 : f32}
      : (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

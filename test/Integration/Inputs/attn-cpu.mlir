// One attention of each element type and its gradients, with what differs between
// them spread over the masks.

func.func @attn_f32(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>
}

func.func @attn_f64(%q: tensor<?x4x64xf64>, %k: tensor<?x2x64xf64>, %v: tensor<?x2x64xf64>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xf64>, tensor<4x?xf64>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<window = (20, 3)>}
      : (tensor<?x4x64xf64>, tensor<?x2x64xf64>, tensor<?x2x64xf64>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf64>, tensor<4x?xf64>)
  return %out, %lse : tensor<?x4x64xf64>, tensor<4x?xf64>
}

func.func @attn_f16(%q: tensor<?x4x64xf16>, %k: tensor<?x2x64xf16>, %v: tensor<?x2x64xf16>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<full>}
      : (tensor<?x4x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x64xf16>, tensor<4x?xf32>
}

func.func @attn_bf16(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xbf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal, top_left>}
      : (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xbf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x64xbf16>, tensor<4x?xf32>
}

func.func @grad_f32(%dout: tensor<?x4x64xf32>, %q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %out: tensor<?x4x64xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x4x64xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>)
  return %dq, %dk, %dv : tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>
}

func.func @grad_f64(%dout: tensor<?x4x64xf64>, %q: tensor<?x4x64xf64>, %k: tensor<?x2x64xf64>, %v: tensor<?x2x64xf64>, %out: tensor<?x4x64xf64>, %lse: tensor<4x?xf64>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xf64>, tensor<?x2x64xf64>, tensor<?x2x64xf64>) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu {mask = #varlen.mask<window = (20, 3)>}
      : (tensor<?x4x64xf64>, tensor<?x4x64xf64>, tensor<?x2x64xf64>, tensor<?x2x64xf64>, tensor<?x4x64xf64>, tensor<4x?xf64>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf64>, tensor<?x2x64xf64>, tensor<?x2x64xf64>)
  return %dq, %dk, %dv : tensor<?x4x64xf64>, tensor<?x2x64xf64>, tensor<?x2x64xf64>
}

func.func @grad_f16(%dout: tensor<?x4x64xf16>, %q: tensor<?x4x64xf16>, %k: tensor<?x2x64xf16>, %v: tensor<?x2x64xf16>, %out: tensor<?x4x64xf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu {mask = #varlen.mask<full>}
      : (tensor<?x4x64xf16>, tensor<?x4x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>, tensor<?x4x64xf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>)
  return %dq, %dk, %dv : tensor<?x4x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>
}

func.func @grad_bf16(%dout: tensor<?x4x64xbf16>, %q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>, %out: tensor<?x4x64xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu {mask = #varlen.mask<causal, top_left>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
  return %dq, %dk, %dv : tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>
}

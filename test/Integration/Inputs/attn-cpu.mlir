// One attention of each element type, with what differs between them spread
// over the mask, the heads and the head sizes.

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

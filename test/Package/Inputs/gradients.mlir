func.func @gradients(%dout: tensor<?x8x64xbf16>, %q: tensor<?x8x64xbf16>, %k: tensor<?x2x64xbf16>,
                     %v: tensor<?x2x64xbf16>, %out: tensor<?x8x64xbf16>, %lse: tensor<8x?xf32>,
                     %cu: tensor<?xi32>)
    -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu
      : (tensor<?x8x64xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>,
         tensor<?x8x64xbf16>, tensor<8x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
  return %dq, %dk, %dv : tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>
}

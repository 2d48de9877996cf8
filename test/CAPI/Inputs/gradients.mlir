func.func @gradients(%dout: tensor<?x4x64xf32> {varlen.name = "dout"},
                     %q: tensor<?x4x64xf32> {varlen.name = "q"},
                     %k: tensor<?x2x64xf32> {varlen.name = "k"},
                     %v: tensor<?x2x64xf32> {varlen.name = "v"},
                     %out: tensor<?x4x64xf32> {varlen.name = "out"},
                     %lse: tensor<4x?xf32> {varlen.name = "lse"},
                     %cu: tensor<?xi32> {varlen.name = "cu"})
    -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>) {
  %dq, %dk, %dv = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu
      {mask = #varlen.mask<causal>}
      : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>,
         tensor<?x4x64xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>)
  return %dq, %dk, %dv : tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>
}

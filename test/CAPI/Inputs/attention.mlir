func.func @attention(%q: tensor<?x4x64xf32> {varlen.name = "q"},
                     %k: tensor<?x2x64xf32> {varlen.name = "k"},
                     %v: tensor<?x2x64xf32> {varlen.name = "v"},
                     %cu: tensor<?xi32> {varlen.name = "cu"})
    -> (tensor<?x4x64xf32> {varlen.name = "out"}, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      {mask = #varlen.mask<causal>} : (tensor<?x4x64xf32>,
      tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>,
      tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>
}

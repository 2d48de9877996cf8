// Compiled by varlen-opt.
func.func @attention(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>,
                     %cu: tensor<?xi32>) -> (tensor<?x4x64xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x64xf32>, tensor<4x?xf32>
}

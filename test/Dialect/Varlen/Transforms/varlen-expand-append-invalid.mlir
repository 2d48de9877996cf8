// RUN: varlen-opt %s --varlen-expand-append --verify-diagnostics

func.func @tensors(%k: tensor<?x2x16xf32>, %cu: tensor<?xi32>, %used: tensor<?xi32>, %kc: tensor<3x8x2x16xf32>)
    -> tensor<3x8x2x16xf32> {
  // expected-error @below {{expected memrefs, got tensors; bufferize before}}
  %0:2 = varlen.append %k, %k, %cu seqused_k(%used) outs(%kc, %kc)
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<3x8x2x16xf32>,
         tensor<3x8x2x16xf32>) -> (tensor<3x8x2x16xf32>, tensor<3x8x2x16xf32>)
  return %0#0 : tensor<3x8x2x16xf32>
}

module {
  func.func @attn(%arg0: tensor<?x4x16xf32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>, %arg3: tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
    %out, %lse = varlen.attn %arg0, %arg0, %arg0, %arg1, %arg1 seqused_k(%arg2) sink(%arg3) {mask = #varlen.mask<window = (7, 3), top_left>, scale = 1.000000e-01 : f32} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
    return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
  }
  func.func @attn_grad(%arg0: tensor<?x4x16xf32>, %arg1: tensor<4x?xf32>, %arg2: tensor<?xi32>, %arg3: tensor<4xf32>) -> tensor<4xf32> {
    %dq, %dk, %dv, %dsink = varlen.attn_grad %arg0, %arg0, %arg0, %arg0, %arg0, %arg1, %arg2, %arg2 dlse(%arg1) sink(%arg3) {mask = #varlen.mask<causal>, scale = 1.000000e-01 : f32} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
    return %dsink : tensor<4xf32>
  }
  func.func @destinations(%arg0: tensor<?x4x16xf32>, %arg1: tensor<?xi32>, %arg2: tensor<?xi32>, %arg3: tensor<?x4x16xf32>, %arg4: tensor<4x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
    %out, %lse = varlen.attn_into %arg0, %arg0, %arg0, %arg1, %arg1 q_offset(%arg2) outs(%arg3, %arg4) {mask = #varlen.chunk_mask<64>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x16xf32>, tensor<4x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
    return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
  }
  func.func @merge(%arg0: tensor<?x4x16xbf16>, %arg1: tensor<4x?xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>) {
    %out, %lse = varlen.merge %arg0, %arg1, %arg0, %arg1 : (tensor<?x4x16xbf16>, tensor<4x?xf32>, tensor<?x4x16xbf16>, tensor<4x?xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>)
    return %out, %lse : tensor<?x4x16xbf16>, tensor<4x?xf32>
  }
}


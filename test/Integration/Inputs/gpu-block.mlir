// A transformer block: norms, projections, causal attention of 4 heads on 2, an MLP.

!rows = tensor<?x64xf32>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

func.func private @norm(%x: !rows, %weight: tensor<64xf32>) -> !rows {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : !rows
  %row = tensor.empty(%t) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %squares = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : !rows) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %empty = tensor.empty(%t) : !rows
  %y = linalg.generic {indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %squares, %weight : !rows, tensor<?xf32>, tensor<64xf32>) outs(%empty : !rows) {
  ^bb0(%a: f32, %square: f32, %w: f32, %o: f32):
    %inverse = arith.constant 0.015625 : f32
    %epsilon = arith.constant 1.0e-5 : f32
    %mean = arith.mulf %square, %inverse : f32
    %shifted = arith.addf %mean, %epsilon : f32
    %0 = math.rsqrt %shifted : f32
    %1 = arith.mulf %a, %0 : f32
    %2 = arith.mulf %1, %w : f32
    linalg.yield %2 : f32
  } -> !rows
  return %y : !rows
}

func.func private @attention(%x: !rows, %qkv: tensor<64x128xf32>, %out: tensor<64x64xf32>,
                             %cu: tensor<?xi32>) -> !rows {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : !rows
  %empty = tensor.empty(%t) : tensor<?x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x128xf32>) -> tensor<?x128xf32>
  %all = linalg.matmul ins(%x, %qkv : !rows, tensor<64x128xf32>)
      outs(%zeros : tensor<?x128xf32>) -> tensor<?x128xf32>
  %q0 = tensor.extract_slice %all[0, 0] [%t, 64] [1, 1] : tensor<?x128xf32> to !rows
  %k0 = tensor.extract_slice %all[0, 64] [%t, 32] [1, 1] : tensor<?x128xf32> to tensor<?x32xf32>
  %v0 = tensor.extract_slice %all[0, 96] [%t, 32] [1, 1] : tensor<?x128xf32> to tensor<?x32xf32>
  %q = tensor.expand_shape %q0 [[0], [1, 2]] output_shape [%t, 4, 16] : !rows into tensor<?x4x16xf32>
  %k = tensor.expand_shape %k0 [[0], [1, 2]] output_shape [%t, 2, 16] : tensor<?x32xf32> into tensor<?x2x16xf32>
  %v = tensor.expand_shape %v0 [[0], [1, 2]] output_shape [%t, 2, 16] : tensor<?x32xf32> into tensor<?x2x16xf32>
  %a, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %flat = tensor.collapse_shape %a [[0], [1, 2]] : tensor<?x4x16xf32> into !rows
  %y_empty = tensor.empty(%t) : !rows
  %y_zeros = linalg.fill ins(%zero : f32) outs(%y_empty : !rows) -> !rows
  %y = linalg.matmul ins(%flat, %out : !rows, tensor<64x64xf32>) outs(%y_zeros : !rows) -> !rows
  return %y : !rows
}

func.func private @mlp(%x: !rows, %gate: tensor<64x96xf32>, %up: tensor<64x96xf32>,
                       %down: tensor<96x64xf32>) -> !rows {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : !rows
  %empty = tensor.empty(%t) : tensor<?x96xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x96xf32>) -> tensor<?x96xf32>
  %g = linalg.matmul ins(%x, %gate : !rows, tensor<64x96xf32>) outs(%zeros : tensor<?x96xf32>) -> tensor<?x96xf32>
  %u = linalg.matmul ins(%x, %up : !rows, tensor<64x96xf32>) outs(%zeros : tensor<?x96xf32>) -> tensor<?x96xf32>
  %hidden = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%g, %u : tensor<?x96xf32>, tensor<?x96xf32>) outs(%empty : tensor<?x96xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %a : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %one, %exp : f32
    %silu = arith.divf %a, %below : f32
    %0 = arith.mulf %silu, %b : f32
    linalg.yield %0 : f32
  } -> tensor<?x96xf32>
  %y_empty = tensor.empty(%t) : !rows
  %y_zeros = linalg.fill ins(%zero : f32) outs(%y_empty : !rows) -> !rows
  %y = linalg.matmul ins(%hidden, %down : tensor<?x96xf32>, tensor<96x64xf32>) outs(%y_zeros : !rows) -> !rows
  return %y : !rows
}

func.func @block(%x: !rows {varlen.name = "x"}, %norm1: tensor<64xf32> {varlen.name = "norm1"},
                 %qkv: tensor<64x128xf32> {varlen.name = "qkv"}, %out: tensor<64x64xf32> {varlen.name = "out"},
                 %norm2: tensor<64xf32> {varlen.name = "norm2"}, %gate: tensor<64x96xf32> {varlen.name = "gate"},
                 %up: tensor<64x96xf32> {varlen.name = "up"}, %down: tensor<96x64xf32> {varlen.name = "down"},
                 %cu: tensor<?xi32> {varlen.name = "cu_seqlens"}) -> (!rows {varlen.name = "y"}) {
  %0 = func.call @norm(%x, %norm1) : (!rows, tensor<64xf32>) -> !rows
  %1 = func.call @attention(%0, %qkv, %out, %cu) : (!rows, tensor<64x128xf32>, tensor<64x64xf32>, tensor<?xi32>) -> !rows
  %2 = arith.addf %x, %1 : !rows
  %3 = func.call @norm(%2, %norm2) : (!rows, tensor<64xf32>) -> !rows
  %4 = func.call @mlp(%3, %gate, %up, %down)
      : (!rows, tensor<64x96xf32>, tensor<64x96xf32>, tensor<96x64xf32>) -> !rows
  %5 = arith.addf %2, %4 : !rows
  return %5 : !rows
}

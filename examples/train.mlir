// A small language model on packed documents: two transformer blocks over byte
// tokens, its loss, and a training loop. Nothing here says how to compute a
// gradient: varlen-differentiate makes @loss_vjp.
//
// T tokens of all documents stand one after another; cu_seqlens says where each
// document begins. Width 64, 4 query heads and 2 kv heads of 16, 176 hidden
// units, 256 tokens. All parameters are one vector:
//
//   embedding  256 x 64        at      0   also the output projection
//   norms      5 x 64          at  16384   before attention and MLP of each block, and last
//   qkv        2 x 64 x 128    at  16704   64 of q, 32 of k, 32 of v
//   out        2 x 64 x 64     at  33088
//   gate       2 x 64 x 176    at  41280
//   up         2 x 64 x 176    at  63808
//   down       2 x 176 x 64    at  86336
//   end                        at 108864

!params = tensor<108864xf32>
!tokens = tensor<?xi32>
!rows = tensor<?x64xf32>

#i = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>
#ij_i = affine_map<(i, j) -> (i)>
#ij_j = affine_map<(i, j) -> (j)>
#ihj = affine_map<(i, h, j) -> (i, h, j)>
#ihj_ij = affine_map<(i, h, j) -> (i, j)>
#ikj_ik = affine_map<(i, k, j) -> (i, k)>
#ikj_jk = affine_map<(i, k, j) -> (j, k)>
#ikj_ij = affine_map<(i, k, j) -> (i, j)>

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

// x * rsqrt(mean of x^2 + 1e-5) * weight, row by row (Zhang and Sennrich, 2019).
func.func private @rms_norm(%x: !rows, %weight: tensor<64xf32>) -> !rows {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : !rows
  %row = tensor.empty(%t) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %squares = linalg.generic {indexing_maps = [#ij, #ij_i], iterator_types = ["parallel", "reduction"]}
      ins(%x : !rows) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %empty = tensor.empty(%t) : !rows
  %y = linalg.generic {indexing_maps = [#ij, #ij_i, #ij_j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %squares, %weight : !rows, tensor<?xf32>, tensor<64xf32>) outs(%empty : !rows) {
  ^bb0(%a: f32, %square: f32, %w: f32, %o: f32):
    %inverse = arith.constant 0.015625 : f32
    %epsilon = arith.constant 1.0e-5 : f32
    %mean = arith.mulf %square, %inverse : f32
    %shifted = arith.addf %mean, %epsilon : f32
    %r = math.rsqrt %shifted : f32
    %0 = arith.mulf %a, %r : f32
    %1 = arith.mulf %0, %w : f32
    linalg.yield %1 : f32
  } -> !rows
  return %y : !rows
}

// Rotates the pairs (d, d + 8) of each head by position * 10000^(-d / 8)
// (Su et al., 2021).
func.func private @rotate(%x: tensor<?x?x16xf32>, %positions: !tokens) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.dim %x, %c0 : tensor<?x?x16xf32>
  %h = tensor.dim %x, %c1 : tensor<?x?x16xf32>
  %angle_empty = tensor.empty(%t) : tensor<?x8xf32>
  %angle = linalg.generic {indexing_maps = [#ij_i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%positions : !tokens) outs(%angle_empty : tensor<?x8xf32>) {
  ^bb0(%position: i32, %o: f32):
    // -log2(10000) / 8
    %rate = arith.constant -1.6609640474436812 : f32
    %j = linalg.index 1 : index
    %j32 = arith.index_cast %j : index to i32
    %d = arith.sitofp %j32 : i32 to f32
    %exponent = arith.mulf %d, %rate : f32
    %frequency = math.exp2 %exponent : f32
    %p = arith.sitofp %position : i32 to f32
    %0 = arith.mulf %p, %frequency : f32
    linalg.yield %0 : f32
  } -> tensor<?x8xf32>
  %a = tensor.extract_slice %x[0, 0, 0] [%t, %h, 8] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x?x8xf32>
  %b = tensor.extract_slice %x[0, 0, 8] [%t, %h, 8] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x?x8xf32>
  %empty = tensor.empty(%t, %h) : tensor<?x?x8xf32>
  %r:2 = linalg.generic {indexing_maps = [#ihj, #ihj, #ihj_ij, #ihj, #ihj],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b, %angle : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x8xf32>)
      outs(%empty, %empty : tensor<?x?x8xf32>, tensor<?x?x8xf32>) {
  ^bb0(%u: f32, %v: f32, %phi: f32, %o0: f32, %o1: f32):
    %cos = math.cos %phi : f32
    %sin = math.sin %phi : f32
    %0 = arith.mulf %u, %cos : f32
    %1 = arith.mulf %v, %sin : f32
    %2 = arith.subf %0, %1 : f32
    %3 = arith.mulf %u, %sin : f32
    %4 = arith.mulf %v, %cos : f32
    %5 = arith.addf %3, %4 : f32
    linalg.yield %2, %5 : f32, f32
  } -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>)
  %y_empty = tensor.empty(%t, %h) : tensor<?x?x16xf32>
  %y0 = tensor.insert_slice %r#0 into %y_empty[0, 0, 0] [%t, %h, 8] [1, 1, 1] : tensor<?x?x8xf32> into tensor<?x?x16xf32>
  %y1 = tensor.insert_slice %r#1 into %y0[0, 0, 8] [%t, %h, 8] [1, 1, 1] : tensor<?x?x8xf32> into tensor<?x?x16xf32>
  return %y1 : tensor<?x?x16xf32>
}

func.func private @attention(%x: !rows, %qkv_weight: tensor<64x128xf32>, %out_weight: tensor<64x64xf32>,
                             %positions: !tokens, %cu: tensor<?xi32>) -> !rows {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : !rows
  %qkv_empty = tensor.empty(%t) : tensor<?x128xf32>
  %qkv_zeros = linalg.fill ins(%zero : f32) outs(%qkv_empty : tensor<?x128xf32>) -> tensor<?x128xf32>
  %qkv = linalg.matmul ins(%x, %qkv_weight : !rows, tensor<64x128xf32>)
      outs(%qkv_zeros : tensor<?x128xf32>) -> tensor<?x128xf32>
  %q0 = tensor.extract_slice %qkv[0, 0] [%t, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %k0 = tensor.extract_slice %qkv[0, 64] [%t, 32] [1, 1] : tensor<?x128xf32> to tensor<?x32xf32>
  %v0 = tensor.extract_slice %qkv[0, 96] [%t, 32] [1, 1] : tensor<?x128xf32> to tensor<?x32xf32>
  %q1 = tensor.expand_shape %q0 [[0], [1, 2]] output_shape [%t, 4, 16] : tensor<?x64xf32> into tensor<?x4x16xf32>
  %k1 = tensor.expand_shape %k0 [[0], [1, 2]] output_shape [%t, 2, 16] : tensor<?x32xf32> into tensor<?x2x16xf32>
  %v = tensor.expand_shape %v0 [[0], [1, 2]] output_shape [%t, 2, 16] : tensor<?x32xf32> into tensor<?x2x16xf32>
  %q2 = tensor.cast %q1 : tensor<?x4x16xf32> to tensor<?x?x16xf32>
  %k2 = tensor.cast %k1 : tensor<?x2x16xf32> to tensor<?x?x16xf32>
  %q3 = func.call @rotate(%q2, %positions) : (tensor<?x?x16xf32>, !tokens) -> tensor<?x?x16xf32>
  %k3 = func.call @rotate(%k2, %positions) : (tensor<?x?x16xf32>, !tokens) -> tensor<?x?x16xf32>
  %q = tensor.cast %q3 : tensor<?x?x16xf32> to tensor<?x4x16xf32>
  %k = tensor.cast %k3 : tensor<?x?x16xf32> to tensor<?x2x16xf32>
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %flat = tensor.collapse_shape %out [[0], [1, 2]] : tensor<?x4x16xf32> into !rows
  %y_empty = tensor.empty(%t) : !rows
  %y_zeros = linalg.fill ins(%zero : f32) outs(%y_empty : !rows) -> !rows
  %y = linalg.matmul ins(%flat, %out_weight : !rows, tensor<64x64xf32>) outs(%y_zeros : !rows) -> !rows
  return %y : !rows
}

// silu(x gate) * (x up) times down (Shazeer, 2020).
func.func private @mlp(%x: !rows, %gate_weight: tensor<64x176xf32>, %up_weight: tensor<64x176xf32>,
                       %down_weight: tensor<176x64xf32>) -> !rows {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : !rows
  %empty = tensor.empty(%t) : tensor<?x176xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x176xf32>) -> tensor<?x176xf32>
  %gate = linalg.matmul ins(%x, %gate_weight : !rows, tensor<64x176xf32>)
      outs(%zeros : tensor<?x176xf32>) -> tensor<?x176xf32>
  %up = linalg.matmul ins(%x, %up_weight : !rows, tensor<64x176xf32>)
      outs(%zeros : tensor<?x176xf32>) -> tensor<?x176xf32>
  %hidden = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<?x176xf32>, tensor<?x176xf32>) outs(%empty : tensor<?x176xf32>) {
  ^bb0(%g: f32, %u: f32, %o: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %g : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %one, %exp : f32
    %silu = arith.divf %g, %below : f32
    %0 = arith.mulf %silu, %u : f32
    linalg.yield %0 : f32
  } -> tensor<?x176xf32>
  %y_empty = tensor.empty(%t) : !rows
  %y_zeros = linalg.fill ins(%zero : f32) outs(%y_empty : !rows) -> !rows
  %y = linalg.matmul ins(%hidden, %down_weight : tensor<?x176xf32>, tensor<176x64xf32>)
      outs(%y_zeros : !rows) -> !rows
  return %y : !rows
}

func.func private @block(%x: !rows, %params: !params, %layer: index, %positions: !tokens, %cu: tensor<?xi32>) -> !rows {
  %c2 = arith.constant 2 : index
  %norms_at = arith.constant 16384 : index
  %qkv_at = arith.constant 16704 : index
  %out_at = arith.constant 33088 : index
  %gate_at = arith.constant 41280 : index
  %up_at = arith.constant 63808 : index
  %down_at = arith.constant 86336 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c4096 = arith.constant 4096 : index
  %c8192 = arith.constant 8192 : index
  %c11264 = arith.constant 11264 : index

  %norm_offset = arith.muli %layer, %c128 : index
  %norm1_at = arith.addi %norms_at, %norm_offset : index
  %norm2_at = arith.addi %norm1_at, %c64 : index
  %norm1 = tensor.extract_slice %params[%norm1_at] [64] [1] : !params to tensor<64xf32>
  %norm2 = tensor.extract_slice %params[%norm2_at] [64] [1] : !params to tensor<64xf32>
  %qkv_offset = arith.muli %layer, %c8192 : index
  %qkv_begin = arith.addi %qkv_at, %qkv_offset : index
  %qkv_flat = tensor.extract_slice %params[%qkv_begin] [8192] [1] : !params to tensor<8192xf32>
  %qkv = tensor.expand_shape %qkv_flat [[0, 1]] output_shape [64, 128] : tensor<8192xf32> into tensor<64x128xf32>
  %out_offset = arith.muli %layer, %c4096 : index
  %out_begin = arith.addi %out_at, %out_offset : index
  %out_flat = tensor.extract_slice %params[%out_begin] [4096] [1] : !params to tensor<4096xf32>
  %out = tensor.expand_shape %out_flat [[0, 1]] output_shape [64, 64] : tensor<4096xf32> into tensor<64x64xf32>
  %mlp_offset = arith.muli %layer, %c11264 : index
  %gate_begin = arith.addi %gate_at, %mlp_offset : index
  %gate_flat = tensor.extract_slice %params[%gate_begin] [11264] [1] : !params to tensor<11264xf32>
  %gate = tensor.expand_shape %gate_flat [[0, 1]] output_shape [64, 176] : tensor<11264xf32> into tensor<64x176xf32>
  %up_begin = arith.addi %up_at, %mlp_offset : index
  %up_flat = tensor.extract_slice %params[%up_begin] [11264] [1] : !params to tensor<11264xf32>
  %up = tensor.expand_shape %up_flat [[0, 1]] output_shape [64, 176] : tensor<11264xf32> into tensor<64x176xf32>
  %down_begin = arith.addi %down_at, %mlp_offset : index
  %down_flat = tensor.extract_slice %params[%down_begin] [11264] [1] : !params to tensor<11264xf32>
  %down = tensor.expand_shape %down_flat [[0, 1]] output_shape [176, 64] : tensor<11264xf32> into tensor<176x64xf32>

  %0 = func.call @rms_norm(%x, %norm1) : (!rows, tensor<64xf32>) -> !rows
  %1 = func.call @attention(%0, %qkv, %out, %positions, %cu)
      : (!rows, tensor<64x128xf32>, tensor<64x64xf32>, !tokens, tensor<?xi32>) -> !rows
  %2 = arith.addf %x, %1 : !rows
  %3 = func.call @rms_norm(%2, %norm2) : (!rows, tensor<64xf32>) -> !rows
  %4 = func.call @mlp(%3, %gate, %up, %down)
      : (!rows, tensor<64x176xf32>, tensor<64x176xf32>, tensor<176x64xf32>) -> !rows
  %5 = arith.addf %2, %4 : !rows
  return %5 : !rows
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

// The cross entropy (natural log) of each token's successor, times its weight.
func.func @losses(%params: !params {varlen.name = "params"}, %tokens: !tokens {varlen.name = "tokens"},
                  %targets: !tokens {varlen.name = "targets"},
                  %weights: tensor<?xf32> {varlen.name = "weights"},
                  %positions: !tokens {varlen.name = "positions"},
                  %cu: tensor<?xi32> {varlen.name = "cu_seqlens"})
    -> (tensor<?xf32> {varlen.name = "losses"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %t = tensor.dim %tokens, %c0 : !tokens
  %embedding_flat = tensor.extract_slice %params[0] [16384] [1] : !params to tensor<16384xf32>
  %embedding = tensor.expand_shape %embedding_flat [[0, 1]] output_shape [256, 64] : tensor<16384xf32> into tensor<256x64xf32>
  %x_empty = tensor.empty(%t) : !rows
  %x0 = linalg.generic {indexing_maps = [#ij_i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%tokens : !tokens) outs(%x_empty : !rows) {
  ^bb0(%token: i32, %o: f32):
    %row = arith.index_cast %token : i32 to index
    %column = linalg.index 1 : index
    %0 = tensor.extract %embedding[%row, %column] : tensor<256x64xf32>
    linalg.yield %0 : f32
  } -> !rows
  %x1 = func.call @block(%x0, %params, %c0, %positions, %cu) : (!rows, !params, index, !tokens, tensor<?xi32>) -> !rows
  %x2 = func.call @block(%x1, %params, %c1, %positions, %cu) : (!rows, !params, index, !tokens, tensor<?xi32>) -> !rows
  %last_norm = tensor.extract_slice %params[16640] [64] [1] : !params to tensor<64xf32>
  %x = func.call @rms_norm(%x2, %last_norm) : (!rows, tensor<64xf32>) -> !rows

  %logits_empty = tensor.empty(%t) : tensor<?x256xf32>
  %logits_zeros = linalg.fill ins(%zero : f32) outs(%logits_empty : tensor<?x256xf32>) -> tensor<?x256xf32>
  %logits = linalg.generic {indexing_maps = [#ikj_ik, #ikj_jk, #ikj_ij], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %embedding : !rows, tensor<256x64xf32>) outs(%logits_zeros : tensor<?x256xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x256xf32>
  %row_empty = tensor.empty(%t) : tensor<?xf32>
  %row_lowest = linalg.fill ins(%lowest : f32) outs(%row_empty : tensor<?xf32>) -> tensor<?xf32>
  %row_zeros = linalg.fill ins(%zero : f32) outs(%row_empty : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.generic {indexing_maps = [#ij, #ij_i], iterator_types = ["parallel", "reduction"]}
      ins(%logits : tensor<?x256xf32>) outs(%row_lowest : tensor<?xf32>) {
  ^bb0(%a: f32, %top: f32):
    %0 = arith.maximumf %top, %a : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  // The sum of exponentials, and the logit of the target.
  %sums:2 = linalg.generic {indexing_maps = [#ij, #ij_i, #ij_i, #ij_i, #ij_i], iterator_types = ["parallel", "reduction"]}
      ins(%logits, %max, %targets : tensor<?x256xf32>, tensor<?xf32>, !tokens)
      outs(%row_zeros, %row_zeros : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %top: f32, %target: i32, %sum: f32, %chosen: f32):
    %none = arith.constant 0.0 : f32
    %column = linalg.index 1 : index
    %wanted = arith.index_cast %target : i32 to index
    %is_target = arith.cmpi eq, %column, %wanted : index
    %shifted = arith.subf %a, %top : f32
    %exp = math.exp %shifted : f32
    %0 = arith.addf %sum, %exp : f32
    %logit = arith.select %is_target, %shifted, %none : f32
    %1 = arith.addf %chosen, %logit : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  %losses = linalg.generic {indexing_maps = [#i, #i, #i, #i], iterator_types = ["parallel"]}
      ins(%sums#0, %sums#1, %weights : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) outs(%row_empty : tensor<?xf32>) {
  ^bb0(%sum: f32, %logit: f32, %weight: f32, %o: f32):
    %log = math.log %sum : f32
    %0 = arith.subf %log, %logit : f32
    %1 = arith.mulf %0, %weight : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  return %losses : tensor<?xf32>
}

// The sum of the losses; with weights that sum to 1 it is their mean.
func.func @loss(%params: !params {varlen.name = "params"}, %tokens: !tokens {varlen.name = "tokens"},
                %targets: !tokens {varlen.name = "targets"},
                %weights: tensor<?xf32> {varlen.name = "weights"},
                %positions: !tokens {varlen.name = "positions"},
                %cu: tensor<?xi32> {varlen.name = "cu_seqlens"}) -> (f32 {varlen.name = "loss"}) {
  %losses = func.call @losses(%params, %tokens, %targets, %weights, %positions, %cu)
      : (!params, !tokens, !tokens, tensor<?xf32>, !tokens, tensor<?xi32>) -> tensor<?xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %sum = linalg.reduce { arith.addf } ins(%losses : tensor<?xf32>) outs(%zero : tensor<f32>) dimensions = [0]
  %loss = tensor.extract %sum[] : tensor<f32>
  return %loss : f32
}

// Made by varlen-differentiate{function=loss wrt=params with-results}.
func.func private @loss_vjp(!params, !tokens, !tokens, tensor<?xf32>, !tokens, tensor<?xi32>, f32) -> (f32, !params)

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

// Adam (Kingma and Ba, 2014) with one batch a step, rows of `tokens` and the
// others. Returns the parameters, Adam's two moments, and the loss of each step.
func.func @train(%params: !params {varlen.name = "params"}, %first: !params {varlen.name = "first_moment"},
                 %second: !params {varlen.name = "second_moment"},
                 %tokens: tensor<?x?xi32> {varlen.name = "tokens"},
                 %targets: tensor<?x?xi32> {varlen.name = "targets"},
                 %weights: tensor<?x?xf32> {varlen.name = "weights"},
                 %positions: tensor<?x?xi32> {varlen.name = "positions"},
                 %cu: tensor<?x?xi32> {varlen.name = "cu_seqlens"},
                 %rate: f32 {varlen.name = "learning_rate"})
    -> (!params {varlen.name = "params"}, !params {varlen.name = "first_moment"},
        !params {varlen.name = "second_moment"}, tensor<?xf32> {varlen.name = "losses"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %beta1 = arith.constant 0.9 : f32
  %beta2 = arith.constant 0.99 : f32
  %steps = tensor.dim %tokens, %c0 : tensor<?x?xi32>
  %t = tensor.dim %tokens, %c1 : tensor<?x?xi32>
  %n = tensor.dim %cu, %c1 : tensor<?x?xi32>
  %losses = tensor.empty(%steps) : tensor<?xf32>
  %r:4 = scf.for %step = %c0 to %steps step %c1
      iter_args(%p = %params, %m = %first, %v = %second, %l = %losses)
      -> (!params, !params, !params, tensor<?xf32>) {
    %tokens_i = tensor.extract_slice %tokens[%step, 0] [1, %t] [1, 1] : tensor<?x?xi32> to !tokens
    %targets_i = tensor.extract_slice %targets[%step, 0] [1, %t] [1, 1] : tensor<?x?xi32> to !tokens
    %weights_i = tensor.extract_slice %weights[%step, 0] [1, %t] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %positions_i = tensor.extract_slice %positions[%step, 0] [1, %t] [1, 1] : tensor<?x?xi32> to !tokens
    %cu_i = tensor.extract_slice %cu[%step, 0] [1, %n] [1, 1] : tensor<?x?xi32> to tensor<?xi32>
    %loss, %gradient = func.call @loss_vjp(%p, %tokens_i, %targets_i, %weights_i, %positions_i, %cu_i, %one)
        : (!params, !tokens, !tokens, tensor<?xf32>, !tokens, tensor<?xi32>, f32) -> (f32, !params)
    %l1 = tensor.insert %loss into %l[%step] : tensor<?xf32>
    %next = arith.addi %step, %c1 : index
    %next32 = arith.index_cast %next : index to i32
    %power = arith.sitofp %next32 : i32 to f32
    %power1 = math.powf %beta1, %power : f32
    %power2 = math.powf %beta2, %power : f32
    %unbias1 = arith.subf %one, %power1 : f32
    %unbias2 = arith.subf %one, %power2 : f32
    %u:3 = linalg.generic {indexing_maps = [#i, #i, #i, #i], iterator_types = ["parallel"]}
        ins(%gradient : !params) outs(%p, %m, %v : !params, !params, !params) {
    ^bb0(%g: f32, %p0: f32, %m0: f32, %v0: f32):
      %epsilon = arith.constant 1.0e-8 : f32
      %rest1 = arith.subf %one, %beta1 : f32
      %rest2 = arith.subf %one, %beta2 : f32
      %m1 = arith.mulf %m0, %beta1 : f32
      %g1 = arith.mulf %g, %rest1 : f32
      %m2 = arith.addf %m1, %g1 : f32
      %v1 = arith.mulf %v0, %beta2 : f32
      %g2 = arith.mulf %g, %g : f32
      %g3 = arith.mulf %g2, %rest2 : f32
      %v2 = arith.addf %v1, %g3 : f32
      %mean = arith.divf %m2, %unbias1 : f32
      %square = arith.divf %v2, %unbias2 : f32
      %root = math.sqrt %square : f32
      %below = arith.addf %root, %epsilon : f32
      %scaled = arith.mulf %mean, %rate : f32
      %change = arith.divf %scaled, %below : f32
      %p1 = arith.subf %p0, %change : f32
      linalg.yield %p1, %m2, %v2 : f32, f32, f32
    } -> (!params, !params, !params)
    scf.yield %u#0, %u#1, %u#2, %l1 : !params, !params, !params, tensor<?xf32>
  }
  return %r#0, %r#1, %r#2, %r#3 : !params, !params, !params, tensor<?xf32>
}

module {
  func.func @masks(%arg0: tensor<?x4x16xf16>, %arg1: tensor<?xi32>) -> tensor<?x4x16xf16> {
    %out, %lse = varlen.attn %arg0, %arg0, %arg0, %arg1, %arg1 {mask = #varlen.mask<window = (7, 3), top_left>} : (tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf16>, tensor<4x?xf32>)
    %out_0, %lse_1 = varlen.attn %out, %arg0, %arg0, %arg1, %arg1 {mask = #varlen.chunk_mask<64>} : (tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf16>, tensor<4x?xf32>)
    %out_2, %lse_3 = varlen.attn %out_0, %arg0, %arg0, %arg1, %arg1 {mask = #varlen.chunk_mask<32, top_left>} : (tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf16>, tensor<4x?xf32>)
    %out_4, %lse_5 = varlen.attn %out_2, %arg0, %arg0, %arg1, %arg1 {mask = #varlen.mask<full, top_left>} : (tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?x4x16xf16>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf16>, tensor<4x?xf32>)
    return %out_4 : tensor<?x4x16xf16>
  }
  func.func @operands(%arg0: tensor<?x4x16xf32>, %arg1: tensor<?xi64>, %arg2: tensor<?xi64>, %arg3: tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
    %out, %lse = varlen.attn %arg0, %arg0, %arg0, %arg1, %arg1 seqused_q(%arg2) seqused_k(%arg2) q_offset(%arg2) sink(%arg3) {mask = #varlen.mask<causal>, scale = 1.000000e-01 : f32} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<?xi64>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
    return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
  }
  func.func @captures(%arg0: tensor<?x4x16xbf16>, %arg1: tensor<?xi32>, %arg2: tensor<4xf32>, %arg3: tensor<4x?xf32>, %arg4: tensor<4x32xf32>, %arg5: tensor<4x?x?xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>) {
    %out, %lse = varlen.attn %arg0, %arg0, %arg0, %arg1, %arg1 captures(%arg2, %arg3, %arg4, %arg5) {mask = #varlen.mask<causal>} : (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4x?xf32>, tensor<4x32xf32>, tensor<4x?x?xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>) score (%score: f32, %query: i32, %key: i32, %capture: f32, %capture_0: f32, %table: !varlen.table<f32>, %table_1: !varlen.table<f32>) {
      %0 = arith.subi %key, %query : i32
      %1 = arith.sitofp %0 : i32 to f32
      %2 = arith.mulf %capture, %1 : f32
      %3 = arith.mulf %capture_0, %score : f32
      %4 = varlen.lookup %table[%0] : !varlen.table<f32>
      %5 = varlen.lookup %table_1[%key] : !varlen.table<f32>
      %6 = arith.addf %2, %3 : f32
      %7 = arith.addf %4, %5 : f32
      %8 = arith.addf %6, %7 : f32
      %9 = arith.cmpf une, %5, %1 : f32
      varlen.yield %8, %9 : f32, i1
    }
    return %out, %lse : tensor<?x4x16xbf16>, tensor<4x?xf32>
  }
  func.func @grad(%arg0: tensor<?x4x16xf64>, %arg1: tensor<4x?xf64>, %arg2: tensor<?xi32>, %arg3: tensor<4xf64>, %arg4: tensor<4x?x7xf64>) -> (tensor<?x4x16xf64>, tensor<4x?x7xf64>) {
    %dq, %dk, %dv, %dsink, %dcapture = varlen.attn_grad %arg0, %arg0, %arg0, %arg0, %arg0, %arg1, %arg2, %arg2 dlse(%arg1) sink(%arg3) captures(%arg3, %arg4) {mask = #varlen.mask<causal>, scale = 1.000000e-01 : f32, wrt_captures = array<i64: 1>} : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<4x?xf64>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4x?x7xf64>) -> (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<4xf64>, tensor<4x?x7xf64>) score (%score: f64, %query: i32, %key: i32, %capture: f64, %table: !varlen.table<f64>) {
      %0 = varlen.lookup %table[%key] : !varlen.table<f64>
      %1 = arith.mulf %capture, %0 : f64
      %2 = arith.addf %score, %1 : f64
      varlen.yield %2 : f64
    }
    return %dq, %dcapture : tensor<?x4x16xf64>, tensor<4x?x7xf64>
  }
  func.func @into(%arg0: tensor<?x4x16xf32>, %arg1: tensor<4x?xf32>, %arg2: tensor<?xi32>, %arg3: tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4xf32>) {
    %out, %lse = varlen.attn_into %arg0, %arg0, %arg0, %arg2, %arg2 captures(%arg3) outs(%arg0, %arg1) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) score (%score: f32, %query: i32, %key: i32, %capture: f32) {
      %0 = arith.mulf %score, %capture : f32
      varlen.yield %0 : f32
    }
    %dq, %dk, %dv, %dcapture = varlen.attn_grad_into %arg0, %arg0, %arg0, %arg0, %out, %lse, %arg2, %arg2 captures(%arg3) outs(%arg0, %arg0, %arg0, %arg3) {wrt_captures = array<i64: 0>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>) score (%score: f32, %query: i32, %key: i32, %capture: f32) {
      %0 = arith.mulf %score, %capture : f32
      varlen.yield %0 : f32
    }
    return %dq, %dcapture : tensor<?x4x16xf32>, tensor<4xf32>
  }
  func.func @jvp(%arg0: tensor<?x4x16xf32>, %arg1: tensor<4x?xf32>, %arg2: tensor<?xi32>, %arg3: tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
    %out, %lse, %tout, %tlse = varlen.attn_jvp %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg2, %arg2 sink(%arg3) tsink(%arg3) tcaptures(%arg3) captures(%arg3) {mask = #varlen.mask<causal>, wrt_captures = array<i64: 0>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) score (%score: f32, %query: i32, %key: i32, %capture: f32) {
      %0 = arith.mulf %score, %capture : f32
      varlen.yield %0 : f32
    }
    %out_0, %lse_1, %tout_2, %tlse_3 = varlen.attn_jvp_into %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg2, %arg2 outs(%out, %arg1, %tout, %arg1) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>)
    return %out_0, %tout_2 : tensor<?x4x16xf32>, tensor<?x4x16xf32>
  }
  func.func @jvp_grad(%arg0: tensor<?x4x16xf32>, %arg1: tensor<4x?xf32>, %arg2: tensor<?xi32>, %arg3: tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>) {
    %dq, %dk, %dv, %dsink, %dcapture = varlen.attn_jvp_grad %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg1, %arg0, %arg1, %arg2, %arg2 dtlse(%arg1) dout(%arg0) dlse(%arg1) sink(%arg3) tsink(%arg3) tcaptures(%arg3) captures(%arg3) {mask = #varlen.mask<causal>, wrt_captures = array<i64: 0>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>, tensor<4xf32>) score (%score: f32, %query: i32, %key: i32, %capture: f32) {
      %0 = arith.mulf %score, %capture : f32
      varlen.yield %0 : f32
    }
    %dq_0, %dk_1, %dv_2 = varlen.attn_jvp_grad_into %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg0, %arg1, %arg0, %arg1, %arg2, %arg2 outs(%dq, %dk, %dv) : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
    return %dq, %dq_0 : tensor<?x4x16xf32>, tensor<?x4x16xf32>
  }
  func.func @merge(%arg0: tensor<?x4x16xbf16>, %arg1: tensor<4x?xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>) {
    %out, %lse = varlen.merge %arg0, %arg1, %arg0, %arg1 : (tensor<?x4x16xbf16>, tensor<4x?xf32>, tensor<?x4x16xbf16>, tensor<4x?xf32>) -> (tensor<?x4x16xbf16>, tensor<4x?xf32>)
    return %out, %lse : tensor<?x4x16xbf16>, tensor<4x?xf32>
  }
  func.func @buffers(%arg0: memref<?x4x16xf32>, %arg1: memref<?xi32>, %arg2: memref<4x?xf32>, %arg3: memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, %arg4: memref<4xf32>, %arg5: memref<4xf32>) {
    varlen.attn %arg3, %arg3, %arg3, %arg1, %arg1 outs(%arg0, %arg2) captures(%arg4) : (memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?xi32>, memref<?xi32>, memref<?x4x16xf32>, memref<4x?xf32>, memref<4xf32>) -> () score (%score: f32, %query: i32, %key: i32, %capture: f32) {
      %0 = arith.mulf %score, %capture : f32
      varlen.yield %0 : f32
    }
    varlen.attn_grad %arg0, %arg3, %arg3, %arg3, %arg0, %arg2, %arg1, %arg1 outs(%arg3, %arg3, %arg3, %arg5) captures(%arg4) {wrt_captures = array<i64: 0>} : (memref<?x4x16xf32>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?x4x16xf32>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<?x4x16xf32, strided<[192, 16, 1], offset: ?>>, memref<4xf32>, memref<4xf32>) -> () score (%score: f32, %query: i32, %key: i32, %capture: f32) {
      %0 = arith.mulf %score, %capture : f32
      varlen.yield %0 : f32
    }
    return
  }
  func.func @pages(%arg0: tensor<?x4x16xf32>, %arg1: tensor<?x8x2x16xf32>, %arg2: tensor<?xi32>, %arg3: tensor<?x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
    %out, %lse = varlen.attn %arg0, %arg1, %arg1, %arg2 seqused_k(%arg2) block_table(%arg3) : (tensor<?x4x16xf32>, tensor<?x8x2x16xf32>, tensor<?x8x2x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
    return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
  }
  func.func @quantised(%arg0: tensor<?x4x16xf32>, %arg1: tensor<?x2x16xi8>, %arg2: tensor<?xi32>, %arg3: tensor<?x2xf32>, %arg4: tensor<2xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
    %out, %lse = varlen.attn %arg0, %arg1, %arg1, %arg2, %arg2 k_scale(%arg3) v_scale(%arg4) : (tensor<?x4x16xf32>, tensor<?x2x16xi8>, tensor<?x2x16xi8>, tensor<?xi32>, tensor<?xi32>, tensor<?x2xf32>, tensor<2xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
    return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
  }
}


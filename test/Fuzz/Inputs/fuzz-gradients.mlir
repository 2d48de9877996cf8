// The gradients of some functions of fuzz-cu-seqlens.mlir, which fuzz-gradients.h
// calls. All have the same arguments, whether they use them or not.

func.func @window_top_left_grad(
    %dout: memref<?x1x32xf32>, %q: memref<?x1x32xf32>, %k: memref<?x1x32xf32>,
    %v: memref<?x1x32xf32>, %out: memref<?x1x32xf32>, %lse: memref<1x?xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>, %used_k: memref<?xi32>,
    %sink: memref<1xf32>, %dlse: memref<1x?xf32>, %dq: memref<?x1x32xf32>,
    %dk: memref<?x1x32xf32>, %dv: memref<?x1x32xf32>, %dsink: memref<1xf32>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k
      outs(%dq, %dk, %dv) {mask = #varlen.mask<window = (20, 0), top_left>}
      : (memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<1x?xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>) -> ()
  return
}

func.func @gqa_used_sink_grad(
    %dout: memref<?x6x32xf32>, %q: memref<?x6x32xf32>, %k: memref<?x2x32xf32>,
    %v: memref<?x2x32xf32>, %out: memref<?x6x32xf32>, %lse: memref<6x?xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>, %used_k: memref<?xi32>,
    %sink: memref<6xf32>, %dlse: memref<6x?xf32>, %dq: memref<?x6x32xf32>,
    %dk: memref<?x2x32xf32>, %dv: memref<?x2x32xf32>, %dsink: memref<6xf32>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse) seqused_q(%used_q) seqused_k(%used_k) sink(%sink)
      outs(%dq, %dk, %dv, %dsink) {mask = #varlen.mask<causal>}
      : (memref<?x6x32xf32>,
         memref<?x6x32xf32>,
         memref<?x2x32xf32>,
         memref<?x2x32xf32>,
         memref<?x6x32xf32>,
         memref<6x?xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<6x?xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<6xf32>,
         memref<?x6x32xf32>,
         memref<?x2x32xf32>,
         memref<?x2x32xf32>,
         memref<6xf32>) -> ()
  return
}

func.func @bf16_gqa_window_used_grad(
    %dout: memref<?x4x128xbf16>, %q: memref<?x4x128xbf16>, %k: memref<?x2x128xbf16>,
    %v: memref<?x2x128xbf16>, %out: memref<?x4x128xbf16>, %lse: memref<4x?xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>, %used_k: memref<?xi32>,
    %sink: memref<4xf32>, %dlse: memref<4x?xf32>, %dq: memref<?x4x128xbf16>,
    %dk: memref<?x2x128xbf16>, %dv: memref<?x2x128xbf16>, %dsink: memref<4xf32>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse) seqused_q(%used_q) seqused_k(%used_k) sink(%sink)
      outs(%dq, %dk, %dv, %dsink) {mask = #varlen.mask<window = (40, 0)>}
      : (memref<?x4x128xbf16>,
         memref<?x4x128xbf16>,
         memref<?x2x128xbf16>,
         memref<?x2x128xbf16>,
         memref<?x4x128xbf16>,
         memref<4x?xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<4x?xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<4xf32>,
         memref<?x4x128xbf16>,
         memref<?x2x128xbf16>,
         memref<?x2x128xbf16>,
         memref<4xf32>) -> ()
  return
}

func.func @f16_full_sink_grad(
    %dout: memref<?x2x64xf16>, %q: memref<?x2x64xf16>, %k: memref<?x1x64xf16>,
    %v: memref<?x1x64xf16>, %out: memref<?x2x64xf16>, %lse: memref<2x?xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>, %used_k: memref<?xi32>,
    %sink: memref<2xf32>, %dlse: memref<2x?xf32>, %dq: memref<?x2x64xf16>,
    %dk: memref<?x1x64xf16>, %dv: memref<?x1x64xf16>, %dsink: memref<2xf32>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k sink(%sink)
      outs(%dq, %dk, %dv, %dsink) {mask = #varlen.mask<full>}
      : (memref<?x2x64xf16>,
         memref<?x2x64xf16>,
         memref<?x1x64xf16>,
         memref<?x1x64xf16>,
         memref<?x2x64xf16>,
         memref<2x?xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<2xf32>,
         memref<?x2x64xf16>,
         memref<?x1x64xf16>,
         memref<?x1x64xf16>,
         memref<2xf32>) -> ()
  return
}

func.func @f64_causal_grad(
    %dout: memref<?x2x32xf64>, %q: memref<?x2x32xf64>, %k: memref<?x1x32xf64>,
    %v: memref<?x1x32xf64>, %out: memref<?x2x32xf64>, %lse: memref<2x?xf64>,
    %cu_q: memref<?xi64>, %cu_k: memref<?xi64>, %used_q: memref<?xi64>, %used_k: memref<?xi64>,
    %sink: memref<2xf64>, %dlse: memref<2x?xf64>, %dq: memref<?x2x32xf64>,
    %dk: memref<?x1x32xf64>, %dv: memref<?x1x32xf64>, %dsink: memref<2xf64>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse)
      outs(%dq, %dk, %dv) {mask = #varlen.mask<causal>}
      : (memref<?x2x32xf64>,
         memref<?x2x32xf64>,
         memref<?x1x32xf64>,
         memref<?x1x32xf64>,
         memref<?x2x32xf64>,
         memref<2x?xf64>,
         memref<?xi64>,
         memref<?xi64>,
         memref<2x?xf64>,
         memref<?x2x32xf64>,
         memref<?x1x32xf64>,
         memref<?x1x32xf64>) -> ()
  return
}

func.func @odd_dims_grad(
    %dout: memref<?x2x40xf32>, %q: memref<?x2x24xf32>, %k: memref<?x1x24xf32>,
    %v: memref<?x1x40xf32>, %out: memref<?x2x40xf32>, %lse: memref<2x?xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>, %used_k: memref<?xi32>,
    %sink: memref<2xf32>, %dlse: memref<2x?xf32>, %dq: memref<?x2x24xf32>,
    %dk: memref<?x1x24xf32>, %dv: memref<?x1x40xf32>, %dsink: memref<2xf32>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k)
      outs(%dq, %dk, %dv) {mask = #varlen.mask<causal>}
      : (memref<?x2x40xf32>,
         memref<?x2x24xf32>,
         memref<?x1x24xf32>,
         memref<?x1x40xf32>,
         memref<?x2x40xf32>,
         memref<2x?xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x2x24xf32>,
         memref<?x1x24xf32>,
         memref<?x1x40xf32>) -> ()
  return
}

func.func @wide_index_grad(
    %dout: memref<?x2x32xf32>, %q: memref<?x2x64xf32>, %k: memref<?x2x64xf32>,
    %v: memref<?x2x32xf32>, %out: memref<?x2x32xf32>, %lse: memref<2x?xf32>,
    %cu_q: memref<?xi64>, %cu_k: memref<?xi64>, %used_q: memref<?xi64>, %used_k: memref<?xi64>,
    %sink: memref<2xf32>, %dlse: memref<2x?xf32>, %dq: memref<?x2x64xf32>,
    %dk: memref<?x2x64xf32>, %dv: memref<?x2x32xf32>, %dsink: memref<2xf32>) {
  varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu_q, %cu_k dlse(%dlse)
      outs(%dq, %dk, %dv) {mask = #varlen.mask<full>}
      : (memref<?x2x32xf32>,
         memref<?x2x64xf32>,
         memref<?x2x64xf32>,
         memref<?x2x32xf32>,
         memref<?x2x32xf32>,
         memref<2x?xf32>,
         memref<?xi64>,
         memref<?xi64>,
         memref<2x?xf32>,
         memref<?x2x64xf32>,
         memref<?x2x64xf32>,
         memref<?x2x32xf32>) -> ()
  return
}

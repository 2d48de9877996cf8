// The functions that fuzz-cu-seqlens.cpp calls; its table repeats what they are.
// All are in destination form: the caller owns every array, also the results.

func.func @full(
    %q: memref<?x2x64xf32>, %k: memref<?x2x64xf32>, %v: memref<?x2x64xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x2x64xf32>,
    %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<full>}
      : (memref<?x2x64xf32>,
         memref<?x2x64xf32>,
         memref<?x2x64xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x2x64xf32>,
         memref<2x?xf32>) -> ()
  return
}

func.func @causal(
    %q: memref<?x2x64xf32>, %k: memref<?x2x64xf32>, %v: memref<?x2x64xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x2x64xf32>,
    %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<?x2x64xf32>,
         memref<?x2x64xf32>,
         memref<?x2x64xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x2x64xf32>,
         memref<2x?xf32>) -> ()
  return
}

func.func @causal_top_left(
    %q: memref<?x1x32xf32>, %k: memref<?x1x32xf32>, %v: memref<?x1x32xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x1x32xf32>,
    %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<causal, top_left>}
      : (memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x1x32xf32>,
         memref<1x?xf32>) -> ()
  return
}

func.func @window(
    %q: memref<?x2x32xf32>, %k: memref<?x2x32xf32>, %v: memref<?x2x32xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x2x32xf32>,
    %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<window = (7, 3)>}
      : (memref<?x2x32xf32>,
         memref<?x2x32xf32>,
         memref<?x2x32xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x2x32xf32>,
         memref<2x?xf32>) -> ()
  return
}

func.func @window_top_left(
    %q: memref<?x1x32xf32>, %k: memref<?x1x32xf32>, %v: memref<?x1x32xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x1x32xf32>,
    %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<window = (20, 0), top_left>}
      : (memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x1x32xf32>,
         memref<1x?xf32>) -> ()
  return
}

func.func @future(
    %q: memref<?x1x32xf32>, %k: memref<?x1x32xf32>, %v: memref<?x1x32xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x1x32xf32>,
    %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<window = (0, 100)>}
      : (memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x1x32xf32>,
         memref<1x?xf32>) -> ()
  return
}

func.func @diagonal(
    %q: memref<?x1x16xf32>, %k: memref<?x1x16xf32>, %v: memref<?x1x16xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x1x16xf32>,
    %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<window = (0, 0)>}
      : (memref<?x1x16xf32>,
         memref<?x1x16xf32>,
         memref<?x1x16xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x1x16xf32>,
         memref<1x?xf32>) -> ()
  return
}

func.func @left_open(
    %q: memref<?x1x16xf32>, %k: memref<?x1x16xf32>, %v: memref<?x1x16xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x1x16xf32>,
    %lse: memref<1x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<window = (150, -1)>}
      : (memref<?x1x16xf32>,
         memref<?x1x16xf32>,
         memref<?x1x16xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x1x16xf32>,
         memref<1x?xf32>) -> ()
  return
}

func.func @gqa_used_sink(
    %q: memref<?x6x32xf32>, %k: memref<?x2x32xf32>, %v: memref<?x2x32xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>,
    %used_k: memref<?xi32>, %sink: memref<6xf32>, %out: memref<?x6x32xf32>,
    %lse: memref<6x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k) sink(%sink)
      outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<?x6x32xf32>,
         memref<?x2x32xf32>,
         memref<?x2x32xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<6xf32>,
         memref<?x6x32xf32>,
         memref<6x?xf32>) -> ()
  return
}

func.func @mqa_used_window(
    %q: memref<?x4x64xf32>, %k: memref<?x1x64xf32>, %v: memref<?x1x64xf32>,
    %cu_q: memref<?xi64>, %cu_k: memref<?xi64>, %used_q: memref<?xi64>,
    %used_k: memref<?xi64>, %out: memref<?x4x64xf32>, %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k)
      outs(%out, %lse) {mask = #varlen.mask<window = (33, 0)>}
      : (memref<?x4x64xf32>,
         memref<?x1x64xf32>,
         memref<?x1x64xf32>,
         memref<?xi64>,
         memref<?xi64>,
         memref<?xi64>,
         memref<?xi64>,
         memref<?x4x64xf32>,
         memref<4x?xf32>) -> ()
  return
}

func.func @used_top_left(
    %q: memref<?x2x32xf32>, %k: memref<?x1x32xf32>, %v: memref<?x1x32xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>,
    %used_k: memref<?xi32>, %sink: memref<2xf32>, %out: memref<?x2x32xf32>,
    %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k) sink(%sink)
      outs(%out, %lse) {mask = #varlen.mask<window = (-1, 5), top_left>}
      : (memref<?x2x32xf32>,
         memref<?x1x32xf32>,
         memref<?x1x32xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<2xf32>,
         memref<?x2x32xf32>,
         memref<2x?xf32>) -> ()
  return
}

func.func @bf16_causal(
    %q: memref<?x2x64xbf16>, %k: memref<?x2x64xbf16>, %v: memref<?x2x64xbf16>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %out: memref<?x2x64xbf16>,
    %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<?x2x64xbf16>,
         memref<?x2x64xbf16>,
         memref<?x2x64xbf16>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x2x64xbf16>,
         memref<2x?xf32>) -> ()
  return
}

func.func @bf16_gqa_window_used(
    %q: memref<?x4x128xbf16>, %k: memref<?x2x128xbf16>, %v: memref<?x2x128xbf16>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>,
    %used_k: memref<?xi32>, %sink: memref<4xf32>, %out: memref<?x4x128xbf16>,
    %lse: memref<4x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k) sink(%sink)
      outs(%out, %lse) {mask = #varlen.mask<window = (40, 0)>}
      : (memref<?x4x128xbf16>,
         memref<?x2x128xbf16>,
         memref<?x2x128xbf16>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<4xf32>,
         memref<?x4x128xbf16>,
         memref<4x?xf32>) -> ()
  return
}

func.func @f16_full_sink(
    %q: memref<?x2x64xf16>, %k: memref<?x1x64xf16>, %v: memref<?x1x64xf16>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %sink: memref<2xf32>,
    %out: memref<?x2x64xf16>, %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k sink(%sink)
      outs(%out, %lse) {mask = #varlen.mask<full>}
      : (memref<?x2x64xf16>,
         memref<?x1x64xf16>,
         memref<?x1x64xf16>,
         memref<?xi32>,
         memref<?xi32>,
         memref<2xf32>,
         memref<?x2x64xf16>,
         memref<2x?xf32>) -> ()
  return
}

func.func @f64_causal(
    %q: memref<?x2x32xf64>, %k: memref<?x1x32xf64>, %v: memref<?x1x32xf64>,
    %cu_q: memref<?xi64>, %cu_k: memref<?xi64>, %out: memref<?x2x32xf64>,
    %lse: memref<2x?xf64>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<?x2x32xf64>,
         memref<?x1x32xf64>,
         memref<?x1x32xf64>,
         memref<?xi64>,
         memref<?xi64>,
         memref<?x2x32xf64>,
         memref<2x?xf64>) -> ()
  return
}

func.func @odd_dims(
    %q: memref<?x2x24xf32>, %k: memref<?x1x24xf32>, %v: memref<?x1x40xf32>,
    %cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used_q: memref<?xi32>,
    %used_k: memref<?xi32>, %out: memref<?x2x40xf32>, %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k)
      outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<?x2x24xf32>,
         memref<?x1x24xf32>,
         memref<?x1x40xf32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?xi32>,
         memref<?x2x40xf32>,
         memref<2x?xf32>) -> ()
  return
}

func.func @wide_index(
    %q: memref<?x2x64xf32>, %k: memref<?x2x64xf32>, %v: memref<?x2x32xf32>,
    %cu_q: memref<?xi64>, %cu_k: memref<?xi64>, %out: memref<?x2x32xf32>,
    %lse: memref<2x?xf32>) {
  varlen.attn %q, %k, %v, %cu_q, %cu_k
      outs(%out, %lse) {mask = #varlen.mask<full>}
      : (memref<?x2x64xf32>,
         memref<?x2x64xf32>,
         memref<?x2x32xf32>,
         memref<?xi64>,
         memref<?xi64>,
         memref<?x2x32xf32>,
         memref<2x?xf32>) -> ()
  return
}

// Attention and its gradients on tensors, with destinations and a capture.
func.func @before(
    %dout: tensor<?x2x32xbf16> {varlen.name = "dout"},
    %q: tensor<?x2x32xbf16> {varlen.name = "q"},
    %k: tensor<?x1x32xbf16> {varlen.name = "k"},
    %v: tensor<?x1x32xbf16> {varlen.name = "v"},
    %cu: tensor<?xi32> {varlen.name = "cu_seqlens"},
    %slopes: tensor<2xf32> {varlen.name = "slopes"})
    -> (tensor<?x2x32xbf16> {varlen.name = "out"}, tensor<2x?xf32> {varlen.name = "lse"},
        tensor<?x2x32xbf16> {varlen.name = "dq"}, tensor<?x1x32xbf16> {varlen.name = "dk"},
        tensor<?x1x32xbf16> {varlen.name = "dv"}, tensor<2xf32> {varlen.name = "dslopes"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x2x32xbf16>
  %o0 = tensor.empty(%n) : tensor<?x2x32xbf16>
  %l0 = tensor.empty(%n) : tensor<2x?xf32>
  %out, %lse = varlen.attn_into %q, %k, %v, %cu, %cu captures(%slopes) outs(%o0, %l0)
      {mask = #varlen.mask<causal>}
      : (tensor<?x2x32xbf16>, tensor<?x1x32xbf16>, tensor<?x1x32xbf16>, tensor<?xi32>, tensor<?xi32>,
         tensor<?x2x32xbf16>, tensor<2x?xf32>, tensor<2xf32>)
      -> (tensor<?x2x32xbf16>, tensor<2x?xf32>) score (%s: f32, %i: i32, %j: i32, %slope: f32) {
    %ahead = arith.subi %j, %i : i32
    %x = arith.sitofp %ahead : i32 to f32
    %distance = math.absf %x : f32
    %y = arith.mulf %slope, %distance : f32
    %new = arith.subf %s, %y : f32
    varlen.yield %new : f32
  }
  %dq0 = tensor.empty(%n) : tensor<?x2x32xbf16>
  %dk0 = tensor.empty(%n) : tensor<?x1x32xbf16>
  %ds0 = tensor.empty() : tensor<2xf32>
  %dq, %dk, %dv, %ds = varlen.attn_grad_into %dout, %q, %k, %v, %out, %lse, %cu, %cu
      captures(%slopes) outs(%dq0, %dk0, %dk0, %ds0)
      {mask = #varlen.mask<causal>, wrt_captures = array<i64: 0>}
      : (tensor<?x2x32xbf16>, tensor<?x2x32xbf16>, tensor<?x1x32xbf16>, tensor<?x1x32xbf16>,
         tensor<?x2x32xbf16>, tensor<2x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x2x32xbf16>,
         tensor<?x1x32xbf16>, tensor<?x1x32xbf16>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<?x2x32xbf16>, tensor<?x1x32xbf16>, tensor<?x1x32xbf16>, tensor<2xf32>)
      score (%s: f32, %i: i32, %j: i32, %slope: f32) {
    %ahead = arith.subi %j, %i : i32
    %x = arith.sitofp %ahead : i32 to f32
    %distance = math.absf %x : f32
    %y = arith.mulf %slope, %distance : f32
    %new = arith.subf %s, %y : f32
    varlen.yield %new : f32
  }
  return %out, %lse, %dq, %dk, %dv, %ds
      : tensor<?x2x32xbf16>, tensor<2x?xf32>, tensor<?x2x32xbf16>, tensor<?x1x32xbf16>,
        tensor<?x1x32xbf16>, tensor<2xf32>
}

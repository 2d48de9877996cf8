// REQUIRES: plugin
// RUN: %mlir-opt-plugin --allow-unregistered-dialect --pass-pipeline='builtin.module(varlen-import-stablehlo)' %s | FileCheck %s

// CHECK-LABEL: func @plain(
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-NOT: stablehlo
func.func @plain(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>) {
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = ""}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %0#0, %0#1 : tensor<8x4x16xf32>, tensor<4x8xf32>
}

// Optional operands are in the order of the configuration; JAX's scale is f64.

// CHECK-LABEL: func @options(
// CHECK-SAME: %[[Q:.*]]: tensor<8x4x16xf32>, %[[CU:.*]]: tensor<3xi32>, %[[USED:.*]]: tensor<2xi32>, %[[SINK:.*]]: tensor<4xf32>
// CHECK: varlen.attn %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] seqused_k(%[[USED]]) sink(%[[SINK]])
// CHECK-SAME: mask = #varlen.mask<window = (128, 0), top_left>
// CHECK-SAME: scale = 1.250000e-01 : f32
func.func @options(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>, %sink: tensor<4xf32>)
    -> tensor<8x4x16xf32> {
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %sink, %used)
      {call_target_name = "varlen.attn", api_version = 4 : i32,
       backend_config = {causal = true, window_left = 128 : i64, top_left = true, scale = 0.125 : f64,
                         operands = ["sink", "seqused_k"]}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>,
         tensor<4xf32>, tensor<2xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %0#0 : tensor<8x4x16xf32>
}

// What a handler of XLA's can have: no arrays of texts, and the source that it runs, which
// says the same and has the score.

// CHECK-LABEL: func @handler(
// CHECK-SAME: %[[Q:.*]]: tensor<8x4x16xf32>, %[[CU:.*]]: tensor<3xi32>, %[[USED:.*]]: tensor<2xi32>, %[[SINK:.*]]: tensor<4xf32>, %[[SLOPES:.*]]: tensor<4xf32>
// CHECK: varlen.attn %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] seqused_k(%[[USED]]) sink(%[[SINK]]) captures(%[[SLOPES]])
// CHECK-SAME: mask = #varlen.chunk_mask<8, top_left>
// CHECK-SAME: score (%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: f32) {
// CHECK: arith.mulf
func.func @handler(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>, %sink: tensor<4xf32>,
                   %slopes: tensor<4xf32>) -> tensor<8x4x16xf32> {
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %used, %sink, %slopes)
      {call_target_name = "varlen.attn", api_version = 4 : i32,
       backend_config = {chunk = 8 : i64, top_left = true, operands = "seqused_k,sink,slopes",
                         source = "func.func @attention(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x16xf32>, %cu_q: tensor<?xi32>, %cu_k: tensor<?xi32>, %used: tensor<?xi32>, %sink: tensor<4xf32>, %slopes: tensor<4xf32> {varlen.name = \22slopes\22}) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) { %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_k(%used) sink(%sink) captures(%slopes) {mask = #varlen.chunk_mask<8, top_left>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) score (%score: f32, %query: i32, %key: i32, %slope: f32) { %new = arith.mulf %score, %slope : f32 varlen.yield %new : f32 } return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32> }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>,
         tensor<2xi32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %0#0 : tensor<8x4x16xf32>
}

// A score as text, beside the mask; what it looks up is the last operand.

// CHECK-LABEL: func @score(
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x16xf64>, %[[CU:.*]]: tensor<3xi32>, %[[SINK:.*]]: tensor<4xf64>, %[[BIAS:.*]]: tensor<4x?xf64>
// CHECK: varlen.attn %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] sink(%[[SINK]]) captures(%[[BIAS]]) {mask = #varlen.mask<causal>}
// CHECK-SAME: score (%{{.*}}: f64, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: !varlen.table<f64, keys>) {
// CHECK: varlen.lookup
func.func @score(%q: tensor<?x4x16xf64>, %cu: tensor<3xi32>, %sink: tensor<4xf64>, %bias: tensor<4x?xf64>) -> tensor<?x4x16xf64> {
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %sink, %bias)
      {call_target_name = "varlen.attn", backend_config = {causal = true, operands = ["sink", "bias"],
       score = "captures(%bias: tensor<?x?xf64>) score (%score: f64, %query: i32, %key: i32, %bias: !varlen.table<f64, keys>) { %b = varlen.lookup %bias[%key] : !varlen.table<f64, keys> %new = arith.addf %score, %b : f64 varlen.yield %new : f64 }"}}
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<3xi32>, tensor<3xi32>, tensor<4xf64>, tensor<4x?xf64>)
      -> (tensor<?x4x16xf64>, tensor<4x?xf64>)
  return %0#0 : tensor<?x4x16xf64>
}

// A call of kernels for a GPU has a workspace.

// CHECK-LABEL: func @workspace(
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = varlen.attn
// CHECK-NOT: stablehlo
// CHECK: return %[[OUT]], %[[LSE]]
func.func @workspace(%q: tensor<8x4x16xbf16>, %cu: tensor<3xi32>) -> (tensor<8x4x16xbf16>, tensor<4x8xf32>) {
  %0:3 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu)
      {call_target_name = "varlen.attn", api_version = 4 : i32, backend_config = {chip = "sm_90a"}}
      : (tensor<8x4x16xbf16>, tensor<8x4x16xbf16>, tensor<8x4x16xbf16>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xbf16>, tensor<4x8xf32>, tensor<512xui8>)
  return %0#0, %0#1 : tensor<8x4x16xbf16>, tensor<4x8xf32>
}

// Gradients of captures are wanted where there are results for them.

// CHECK-LABEL: func @gradients(
// CHECK: varlen.attn_grad {{.*}} captures(%{{.*}}, %{{.*}}) {wrt_captures = array<i64: 0, 1>} : {{.*}} score (
// CHECK: varlen.attn_grad {{.*}} captures(%{{.*}}, %{{.*}}) : {{.*}} score (
func.func @gradients(%q: tensor<8x4x16xf32>, %l: tensor<4x8xf32>, %cu: tensor<3xi32>, %gains: tensor<4x8xf32>, %slopes: tensor<4xf32>)
    -> (tensor<4x8xf32>, tensor<4xf32>, tensor<8x4x16xf32>) {
  %0:5 = "stablehlo.custom_call"(%q, %q, %q, %q, %q, %l, %cu, %cu, %gains, %slopes)
      {call_target_name = "varlen.attn_grad", backend_config = {operands = ["gains", "slopes"],
       score = "captures (%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) { %x = arith.mulf %score, %gains : f32 %new = arith.addf %x, %slopes : f32 varlen.yield %new : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4x8xf32>, tensor<4xf32>)
      -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<4xf32>)
  %1:3 = "stablehlo.custom_call"(%q, %q, %q, %q, %q, %l, %cu, %cu, %gains, %slopes)
      {call_target_name = "varlen.attn_grad", backend_config = {operands = ["gains", "slopes"],
       score = "captures (%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) { %x = arith.mulf %score, %gains : f32 %new = arith.addf %x, %slopes : f32 varlen.yield %new : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4x8xf32>, tensor<4xf32>)
      -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
  return %0#3, %0#4, %1#0 : tensor<4x8xf32>, tensor<4xf32>, tensor<8x4x16xf32>
}

// Tangents of captures are those that are named.

// CHECK-LABEL: func @tangents(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<8x4x16xf32>, %[[L:[a-z0-9]+]]: tensor<4x8xf32>, %[[CU:[a-z0-9]+]]: tensor<3xi32>, %[[A:[a-z0-9]+]]: tensor<4x8xf32>, %[[B:[a-z0-9]+]]: tensor<4xf32>, %[[T:[a-z0-9]+]]: tensor<4xf32>
// CHECK: varlen.attn_jvp %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] sink(%[[B]]) tsink(%[[T]]) tcaptures(%[[T]]) captures(%[[A]], %[[B]]) {mask = #varlen.mask<causal>, wrt_captures = array<i64: 1>} : {{.*}} score (
// CHECK: varlen.attn_jvp %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] :
func.func @tangents(%q: tensor<8x4x16xf32>, %l: tensor<4x8xf32>, %cu: tensor<3xi32>, %gains: tensor<4x8xf32>, %slopes: tensor<4xf32>, %t: tensor<4xf32>)
    -> (tensor<8x4x16xf32>, tensor<4x8xf32>) {
  %0:4 = "stablehlo.custom_call"(%q, %q, %q, %q, %q, %q, %cu, %cu, %slopes, %t, %gains, %slopes, %t)
      {call_target_name = "varlen.attn_jvp", backend_config = {causal = true, operands = "sink,tsink,gains,slopes,tslopes",
       score = "captures (%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) { %x = arith.mulf %score, %gains : f32 %new = arith.addf %x, %slopes : f32 varlen.yield %new : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>)
  %1:4 = "stablehlo.custom_call"(%q, %q, %q, %q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn_jvp"}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %0#2, %1#3 : tensor<8x4x16xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func @second(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<8x4x16xf32>, %[[L:[a-z0-9]+]]: tensor<4x8xf32>, %[[CU:[a-z0-9]+]]: tensor<3xi32>, %[[A:[a-z0-9]+]]: tensor<4xf32>, %[[T:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %{{.+}}, %{{.+}}, %{{.+}}, %[[DSINK:.+]], %[[DSLOPES:.+]] = varlen.attn_jvp_grad %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[L]], %[[Q]], %[[L]], %[[CU]], %[[CU]] dlse(%[[L]]) sink(%[[A]]) tsink(%[[T]]) tcaptures(%[[T]]) captures(%[[A]]) {mask = #varlen.mask<causal>, wrt_captures = array<i64: 0>} : {{.*}} score (
// CHECK: return %[[DSINK]], %[[DSLOPES]]
func.func @second(%q: tensor<8x4x16xf32>, %l: tensor<4x8xf32>, %cu: tensor<3xi32>, %a: tensor<4xf32>, %t: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %0:5 = "stablehlo.custom_call"(%q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu, %l, %a, %t, %a, %t)
      {call_target_name = "varlen.attn_jvp_grad", backend_config = {causal = true, operands = "dlse,sink,tsink,slopes,tslopes",
       score = "captures (%slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %slopes: f32) { %new = arith.addf %score, %slopes : f32 varlen.yield %new : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#3, %0#4 : tensor<4xf32>, tensor<4xf32>
}

// The extents of results are not the caller's to say.

// CHECK-LABEL: func @extents(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x4x16xf32>, %[[CU:[a-z0-9]+]]: tensor<3xi32>,
// CHECK: varlen.attn %[[Q]], %[[Q]], %[[Q]], %[[CU]], %[[CU]] :
func.func @extents(%q: tensor<?x4x16xf32>, %cu: tensor<3xi32>, %out: tensor<3xi32>, %lse: tensor<2xi32>)
    -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %out, %lse)
      {call_target_name = "varlen.attn", indices_of_shape_operands = dense<[5, 6]> : tensor<2xi64>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<3xi32>, tensor<3xi32>,
         tensor<3xi32>, tensor<2xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0#0, %0#1 : tensor<?x4x16xf32>, tensor<4x?xf32>
}

// A composite; what it decomposes to stays, and so do calls of others.

// CHECK-LABEL: func @composite(
// CHECK: varlen.attn_grad {{.*}} {mask = #varlen.mask<causal>}
// CHECK: "stablehlo.custom_call"{{.*}}"mine"
// CHECK: func private @oracle(
func.func @composite(%q: tensor<?x4x16xbf16>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>) {
  %0:3 = "stablehlo.composite"(%q, %q, %q, %q, %q, %l, %cu, %cu)
      {name = "varlen.attn_grad", composite_attributes = {causal = true}, decomposition = @oracle}
      : (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>,
         tensor<?x4x16xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>)
  "stablehlo.custom_call"() {call_target_name = "mine"} : () -> ()
  return %0#0, %0#1, %0#2 : tensor<?x4x16xbf16>, tensor<?x4x16xbf16>, tensor<?x4x16xbf16>
}
func.func private @oracle()

// The generic form as JAX and PyTorch/XLA print it: attributes are properties, with
// layouts, effects and what StableHLO says of the call besides.

// CHECK-LABEL: func @properties(
// CHECK: varlen.attn {{.*}} {mask = #varlen.mask<causal>, scale = 5.000000e-01 : f32}
// CHECK: varlen.attn_grad {{.*}} dlse(%{{[^)]*}}) :
// CHECK-NOT: stablehlo
func.func @properties(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>) {
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu)
      <{api_version = 4 : i32, backend_config = {causal = true, scale = 5.000000e-01 : f32}, call_target_name = "varlen.attn",
        called_computations = [], has_side_effect = false,
        operand_layouts = [dense<[2, 1, 0]> : tensor<3xindex>, dense<[2, 1, 0]> : tensor<3xindex>, dense<[2, 1, 0]> : tensor<3xindex>,
                           dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>],
        output_operand_aliases = [], result_layouts = [dense<[2, 1, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>]}>
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  %1:3 = "stablehlo.composite"(%q, %q, %q, %q, %0#0, %0#1, %cu, %cu, %0#1)
      <{composite_attributes = {operands = ["dlse"]}, decomposition = @oracle, name = "varlen.attn_grad", version = 0 : i32}> ({
      }) : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>,
         tensor<3xi32>, tensor<3xi32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
  return %0#0, %1#0 : tensor<8x4x16xf32>, tensor<8x4x16xf32>
}

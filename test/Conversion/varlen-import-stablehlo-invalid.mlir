// RUN: varlen-opt %s --allow-unregistered-dialect --varlen-import-stablehlo --split-input-file --verify-diagnostics

func.func @config(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected backend_config to be a dictionary, got "causal"}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = "causal"}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @unknown(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected causal, top_left, window_left, window_right, chunk, scale, operands and source as configuration, got dropout}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {dropout = 0.1 : f32}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @causal(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected causal to be a bool, got 1 : i64}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {causal = 1 : i64}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @window(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected window_left to be an integer, got "all"}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {window_left = "all"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @both(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected no window_right of a causal mask but 0, got 7}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {causal = true, window_right = 7 : i64}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @bounds(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected window bounds >= -1 (-1 is open), got (-2, -1)}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {window_left = -2 : i64}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @scale(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected scale to be a float, got 1 : i64}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {scale = 1 : i64}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @names(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected operands to be names of optional operands (seqused_q, seqused_k, q_offset, sink), got ["dlse"]}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {operands = ["dlse"]}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @count(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected 5 operands (q, k, v, cu_q, cu_k) and 1 that are named by its configuration, got 5}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {operands = ["sink"]}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @twice(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected each operand once, got q_offset again}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {operands = ["q_offset", "q_offset"]}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @rule(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{'varlen.attn' op expected lse compatible with 'tensor<4x8xf32>', got 'tensor<8x4xf32>'}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn"}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<8x4xf32>)
  return
}

// -----

func.func @layout(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected operand_layouts to be row-major, got dense<[0, 1, 2]> : tensor<3xindex> of 'tensor<8x4x16xf32>'}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu)
      <{call_target_name = "varlen.attn", operand_layouts = [dense<[0, 1, 2]> : tensor<3xindex>, dense<[2, 1, 0]> : tensor<3xindex>,
        dense<[2, 1, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]}>
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @layouts(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected 2 result_layouts, got 1}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu)
      <{call_target_name = "varlen.attn", result_layouts = [dense<[2, 1, 0]> : tensor<3xindex>]}>
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @names_of_text(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected operands to be names of optional operands (seqused_q, seqused_k, q_offset, sink), got "sink, q_offset"}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {operands = "sink, q_offset"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @chunk(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected chunk to be at least 1, got 0 : i64}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {chunk = 0 : i64}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @chunk_too_large(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got 1099511627776}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {chunk = 1099511627776 : i64}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @chunk_and_window(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected one of causal, a window and chunk, got several}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {chunk = 8 : i64, causal = true}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// RUN: varlen-opt %s --allow-unregistered-dialect --varlen-import-stablehlo --split-input-file --verify-diagnostics

func.func @config(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected backend_config to be a dictionary, got "causal"}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = "causal"}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @unknown(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected causal, top_left, window_left, window_right, chunk, scale, operands, score, source and chip as configuration, got dropout}}
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
  // expected-error@+1 {{expected operands to be names of optional operands (seqused_q, seqused_k, q_offset, sink), got dlse}}
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
  // expected-error@+1 {{expected operands to be names of optional operands (seqused_q, seqused_k, q_offset, sink), got sink,  q_offset}}
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

// -----

func.func @attribute(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected no attribute output_operand_aliases, got [1]}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", output_operand_aliases = [1]}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @version(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected no attribute version, got 1 : i32}}
  %0:2 = "stablehlo.composite"(%q, %q, %q, %cu, %cu) {name = "varlen.attn", version = 1 : i32}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @configurations(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected one configuration, got backend_config and mhlo.backend_config}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {causal = true}, mhlo.backend_config = {top_left = true}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @score_no_text(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected score to be a text, got 1 : i64}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = 1 : i64}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @score_no_region(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected score to be the text of a score, [captures(%name: type, ...)] score (...) {...}, got 'softcap(5.0)'}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "softcap(5.0)"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @score_error(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got an error: use of undeclared SSA value name}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "score (%s: f32, %query: i32, %key: i32) { varlen.yield %t : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @score_dialect(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got an error: Dialect `llvm' not found}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "score (%s: f32, %query: i32, %key: i32) { llvm.unreachable }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @score_behind(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got more than that}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "score (%s: f32, %query: i32, %key: i32) { varlen.yield %s : f32 } %c = arith.constant 1 : i32"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @score_function(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got more than that}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "score (%s: f32, %query: i32, %key: i32) { varlen.yield %s : f32 } return %varlen.out#0, %varlen.out#1 : tensor<0x1x1xf32>, tensor<1x0xf32> } func.func private @exit() func.func private @g() -> (tensor<0x1x1xf32>, tensor<1x0xf32>) { %varlen.out:2 = call @g() : () -> (tensor<0x1x1xf32>, tensor<1x0xf32>)"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @score_type(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected a score region of 'f32'}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "score (%s: f64, %query: i32, %key: i32) { varlen.yield %s : f64 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @capture_names(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %a: tensor<4xf32>) {
  // expected-error@+1 {{expected operands to be names of optional operands (seqused_q, seqused_k, q_offset, sink) and then the captures a, got b}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %a) {call_target_name = "varlen.attn", backend_config = {operands = ["b"], score = "captures(%a: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %a: f32) { %n = arith.addf %score, %a : f32 varlen.yield %n : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @tangent_names(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %a: tensor<4xf32>) {
  // expected-error@+1 {{expected operands to be names of optional operands (seqused_q, seqused_k, q_offset, sink, tsink) and then the captures a, b and tangents of some, ta, tb, got a, b, tb, ta}}
  %0:4 = "stablehlo.custom_call"(%q, %q, %q, %q, %q, %q, %cu, %cu, %a, %a, %a, %a) {call_target_name = "varlen.attn_jvp", backend_config = {operands = "a,b,tb,ta", score = "captures(%a: tensor<?xf32>, %b: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %a: f32, %b: f32) { %n = arith.addf %score, %a : f32 varlen.yield %n : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @tsink_alone(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %a: tensor<4xf32>) {
  // expected-error@+1 {{expected a sink beside tsink}}
  %0:4 = "stablehlo.custom_call"(%q, %q, %q, %q, %q, %q, %cu, %cu, %a) {call_target_name = "varlen.attn_jvp", backend_config = {operands = "tsink"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @capture_absent(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{and then the captures a, got }}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "captures(%a: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %a: f32) { %n = arith.addf %score, %a : f32 varlen.yield %n : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @capture_rank(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %a: tensor<4x8xf32>) {
  // expected-error@+1 {{expected a capture of type 'tensor<?xf32>', got 'tensor<4x8xf32>'}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %a) {call_target_name = "varlen.attn", backend_config = {operands = ["a"], score = "captures(%a: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %a: f32) { %n = arith.addf %score, %a : f32 varlen.yield %n : f32 }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4x8xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @source_text(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected source to be the text of a function with one attention, got: }}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {source = "func.func @f("}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @source_function(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected source to be the text of a function of one attention that returns its results, and of nothing else}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {source = "func.func @f() { return }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @source_mask(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected source to say what the configuration does, got another mask: #varlen.mask<causal> and #varlen.mask<full>}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {source = "func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x16xf32>, %a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) { %out, %lse = varlen.attn %q, %k, %v, %a, %b {mask = #varlen.mask<causal>} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)  return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32> }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @source_scale(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{got another scale: 5.000000e-01 : f32 and 2.500000e-01 : f32}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {scale = 0.25 : f64, source = "func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x16xf32>, %a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) { %out, %lse = varlen.attn %q, %k, %v, %a, %b {scale = 0.5 : f32} : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)  return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32> }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @source_score(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) {
  // expected-error@+1 {{expected source to say what the configuration does, got another score}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {score = "score (%s: f32, %query: i32, %key: i32) { %n = arith.negf %s : f32 varlen.yield %n : f32 }", source = "func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x16xf32>, %a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) { %out, %lse = varlen.attn %q, %k, %v, %a, %b  : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) score (%score: f32, %query: i32, %key: i32) { varlen.yield %score : f32 } return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32> }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @source_operands(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %a: tensor<4xf32>) {
  // expected-error@+1 {{expected source to say what the configuration does, got another use of operands}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu, %a) {call_target_name = "varlen.attn", backend_config = {operands = ["sink"], source = "func.func @f(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x16xf32>, %a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) { %out, %lse = varlen.attn %q, %k, %v, %a, %b  : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)  return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32> }"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<4xf32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @workspace(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{expected a workspace as the last result, which nothing reads, of a call for "sm_80"}}
  %0:2 = "stablehlo.custom_call"(%q, %q, %q, %cu, %cu) {call_target_name = "varlen.attn", backend_config = {chip = "sm_80"}}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return %0#1 : tensor<4x8xf32>
}

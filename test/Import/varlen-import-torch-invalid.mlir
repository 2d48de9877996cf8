// RUN: varlen-opt %s --allow-unregistered-dialect --varlen-import-torch --split-input-file --verify-diagnostics

func.func @count(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected 14 operands of torch.torch_attn._varlen_attn, got 13}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @newer(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected operands after the first 14 to be none, got '!torch.int'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none, %n) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none, !torch.int)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @cu_k(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected cu_k to be a value tensor with sizes and a dtype, got '!torch.none'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %none, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.none, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @pages_lengths(%q: !torch.vtensor<[9,4,16],f32>, %k: !torch.vtensor<[5,8,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %table: !torch.vtensor<[2,8],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected seqused_k with a block_table}}
  %0:3 = "torch.operator"(%q, %k, %k, %cu, %none, %n, %n, %false, %none, %none, %false, %none, %table, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[5,8,4,16],f32>, !torch.vtensor<[5,8,4,16],f32>, !torch.vtensor<[3],si32>, !torch.none, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.vtensor<[2,8],si32>, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @causal(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %flag: !torch.bool) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected is_causal to be a constant bool, got '!torch.bool'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %flag, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @no_causal(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected is_causal to be a constant bool, got '!torch.none'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %none, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @scale(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %s: !torch.float) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected scale to be none or a constant, got '!torch.float'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %s, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.float, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @negative(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  %s = "torch.constant.float"() <{value = -1.0 : f64}> : () -> !torch.float
  // expected-error@+1 {{'varlen.attn' op expected scale to be positive and finite, got -1}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %s, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.float, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @window(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  %w = "torch.prim.ListConstruct"(%n) : (!torch.int) -> !torch.list<int>
  // expected-error@+1 {{expected window_size to be none or a list of two constants, got '!torch.list<int>'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %w, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.list<int>, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @bound(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %i: !torch.int) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  %w = "torch.prim.ListConstruct"(%n, %i) : (!torch.int, !torch.int) -> !torch.list<int>
  // expected-error@+1 {{expected window_size to be none or a list of two constants, got '!torch.list<int>'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %w, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.list<int>, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @unranked(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %x: !torch.vtensor<*,f32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected q to be a value tensor with sizes and a dtype, got '!torch.vtensor<*,f32>'}}
  %0:3 = "torch.operator"(%x, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<*,f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @dtype(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %x: !torch.vtensor<[9,4,16],unk>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected q to be a value tensor with sizes and a dtype, got '!torch.vtensor<[9,4,16],unk>'}}
  %0:3 = "torch.operator"(%x, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],unk>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @mutable(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %x: !torch.tensor<[9,4,16],f32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected k to be a value tensor with sizes and a dtype, got '!torch.tensor<[9,4,16],f32>'}}
  %0:3 = "torch.operator"(%q, %x, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.tensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @result(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected results that are value tensors with sizes and a dtype, got '!torch.vtensor'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @rule(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{'varlen.attn' op expected lse compatible with 'tensor<4x9xf32>', got 'tensor<9x4xf32>'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4],f32>, !torch.vtensor<[2],ui64>)
  return
}

// -----

func.func @results(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected 3 results of torch.torch_attn._varlen_attn, got 2}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @rng(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected rng_state of a known size, got '!torch.vtensor<[?],ui64>'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %none, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[?],ui64>)
  "mine.use"(%0#2) : (!torch.vtensor<[?],ui64>) -> ()
  return
}

// -----

func.func @backward(%q: !torch.vtensor<[9,4,16],f32>, %l: !torch.vtensor<[4,9],f32>, %cu: !torch.vtensor<[3],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected 14 operands of torch.torch_attn._varlen_attn_backward, got 13}}
  %0:3 = "torch.operator"(%q, %q, %q, %q, %q, %l, %cu, %cu, %n, %n, %false, %none, %none) <{name = "torch.torch_attn._varlen_attn_backward"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none)
      -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>)
  return
}

// -----

func.func @varlen_out(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  // expected-error@+1 {{expected one of the attentions torch.torch_attn._varlen_attn, torch.torch_attn._varlen_attn_backward, torch.varlen.attn, torch.varlen.attn_backward, got torch.varlen.attn_out}}
  %0 = "torch.operator"(%q, %q, %q, %q, %cu, %cu) <{name = "torch.varlen.attn_out.default"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>) -> (!torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_few(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  // expected-error@+1 {{expected 5 operands of torch.varlen.attn, got 4}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_results(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  // expected-error@+1 {{expected 2 results of torch.varlen.attn, got 1}}
  %0 = "torch.operator"(%q, %q, %q, %cu, %cu) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>) -> (!torch.vtensor<[9,4,16],f32>)
  return
}

// -----

func.func @varlen_window(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %m: !torch.int) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  // expected-error@+1 {{expected left to be a constant integer, got '!torch.int'}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %m, %n) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_chunk(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %s = "torch.constant.str"() <{value = ""}> : () -> !torch.str
  %z = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
  // expected-error@+1 {{expected chunk to be none or at least 1, got 0 : i64}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %n, %n, %none, %s, %none, %none, %none, %z) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.none, !torch.none, !torch.none, !torch.int) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_score(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %s = "torch.constant.str"() <{value = "3fa2c07d"}> : () -> !torch.str
  // expected-error@+1 {{expected score to be the text of a score, [captures(%name: type, ...)] score (...) {...}, got '3fa2c07d'}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %n, %n, %none, %s) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_score_of_run_time(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %s: !torch.str) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  // expected-error@+1 {{expected score to be a constant text, got '!torch.str'}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %n, %n, %none, %s) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_captures(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %l: !torch.vtensor<[4,9],f32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %s = "torch.constant.str"() <{value = "captures(%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) {\0A    %x = arith.mulf %score, %gains : f32\0A    %new = arith.subf %x, %slopes : f32\0A    varlen.yield %new : f32\0A  }"}> : () -> !torch.str
  %c = "torch.prim.ListConstruct"(%l) : (!torch.vtensor<[4,9],f32>) -> !torch.list<vtensor>
  // expected-error@+1 {{expected 2 captures of the score, got 1}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %n, %n, %none, %s, %c) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.list<vtensor>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_list(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %c: !torch.list<vtensor>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %s = "torch.constant.str"() <{value = "captures(%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) {\0A    %x = arith.mulf %score, %gains : f32\0A    %new = arith.subf %x, %slopes : f32\0A    varlen.yield %new : f32\0A  }"}> : () -> !torch.str
  // expected-error@+1 {{expected captures to be none or a list of tensors, got '!torch.list<vtensor>'}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %n, %n, %none, %s, %c) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.list<vtensor>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_left_alone(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  // expected-error@+1 {{expected left to be a constant integer, got '!torch.none'}}
  %0:2 = "torch.operator"(%q, %q, %q, %cu, %cu, %none, %none, %none, %n) <{name = "torch.varlen.attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.none, !torch.int) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>)
  return
}

// -----

func.func @varlen_unpack(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %l: !torch.vtensor<[4,9],f32>, %a: !torch.vtensor<[4],f32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %s = "torch.constant.str"() <{value = "captures(%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) {\0A    %x = arith.mulf %score, %gains : f32\0A    %new = arith.subf %x, %slopes : f32\0A    varlen.yield %new : f32\0A  }"}> : () -> !torch.str
  %c = "torch.prim.ListConstruct"(%l, %a) : (!torch.vtensor<[4,9],f32>, !torch.vtensor<[4],f32>) -> !torch.list<vtensor>
  // expected-error@+1 {{expected one torch.prim.ListUnpack of the gradients of 2 captures, got mine.use}}
  %0:5 = "torch.operator"(%q, %none, %q, %q, %q, %q, %l, %cu, %cu, %none, %none, %n, %n, %none, %s, %c) <{name = "torch.varlen.attn_backward"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.none, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.list<vtensor>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[0],f32>, !torch.list<vtensor>)
  "mine.use"(%0#4) : (!torch.list<vtensor>) -> ()
  return
}

// -----

func.func @varlen_dsink(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %l: !torch.vtensor<[4,9],f32>, %a: !torch.vtensor<[4],f32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %n = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %s = "torch.constant.str"() <{value = "captures(%gains: tensor<?x?xf32>, %slopes: tensor<?xf32>) score (%score: f32, %query: i32, %key: i32, %gains: f32, %slopes: f32) {\0A    %x = arith.mulf %score, %gains : f32\0A    %new = arith.subf %x, %slopes : f32\0A    varlen.yield %new : f32\0A  }"}> : () -> !torch.str
  %c = "torch.prim.ListConstruct"(%l, %a) : (!torch.vtensor<[4,9],f32>, !torch.vtensor<[4],f32>) -> !torch.list<vtensor>
  // expected-error@+1 {{expected no use of the gradient of a sink that is none}}
  %0:5 = "torch.operator"(%q, %none, %q, %q, %q, %q, %l, %cu, %cu, %none, %none, %n, %n, %none, %s, %c) <{name = "torch.varlen.attn_backward"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.none, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[4,9],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.none, !torch.none, !torch.int, !torch.int, !torch.none, !torch.str, !torch.list<vtensor>) -> (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[0],f32>, !torch.list<vtensor>)
  "mine.use"(%0#3) : (!torch.vtensor<[0],f32>) -> ()
  return
}

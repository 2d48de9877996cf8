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

func.func @pages(%q: !torch.vtensor<[9,4,16],f32>, %cu: !torch.vtensor<[3],si32>, %table: !torch.vtensor<[2,8],si32>) {
  %false = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %n = "torch.constant.int"() <{value = 7 : i64}> : () -> !torch.int
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error@+1 {{expected block_table to be none: there are no paged keys and values, got '!torch.vtensor<[2,8],si32>'}}
  %0:3 = "torch.operator"(%q, %q, %q, %cu, %cu, %n, %n, %false, %none, %none, %false, %none, %table, %none) <{name = "torch.torch_attn._varlen_attn"}>
      : (!torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[9,4,16],f32>, !torch.vtensor<[3],si32>, !torch.vtensor<[3],si32>, !torch.int, !torch.int, !torch.bool, !torch.none, !torch.none, !torch.bool, !torch.none, !torch.vtensor<[2,8],si32>, !torch.none)
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

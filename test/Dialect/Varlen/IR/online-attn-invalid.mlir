// RUN: varlen-opt %s -split-input-file -verify-diagnostics

// Queries are rows in both orientations.
func.func @q(
    %q: tensor<64x32xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<48x32xf32>, %m: tensor<1x32xf32>, %l: tensor<1x32xf32>) {
  // expected-error @below {{expected q to be queries x head_dim = 32 x 64 in orientation kq, got 'tensor<64x32xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn kq
      ins(%q, %k, %v : tensor<64x32xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      scale 0.125
  return
}

// -----

// Keys with another head_dim.
func.func @k(
    %q: tensor<32x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected q to be queries x head_dim = 32 x 32 in orientation qk, got 'tensor<32x64xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x32xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// So are keys.
func.func @k_rows(
    %q: tensor<32x64xf32>, %k: tensor<64x16xf32>, %v: tensor<64x48xf32>,
    %acc: tensor<48x32xf32>, %m: tensor<1x32xf32>, %l: tensor<1x32xf32>) {
  // expected-error @below {{expected q to be queries x head_dim = 32 x 16 in orientation kq, got 'tensor<32x64xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn kq
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<64x16xf32>, tensor<64x48xf32>)
      outs(%acc, %m, %l : tensor<48x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      scale 0.125
  return
}

// -----

// Fewer values than keys.
func.func @v(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<15x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected v to be keys x value head_dim = 16 x 48 in orientation qk, got 'tensor<15x48xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<15x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// acc as kq has it.
func.func @acc_qk(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<48x32xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected acc to be queries x value head_dim = 32 x 48 in orientation qk, got 'tensor<48x32xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<48x32xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// acc as qk has it.
func.func @acc_kq(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<1x32xf32>, %l: tensor<1x32xf32>) {
  // expected-error @below {{expected acc to be value head_dim x queries = 48 x 32 in orientation kq, got 'tensor<32x48xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn kq
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      scale 0.125
  return
}

// -----

// A row in place of a column.
func.func @m(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<1x32xf32>, %l: tensor<1x32xf32>) {
  // expected-error @below {{expected m to be queries x 1 = 32 x 1 in orientation qk, got 'tensor<1x32xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<1x32xf32>, tensor<1x32xf32>)
      scale 0.125
  return
}

// -----

// A column in place of a row, the number of queries from q alone.
func.func @l(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<48x?xf32>, %m: tensor<1x?xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected l to be 1 x queries = 1 x 32 in orientation kq, got 'tensor<32x1xf32>'}}
  %acc1, %m1, %l1 = varlen.online_attn kq
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<48x?xf32>, tensor<1x?xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// Limits are per query, not per key.
func.func @lo(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>,
    %lo: tensor<16x1xi32>, %hi: tensor<32x1xi32>, %k0: i32) {
  // expected-error @below {{expected lo to be queries x 1 = 32 x 1 in orientation qk, got 'tensor<16x1xi32>'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      limits(%lo, %hi, %k0 : tensor<16x1xi32>, tensor<32x1xi32>, i32)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// The same for the other limit.
func.func @hi(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>,
    %lo: tensor<32x1xi32>, %hi: tensor<1x16xi32>, %k0: i32) {
  // expected-error @below {{expected hi to be queries x 1 = 32 x 1 in orientation qk, got 'tensor<1x16xi32>'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      limits(%lo, %hi, %k0 : tensor<32x1xi32>, tensor<1x16xi32>, i32)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// The state has one type.
func.func @state_types(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf64>, %l: tensor<32x1xf64>) {
  // expected-error @below {{expected acc, m and l of one type, f32 or f64, got 'f64' for m}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf64>, tensor<32x1xf64>)
      scale 0.125
  return
}

// -----

// The state is never 16-bit.
func.func @state_compute(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xbf16>, %m: tensor<32x1xbf16>, %l: tensor<32x1xbf16>) {
  // expected-error @below {{expected acc, m and l of one type, f32 or f64, got 'bf16' for acc}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xbf16>, tensor<32x1xbf16>, tensor<32x1xbf16>)
      scale 0.125
  return
}

// -----

// f64 does not accumulate in f32.
func.func @input_type(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf64>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected v of a type that accumulates in 'f32', the type of acc, got 'f64'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf64>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// f32 does not accumulate in f64.
func.func @input_compute(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf64>, %m: tensor<32x1xf64>, %l: tensor<32x1xf64>) {
  // expected-error @below {{expected q of a type that accumulates in 'f64', the type of acc, got 'f32'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf64>, tensor<32x1xf64>, tensor<32x1xf64>)
      scale 0.125
  return
}

// -----

// q and k of different types.
func.func @qk_types(
    %q: tensor<32x64xf32>, %k: tensor<16x64xbf16>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected q and k of one element type, got 'f32' and 'bf16'}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xbf16>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0.125
  return
}

// -----

// A negative scale.
func.func @scale(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected scale to be positive and finite, got -0.125}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale -0.125
  return
}

// -----

// A scale that is not a number.
func.func @scale_nan(
    %q: tensor<32x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x48xf32>,
    %acc: tensor<32x48xf32>, %m: tensor<32x1xf32>, %l: tensor<32x1xf32>) {
  // expected-error @below {{expected scale to be positive and finite, got NaN}}
  %acc1, %m1, %l1 = varlen.online_attn qk
      ins(%q, %k, %v : tensor<32x64xf32>, tensor<16x64xf32>, tensor<16x48xf32>)
      outs(%acc, %m, %l : tensor<32x48xf32>, tensor<32x1xf32>, tensor<32x1xf32>)
      scale 0x7FF8000000000000
  return
}

// -----

// The generic form can have one limit.
func.func @one_limit(%t: tensor<8x8xf32>, %m: tensor<8x1xf32>, %lo: tensor<8x1xi32>) {
  // expected-error @below {{expected all of the limits lo, hi and k0 or none, got 1 of 3}}
  %0:3 = "varlen.online_attn"(%t, %t, %t, %lo, %t, %m, %m) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1>,
      orientation = #varlen<orientation qk>, scale = 1.0 : f64}>
      : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x1xi32>,
         tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      -> (tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  return
}

// -----

func.func @one_end(%t: tensor<8x8xf32>, %limit: tensor<8x1xi32>, %k0: i32, %m: tensor<8x1xf32>, %begin: index) {
  // expected-error @below {{expected both ends of the keys that are seen, got 1 of 2}}
  %0:3 = "varlen.online_attn"(%t, %t, %t, %limit, %limit, %k0, %begin, %t, %m, %m)
      {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1>,
       orientation = #varlen<orientation qk>, scale = 1.0 : f64} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>,
       tensor<8x1xi32>, tensor<8x1xi32>, i32, index, tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
      -> (tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  return
}

// -----

// There must be something that is hidden.
func.func @seen(%t: tensor<8x8xf32>, %m: tensor<8x1xf32>, %begin: index, %end: index) {
  // expected-error @below {{expected limits beside 'seen', got none}}
  %0:3 = varlen.online_attn qk
      ins(%t, %t, %t : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) seen(%begin, %end)
      outs(%t, %m, %m : tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 1.0
  return
}

// -----

// Results are tied to inits.
func.func @results(%t: tensor<8x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<8x8xf32>', 'tensor<8x1xf32>', 'tensor<8x1xf32>' are incompatible with return type(s) of operation 'tensor<?x8xf32>', 'tensor<8x1xf32>', 'tensor<8x1xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0:3 = "varlen.online_attn"(%t, %t, %t, %t, %m, %m) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1>,
      orientation = #varlen<orientation qk>, scale = 1.0 : f64}>
      : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>,
         tensor<8x1xf32>, tensor<8x1xf32>)
      -> (tensor<?x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>)
  return
}

// -----

func.func @positions(%q: tensor<8x16xf32>, %acc: tensor<8x8xf32>, %v: tensor<8x8xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected positions or tiles beside a score region that reads positions}}
  %0:3 = varlen.online_attn qk ins(%q, %q, %v : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x8xf32>)
      outs(%acc, %m, %m : tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 1.0
      score (%s: f32, %i: i32, %j: i32) {
        %x = arith.sitofp %j : i32 to f32
        varlen.yield %x : f32
      }
  return
}

// -----

func.func @positions_without_score(%q: tensor<8x16xf32>, %acc: tensor<8x8xf32>, %v: tensor<8x8xf32>,
                                   %m: tensor<8x1xf32>, %p: tensor<8x1xi32>, %key: i32) {
  // expected-error @below {{expected positions beside a score region of a step without tiles}}
  %0:3 = varlen.online_attn qk ins(%q, %q, %v : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x8xf32>)
      positions(%p, %key : tensor<8x1xi32>, i32)
      outs(%acc, %m, %m : tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 1.0
  return
}

// -----

func.func @capture_shape(%q: tensor<8x16xf32>, %acc: tensor<8x8xf32>, %v: tensor<8x8xf32>,
                         %m: tensor<8x1xf32>, %c: tensor<1x8xf32>) {
  // expected-error @below {{expected a capture to be queries x 1 = 8 x 1 in orientation qk, got 'tensor<1x8xf32>'}}
  %0:3 = varlen.online_attn qk ins(%q, %q, %v : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x8xf32>)
      captures(%c : tensor<1x8xf32>)
      outs(%acc, %m, %m : tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 1.0
      score (%s: f32, %i: i32, %j: i32, %x: f32) { varlen.yield %x : f32 }
  return
}

// -----

func.func @threshold(%q: tensor<16x64xf16>, %acc: tensor<16x64xf32>, %m: tensor<16x1xf32>) {
  %r:3 = varlen.online_attn qk ins(%q, %q, %q : tensor<16x64xf16>, tensor<16x64xf16>, tensor<16x64xf16>)
      // expected-error @below {{attribute 'rescale_threshold' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative whose maximum value is 8}}
      outs(%acc, %m, %m : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32>) scale 0.25 {rescale_threshold = 9 : i64}
  return
}

// -----

func.func @scale_shape(%q: tensor<8x16xf32>, %k: tensor<4x16xi8>, %scale: tensor<4x1xf32>,
                       %acc: tensor<8x16xf32>, %m: tensor<8x1xf32>) {
  // expected-error @below {{expected k_scale to be 1 x keys = 1 x 4 in orientation qk, got 'tensor<4x1xf32>'}}
  %0:3 = varlen.online_attn qk ins(%q, %k, %k : tensor<8x16xf32>, tensor<4x16xi8>, tensor<4x16xi8>)
      k_scale(%scale : tensor<4x1xf32>)
      outs(%acc, %m, %m : tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x1xf32>) scale 1.0
  return
}

// -----

func.func @scale_element(%q: tensor<8x16xf32>, %k: tensor<4x16xi8>, %scale: tensor<4x1xbf16>,
                         %acc: tensor<16x8xf32>, %m: tensor<1x8xf32>) {
  // expected-error @below {{expected v_scale of 'f32', got 'bf16'}}
  %0:3 = varlen.online_attn kq ins(%q, %k, %k : tensor<8x16xf32>, tensor<4x16xi8>, tensor<4x16xi8>)
      v_scale(%scale : tensor<4x1xbf16>)
      outs(%acc, %m, %m : tensor<16x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>) scale 1.0
  return
}

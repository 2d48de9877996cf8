// RUN: varlen-opt %s --varlen-expand-exp2 --split-input-file --verify-diagnostics
// RUN: not varlen-opt %s --varlen-expand-exp2=degree=7 2>&1 | FileCheck %s

// CHECK: error: degree must be 3 to 6 (got 7)

func.func @too_low(%x: f32) -> f32 {
  // expected-error @+1 {{varlen.exp2_degree must be an integer from 3 to 6 (got 2 : i64)}}
  %y = math.exp2 %x {varlen.exp2_degree = 2 : i64} : f32
  return %y : f32
}

// -----

func.func @no_integer(%x: f32) -> f32 {
  // expected-error @+1 {{varlen.exp2_degree must be an integer from 3 to 6 (got "high")}}
  %y = math.exp2 %x {varlen.exp2_degree = "high"} : f32
  return %y : f32
}

// -----

func.func @f64(%x: f64) -> f64 {
  // expected-error @+1 {{varlen.exp2_degree must be 11 for f64 (got 5 : i64)}}
  %y = math.exp2 %x {varlen.exp2_degree = 5 : i64} : f64
  return %y : f64
}

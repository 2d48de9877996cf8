// RUN: varlen-opt %s --varlen-expand-exp2 --split-input-file --verify-diagnostics
// RUN: not varlen-opt %s --varlen-expand-exp2=degree=7 2>&1 | FileCheck %s

// CHECK: error: expected degree to be from 3 to 6, got 7

func.func @f64(%x: f64) -> f64 {
  // expected-error @+1 {{expected varlen.exp2_degree of 11 for f64 and of less for other types, got 5}}
  %y = math.exp2 %x {varlen.exp2_degree = 5 : i64} : f64
  return %y : f64
}

// -----

func.func @f32(%x: f32) -> f32 {
  // expected-error @+1 {{expected varlen.exp2_degree of 11 for f64 and of less for other types, got 11}}
  %y = math.exp2 %x {varlen.exp2_degree = 11 : i64} : f32
  return %y : f32
}

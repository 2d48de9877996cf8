// RUN: varlen-opt %s --split-input-file --verify-diagnostics

func.func @narrow(%x: bf16, %zero: bf16, %key: index, %lo: i32, %hi: i32, %k0: i32) -> bf16 {
  // expected-error @below {{operand #0 must be f32 or f64, but got 'bf16'}}
  %y = varlen.hide %x with %zero at %key limits(%lo, %hi, %k0) : bf16
  return %y : bf16
}

// -----

func.func @two_types(%x: f32, %zero: f64, %key: index, %lo: i32, %hi: i32, %k0: i32) -> f32 {
  // expected-error @below {{failed to verify that all of {score, hidden, result} have same type}}
  %y = "varlen.hide"(%x, %zero, %key, %lo, %hi, %k0) : (f32, f64, index, i32, i32, i32) -> f32
  return %y : f32
}

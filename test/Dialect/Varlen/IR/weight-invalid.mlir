// RUN: varlen-opt %s --split-input-file --verify-diagnostics

func.func @narrow(%s: bf16, %c: bf16, %m: bf16) -> bf16 {
  // expected-error @below {{operand #0 must be f32 or f64, but got 'bf16'}}
  %p = varlen.weight %s by %c plus %m : bf16
  return %p : bf16
}

// -----

func.func @two_types(%s: f32, %c: f64, %m: f32) -> f32 {
  // expected-error @below {{requires the same type for all operands and results}}
  %p = "varlen.weight"(%s, %c, %m) : (f32, f64, f32) -> f32
  return %p : f32
}

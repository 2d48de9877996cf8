// RUN: varlen-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --varlen-differentiate="function=f mode=forward"
// RUN: not varlen-opt %s --split-input-file --allow-unregistered-dialect --varlen-differentiate="function=f mode=forward residuals=save" 2>&1 | FileCheck %s --check-prefix=SAVE
// RUN: not varlen-opt %s --split-input-file --allow-unregistered-dialect --varlen-differentiate="function=f mode=forward with-results" 2>&1 | FileCheck %s --check-prefix=RESULTS

// SAVE: error: residuals=save: expected mode=reverse
// RESULTS: error: with-results: expected mode=reverse

// An operation without a rule, which a tangent would have to pass.
func.func @f(%x: f32) -> f32 {
  // expected-error @below {{'test.unknown' has no rule of differentiation in the forward mode, but lies between what is differentiated and what it is differentiated by}}
  %y = "test.unknown"(%x) : (f32) -> f32
  return %y : f32
}

// -----

// The same in the body of a loop.
func.func @f(%x: f32, %n: index) -> f32 {
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c1 to %n step %c1 iter_args(%a = %x) -> f32 {
    // expected-error @below {{'math.clampf' has no rule of differentiation in the forward mode}}
    %b = math.clampf %a to [%x, %x] : f32
    scf.yield %b : f32
  }
  return %y : f32
}

// -----

// Calls have to be inlined.
func.func private @g(f32) -> f32
func.func @f(%x: f32) -> f32 {
  // expected-error @below {{'func.call' has no rule of differentiation in the forward mode}}
  %y = func.call @g(%x) : (f32) -> f32
  return %y : f32
}

// -----

// Memory has no tangents.
func.func @f(%x: f32, %m: memref<f32>) -> f32 {
  memref.store %x, %m[] : memref<f32>
  // expected-error @below {{'memref.load' reads memory, which what is differentiated by may have been written to}}
  %y = memref.load %m[] : memref<f32>
  return %y : f32
}

// -----

// A factor of probabilities that is smooth in a capture.
func.func @f(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>, %c: tensor<4xf32>) -> tensor<?x4x16xf32> {
  // expected-error @below {{expected a factor of probabilities without a derivative by a capture whose gradient is wanted, got one with that by capture 0}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu captures(%c)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %query: i32, %key: i32, %g: f32) {
        varlen.yield %s, %g : f32, f32
      }
  return %out : tensor<?x4x16xf32>
}

// RUN: varlen-opt %s --varlen-guard-attn --verify-diagnostics

// The runtime's name is taken by something else.
// expected-note @+1 {{the name stands for this}}
func.func private @varlen_extent_error(i32)

func.func @f(%q: tensor<?x?x?xf32>, %cu: tensor<?xi32>) -> tensor<?x?x?xf32> {
  // expected-error @+1 {{needs the runtime function 'varlen_extent_error' of type '(i64, i64, i64) -> ()'}}
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
    : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?xi32>, tensor<?xi32>)
    -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  return %out : tensor<?x?x?xf32>
}

// RUN: varlen-opt %s --varlen-differentiate="function=f" --verify-diagnostics

func.func @f(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %half = arith.truncf %s : f32 to f16
        // expected-error @below {{'arith.bitcast' has no rule of differentiation, but is part of the score of an attention that is differentiated}}
        %other = arith.bitcast %half : f16 to bf16
        %new = arith.extf %other : bf16 to f32
        varlen.yield %new : f32
      }
  return %out : tensor<?x4x16xf32>
}

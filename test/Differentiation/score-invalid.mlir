// RUN: varlen-opt %s --varlen-differentiate="function=f" --verify-diagnostics

func.func @f(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32) {
        %zero = arith.constant 0.0 : f32
        %two = arith.constant 2.0 : f32
        // expected-error @below {{'math.clampf' has no rule of differentiation, but is part of the score of an attention that is differentiated}}
        %new = math.clampf %s to [%zero, %two] : f32
        varlen.yield %new : f32
      }
  return %out : tensor<?x4x16xf32>
}

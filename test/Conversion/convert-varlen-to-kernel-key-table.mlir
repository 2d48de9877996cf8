// RUN: varlen-opt %s --varlen-to-nvvm --split-input-file --verify-diagnostics -o /dev/null

// Kernels look up in tables of keys.
func.func @keys(%q: tensor<?x4x64xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>,
                %bias: tensor<4x?xf32>) -> tensor<?x4x64xbf16> {
  %dq, %dk, %dv = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%bias)
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>,
         tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf32>)
      -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>)
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return %dq : tensor<?x4x64xbf16>
}

// -----

func.func @dkeys(%q: tensor<?x4x64xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>,
                 %bias: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // expected-error@+1 {{has the gradient of a table of keys, which no kernel for a GPU makes}}
  %0:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu captures(%bias)
      {wrt_captures = array<i64: 0>}
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>,
         tensor<?x4x64xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf32>)
      -> (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %table: !varlen.table<f32, keys>) {
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %new = arith.addf %s, %b : f32
        varlen.yield %new : f32
      }
  return %0#3 : tensor<4x?xf32>
}

// RUN: varlen-opt %s -varlen-bufferize -varlen-assign-schedule=target=avx512_bf16 -varlen-attn-to-loops=target=avx512_bf16 -verify-diagnostics | FileCheck %s
// RUN: varlen-opt %s -varlen-bufferize -varlen-assign-schedule=target=avx2 -varlen-attn-to-loops=target=avx2 -verify-diagnostics | FileCheck %s

// Tiles of tangents are scratch, too: none is allocated in a loop, which would be a remark. p is
// rounded where products take pairs of bf16.
// CHECK-LABEL: func.func @bf16
func.func @bf16(%q: tensor<?x4x32xbf16>, %cu: tensor<?xi32>) -> (tensor<?x4x32xbf16>, tensor<4x?xf32>) {
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x32xbf16>, tensor<4x?xf32>, tensor<?x4x32xbf16>, tensor<4x?xf32>)
  return %0#2, %0#3 : tensor<?x4x32xbf16>, tensor<4x?xf32>
}

// A score that has a factor of probabilities.
// CHECK-LABEL: func.func @factor
func.func @factor(%q: tensor<?x4x32xbf16>, %cu: tensor<?xi32>, %gain: tensor<4xf32>) -> tensor<?x4x32xbf16> {
  %0:4 = varlen.attn_jvp %q, %q, %q, %q, %q, %q, %cu, %cu captures(%gain)
      : (tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>)
      -> (tensor<?x4x32xbf16>, tensor<4x?xf32>, tensor<?x4x32xbf16>, tensor<4x?xf32>)
      score (%s: f32, %i: i32, %j: i32, %g: f32) {
        %t = math.tanh %s : f32
        varlen.yield %t, %g : f32, f32
      }
  return %0#2 : tensor<?x4x32xbf16>
}

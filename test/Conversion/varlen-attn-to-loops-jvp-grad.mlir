// RUN: varlen-opt %s -varlen-bufferize -varlen-assign-schedule=target=avx512_bf16 -varlen-attn-to-loops=target=avx512_bf16 -verify-diagnostics | FileCheck %s
// RUN: varlen-opt %s -varlen-bufferize -varlen-assign-schedule=target=avx2 -varlen-attn-to-loops=target=avx2 -verify-diagnostics | FileCheck %s

// Score tiles of second derivatives are scratch, too: none is allocated in a loop, which would be
// a remark. Weights are rounded where products take pairs of bf16.
// CHECK-LABEL: func.func @bf16
func.func @bf16(%q: tensor<?x4x32xbf16>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) -> (tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>) {
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu dout(%q) {mask = #varlen.mask<causal>}
      : (tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<4x?xf32>, tensor<?x4x32xbf16>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x32xbf16>)
      -> (tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>)
  return %0#0, %0#1, %0#2 : tensor<?x4x32xbf16>, tensor<?x4x32xbf16>, tensor<?x4x32xbf16>
}

// Without a dout p is no weight, but what weights are made of.
// CHECK-LABEL: func.func @f32
func.func @f32(%q: tensor<?x4x32xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>) -> tensor<?x4x32xf32> {
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu
      : (tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<4x?xf32>, tensor<?x4x32xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>)
  return %0#0 : tensor<?x4x32xf32>
}

// A score that has a factor of probabilities, and a capture with a gradient.
// CHECK-LABEL: func.func @factor
func.func @factor(%q: tensor<?x4x32xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>, %gain: tensor<4xf32>) -> tensor<4xf32> {
  %0:4 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %lse, %q, %lse, %cu, %cu dout(%q) tcaptures(%gain) captures(%gain, %gain)
      {wrt_captures = array<i64: 0>}
      : (tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<4x?xf32>, tensor<?x4x32xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x4x32xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<?x4x32xf32>, tensor<4xf32>)
      score (%s: f32, %i: i32, %j: i32, %g: f32, %h: f32) {
        %x = arith.mulf %s, %g : f32
        %t = math.tanh %x : f32
        varlen.yield %t, %h : f32, f32
      }
  return %0#3 : tensor<4xf32>
}

// RUN: varlen-opt %s --varlen-decompose-attn | FileCheck %s

// What the oracle writes out of a region has a value for all operands.
// CHECK-LABEL: func.func @oracle(
// CHECK: linalg.generic
// CHECK: %[[DIVISOR:.*]] = arith.select %{{.*}}, %{{.*}}, %[[J:.*]] : i32
// CHECK-NEXT: arith.remsi %{{.*}}, %[[DIVISOR]] : i32
func.func @oracle(%q: tensor<?x8x64xf32>, %cu: tensor<?xi32>) -> tensor<?x8x64xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x8x64xf32>, tensor<?x8x64xf32>, tensor<?x8x64xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x8x64xf32>, tensor<8x?xf32>)
      score (%score: f32, %query: i32, %key: i32) {
        %a = arith.remsi %query, %key : i32
        %h = arith.sitofp %a : i32 to f32
        %new = arith.addf %score, %h : f32
        varlen.yield %new : f32
      }
  return %out : tensor<?x8x64xf32>
}

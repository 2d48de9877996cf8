// RUN: varlen-opt %s --canonicalize | FileCheck %s

// What varlen.attn is simplified by (attn-canonicalize.mlir), its gradient is too.

// Casts are read through, and results get the extents that operands know.
// CHECK-LABEL: func.func @casts
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<8x4x16xf32>
// CHECK: %dq, %dk, %dv = varlen.attn_grad %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]],
// CHECK-SAME: -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
// CHECK: tensor.cast %dq : tensor<8x4x16xf32> to tensor<?x?x?xf32>
func.func @casts(%q: tensor<8x4x16xf32>, %lse: tensor<4x8xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x?x?xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>) {
  %x = tensor.cast %q : tensor<8x4x16xf32> to tensor<?x?x?xf32>
  %0:3 = varlen.attn_grad %x, %x, %x, %x, %x, %lse, %cu, %cu
      : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>,
         tensor<?x?x?xf32>, tensor<4x8xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x?x?xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?x?xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>
}

// A gradient of sinks has as many entries as q has heads.
// CHECK-LABEL: func.func @refine_sink
// CHECK: varlen.attn_grad
// CHECK-SAME: -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
func.func @refine_sink(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi32>,
                       %sink: tensor<?xf32>) -> tensor<?xf32> {
  %0:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu sink(%sink)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xf32>)
  return %0#3 : tensor<?xf32>
}

// Sequences of nothing, bounds that hide nothing and the scale of a head_dim of
// 64 say nothing.
// CHECK-LABEL: func.func @constants
// CHECK: %[[CU:.*]] = arith.constant dense<[0, 3, 8]> : tensor<3xi32>
// CHECK: varlen.attn_grad {{.*}}, %[[CU]], %[[CU]] :
func.func @constants(%q: tensor<8x4x64xf32>, %lse: tensor<4x8xf32>)
    -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>) {
  %cu = arith.constant dense<[0, 3, 3, 8, 8]> : tensor<5xi32>
  %0:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      {mask = #varlen.mask<window = (7, 4)>, scale = 0.125 : f32}
      : (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>,
         tensor<8x4x64xf32>, tensor<4x8xf32>, tensor<5xi32>, tensor<5xi32>)
      -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>
}

// A dlse of zeros is none, however it is made.
// CHECK-LABEL: func.func @zero_dlse
// CHECK-COUNT-3: varlen.attn_grad {{.*}} sink(
// CHECK-NOT: dlse(
func.func @zero_dlse(%q: tensor<8x4x64xf32>, %lse: tensor<4x8xf32>, %cu: tensor<?xi32>,
                     %sink: tensor<4xf32>)
    -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %constant = arith.constant dense<0.0> : tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4x8xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %cu, %c0 : tensor<?xi32>
  %splat = tensor.splat %zero[%rows] : tensor<4x?xf32>
  %0:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu dlse(%constant) sink(%sink)
      : (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>,
         tensor<8x4x64xf32>, tensor<4x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x8xf32>,
         tensor<4xf32>)
      -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<4xf32>)
  %1:4 = varlen.attn_grad %0#0, %q, %q, %q, %q, %lse, %cu, %cu dlse(%filled) sink(%sink)
      : (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>,
         tensor<8x4x64xf32>, tensor<4x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x8xf32>,
         tensor<4xf32>)
      -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<4xf32>)
  %2:4 = varlen.attn_grad %1#0, %q, %q, %q, %q, %lse, %cu, %cu dlse(%splat) sink(%sink)
      : (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>,
         tensor<8x4x64xf32>, tensor<4x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x?xf32>,
         tensor<4xf32>)
      -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<4xf32>)
  return %2#0, %2#1, %2#2 : tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>
}

// One of ones, or of -0, is not.
// CHECK-LABEL: func.func @nonzero_dlse
// CHECK: varlen.attn_grad {{.*}} dlse(
// CHECK: varlen.attn_grad {{.*}} dlse(
func.func @nonzero_dlse(%q: tensor<8x4x64xf32>, %lse: tensor<4x8xf32>, %cu: tensor<?xi32>)
    -> tensor<8x4x64xf32> {
  %ones = arith.constant dense<1.0> : tensor<4x8xf32>
  %negative = arith.constant dense<-0.0> : tensor<4x8xf32>
  %0:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu dlse(%ones)
      : (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>,
         tensor<8x4x64xf32>, tensor<4x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x8xf32>)
      -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>)
  %1:3 = varlen.attn_grad %0#0, %q, %q, %q, %q, %lse, %cu, %cu dlse(%negative)
      : (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>,
         tensor<8x4x64xf32>, tensor<4x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<4x8xf32>)
      -> (tensor<8x4x64xf32>, tensor<8x4x64xf32>, tensor<8x4x64xf32>)
  return %1#0 : tensor<8x4x64xf32>
}

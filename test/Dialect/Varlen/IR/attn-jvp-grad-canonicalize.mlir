// RUN: varlen-opt %s -canonicalize | FileCheck %s

// Casts are read through, and results get the extents that operands know.
// CHECK-LABEL: func.func @casts
// CHECK: varlen.attn_jvp_grad %arg0, %arg0, %arg0,
// CHECK-SAME: -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
func.func @casts(%q: tensor<8x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %d = tensor.cast %q : tensor<8x4x16xf32> to tensor<?x4x16xf32>
  %0:3 = varlen.attn_jvp_grad %d, %d, %d, %d, %d, %d, %d, %d, %l, %d, %l, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return %0#0 : tensor<?x4x16xf32>
}

// Numbers of rows and of heads that are zeros are none; a dout of zeros stays, as it
// is multiplied by values.
// CHECK-LABEL: func.func @zeros
// CHECK: varlen.attn_jvp_grad {{[^()]*}} dout(%{{.*}}) sink(%arg3) : {{.*}} -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>){{$}}
func.func @zeros(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>, %sink: tensor<4xf32>, %n: index) -> tensor<?x4x16xf32> {
  %none = arith.constant dense<0.0> : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %rows = tensor.splat %zero[%n] : tensor<4x?xf32>
  %all = tensor.splat %zero[%n] : tensor<?x4x16xf32>
  %0:4 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu dtlse(%rows) dout(%all) dlse(%rows) sink(%sink) tsink(%none) {scale = 0.25 : f32}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>,
         tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
  return %0#0 : tensor<?x4x16xf32>
}

// Unused, it is gone.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi32>) {
  %0:3 = varlen.attn_jvp_grad %q, %q, %q, %q, %q, %q, %q, %q, %l, %q, %l, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>)
  return
}

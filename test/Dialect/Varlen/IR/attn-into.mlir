// RUN: varlen-opt %s --split-input-file --verify-roundtrip | FileCheck %s
// RUN: varlen-opt %s --split-input-file --canonicalize --cse | FileCheck %s --check-prefix=CANON

// Results have the types of the destinations, and their names.
// CHECK-LABEL: func.func @everything
// CHECK: %out, %lse = varlen.attn_into %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} seqused_q(%{{.*}}) seqused_k(%{{.*}}) q_offset(%{{.*}}) sink(%{{.*}}) outs(%{{.*}}, %{{.*}}) {mask = #varlen.mask<causal>, scale = 1.000000e-01 : f32}
func.func @everything(%q: tensor<?x4x16xbf16>, %k: tensor<?x2x16xbf16>, %v: tensor<?x2x24xbf16>, %cu: tensor<3xi32>,
                      %used: tensor<2xi32>, %sink: tensor<4xf32>, %o: tensor<?x4x24xbf16>, %l: tensor<4x?xf32>)
    -> (tensor<?x4x24xbf16>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn_into %q, %k, %v, %cu, %cu seqused_q(%used) seqused_k(%used) q_offset(%used) sink(%sink)
      outs(%o, %l) {mask = #varlen.mask<causal>, scale = 0.1 : f32}
      : (tensor<?x4x16xbf16>, tensor<?x2x16xbf16>, tensor<?x2x24xbf16>, tensor<3xi32>, tensor<3xi32>, tensor<2xi32>,
         tensor<2xi32>, tensor<2xi32>, tensor<4xf32>, tensor<?x4x24xbf16>, tensor<4x?xf32>)
      -> (tensor<?x4x24xbf16>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x24xbf16>, tensor<4x?xf32>
}

// -----

// CHECK-LABEL: func.func @gradient
// CHECK: %dq, %dk, %dv, %dsink = varlen.attn_grad_into {{.*}} dlse(%{{.*}}) sink(%{{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {mask = #varlen.mask<causal>}
func.func @gradient(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi64>, %sink: tensor<4xf32>) -> tensor<4xf32> {
  %0:4 = varlen.attn_grad_into %q, %q, %q, %q, %q, %lse, %cu, %cu dlse(%lse) sink(%sink) outs(%q, %q, %q, %sink)
      {mask = #varlen.mask<causal>}
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>,
         tensor<?xi64>, tensor<?xi64>, tensor<4x?xf32>, tensor<4xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>,
         tensor<?x4x16xf32>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}

// -----

// A scale that is the default, a window that hides nothing, and zeros for dlse
// go, as without destinations.
// CANON-LABEL: func.func @simpler
// CANON: varlen.attn_into {{.*}} outs(%{{.*}}, %{{.*}}) :
// CANON: varlen.attn_grad_into
// CANON-NOT: dlse
// CANON-SAME: outs(%{{.*}}, %{{.*}}, %{{.*}}) :
func.func @simpler(%q: tensor<8x4x16xf32>, %cu: tensor<?xi64>, %l: tensor<4x8xf32>)
    -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%q, %l)
      {mask = #varlen.mask<window = (7, 7)>, scale = 0.25 : f32}
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<?xi64>, tensor<?xi64>, tensor<8x4x16xf32>, tensor<4x8xf32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  %0:3 = varlen.attn_grad_into %q, %q, %q, %q, %out, %lse, %cu, %cu dlse(%zero) outs(%q, %q, %q)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<4x8xf32>,
         tensor<?xi64>, tensor<?xi64>, tensor<4x8xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
      -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>)
  return %out, %0#0 : tensor<8x4x16xf32>, tensor<8x4x16xf32>
}

// -----

// Upstream reads through casts, those of destinations too.
// CANON-LABEL: func.func @casts
// CANON-SAME: %[[Q:[a-z0-9]+]]: tensor<?x4x16xf32>, %[[L:[a-z0-9]+]]: tensor<4x?xf32>
// CANON: varlen.attn_into %[[Q]], %[[Q]], %[[Q]], %{{.*}}, %{{.*}} outs(%[[Q]], %[[L]]) : {{.*}} -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
func.func @casts(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi64>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>) {
  %x = tensor.cast %q : tensor<?x4x16xf32> to tensor<?x?x?xf32>
  %y = tensor.cast %l : tensor<4x?xf32> to tensor<?x?xf32>
  %out, %lse = varlen.attn_into %x, %x, %x, %cu, %cu outs(%x, %y)
      : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?x?x?xf32>, tensor<?x?xf32>)
      -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  return %out, %lse : tensor<?x?x?xf32>, tensor<?x?xf32>
}

// -----

// An extent of a result is that of an operand: the op goes.
// CANON-LABEL: func.func @extent
// CANON-NOT: varlen.attn_into
// CANON: return %{{.*}} : index
func.func @extent(%q: tensor<?x4x16xf32>, %l: tensor<4x?xf32>, %cu: tensor<?xi64>) -> index {
  %c0 = arith.constant 0 : index
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%q, %l)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi64>, tensor<?xi64>, tensor<?x4x16xf32>, tensor<4x?xf32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  %rows = tensor.dim %out, %c0 : tensor<?x4x16xf32>
  return %rows : index
}

// RUN: varlen-opt %s | FileCheck %s
// The default and the generic form read back as the same.
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// Without options. The results have names.
// CHECK-LABEL: func.func @tensors
// CHECK: %[[DQ:dq]], %[[DK:dk]], %[[DV:dv]] = varlen.attn_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-SAME: (tensor<?x8x32xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<?x8x32xbf16>, tensor<8x?xf32>, tensor<?xi32>, tensor<?xi32>)
// CHECK-SAME: -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>)
func.func @tensors(%q: tensor<?x8x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x32xbf16>,
                   %out: tensor<?x8x32xbf16>, %lse: tensor<8x?xf32>, %cu: tensor<?xi32>)
    -> tensor<?x8x64xbf16> {
  %0, %1, %2 = varlen.attn_grad %out, %q, %k, %v, %out, %lse, %cu, %cu
      : (tensor<?x8x32xbf16>, tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>,
         tensor<?x8x32xbf16>, tensor<8x?xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>)
  return %0 : tensor<?x8x64xbf16>
}

// All options, in any order. With a sink there is a fourth gradient.
// CHECK-LABEL: func.func @options
// CHECK-SAME: %[[USED_Q:[a-z0-9]+]]: tensor<2xi64>, %[[USED_K:[a-z0-9]+]]: tensor<2xi64>, %[[OFFSET:[a-z0-9]+]]: tensor<2xi64>, %[[SINK:[a-z0-9]+]]: tensor<4xf64>
// CHECK: %dq, %dk, %dv, %dsink = varlen.attn_grad {{.*}} dlse(%[[LSE:.*]]) seqused_q(%[[USED_Q]]) seqused_k(%[[USED_K]]) q_offset(%[[OFFSET]]) sink(%[[SINK]])
// CHECK-SAME: {mask = #varlen.mask<window = (512, 0)>, scale = 1.250000e-01 : f32}
func.func @options(%q: tensor<?x4x16xf64>, %lse: tensor<4x?xf64>, %cu: tensor<3xi64>,
                   %used_q: tensor<2xi64>, %used_k: tensor<2xi64>, %offset: tensor<2xi64>,
                   %sink: tensor<4xf64>) {
  %0:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu
      sink(%sink) seqused_q(%used_q) dlse(%lse) seqused_k(%used_k) q_offset(%offset)
      {mask = #varlen.mask<window = (512, 0)>, scale = 0.125 : f32}
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>,
         tensor<?x4x16xf64>, tensor<4x?xf64>, tensor<3xi64>, tensor<3xi64>, tensor<4x?xf64>,
         tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<4xf64>)
      -> (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<4xf64>)
  return
}

// On memrefs, of any layout, the op writes its outs.
// CHECK-LABEL: func.func @memrefs
// CHECK: varlen.attn_grad {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}}) {mask = #varlen.mask<causal>} :
// CHECK-SAME: -> ()
// CHECK: varlen.attn_grad {{.*}} sink(%{{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
func.func @memrefs(%q: memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
                   %lse: memref<4x?xf32>, %cu: memref<?xi32>, %sink: memref<4xf32>,
                   %dq: memref<?x4x16xf16>, %dk: memref<?x4x16xf16>, %dv: memref<?x4x16xf16>,
                   %dsink: memref<4xf32>) {
  varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu outs(%dq, %dk, %dv)
      {mask = #varlen.mask<causal>}
      : (memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
         memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
         memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
         memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
         memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>, memref<4x?xf32>,
         memref<?xi32>, memref<?xi32>, memref<?x4x16xf16>, memref<?x4x16xf16>,
         memref<?x4x16xf16>) -> ()
  varlen.attn_grad %dq, %dq, %dq, %dq, %dq, %lse, %cu, %cu sink(%sink)
      outs(%dq, %dk, %dv, %dsink)
      : (memref<?x4x16xf16>, memref<?x4x16xf16>, memref<?x4x16xf16>, memref<?x4x16xf16>,
         memref<?x4x16xf16>, memref<4x?xf32>, memref<?xi32>, memref<?xi32>, memref<4xf32>,
         memref<?x4x16xf16>, memref<?x4x16xf16>, memref<?x4x16xf16>, memref<4xf32>) -> ()
  return
}

// A dynamic extent agrees with every extent, in operands and in results.
// CHECK-LABEL: func.func @dynamic
// CHECK: varlen.attn_grad
func.func @dynamic(%any: tensor<?x?x?xf32>, %k: tensor<10x2x16xf32>, %lse: tensor<4x?xf32>,
                   %cu: tensor<?xi32>, %cu3: tensor<3xi32>, %sink: tensor<?xf32>) {
  %0:4 = varlen.attn_grad %any, %any, %k, %any, %any, %lse, %cu, %cu3 sink(%sink)
      : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<10x2x16xf32>, tensor<?x?x?xf32>,
         tensor<?x?x?xf32>, tensor<4x?xf32>, tensor<?xi32>, tensor<3xi32>, tensor<?xf32>)
      -> (tensor<6x4x?xf32>, tensor<?x?x?xf32>, tensor<10x?x8xf32>, tensor<4xf32>)
  return
}

// No rows, no sequences: legal.
// CHECK-LABEL: func.func @empty
// CHECK: varlen.attn_grad
func.func @empty(%q: tensor<0x4x16xf32>, %lse: tensor<4x0xf32>, %used: tensor<0xi32>) {
  %cu = arith.constant dense<0> : tensor<1xi32>
  %0:3 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu seqused_q(%used)
      : (tensor<0x4x16xf32>, tensor<0x4x16xf32>, tensor<0x4x16xf32>, tensor<0x4x16xf32>,
         tensor<0x4x16xf32>, tensor<4x0xf32>, tensor<1xi32>, tensor<1xi32>, tensor<0xi32>)
      -> (tensor<0x4x16xf32>, tensor<0x4x16xf32>, tensor<0x4x16xf32>)
  return
}

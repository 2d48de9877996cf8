// RUN: varlen-opt %s | FileCheck %s
// The default and the generic form read back as the same.
// RUN: varlen-opt %s --mlir-print-op-generic | varlen-opt | FileCheck %s

// Without options. The results have names.
// CHECK-LABEL: func.func @tensors
// CHECK: %out, %lse = varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-SAME: (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>, tensor<?xi32>, tensor<?xi32>)
// CHECK-SAME: -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
func.func @tensors(%q: tensor<?x8x64xbf16>, %k: tensor<?x2x64xbf16>,
                   %v: tensor<?x2x32xbf16>, %cu: tensor<?xi32>) -> tensor<?x8x32xbf16> {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu
      : (tensor<?x8x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x32xbf16>,
         tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
  return %out : tensor<?x8x32xbf16>
}

// All options. The clauses may come in any order; a default mask is not printed.
// CHECK-LABEL: func.func @options
// CHECK-SAME: %[[USED_Q:[a-z0-9]+]]: tensor<2xi64>, %[[USED_K:[a-z0-9]+]]: tensor<2xi64>, %[[OFFSET:[a-z0-9]+]]: tensor<2xi64>, %[[SINK:[a-z0-9]+]]: tensor<4xf64>
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} seqused_q(%[[USED_Q]]) seqused_k(%[[USED_K]]) q_offset(%[[OFFSET]]) sink(%[[SINK]])
// CHECK-SAME: {mask = #varlen.mask<window = (512, 0)>, scale = 1.250000e-01 : f32}
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} seqused_q(%[[USED_Q]]) sink(%[[SINK]]) {scale = 1.000000e-01 : f64} :
func.func @options(%q: tensor<?x4x16xf64>, %cu: tensor<3xi64>, %used_q: tensor<2xi64>,
                   %used_k: tensor<2xi64>, %offset: tensor<2xi64>, %sink: tensor<4xf64>) {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu
      seqused_q(%used_q) seqused_k(%used_k) q_offset(%offset) sink(%sink)
      {mask = #varlen.mask<window = (512, 0)>, scale = 0.125 : f32}
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>,
         tensor<3xi64>, tensor<3xi64>, tensor<2xi64>, tensor<2xi64>,
         tensor<2xi64>, tensor<4xf64>)
      -> (tensor<?x4x16xf64>, tensor<4x?xf64>)
  %2, %3 = varlen.attn %q, %q, %q, %cu, %cu sink(%sink) seqused_q(%used_q)
      {mask = #varlen.mask<full>, scale = 0.1}
      : (tensor<?x4x16xf64>, tensor<?x4x16xf64>, tensor<?x4x16xf64>,
         tensor<3xi64>, tensor<3xi64>, tensor<2xi64>, tensor<4xf64>)
      -> (tensor<?x4x16xf64>, tensor<4x?xf64>)
  return
}

// On memrefs, of any layout, the op writes its outs.
// CHECK-LABEL: func.func @memrefs
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} outs(%{{.*}}, %{{.*}}) {mask = #varlen.mask<causal>} :
// CHECK-SAME: -> ()
func.func @memrefs(%q: memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
                   %cu: memref<?xi32>, %out: memref<?x4x16xf16>,
                   %lse: memref<4x?xf32>) {
  varlen.attn %q, %q, %q, %cu, %cu outs(%out, %lse) {mask = #varlen.mask<causal>}
      : (memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
         memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
         memref<?x4x16xf16, strided<[128, 16, 1], offset: ?>>,
         memref<?xi32>, memref<?xi32>, memref<?x4x16xf16>, memref<4x?xf32>) -> ()
  return
}

// A dynamic extent agrees with every extent, in operands and in results.
// CHECK-LABEL: func.func @dynamic
// CHECK: varlen.attn
// CHECK: varlen.attn
func.func @dynamic(%any: tensor<?x?x?xf32>, %k: tensor<10x2x16xf32>, %cu: tensor<?xi32>,
                   %cu3: tensor<3xi32>, %used: tensor<2xi32>, %sink: tensor<?xf32>) {
  %0, %1 = varlen.attn %any, %k, %any, %cu, %cu3 seqused_k(%used) sink(%sink)
      : (tensor<?x?x?xf32>, tensor<10x2x16xf32>, tensor<?x?x?xf32>,
         tensor<?xi32>, tensor<3xi32>, tensor<2xi32>, tensor<?xf32>)
      -> (tensor<6x4x8xf32>, tensor<?x?xf32>)
  %2, %3 = varlen.attn %k, %any, %any, %cu3, %cu
      : (tensor<10x2x16xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>,
         tensor<3xi32>, tensor<?xi32>)
      -> (tensor<?x2x?xf32>, tensor<2x10xf32>)
  return
}

// No rows, no sequences: legal.
// CHECK-LABEL: func.func @empty
// CHECK: varlen.attn
func.func @empty(%q: tensor<0x4x16xf32>, %used: tensor<0xi32>) {
  %cu = arith.constant dense<0> : tensor<1xi32>
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu seqused_q(%used)
      : (tensor<0x4x16xf32>, tensor<0x4x16xf32>, tensor<0x4x16xf32>,
         tensor<1xi32>, tensor<1xi32>, tensor<0xi32>)
      -> (tensor<0x4x16xf32>, tensor<4x0xf32>)
  return
}

// Constants that are as good as they can be.
// CHECK-LABEL: func.func @constants
// CHECK: varlen.attn
func.func @constants(%q: tensor<8x4x16xf32>) {
  %cu = arith.constant dense<[0, 3, 3, 8]> : tensor<4xi32>
  %used = arith.constant dense<[3, 0, 5]> : tensor<3xi32>
  %offset = arith.constant dense<[-7, 0, 900]> : tensor<3xi32>
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu seqused_q(%used) seqused_k(%used)
      q_offset(%offset)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>,
         tensor<4xi32>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  return
}

// Keys in pages: no cu_k, and the table is the last operand.
// CHECK-LABEL: func.func @pages
// CHECK-SAME: %[[USED:[a-z0-9]+]]: tensor<?xi32>, %[[TABLE:[a-z0-9]+]]: tensor<?x?xi32>, %[[CAPTURE:[a-z0-9]+]]: tensor<8xf32>
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} seqused_k(%[[USED]]) block_table(%[[TABLE]]) :
// CHECK-SAME: (tensor<?x8x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x32xbf16>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>)
// CHECK-SAME: -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
// CHECK: varlen.attn_into %{{.*}} seqused_k(%[[USED]]) captures(%[[CAPTURE]]) block_table(%[[TABLE]]) outs(
func.func @pages(%q: tensor<?x8x64xbf16>, %k: tensor<?x16x2x64xbf16>, %v: tensor<?x16x2x32xbf16>,
                 %cu: tensor<?xi32>, %used: tensor<?xi32>, %table: tensor<?x?xi32>,
                 %capture: tensor<8xf32>) -> (tensor<?x8x32xbf16>, tensor<8x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu block_table(%table) seqused_k(%used)
      : (tensor<?x8x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x32xbf16>,
         tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>)
      -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
  %0:2 = varlen.attn_into %q, %k, %v, %cu captures(%capture) block_table(%table)
      seqused_k(%used) outs(%out, %lse)
      : (tensor<?x8x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x32xbf16>,
         tensor<?xi32>, tensor<?xi32>, tensor<?x8x32xbf16>, tensor<8x?xf32>, tensor<8xf32>,
         tensor<?x?xi32>)
      -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
      score (%score: f32, %query: i32, %key: i32, %gain: f32) {
        %new = arith.mulf %score, %gain : f32
        varlen.yield %new : f32
      }
  return %0#0, %0#1 : tensor<?x8x32xbf16>, tensor<8x?xf32>
}

// Quantised keys and values, with a number of each row and head and one of each page and
// head, or of each head.
// CHECK-LABEL: func.func @quantised
// CHECK: varlen.attn %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} seqused_k(%{{.*}}) block_table(%{{.*}}) k_scale(%[[ROWS:.*]]) v_scale(%[[PAGES:.*]]) :
// CHECK-SAME: (tensor<?x8x64xbf16>, tensor<?x16x2x64xi8>, tensor<?x16x2x32xi8>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?x16x2xf32>, tensor<?x2xf32>)
// CHECK-SAME: -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
// CHECK: varlen.attn_into %{{.*}} v_scale(%{{.*}}) outs(
// CHECK-SAME: tensor<?x2x64xf8E4M3FN>
func.func @quantised(%q: tensor<?x8x64xbf16>, %k: tensor<?x16x2x64xi8>, %v: tensor<?x16x2x32xi8>,
                     %cu: tensor<?xi32>, %used: tensor<?xi32>, %table: tensor<?x?xi32>,
                     %rows: tensor<?x16x2xf32>, %pages: tensor<?x2xf32>, %heads: tensor<2xf32>,
                     %packed: tensor<?x2x64xf8E4M3FN>, %values: tensor<?x2x32xf8E4M3FN>)
    -> (tensor<?x8x32xbf16>, tensor<8x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu seqused_k(%used) k_scale(%rows) v_scale(%pages)
      block_table(%table)
      : (tensor<?x8x64xbf16>, tensor<?x16x2x64xi8>, tensor<?x16x2x32xi8>, tensor<?xi32>,
         tensor<?xi32>, tensor<?x?xi32>, tensor<?x16x2xf32>, tensor<?x2xf32>)
      -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
  %0:2 = varlen.attn_into %q, %packed, %values, %cu, %cu v_scale(%heads) outs(%out, %lse)
      : (tensor<?x8x64xbf16>, tensor<?x2x64xf8E4M3FN>, tensor<?x2x32xf8E4M3FN>, tensor<?xi32>,
         tensor<?xi32>, tensor<?x8x32xbf16>, tensor<8x?xf32>, tensor<2xf32>)
      -> (tensor<?x8x32xbf16>, tensor<8x?xf32>)
  return %0#0, %0#1 : tensor<?x8x32xbf16>, tensor<8x?xf32>
}

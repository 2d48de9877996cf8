// REQUIRES: plugin
// RUN: %mlir-opt-plugin %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --cse --split-input-file | FileCheck %s

// Operands are read where they are, results are new buffers, and attributes
// stay.

// CHECK-LABEL: func @everything(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?x6x8xf32>, %[[K:[a-z0-9]+]]: memref<?x2x8xf32>, %[[V:[a-z0-9]+]]: memref<?x2x4xf32>, %[[CU_Q:[a-z0-9]+]]: memref<3xi32>, %[[CU_K:[a-z0-9]+]]: memref<3xi32>
// CHECK-SAME:    %[[USED_Q:[a-z0-9]+]]: memref<2xi32>, %[[USED_K:[a-z0-9]+]]: memref<2xi32>, %[[OFFSET:[a-z0-9]+]]: memref<2xi32>, %[[SINK:[a-z0-9]+]]: memref<6xf32>
// CHECK:         %[[ROWS:[a-z0-9_]+]] = memref.dim %[[Q]], %{{.*}}
// CHECK:         %[[OUT:[a-z0-9_]+]] = memref.alloc(%[[ROWS]]) {{.*}} : memref<?x6x4xf32>
// CHECK:         %[[LSE:[a-z0-9_]+]] = memref.alloc(%[[ROWS]]) {{.*}} : memref<6x?xf32>
// CHECK:         varlen.attn %[[Q]], %[[K]], %[[V]], %[[CU_Q]], %[[CU_K]]
// CHECK-SAME:      seqused_q(%[[USED_Q]]) seqused_k(%[[USED_K]]) q_offset(%[[OFFSET]]) sink(%[[SINK]]) outs(%[[OUT]], %[[LSE]])
// CHECK-SAME:      {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32, some.attribute}
// CHECK-NOT:     memref.copy
// CHECK:         return %[[OUT]], %[[LSE]]
func.func @everything(%q: tensor<?x6x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %cu_q: tensor<3xi32>, %cu_k: tensor<3xi32>,
                      %used_q: tensor<2xi32>, %used_k: tensor<2xi32>, %offset: tensor<2xi32>, %sink: tensor<6xf32>)
                      -> (tensor<?x6x4xf32>, tensor<6x?xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu_q, %cu_k seqused_q(%used_q) seqused_k(%used_k) q_offset(%offset) sink(%sink)
    {mask = #varlen.mask<causal>, scale = 0.25 : f32, some.attribute}
    : (tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<6xf32>)
    -> (tensor<?x6x4xf32>, tensor<6x?xf32>)
  return %out, %lse : tensor<?x6x4xf32>, tensor<6x?xf32>
}

// -----

// One value as several operands; a slice of it without a copy. The queries are
// read after the attention, so nothing may be written to them.

// CHECK-LABEL: func @shared(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<32x2x8xf32>, %[[CU:[a-z0-9]+]]: memref<?xi64>
// CHECK:         %[[Q:[a-z0-9_]+]] = memref.subview %[[X]][0, 0, 0] [16, 2, 8]
// CHECK:         %[[OUT:[a-z0-9_]+]] = memref.alloc() {{.*}} : memref<16x2x8xf32>
// CHECK:         %[[LSE:[a-z0-9_]+]] = memref.alloc() {{.*}} : memref<2x16xf32>
// CHECK:         varlen.attn %[[Q]], %[[X]], %[[X]], %[[CU]], %[[CU]] outs(%[[OUT]], %[[LSE]]) :
// CHECK:         linalg.add ins(%[[Q]], %[[OUT]] : {{.*}}) outs(%[[OUT]] :
func.func @shared(%x: tensor<32x2x8xf32>, %cu: tensor<?xi64>) -> tensor<16x2x8xf32> {
  %q = tensor.extract_slice %x[0, 0, 0] [16, 2, 8] [1, 1, 1] : tensor<32x2x8xf32> to tensor<16x2x8xf32>
  %out, %lse = varlen.attn %q, %x, %x, %cu, %cu
    : (tensor<16x2x8xf32>, tensor<32x2x8xf32>, tensor<32x2x8xf32>, tensor<?xi64>, tensor<?xi64>)
    -> (tensor<16x2x8xf32>, tensor<2x16xf32>)
  %sum = linalg.add ins(%q, %out : tensor<16x2x8xf32>, tensor<16x2x8xf32>) outs(%out : tensor<16x2x8xf32>) -> tensor<16x2x8xf32>
  return %sum : tensor<16x2x8xf32>
}

// -----

// A gradient: operands are read where they are, results are new buffers.

// CHECK-LABEL: func @gradient(
// CHECK-SAME:    %[[DOUT:[a-z0-9]+]]: memref<?x6x4xf32>, %[[Q:[a-z0-9]+]]: memref<?x6x8xf32>, %[[K:[a-z0-9]+]]: memref<?x2x8xf32>, %[[V:[a-z0-9]+]]: memref<?x2x4xf32>, %[[OUT:[a-z0-9]+]]: memref<?x6x4xf32>, %[[LSE:[a-z0-9]+]]: memref<6x?xf32>, %[[CU:[a-z0-9]+]]: memref<3xi32>, %[[USED:[a-z0-9]+]]: memref<2xi32>, %[[SINK:[a-z0-9]+]]: memref<6xf32>
// CHECK:         %[[ROWS_Q:[a-z0-9_]+]] = memref.dim %[[Q]], %{{.*}}
// CHECK:         %[[DQ:[a-z0-9_]+]] = memref.alloc(%[[ROWS_Q]]) {{.*}} : memref<?x6x8xf32>
// CHECK:         %[[ROWS_K:[a-z0-9_]+]] = memref.dim %[[K]], %{{.*}}
// CHECK:         %[[DK:[a-z0-9_]+]] = memref.alloc(%[[ROWS_K]]) {{.*}} : memref<?x2x8xf32>
// CHECK:         %[[ROWS_V:[a-z0-9_]+]] = memref.dim %[[V]], %{{.*}}
// CHECK:         %[[DV:[a-z0-9_]+]] = memref.alloc(%[[ROWS_V]]) {{.*}} : memref<?x2x4xf32>
// CHECK:         %[[DSINK:[a-z0-9_]+]] = memref.alloc() {{.*}} : memref<6xf32>
// CHECK:         varlen.attn_grad %[[DOUT]], %[[Q]], %[[K]], %[[V]], %[[OUT]], %[[LSE]], %[[CU]], %[[CU]]
// CHECK-SAME:      dlse(%[[LSE]]) seqused_q(%[[USED]]) seqused_k(%[[USED]]) q_offset(%[[USED]]) sink(%[[SINK]]) outs(%[[DQ]], %[[DK]], %[[DV]], %[[DSINK]])
// CHECK-SAME:      {mask = #varlen.mask<causal>, scale = 2.500000e-01 : f32, some.attribute}
// CHECK-NOT:     memref.copy
// CHECK:         return %[[DQ]], %[[DK]], %[[DV]], %[[DSINK]]
func.func @gradient(%dout: tensor<?x6x4xf32>, %q: tensor<?x6x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x2x4xf32>, %out: tensor<?x6x4xf32>,
                    %lse: tensor<6x?xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>, %sink: tensor<6xf32>)
                    -> (tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<6xf32>) {
  %0:4 = varlen.attn_grad %dout, %q, %k, %v, %out, %lse, %cu, %cu
    dlse(%lse) seqused_q(%used) seqused_k(%used) q_offset(%used) sink(%sink)
    {mask = #varlen.mask<causal>, scale = 0.25 : f32, some.attribute}
    : (tensor<?x6x4xf32>, tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<?x6x4xf32>, tensor<6x?xf32>, tensor<3xi32>, tensor<3xi32>,
       tensor<6x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<6xf32>)
    -> (tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<6xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<?x6x8xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>, tensor<6xf32>
}

// RUN: varlen-opt %s --varlen-add-destinations --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-add-destinations --eliminate-empty-tensors --split-input-file | FileCheck %s --check-prefix=SLICE

// A destination has the extents of the result: what its type says, else those
// of operands. Everything else stays.

// CHECK-LABEL: func.func @attn(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x4x16xf32>, %[[V:[a-z0-9]+]]: tensor<?x2x?xf32>
// CHECK-DAG:     %[[ROWS:.*]] = tensor.dim %[[Q]], %{{.*}}
// CHECK-DAG:     %[[WIDTH:.*]] = tensor.dim %[[V]], %{{.*}}
// CHECK:         %[[OUT:.*]] = tensor.empty(%[[ROWS]], %[[WIDTH]]) : tensor<?x4x?xf32>
// CHECK:         %[[LSE:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK:         varlen.attn_into {{.*}} seqused_k(%{{.*}}) outs(%[[OUT]], %[[LSE]]) {mask = #varlen.mask<causal>, scale = 1.000000e-01 : f32, some.attribute}
func.func @attn(%q: tensor<?x4x16xf32>, %v: tensor<?x2x?xf32>, %k: tensor<?x2x16xf32>, %cu: tensor<3xi32>, %used: tensor<2xi32>)
    -> (tensor<?x4x?xf32>, tensor<4x8xf32>) {
  %out, %lse = varlen.attn %q, %k, %v, %cu, %cu seqused_k(%used) {mask = #varlen.mask<causal>, scale = 0.1 : f32, some.attribute}
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x?xf32>, tensor<3xi32>, tensor<3xi32>, tensor<2xi32>)
      -> (tensor<?x4x?xf32>, tensor<4x8xf32>)
  return %out, %lse : tensor<?x4x?xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @gradient(
// CHECK:         varlen.attn_grad_into {{.*}} sink(%{{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
func.func @gradient(%q: tensor<?x4x16xf32>, %lse: tensor<4x?xf32>, %cu: tensor<?xi64>, %sink: tensor<4xf32>) -> tensor<4xf32> {
  %0:4 = varlen.attn_grad %q, %q, %q, %q, %q, %lse, %cu, %cu sink(%sink)
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4x?xf32>,
         tensor<?xi64>, tensor<?xi64>, tensor<4xf32>)
      -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}

// -----

// Those that have destinations, and buffers, are left.

// CHECK-LABEL: func.func @others(
// CHECK-NOT:     tensor.empty
// CHECK:         varlen.attn_into
// CHECK-NOT:     tensor.empty
// CHECK:         varlen.attn %
func.func @others(%q: tensor<8x4x16xf32>, %l: tensor<4x8xf32>, %cu: tensor<3xi32>, %m: memref<8x4x16xf32>, %o: memref<8x4x16xf32>,
                  %n: memref<4x8xf32>, %mcu: memref<3xi32>) -> tensor<8x4x16xf32> {
  %out, %lse = varlen.attn_into %q, %q, %q, %cu, %cu outs(%q, %l)
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>, tensor<8x4x16xf32>, tensor<4x8xf32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  varlen.attn %m, %m, %m, %mcu, %mcu outs(%o, %n)
      : (memref<8x4x16xf32>, memref<8x4x16xf32>, memref<8x4x16xf32>, memref<3xi32>, memref<3xi32>, memref<8x4x16xf32>, memref<4x8xf32>) -> ()
  return %out : tensor<8x4x16xf32>
}

// -----

// What is inserted into a slice is computed there.

// SLICE-LABEL: func.func @slice(
// SLICE-SAME:    %{{.*}}: tensor<8x4x16xf32>, %{{.*}}: tensor<3xi32>, %[[ALL:.*]]: tensor<16x4x16xf32>
// SLICE:         %[[PART:.*]] = tensor.extract_slice %[[ALL]][8, 0, 0] [8, 4, 16] [1, 1, 1]
// SLICE:         varlen.attn_into {{.*}} outs(%[[PART]], %{{.*}})
func.func @slice(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>, %all: tensor<16x4x16xf32>) -> tensor<16x4x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32>, tensor<4x8xf32>)
  %new = tensor.insert_slice %out into %all[8, 0, 0] [8, 4, 16] [1, 1, 1] : tensor<8x4x16xf32> into tensor<16x4x16xf32>
  return %new : tensor<16x4x16xf32>
}

// -----

// A destination has the encoding of the result.

// CHECK-LABEL: func.func @encoding(
// CHECK:         %[[OUT:.*]] = tensor.empty() : tensor<8x4x16xf32, "blocked">
// CHECK:         varlen.attn_into {{.*}} outs(%[[OUT]], %{{.*}})
func.func @encoding(%q: tensor<8x4x16xf32>, %cu: tensor<3xi32>) -> tensor<8x4x16xf32, "blocked"> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<8x4x16xf32>, tensor<3xi32>, tensor<3xi32>)
      -> (tensor<8x4x16xf32, "blocked">, tensor<4x8xf32>)
  return %out : tensor<8x4x16xf32, "blocked">
}

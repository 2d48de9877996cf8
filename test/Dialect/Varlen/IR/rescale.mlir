// RUN: varlen-opt %s | varlen-opt | FileCheck %s

// CHECK-LABEL: @rescale
// CHECK: varlen.rescale %{{.*}} by %{{.*}} : tensor<64x128xf32>, tensor<64x1xf32>
func.func @rescale(%acc: tensor<64x128xf32>, %alpha: tensor<64x1xf32>) -> tensor<64x128xf32> {
  %r = varlen.rescale %acc by %alpha : tensor<64x128xf32>, tensor<64x1xf32>
  return %r : tensor<64x128xf32>
}

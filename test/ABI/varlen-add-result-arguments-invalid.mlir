// RUN: varlen-opt %s --varlen-add-result-arguments --split-input-file --verify-diagnostics

// expected-error@+1 {{expected results that are ranked tensors or scalars, got 'memref<4xf32>' for result #1}}
func.func @memref(%x: tensor<4xf32>, %m: memref<4xf32>) -> (tensor<4xf32>, memref<4xf32>) {
  return %x, %m : tensor<4xf32>, memref<4xf32>
}

// -----

// expected-error@+1 {{expected results that are ranked tensors or scalars, got 'tensor<*xf32>' for result #0}}
func.func @unranked(%x: tensor<*xf32>) -> tensor<*xf32> {
  return %x : tensor<*xf32>
}

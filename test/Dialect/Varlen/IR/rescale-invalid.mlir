// RUN: varlen-opt %s -split-input-file -verify-diagnostics

func.func @columns(%acc: tensor<64x128xf32>, %alpha: tensor<1x128xf32>) -> tensor<64x128xf32> {
  // expected-error @below {{expected a factor for each row of 'tensor<64x128xf32>', got 'tensor<1x128xf32>'}}
  %r = varlen.rescale %acc by %alpha : tensor<64x128xf32>, tensor<1x128xf32>
  return %r : tensor<64x128xf32>
}

// -----

func.func @element(%acc: tensor<64x128xf32>, %alpha: tensor<64x1xf64>) -> tensor<64x128xf32> {
  // expected-error @below {{got 'tensor<64x1xf64>'}}
  %r = varlen.rescale %acc by %alpha : tensor<64x128xf32>, tensor<64x1xf64>
  return %r : tensor<64x128xf32>
}

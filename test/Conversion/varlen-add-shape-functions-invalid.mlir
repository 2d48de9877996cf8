// RUN: varlen-opt %s --varlen-add-shape-functions --split-input-file --verify-diagnostics

// expected-error@+1 {{expected results whose extents follow from those of the arguments}}
func.func @values(%n: tensor<index>) -> tensor<?xf32> {
  // expected-note@+1 {{they need more of 'tensor.extract' than extents}}
  %m = tensor.extract %n[] : tensor<index>
  %empty = tensor.empty(%m) : tensor<?xf32>
  return %empty : tensor<?xf32>
}

// -----

// expected-error@+1 {{expected no symbol 'f_shapes', which the function of its extents is called}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// expected-note@+1 {{it is here}}
func.func private @f_shapes()

// RUN: varlen-opt %s --varlen-add-result-arguments=shapes --split-input-file --verify-diagnostics

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

// -----

// expected-error@+1 {{expected results whose extents follow from those of the arguments}}
func.func @grown(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%o = %x) -> tensor<?xf32> {
    // expected-note@+1 {{they need more of 'tensor.concat' than extents}}
    %s = tensor.concat dim(0) %o, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %s : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

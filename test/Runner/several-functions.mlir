// Functions that the entry does not need are no part of a run: that the work of
// their attentions is not known does not matter.

// RUN: varlen-run %s --entry=caller --random=1 --lengths=3,5 | FileCheck %s
// CHECK: function caller,
// CHECK: work {{[0-9.]+}} GFLOP/s useful

func.func private @callee(%q: tensor<?x2x16xf32>, %cu: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x16xf32>, tensor<2x?xf32>)
  return %out : tensor<?x2x16xf32>
}

func.func @caller(%q: tensor<?x2x16xf32>, %cu: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %out = call @callee(%q, %cu) : (tensor<?x2x16xf32>, tensor<?xi32>) -> tensor<?x2x16xf32>
  return %out : tensor<?x2x16xf32>
}

func.func @other(%q: tensor<?x2x16xf64>, %cu: tensor<?xi32>) -> tensor<?x2x16xf64> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x2x16xf64>, tensor<?x2x16xf64>, tensor<?x2x16xf64>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x2x16xf64>, tensor<2x?xf64>)
  return %out : tensor<?x2x16xf64>
}

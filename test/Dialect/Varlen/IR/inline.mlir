// RUN: varlen-opt %s --inline | FileCheck %s

// A function that holds the dialect's ops is inlined.
// CHECK-LABEL: func.func @caller
// CHECK-NOT: call
// CHECK: varlen.attn
// CHECK-NOT: call
// CHECK: return
func.func @caller(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %0 = call @callee(%q, %cu) : (tensor<?x4x16xf32>, tensor<?xi32>) -> tensor<?x4x16xf32>
  return %0 : tensor<?x4x16xf32>
}
func.func private @callee(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> tensor<?x4x16xf32> {
  %0, %1 = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>,
         tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %0 : tensor<?x4x16xf32>
}

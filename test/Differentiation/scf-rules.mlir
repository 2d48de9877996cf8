// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate=function=loop \
// RUN:   | FileCheck %s

// Rows are filled in and added up. The reverse starts at the last row, computes
// its sine again, and needs neither of the two tensors that the loop carries.
// CHECK-LABEL: func.func @loop_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<?x4xf32>, %[[S:.*]]: tensor<4xf32>, %[[N:.*]]: index, %[[D0:.*]]: tensor<?x4xf32>, %[[D1:.*]]: tensor<4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xf32>) {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: %[[B:.*]] = arith.ceildivsi %[[N]], %{{.*}} : index
// CHECK-NEXT: %[[C:.*]]:2 = scf.for %[[D:.*]] = %{{.*}} to %[[B]] step %{{.*}} iter_args(%[[E:.*]] = %[[D0]], %[[F:.*]] = %[[A]]) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
// CHECK-NEXT: %[[G:.*]] = arith.subi %[[B]], %{{.*}} : index
// CHECK-NEXT: %[[H:.*]] = arith.subi %[[G]], %[[D]] : index
// CHECK-NEXT: %[[I:.*]] = arith.muli %[[H]], %{{.*}} : index
// CHECK-NEXT: %[[J:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[K:.*]] = tensor.extract_slice %[[E]][%[[I]], 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK: %[[L:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[M:.*]] = tensor.insert_slice %[[L]] into %[[E]][%[[I]], 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
// CHECK-NEXT: %[[O:.*]] = math.cos %[[J]] : tensor<4xf32>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[K]], %[[O]] : tensor<4xf32>
// CHECK-NEXT: %[[Q:.*]] = arith.addf %[[D1]], %[[P]] : tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = tensor.extract_slice %[[F]][%[[I]], 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[R]], %[[Q]] : tensor<4xf32>
// CHECK-NEXT: %[[U:.*]] = tensor.insert_slice %[[T]] into %[[F]][%[[I]], 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
// CHECK-NEXT: scf.yield %[[M]], %[[U]] : tensor<?x4xf32>, tensor<?x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[C]]#1, %[[C]]#0, %[[D1]] : tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xf32>
func.func @loop(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %s: tensor<4xf32>, %n: index) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %r:2 = scf.for %i = %c0 to %n step %c2 iter_args(%o = %y, %t = %s) -> (tensor<?x4xf32>, tensor<4xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
    %sin = math.sin %row : tensor<4xf32>
    %p = tensor.insert_slice %sin into %o[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
    %q = arith.addf %t, %row : tensor<4xf32>
    scf.yield %p, %q : tensor<?x4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<4xf32>
}

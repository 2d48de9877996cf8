// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate="function=slices mode=forward" \
// RUN:   --varlen-differentiate="function=insert mode=forward wrt=1" \
// RUN:   --varlen-differentiate="function=pad mode=forward" \
// RUN:   | FileCheck %s

// Linear operations are applied to tangents.
// CHECK-LABEL: func.func @slices_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<?x6xf32>, %[[N:.*]]: index, %[[T:.*]]: tensor<?x6xf32>)
// CHECK-DAG: %[[A:.*]] = tensor.extract_slice %[[X]][0, 1] [%[[N]], 2] [1, 2]
// CHECK-DAG: %[[B:.*]] = tensor.extract_slice %[[T]][0, 1] [%[[N]], 2] [1, 2]
// CHECK: return %[[A]], %[[B]]
func.func @slices(%x: tensor<?x6xf32>, %n: index) -> tensor<?x2xf32> {
  %a = tensor.extract_slice %x[0, 1] [%n, 2] [1, 2] : tensor<?x6xf32> to tensor<?x2xf32>
  return %a : tensor<?x2xf32>
}

// What has no tangent counts as zeros.
// CHECK-LABEL: func.func @insert_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[S:.*]]: f32, %[[I:.*]]: index, %[[T:.*]]: f32)
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<4xf32>
// CHECK: %[[B:.*]] = tensor.insert %[[T]] into %[[Z]][%[[I]]] : tensor<4xf32>
// CHECK: return %{{.*}}, %[[B]]
func.func @insert(%x: tensor<4xf32>, %s: f32, %i: index) -> tensor<4xf32> {
  %a = tensor.insert %s into %x[%i] : tensor<4xf32>
  return %a : tensor<4xf32>
}

// The padding has a tangent, too, which the reverse mode refuses.
// CHECK-LABEL: func.func @pad_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[S:.*]]: f32, %[[TX:.*]]: tensor<?xf32>, %[[TS:.*]]: f32)
// CHECK: tensor.pad %[[TX]] low[1] high[2] {
// CHECK-NEXT: ^bb0
// CHECK:   %[[C:.*]] = math.cos %[[S]] : f32
// CHECK-NEXT:   %[[P:.*]] = arith.mulf %[[TS]], %[[C]] : f32
// CHECK-NEXT:   tensor.yield %[[P]] : f32
func.func @pad(%x: tensor<?xf32>, %s: f32) -> tensor<?xf32> {
  %a = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    %p = math.sin %s : f32
    tensor.yield %p : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %a : tensor<?xf32>
}

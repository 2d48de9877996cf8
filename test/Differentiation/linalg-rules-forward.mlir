// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate="function=matmul mode=forward" \
// RUN:   --varlen-differentiate="function=elementwise mode=forward" \
// RUN:   --varlen-differentiate="function=sum mode=forward" \
// RUN:   --varlen-differentiate="function=product mode=forward" \
// RUN:   --varlen-differentiate="function=gather mode=forward" \
// RUN:   | FileCheck %s

// A contraction is one for each factor, the second of which adds to the first.
// CHECK-LABEL: func.func @matmul_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<4x?xf32>, %[[I:.*]]: tensor<?x?xf32>, %[[TX:.*]]: tensor<?x4xf32>, %[[TY:.*]]: tensor<4x?xf32>, %[[TI:.*]]: tensor<?x?xf32>)
// CHECK-NEXT: %[[Z:.*]] = linalg.matmul ins(%[[X]], %[[Y]] : {{.*}}) outs(%[[I]] :
// CHECK-NEXT: %[[A:.*]] = linalg.matmul ins(%[[TX]], %[[Y]] : {{.*}}) outs(%[[TI]] :
// CHECK-NEXT: %[[B:.*]] = linalg.matmul ins(%[[X]], %[[TY]] : {{.*}}) outs(%[[A]] :
// CHECK-NEXT: return %[[Z]], %[[B]]
func.func @matmul(%x: tensor<?x4xf32>, %y: tensor<4x?xf32>, %i: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %z = linalg.matmul ins(%x, %y : tensor<?x4xf32>, tensor<4x?xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}

// The body, followed by its tangents; operands that these do not read are gone.
// CHECK-LABEL: func.func @elementwise_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %[[Y:.*]]: tensor<?xf32>, %[[TX:.*]]: tensor<?x?xf32>, %[[TY:.*]]: tensor<?xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Y]] :
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[TX]], %[[TY]] : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>) outs(%{{.*}} : tensor<?x?xf32>) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[TA:.*]]: f32, %[[TB:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:   %[[C:.*]] = math.cos %[[A]] : f32
// CHECK-NEXT:   %[[D:.*]] = arith.mulf %[[TA]], %[[C]] : f32
// CHECK-NEXT:   %[[E:.*]] = arith.addf %[[D]], %[[TB]] : f32
// CHECK-NEXT:   linalg.yield %[[E]] : f32
func.func @elementwise(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?x?xf32> {
  %z = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<?x?xf32>, tensor<?xf32>) outs(%x : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = math.sin %a : f32
    %1 = arith.addf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<?x?xf32>
  return %z : tensor<?x?xf32>
}

// A sum carries tangents alone.
// CHECK-LABEL: func.func @sum_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %[[I:.*]]: tensor<?xf32>, %[[TX:.*]]: tensor<?x?xf32>, %[[TI:.*]]: tensor<?xf32>)
// CHECK: linalg.reduce
// CHECK: linalg.generic {{.*}} ins(%[[TX]] : tensor<?x?xf32>) outs(%[[TI]] : tensor<?xf32>) {
// CHECK-NEXT: ^bb0(%[[T:.*]]: f32, %[[S:.*]]: f32):
// CHECK-NEXT:   %[[A:.*]] = arith.addf %[[S]], %[[T]] : f32
// CHECK-NEXT:   linalg.yield %[[A]] : f32
func.func @sum(%x: tensor<?x?xf32>, %i: tensor<?xf32>) -> tensor<?xf32> {
  %z = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%i : tensor<?xf32>) dimensions = [1]
  return %z : tensor<?xf32>
}

// A product carries the product beside its tangent, which the reverse mode cannot.
// CHECK-LABEL: func.func @product_jvp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[I:.*]]: tensor<f32>, %[[TX:.*]]: tensor<?xf32>, %[[TI:.*]]: tensor<f32>)
// CHECK: %[[R:.*]]:2 = linalg.generic {{.*}} ins(%[[X]], %[[TX]] : tensor<?xf32>, tensor<?xf32>) outs(%[[I]], %[[TI]] : tensor<f32>, tensor<f32>) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[TA:.*]]: f32, %[[P:.*]]: f32, %[[TP:.*]]: f32):
// CHECK-NEXT:   %[[Q:.*]] = arith.mulf %[[P]], %[[A]] : f32
// CHECK-NEXT:   %[[B:.*]] = arith.mulf %[[TP]], %[[A]] : f32
// CHECK-NEXT:   %[[C:.*]] = arith.mulf %[[TA]], %[[P]] : f32
// CHECK-NEXT:   %[[D:.*]] = arith.addf %[[B]], %[[C]] : f32
// CHECK-NEXT:   linalg.yield %[[Q]], %[[D]] : f32, f32
// CHECK: return %{{.*}}, %[[R]]#1
func.func @product(%x: tensor<?xf32>, %i: tensor<f32>) -> tensor<f32> {
  %z = linalg.reduce { arith.mulf } ins(%x : tensor<?xf32>) outs(%i : tensor<f32>) dimensions = [0]
  return %z : tensor<f32>
}

// The tangent of what a body reads at a place is at the same place.
// CHECK-LABEL: func.func @gather_jvp(
// CHECK-SAME: %[[E:.*]]: tensor<?xf32>, %[[R:.*]]: tensor<?xi32>, %[[TE:.*]]: tensor<?xf32>)
// CHECK: tensor.extract %[[E]]
// CHECK: linalg.generic {{.*}} ins(%[[R]] : tensor<?xi32>)
// CHECK: %[[I:.*]] = arith.index_cast
// CHECK-NEXT: %[[T:.*]] = tensor.extract %[[TE]][%[[I]]]
// CHECK-NEXT: linalg.yield %[[T]] : f32
func.func @gather(%e: tensor<?xf32>, %rows: tensor<?xi32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %rows, %zero : tensor<?xi32>
  %o = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%rows : tensor<?xi32>) outs(%o : tensor<?xf32>) {
  ^bb0(%row: i32, %a: f32):
    %i = arith.index_cast %row : i32 to index
    %g = tensor.extract %e[%i] : tensor<?xf32>
    linalg.yield %g : f32
  } -> tensor<?xf32>
  return %z : tensor<?xf32>
}

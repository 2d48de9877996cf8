// RUN: varlen-opt %s \
// RUN:   --varlen-differentiate=function=extract_slices \
// RUN:   --varlen-differentiate=function=insert_slice \
// RUN:   --varlen-differentiate=function=elements \
// RUN:   --varlen-differentiate=function=from_scalars \
// RUN:   --varlen-differentiate=function=shapes \
// RUN:   --varlen-differentiate=function=reshape \
// RUN:   --varlen-differentiate=function=pad \
// RUN:   --varlen-differentiate=function=pad_alike \
// RUN:   --varlen-differentiate=function=concat \
// RUN:   --varlen-differentiate=function=cast \
// RUN:   | FileCheck %s

// The first is put into zeros, the second is added to its place.
// CHECK-LABEL: func.func @extract_slices_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x6xf32>, %[[N:.*]]: index, %[[D0:.*]]: tensor<?x2xf32>, %[[D1:.*]]: tensor<3xf32>) -> tensor<?x6xf32> {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<?x6xf32>) -> tensor<?x6xf32>
// CHECK-NEXT: %[[B:.*]] = tensor.insert_slice %[[D1]] into %[[A]][%[[N]], 2] [1, 3] [1, 1] : tensor<3xf32> into tensor<?x6xf32>
// CHECK-NEXT: %[[C:.*]] = tensor.extract_slice %[[B]][0, 1] [%[[N]], 2] [1, 2] : tensor<?x6xf32> to tensor<?x2xf32>
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[C]], %[[D0]] : tensor<?x2xf32>
// CHECK-NEXT: %[[E:.*]] = tensor.insert_slice %[[D]] into %[[B]][0, 1] [%[[N]], 2] [1, 2] : tensor<?x2xf32> into tensor<?x6xf32>
// CHECK-NEXT: return %[[E]] : tensor<?x6xf32>
func.func @extract_slices(%x: tensor<?x6xf32>, %n: index) -> (tensor<?x2xf32>, tensor<3xf32>) {
  %a = tensor.extract_slice %x[0, 1] [%n, 2] [1, 2] : tensor<?x6xf32> to tensor<?x2xf32>
  %b = tensor.extract_slice %x[%n, 2] [1, 3] [1, 1] : tensor<?x6xf32> to tensor<3xf32>
  return %a, %b : tensor<?x2xf32>, tensor<3xf32>
}

// What is written over has the cotangent 0.
// CHECK-LABEL: func.func @insert_slice_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x6xf32>, %[[Y:.*]]: tensor<6xf32>, %[[D:.*]]: tensor<?x6xf32>) -> (tensor<?x6xf32>, tensor<6xf32>) {
// CHECK: %[[A:.*]] = tensor.extract_slice %[[D]][1, 0] [1, 6] [1, 1] : tensor<?x6xf32> to tensor<6xf32>
// CHECK: %[[B:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<6xf32>) -> tensor<6xf32>
// CHECK-NEXT: %[[C:.*]] = tensor.insert_slice %[[B]] into %[[D]][1, 0] [1, 6] [1, 1] : tensor<6xf32> into tensor<?x6xf32>
// CHECK-NEXT: return %[[C]], %[[A]] : tensor<?x6xf32>, tensor<6xf32>
func.func @insert_slice(%x: tensor<?x6xf32>, %y: tensor<6xf32>) -> tensor<?x6xf32> {
  %a = tensor.insert_slice %y into %x[1, 0] [1, 6] [1, 1] : tensor<6xf32> into tensor<?x6xf32>
  return %a : tensor<?x6xf32>
}

// The same with single elements.
// CHECK-LABEL: func.func @elements_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[S:.*]]: f32, %[[I:.*]]: index, %[[D0:.*]]: f32, %[[D1:.*]]: tensor<?xf32>) -> (tensor<?xf32>, f32) {
// CHECK: %[[A:.*]] = tensor.extract %[[D1]][%[[I]]] : tensor<?xf32>
// CHECK-NEXT: %[[B:.*]] = tensor.insert %{{.*}} into %[[D1]][%[[I]]] : tensor<?xf32>
// CHECK-NEXT: %[[C:.*]] = tensor.extract %[[B]][%[[I]]] : tensor<?xf32>
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[C]], %[[D0]] : f32
// CHECK-NEXT: %[[E:.*]] = tensor.insert %[[D]] into %[[B]][%[[I]]] : tensor<?xf32>
// CHECK-NEXT: return %[[E]], %[[A]] : tensor<?xf32>, f32
func.func @elements(%x: tensor<?xf32>, %s: f32, %i: index) -> (f32, tensor<?xf32>) {
  %a = tensor.extract %x[%i] : tensor<?xf32>
  %b = tensor.insert %s into %x[%i] : tensor<?xf32>
  return %a, %b : f32, tensor<?xf32>
}

// Tensors of numbers.
// CHECK-LABEL: func.func @from_scalars_vjp(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[D0:.*]]: tensor<1x2xf32>, %[[D1:.*]]: tensor<3xf32>) -> (f32, f32) {
// CHECK: %[[A:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<f32>) -> tensor<f32>
// CHECK-NEXT: %[[B:.*]] = linalg.reduce { arith.addf } ins(%[[D1]] : tensor<3xf32>) outs(%[[A]] : tensor<f32>) dimensions = [0]
// CHECK-NEXT: %[[C:.*]] = tensor.extract %[[B]][] : tensor<f32>
// CHECK-NEXT: %[[D:.*]] = tensor.extract %[[D0]][%{{.*}}, %{{.*}}] : tensor<1x2xf32>
// CHECK-NEXT: %[[E:.*]] = arith.addf %[[C]], %[[D]] : f32
// CHECK-NEXT: %[[F:.*]] = tensor.extract %[[D0]][%{{.*}}, %{{.*}}] : tensor<1x2xf32>
// CHECK-NEXT: return %[[E]], %[[F]] : f32, f32
func.func @from_scalars(%x: f32, %y: f32) -> (tensor<1x2xf32>, tensor<3xf32>) {
  %a = tensor.from_elements %x, %y : tensor<1x2xf32>
  %b = tensor.splat %x : tensor<3xf32>
  return %a, %b : tensor<1x2xf32>, tensor<3xf32>
}

// There and back, with the sizes of the argument.
// CHECK-LABEL: func.func @shapes_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x6xf32>, %[[N:.*]]: index, %[[D0:.*]]: tensor<?x2x3xf32>, %[[D1:.*]]: tensor<?xf32>) -> tensor<?x6xf32> {
// CHECK: %[[A:.*]] = tensor.expand_shape %[[D1]] {{\[\[}}0, 1]] output_shape [%{{.*}}, 6] : tensor<?xf32> into tensor<?x6xf32>
// CHECK-NEXT: %[[B:.*]] = tensor.collapse_shape %[[D0]] {{\[\[}}0], [1, 2]] : tensor<?x2x3xf32> into tensor<?x6xf32>
// CHECK-NEXT: %[[C:.*]] = arith.addf %[[A]], %[[B]] : tensor<?x6xf32>
// CHECK-NEXT: return %[[C]] : tensor<?x6xf32>
func.func @shapes(%x: tensor<?x6xf32>, %n: index) -> (tensor<?x2x3xf32>, tensor<?xf32>) {
  %a = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 2, 3] : tensor<?x6xf32> into tensor<?x2x3xf32>
  %b = tensor.collapse_shape %x [[0, 1]] : tensor<?x6xf32> into tensor<?xf32>
  return %a, %b : tensor<?x2x3xf32>, tensor<?xf32>
}

// To a shape that is computed.
// CHECK-LABEL: func.func @reshape_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x6xf32>, %[[S:.*]]: tensor<2xindex>, %[[D:.*]]: tensor<?x3xf32>) -> tensor<?x6xf32> {
// CHECK: %[[A:.*]] = tensor.from_elements %{{.*}}, %{{.*}} : tensor<2xindex>
// CHECK-NEXT: %[[B:.*]] = tensor.reshape %[[D]](%[[A]]) : (tensor<?x3xf32>, tensor<2xindex>) -> tensor<?x6xf32>
// CHECK-NEXT: return %[[B]] : tensor<?x6xf32>
func.func @reshape(%x: tensor<?x6xf32>, %s: tensor<2xindex>) -> tensor<?x3xf32> {
  %a = tensor.reshape %x(%s) : (tensor<?x6xf32>, tensor<2xindex>) -> tensor<?x3xf32>
  return %a : tensor<?x3xf32>
}

// The inner part.
// CHECK-LABEL: func.func @pad_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x3xf32>, %[[N:.*]]: index, %[[D:.*]]: tensor<?x5xf32>) -> tensor<?x3xf32> {
// CHECK: %[[A:.*]] = tensor.extract_slice %[[D]][%[[N]], 2] [%{{.*}}, 3] [1, 1] : tensor<?x5xf32> to tensor<?x3xf32>
// CHECK-NEXT: return %[[A]] : tensor<?x3xf32>
func.func @pad(%x: tensor<?x3xf32>, %n: index) -> tensor<?x5xf32> {
  %zero = arith.constant 0.0 : f32
  %a = tensor.pad %x low[%n, 2] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x3xf32> to tensor<?x5xf32>
  return %a : tensor<?x5xf32>
}

// CHECK-LABEL: func.func @pad_alike_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[N:.*]]: index, %[[D:.*]]: tensor<?xf32>) -> tensor<?xf32> {
// CHECK: %[[A:.*]] = tensor.extract_slice %[[D]][%[[N]]] [%{{.*}}] [1] : tensor<?xf32> to tensor<?xf32>
// CHECK-NEXT: return %[[A]] : tensor<?xf32>
func.func @pad_alike(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %a = tensor.pad %x low[%n] high[%n] {
  ^bb0(%i: index):
    %zero = arith.constant 0.0 : f32
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %a : tensor<?xf32>
}

// Part by part.
// CHECK-LABEL: func.func @concat_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?x3xf32>, %[[Y:.*]]: tensor<?x3xf32>, %[[D:.*]]: tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?x3xf32>) {
// CHECK: %[[A:.*]] = tensor.extract_slice %[[D]][0, 0] [%{{.*}}, 3] [1, 1] : tensor<?x3xf32> to tensor<?x3xf32>
// CHECK: %[[B:.*]] = tensor.extract_slice %[[D]][%{{.*}}, 0] [%{{.*}}, 3] [1, 1] : tensor<?x3xf32> to tensor<?x3xf32>
// CHECK-NEXT: return %[[A]], %[[B]] : tensor<?x3xf32>, tensor<?x3xf32>
func.func @concat(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %a = tensor.concat dim(0) %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %a : tensor<?x3xf32>
}

// Types have to match again.
// CHECK-LABEL: func.func @cast_vjp(
// CHECK-SAME: %[[X:.*]]: tensor<?xf32>, %[[D:.*]]: tensor<4xf32>) -> tensor<?xf32> {
// CHECK-NEXT: %[[A:.*]] = tensor.cast %[[D]] : tensor<4xf32> to tensor<?xf32>
// CHECK-NEXT: return %[[A]] : tensor<?xf32>
func.func @cast(%x: tensor<?xf32>) -> tensor<4xf32> {
  %a = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
  return %a : tensor<4xf32>
}

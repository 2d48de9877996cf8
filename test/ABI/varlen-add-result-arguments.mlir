// RUN: varlen-opt %s --varlen-add-result-arguments --split-input-file | FileCheck %s
// RUN: varlen-opt %s --varlen-add-result-arguments=strided --split-input-file | FileCheck %s --check-prefix=STRIDED
// RUN: varlen-opt %s --varlen-add-result-arguments --varlen-bufferize --split-input-file | FileCheck %s --check-prefix=BUFFERS

// A tensor is a memref of its shape, a scalar one of rank 0. What a result is
// called, its memref is.

// CHECK-LABEL: func @results(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: f32,
// CHECK-SAME: %[[OUT:.*]]: memref<?x4xf32> {varlen.name = "out"}, %[[SUM:.*]]: memref<f32>) {
// CHECK: %[[EXP:.*]] = math.exp %[[X]]
// CHECK: bufferization.materialize_in_destination %[[EXP]] in restrict writable %[[OUT]]
// CHECK: memref.store %[[Y]], %[[SUM]][]
// CHECK: return{{$}}

// STRIDED-LABEL: func @results(
// STRIDED-SAME: %[[X:.*]]: memref<?x4xf32, strided<[?, 1]>>, %{{.*}}: f32,
// STRIDED-SAME: %{{.*}}: memref<?x4xf32, strided<[?, 1]>> {varlen.name = "out"}, %{{.*}}: memref<f32>)
// STRIDED: %[[T:.*]] = bufferization.to_tensor %[[X]] restrict
// STRIDED: math.exp %[[T]]

func.func @results(%x: tensor<?x4xf32>, %y: f32) -> (tensor<?x4xf32> {varlen.name = "out"}, f32) {
  %e = math.exp %x : tensor<?x4xf32>
  return %e, %y : tensor<?x4xf32>, f32
}

// Nothing is copied: the result is computed where the caller wants it.

// BUFFERS-LABEL: func @linalg(
// BUFFERS-NOT: alloc
// BUFFERS-NOT: copy
// BUFFERS: memref.subview %arg1[
// BUFFERS: return
func.func @linalg(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %empty = tensor.empty(%rows) : tensor<?x4xf32>
  %e = linalg.exp ins(%x : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %e : tensor<?x4xf32>
}

// BUFFERS-LABEL: func @attention(
// BUFFERS-SAME: %[[OUT:[^ ]*]]: memref<?x4x16xf32>, %[[LSE:[^ ]*]]: memref<4x?xf32>)
// BUFFERS-NEXT: varlen.attn {{.*}} outs(%[[OUT]], %[[LSE]])
// BUFFERS-NEXT: return
func.func @attention(%q: tensor<?x4x16xf32>, %cu: tensor<?xi32>) -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
}

// -----

// An argument that is returned is copied, and twice the same value, too.

// BUFFERS-LABEL: func @arguments(
// BUFFERS: memref.copy %arg0, %arg1
// BUFFERS: memref.copy %arg0, %arg2
func.func @arguments(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// Every return stores.

// CHECK-LABEL: func @blocks(
// CHECK-COUNT-2: bufferization.materialize_in_destination
func.func @blocks(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  return %x : tensor<4xf32>
^bb2:
  %z = arith.negf %y : tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// A function that the module calls keeps its results for that; private ones and
// declarations are left alone.

// CHECK-LABEL: func @inner(
// CHECK-SAME: %{{.*}}: tensor<4xf32>, %{{.*}}: memref<4xf32>) {
// CHECK-LABEL: func @outer(
// CHECK: %[[R:.*]] = call @[[COPY:inner_.*]](%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: materialize_in_destination %[[R]]
// CHECK: func private @hidden(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK: func private @external(tensor<4xf32>) -> tensor<4xf32>
// CHECK: func private @[[COPY]](%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
func.func @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @hidden(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @external(tensor<4xf32>) -> tensor<4xf32>

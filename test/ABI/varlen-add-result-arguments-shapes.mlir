// RUN: varlen-opt %s --varlen-add-result-arguments=shapes | FileCheck %s

// Extents of an attention follow from its operands; nothing is computed for
// them.

// CHECK-LABEL: func @attention(
// CHECK: varlen.attn
// CHECK: }
// CHECK-LABEL: func @attention_shapes(
// CHECK-SAME: %[[Q:.*]]: tensor<?x4x16xf32>, %{{.*}}: tensor<?x2x16xf32>, %{{.*}}: tensor<?xi32>, %[[E:.*]]: memref<5xi64>) {
// CHECK-NOT: varlen
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : i64
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : i64
// CHECK: %[[DIM:.*]] = tensor.dim %[[Q]], %[[C0]]
// CHECK: %[[ROWS:.*]] = arith.index_cast %[[DIM]] : index to i64
// CHECK: memref.store %[[ROWS]], %[[E]][%[[C0]]]
// CHECK: memref.store %[[C4]], %[[E]]
// CHECK: memref.store %[[C16]], %[[E]]
// CHECK: memref.store %[[C4]], %[[E]]
// CHECK: memref.store %[[ROWS]], %[[E]]
// CHECK-NEXT: return{{$}}
func.func @attention(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %cu: tensor<?xi32>)
    -> (tensor<?x4x16xf32>, tensor<4x?xf32>) {
  %e = math.exp %q : tensor<?x4x16xf32>
  %out, %lse = varlen.attn %e, %k, %k, %cu, %cu
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x4x16xf32>, tensor<4x?xf32>)
  return %out, %lse : tensor<?x4x16xf32>, tensor<4x?xf32>
}

// Scalars may say an extent; a result that is a scalar has none.

// CHECK-LABEL: func @scalar_shapes(
// CHECK-SAME: %[[N:.*]]: index, %[[E:.*]]: memref<1xi64>)
// CHECK: %[[M:.*]] = arith.index_cast %[[N]]
// CHECK-NEXT: memref.store %[[M]], %[[E]]
// CHECK-NEXT: return
func.func @scalar(%n: index) -> (tensor<?xf32>, f32) {
  %zero = arith.constant 0.0 : f32
  %splat = tensor.splat %zero[%n] : tensor<?xf32>
  return %splat, %zero : tensor<?xf32>, f32
}

// No tensor, nothing to know.

// CHECK-LABEL: func @none(
// CHECK-NOT: none_shapes
func.func @none(%x: f32) -> f32 {
  return %x : f32
}

// The function itself checks what it asserts, its values included.

// CHECK-LABEL: func @asserted(
// CHECK: cf.assert
// CHECK-LABEL: func @asserted_shapes(
// CHECK-NOT: cf.assert
// CHECK: return{{$}}
func.func @asserted(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %first = tensor.extract %x[%c0] : tensor<?xf32>
  %good = arith.cmpf une, %first, %zero : f32
  cf.assert %good, "expected a number other than 0"
  return %x : tensor<?xf32>
}

// What a loop carries keeps its extents, where each turn writes into it.

// CHECK-LABEL: func @loop_shapes(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>, %{{.*}}: index, %[[E:.*]]: memref<2xi64>)
// CHECK-NOT: scf.for
// CHECK-DAG: %[[ROWS:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[COLUMNS:.*]] = tensor.dim %[[X]], %c1
// CHECK-NOT: scf.for
// CHECK: return{{$}}
func.func @loop(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %r = scf.for %i = %zero to %n step %one iter_args(%o = %x) -> tensor<?x?xf32> {
    %s = scf.for %j = %zero to %n step %one iter_args(%p = %o) -> tensor<?x?xf32> {
      %t = tensor.insert %f into %p[%i, %j] : tensor<?x?xf32>
      scf.yield %t : tensor<?x?xf32>
    }
    // Extents that the loop itself asks for, too.
    %m = tensor.dim %o, %one : tensor<?x?xf32>
    %k = arith.subi %m, %one : index
    %u = tensor.insert %f into %s[%i, %k] : tensor<?x?xf32>
    scf.yield %u : tensor<?x?xf32>
  }
  return %r : tensor<?x?xf32>
}

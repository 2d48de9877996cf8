// RUN: varlen-opt %s --pass-pipeline='builtin.module(func.func(varlen-separate-results))' | FileCheck %s
// RUN: varlen-opt %s --varlen-bufferize | FileCheck %s --check-prefix=BUFFERS

// The first result is a step on the way to the second one, in the same memory: it
// is read before it is overwritten.

// CHECK-LABEL: func @step(
// CHECK: %[[X:.*]] = linalg.exp
// CHECK: %[[Y:.*]] = linalg.add
// CHECK-NEXT: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[X]])
// CHECK-NEXT: bufferization.materialize_in_destination %[[Y]] in writable %arg1
// CHECK-NEXT: bufferization.materialize_in_destination %[[COPY]] in restrict writable %arg2

// BUFFERS-LABEL: func @step(
// BUFFERS-NOT: memref.copy %arg1, %arg2
func.func @step(%s: tensor<4xf32>, %a: memref<4xf32>, %b: memref<4xf32>) {
  %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
  %x = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.add ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %y in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %x in restrict writable %b : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// Another result is written before: the copy is behind what it copies.

// CHECK-LABEL: func @later(
// CHECK: bufferization.materialize_in_destination %arg0 in writable %arg1
// CHECK: %[[X:.*]] = linalg.exp
// CHECK: %[[Y:.*]] = linalg.add
// CHECK-NEXT: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[X]])
// CHECK-NEXT: bufferization.materialize_in_destination %[[Y]] in writable %arg2
// CHECK-NEXT: bufferization.materialize_in_destination %[[COPY]] in restrict writable %arg3
func.func @later(%s: tensor<4xf32>, %c: memref<4xf32>, %a: memref<4xf32>, %b: memref<4xf32>) {
  bufferization.materialize_in_destination %s in writable %c : (tensor<4xf32>, memref<4xf32>) -> ()
  %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
  %x = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.add ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %y in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %x in restrict writable %b : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// What is computed from a result that is written is not overwritten by it.

// CHECK-LABEL: func @continued(
// CHECK-NOT: alloc_tensor
// CHECK: return
func.func @continued(%a: memref<4xf32>, %b: memref<4xf32>, %s: tensor<4xf32>) {
  bufferization.materialize_in_destination %s in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
  %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
  %z = linalg.add ins(%t, %s : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %z in writable %b : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// One fill, from which both begin.

// CHECK-LABEL: func @fill(
// CHECK: %[[X:.*]] = linalg.matvec
// CHECK: %[[Y:.*]] = linalg.matvec
// CHECK-NEXT: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[Y]])
// CHECK-NEXT: bufferization.materialize_in_destination %[[X]] in writable %arg2
// CHECK-NEXT: bufferization.materialize_in_destination %[[COPY]] in restrict writable %arg3
func.func @fill(%m: tensor<4x4xf32>, %s: tensor<4xf32>, %a: memref<4xf32>, %b: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %x = linalg.matvec ins(%m, %s : tensor<4x4xf32>, tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.matvec ins(%m, %x : tensor<4x4xf32>, tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %x in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %y in restrict writable %b : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// Through views and loops.

// CHECK-LABEL: func @views(
// CHECK: bufferization.alloc_tensor() copy(
func.func @views(%s: tensor<4xf32>, %n: index, %a: memref<4xf32>, %b: memref<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
  %x = scf.for %i = %c0 to %n step %c1 iter_args(%o = %t) -> tensor<4xf32> {
    %e = linalg.exp ins(%s : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  %y = linalg.abs ins(%s : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  %v = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  bufferization.materialize_in_destination %y in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %v in restrict writable %b : (tensor<2x2xf32>, memref<2x2xf32>) -> ()
  return
}

// Results with nothing in common are where they were, and so is one that is
// written before the other one's memory is.

// CHECK-LABEL: func @apart(
// CHECK-NOT: copy
// CHECK: return
func.func @apart(%s: tensor<4xf32>, %a: memref<4xf32>, %b: memref<4xf32>) {
  %t = bufferization.to_tensor %a restrict writable : memref<4xf32> to tensor<4xf32>
  %u = bufferization.to_tensor %b restrict writable : memref<4xf32> to tensor<4xf32>
  %x = linalg.exp ins(%s : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.add ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%u : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %x in writable %a : (tensor<4xf32>, memref<4xf32>) -> ()
  bufferization.materialize_in_destination %y in writable %b : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

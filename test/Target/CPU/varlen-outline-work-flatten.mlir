// RUN: varlen-opt %s --varlen-outline-work | FileCheck %s

// A loop of several indices is one of a single index, of which the others are computed.

// CHECK-LABEL: func.func @two(
// CHECK: %[[ROWS:.*]] = arith.maxsi
// CHECK: %[[ALL:.*]] = arith.muli %[[ROWS]], %c4
// CHECK: %[[COUNT:.*]] = arith.index_cast %[[ALL]] : index to i64
// CHECK: call @varlen_parallel_for(%[[COUNT]],
// CHECK-LABEL: func.func private @two_work_0(
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK: scf.for %[[K:.*]] =
// CHECK:   arith.remui %[[K]], %[[C4]]
// CHECK:   arith.divui %[[K]], %[[C4]]
// CHECK:   arith.muli
// CHECK:   memref.store
func.func @two(%x: memref<?x64xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i, %j) = (0, 0) to (%n, 64) step (1, 16) {
    memref.store %zero, %x[%i, %j] : memref<?x64xf32>
  }
  return
}

// No iteration if the upper bound is the lower one, or below it.
// CHECK-LABEL: func.func @step(
// CHECK: arith.maxsi
// CHECK: call @varlen_parallel_for(
func.func @step(%x: memref<?xf32>, %lo: index, %hi: index, %by: index) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) = (%lo) to (%hi) step (%by) {
    memref.store %zero, %x[%i] : memref<?xf32>
  }
  return
}

// Meant for something else.
// CHECK-LABEL: func.func @left(
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (2, 2) {
// CHECK: mapping
func.func @left(%x: memref<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i, %j) in (2, 2) {
    memref.store %zero, %x[%j] : memref<?xf32>
  } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
  return
}

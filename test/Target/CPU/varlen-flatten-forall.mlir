// RUN: varlen-opt %s --varlen-flatten-forall | FileCheck %s

// CHECK-LABEL: func.func @two
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK: scf.forall (%[[K:.*]]) in (%{{.*}}) {
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
// CHECK-LABEL: func.func @step
// CHECK: arith.maxsi
// CHECK: scf.forall (%{{.*}}) in (%{{.*}}) {
func.func @step(%x: memref<?xf32>, %lo: index, %hi: index, %by: index) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) = (%lo) to (%hi) step (%by) {
    memref.store %zero, %x[%i] : memref<?xf32>
  }
  return
}

// As it should be, and meant for something else.
// CHECK-LABEL: func.func @left
// CHECK: scf.forall (%{{.*}}) in (%{{.*}}) {
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (2, 2) {
// CHECK: mapping
func.func @left(%x: memref<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%i) in (%n) {
    memref.store %zero, %x[%i] : memref<?xf32>
  }
  scf.forall (%i, %j) in (2, 2) {
    memref.store %zero, %x[%j] : memref<?xf32>
  } {mapping = [#gpu.thread<y>, #gpu.thread<x>]}
  return
}

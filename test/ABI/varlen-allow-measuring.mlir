// RUN: varlen-opt %s --varlen-allow-measuring | FileCheck %s

// Allocations and parallel loops are executed by both runs; what reads and writes is
// not, and goes into one branch as far as it may move.

// CHECK-LABEL: func @neighbours(
// CHECK: %[[MEASURES:.*]] = call @varlen_is_measuring() : () -> i1
// CHECK: %[[COMPUTES:.*]] = arith.xori %[[MEASURES]], %{{.*}} : i1
// CHECK: %[[N:.*]] = memref.dim
// CHECK-NEXT: %[[BUFFER:.*]] = memref.alloc(%[[N]])
// CHECK-NEXT: scf.forall
// CHECK: %[[TWICE:.*]] = arith.addi %[[N]], %[[N]]
// CHECK-NEXT: scf.if %[[COMPUTES]] {
// CHECK-NEXT: linalg.fill
// CHECK-NEXT: memref.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: memref.store
// CHECK-NEXT: }
// CHECK-NEXT: memref.dealloc %[[BUFFER]]
// CHECK-NEXT: return
func.func @neighbours(%x: memref<?xf32>, %i: index, %zero: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %buffer = memref.alloc(%n) : memref<?xf32>
  scf.forall (%j) in (%n) {
    memref.store %zero, %buffer[%j] : memref<?xf32>
  }
  linalg.fill ins(%zero : f32) outs(%x : memref<?xf32>)
  %twice = arith.addi %n, %n : index
  %a = memref.load %x[%i] : memref<?xf32>
  %b = arith.addf %a, %a : f32
  memref.store %b, %buffer[%twice] : memref<?xf32>
  memref.dealloc %buffer : memref<?xf32>
  return
}

// What is computed from memory and used after an allocation comes out of the
// branch; a run that measures has nothing there.

// CHECK-LABEL: func @value(
// CHECK: %[[A:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT: %[[LOADED:.*]] = memref.load
// CHECK-NEXT: scf.yield %[[LOADED]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[NOTHING:.*]] = ub.poison : f32
// CHECK-NEXT: scf.yield %[[NOTHING]]
// CHECK: memref.alloc
// CHECK: scf.forall
// CHECK-NEXT: memref.store %[[A]]
func.func @value(%x: memref<f32>, %n: index) {
  %a = memref.load %x[] : memref<f32>
  %buffer = memref.alloc(%n) : memref<?xf32>
  scf.forall (%j) in (%n) {
    memref.store %a, %buffer[%j] : memref<?xf32>
  }
  memref.dealloc %buffer : memref<?xf32>
  return
}

// Loops and branches that have allocations, or attention, are gone through.

// CHECK-LABEL: func @loop(
// CHECK: scf.for
// CHECK-NEXT: memref.alloc
// CHECK-NEXT: varlen.attn
// CHECK-NEXT: scf.if
// CHECK-NEXT: memref.copy
// CHECK-NEXT: }
// CHECK-NEXT: memref.dealloc
func.func @loop(%x: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>, %layers: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x4x16xf32>
  scf.for %i = %c0 to %layers step %c1 {
    %y = memref.alloc(%n) : memref<?x4x16xf32>
    varlen.attn %x, %x, %x, %cu, %cu outs(%y, %lse)
        : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>, memref<?xi32>,
           memref<?x4x16xf32>, memref<4x?xf32>) -> ()
    memref.copy %y, %x : memref<?x4x16xf32> to memref<?x4x16xf32>
    memref.dealloc %y : memref<?x4x16xf32>
  }
  return
}

// Nothing to leave out.

// CHECK-LABEL: func @attention(
// CHECK-NOT: call
// CHECK: return
func.func @attention(%x: memref<?x4x16xf32>, %y: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>) {
  varlen.attn %x, %x, %x, %cu, %cu outs(%y, %lse)
      : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>, memref<?xi32>,
         memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  return
}

// What is in memory decides how much is allocated, and whether. Functions that are
// called may do anything; so may attention in work, which is not counted.

// CHECK-LABEL: func @size(
// CHECK-SAME: attributes {varlen.memory_depends_on = "memref.alloc"}
// CHECK-NOT: scf.if
func.func @size(%x: memref<index>) {
  %n = memref.load %x[] : memref<index>
  %m = arith.addi %n, %n : index
  %buffer = memref.alloc(%m) : memref<?xf32>
  memref.dealloc %buffer : memref<?xf32>
  return
}

// CHECK-LABEL: func @branch(
// CHECK-SAME: attributes {varlen.memory_depends_on = "scf.if"}
func.func @branch(%x: memref<i1>) {
  %c = memref.load %x[] : memref<i1>
  scf.if %c {
    %buffer = memref.alloc() : memref<4xf32>
    memref.dealloc %buffer : memref<4xf32>
  }
  return
}

// CHECK-LABEL: func @through_loop(
// CHECK-SAME: attributes {varlen.memory_depends_on = "memref.alloc"}
func.func @through_loop(%x: memref<index>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%size = %c1) -> index {
    %buffer = memref.alloc(%size) : memref<?xf32>
    memref.dealloc %buffer : memref<?xf32>
    %next = memref.load %x[] : memref<index>
    scf.yield %next : index
  }
  return
}

// A division by nothing would trap.

// CHECK-LABEL: func @division(
// CHECK-SAME: attributes {varlen.memory_depends_on = "arith.divui"}
func.func @division(%x: memref<index>, %n: index) {
  %a = memref.load %x[] : memref<index>
  %buffer = memref.alloc(%n) : memref<?xindex>
  %q = arith.divui %n, %a : index
  memref.store %q, %buffer[%n] : memref<?xindex>
  memref.dealloc %buffer : memref<?xindex>
  return
}

// CHECK-LABEL: func @calls(
// CHECK-SAME: attributes {varlen.memory_depends_on = "func.call"}
func.func @calls() {
  call @other() : () -> ()
  return
}
func.func private @other()

// CHECK-LABEL: func @work(
// CHECK-SAME: attributes {varlen.memory_depends_on = "varlen.attn"}
func.func @work(%x: memref<?x4x16xf32>, %y: memref<?x4x16xf32>, %lse: memref<4x?xf32>, %cu: memref<?xi32>) {
  scf.forall (%i) in (3) {
    varlen.attn %x, %x, %x, %cu, %cu outs(%y, %lse)
        : (memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?x4x16xf32>, memref<?xi32>, memref<?xi32>,
           memref<?x4x16xf32>, memref<4x?xf32>) -> ()
  }
  return
}

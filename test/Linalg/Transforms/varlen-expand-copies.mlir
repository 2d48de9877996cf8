// RUN: varlen-opt %s --varlen-expand-copies | FileCheck %s

// CHECK-LABEL: func @strided
// CHECK-NOT: memref.copy
// CHECK: linalg.copy ins(%{{.*}} : memref<?xf32, strided<[2]>>) outs(%{{.*}} : memref<?xf32>)
func.func @strided(%x: memref<?xf32, strided<[2]>>, %y: memref<?xf32>) {
  memref.copy %x, %y : memref<?xf32, strided<[2]>> to memref<?xf32>
  return
}

// CHECK-LABEL: func @target
// CHECK: linalg.copy
func.func @target(%x: memref<4x4xf32>, %y: memref<4x4xf32, strided<[8, 1], offset: ?>>) {
  memref.copy %x, %y : memref<4x4xf32> to memref<4x4xf32, strided<[8, 1], offset: ?>>
  return
}

// One memcpy.
// CHECK-LABEL: func @contiguous
// CHECK-COUNT-2: memref.copy
func.func @contiguous(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %z: memref<4xf32, strided<[1], offset: ?>>, %w: memref<4xf32>) {
  memref.copy %x, %y : memref<?x4xf32> to memref<?x4xf32>
  memref.copy %z, %w : memref<4xf32, strided<[1], offset: ?>> to memref<4xf32>
  return
}

// What a loop returns is the memory that came in.
// CHECK-LABEL: func @returned
// CHECK-SAME: %[[X:.*]]: memref<4x4xf32, strided<[8, 1], offset: ?>>, %[[Y:[^:]*]]: memref
// CHECK-NOT: copy
// CHECK: return
func.func @returned(%x: memref<4x4xf32, strided<[8, 1], offset: ?>>, %y: memref<4xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%own = %x) -> (memref<4x4xf32, strided<[8, 1], offset: ?>>) {
    %changed = scf.if %c -> memref<4x4xf32, strided<[8, 1], offset: ?>> {
      %row = memref.subview %own[%i, 0] [1, 4] [1, 1] : memref<4x4xf32, strided<[8, 1], offset: ?>> to memref<4xf32, strided<[1], offset: ?>>
      linalg.exp ins(%y : memref<4xf32>) outs(%row : memref<4xf32, strided<[1], offset: ?>>)
      scf.yield %own : memref<4x4xf32, strided<[8, 1], offset: ?>>
    } else {
      scf.yield %own : memref<4x4xf32, strided<[8, 1], offset: ?>>
    }
    scf.yield %changed : memref<4x4xf32, strided<[8, 1], offset: ?>>
  }
  memref.copy %r, %x : memref<4x4xf32, strided<[8, 1], offset: ?>> to memref<4x4xf32, strided<[8, 1], offset: ?>>
  return
}

// It may be another one: of two branches, or after an iteration.
// CHECK-LABEL: func @exchanged
// CHECK-COUNT-2: linalg.copy
func.func @exchanged(%x: memref<4xf32, strided<[2]>>, %y: memref<4xf32, strided<[2]>>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (memref<4xf32, strided<[2]>>, memref<4xf32, strided<[2]>>) {
    scf.yield %b, %a : memref<4xf32, strided<[2]>>, memref<4xf32, strided<[2]>>
  }
  memref.copy %r#0, %x : memref<4xf32, strided<[2]>> to memref<4xf32, strided<[2]>>
  %one = scf.if %c -> memref<4xf32, strided<[2]>> {
    scf.yield %x : memref<4xf32, strided<[2]>>
  } else {
    scf.yield %y : memref<4xf32, strided<[2]>>
  }
  memref.copy %one, %x : memref<4xf32, strided<[2]>> to memref<4xf32, strided<[2]>>
  return
}

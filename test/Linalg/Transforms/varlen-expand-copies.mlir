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

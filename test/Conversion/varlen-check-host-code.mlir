// RUN: varlen-opt %s --varlen-check-host-code | FileCheck %s

// CHECK-LABEL: @kernels_may_access
func.func @kernels_may_access(%x: memref<?xf32>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %y = memref.alloc(%n) : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%lx = %n, %ly = %c1, %lz = %c1) {
    // CHECK: memref.load
    %a = memref.load %x[%tx] : memref<?xf32>
    memref.store %a, %y[%tx] : memref<?xf32>
    gpu.terminator
  }
  return %y : memref<?xf32>
}

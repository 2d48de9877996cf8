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

// A check of what the host has, such as extents.
// CHECK-LABEL: @assertion
func.func @assertion(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  %same = arith.cmpi eq, %n, %m : index
  // CHECK: cf.assert
  cf.assert %same, "the extents must agree"
  return
}

// The host's own stack is its own, in functions that get nothing else, too.
// CHECK-LABEL: @host_memory
func.func @host_memory(%n: index) -> index {
  %c0 = arith.constant 0 : index
  %shape = memref.alloca() : memref<1xindex>
  // CHECK: memref.store
  memref.store %n, %shape[%c0] : memref<1xindex>
  %any = memref.cast %shape : memref<1xindex> to memref<?xindex>
  %a = call @first(%any) : (memref<?xindex>) -> index
  return %a : index
}
func.func private @first(%x: memref<?xindex>) -> index {
  %c0 = arith.constant 0 : index
  // CHECK: memref.load
  %a = memref.load %x[%c0] : memref<?xindex>
  return %a : index
}

// Constants of the host, which it alone reads.
memref.global "private" constant @shape : memref<2xindex> = dense<[2, 4]>
// CHECK-LABEL: @host_constant
func.func @host_constant(%x: memref<8xf32>) -> (memref<2x4xf32>, index) {
  %c0 = arith.constant 0 : index
  %shape = memref.get_global @shape : memref<2xindex>
  // CHECK: memref.load
  %n = memref.load %shape[%c0] : memref<2xindex>
  %y = memref.reshape %x(%shape) : (memref<8xf32>, memref<2xindex>) -> memref<2x4xf32>
  return %y, %n : memref<2x4xf32>, index
}

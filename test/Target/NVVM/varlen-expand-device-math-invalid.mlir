// RUN: varlen-opt %s --varlen-expand-device-math -verify-diagnostics

gpu.module @kernels {
  gpu.func @power(%x: i32, %y: memref<8xi32>) kernel {
    %i = gpu.thread_id x
    // expected-error @below {{failed to legalize operation 'math.ipowi'}}
    %0 = math.ipowi %x, %x : i32
    memref.store %0, %y[%i] : memref<8xi32>
    gpu.return
  }
}

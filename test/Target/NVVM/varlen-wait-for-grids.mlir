// RUN: varlen-opt %s --split-input-file --varlen-wait-for-grids | FileCheck %s

// Kernels wait before they do anything else.

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels {
  // CHECK: llvm.mlir.global external constant @varlen_waits_for_grids(1 : i8) {addr_space = 1 : i32} : i8
  // CHECK-LABEL: llvm.func @load
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT: llvm.load
  llvm.func @load(%from: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %x = llvm.load %from : !llvm.ptr<1> -> f32
    llvm.store %x, %from : f32, !llvm.ptr<1>
    llvm.return
  }
  // A kernel behind this one waits for all before it through this one.
  // CHECK-LABEL: llvm.func @empty
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT: llvm.return
  llvm.func @empty() attributes {nvvm.kernel} {
    llvm.return
  }
  // A function is called when its kernel has waited.
  // CHECK-LABEL: llvm.func @function
  // CHECK-NEXT: llvm.load
  llvm.func @function(%from: !llvm.ptr<1>) -> f32 {
    %x = llvm.load %from : !llvm.ptr<1> -> f32
    llvm.return %x : f32
  }
  // CHECK: llvm.func @external()
  llvm.func @external()
}

// -----

// Kernels that wait already are as they were.

// CHECK-LABEL: gpu.module @again
gpu.module @again {
  llvm.mlir.global external constant @varlen_waits_for_grids(1 : i8) {addr_space = 1 : i32} : i8
  // CHECK: llvm.func @kernel
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: llvm.return
  llvm.func @kernel() attributes {nvvm.kernel} {
    nvvm.griddepcontrol wait
    llvm.return
  }
}

// -----

// No kernel, nothing to say.

// CHECK-LABEL: gpu.module @functions
// CHECK-NOT: varlen_waits_for_grids
gpu.module @functions {
  llvm.func @function() {
    llvm.return
  }
}

// RUN: varlen-opt %s --kernel-lower-memory=mbarriers -split-input-file -verify-diagnostics
// RUN: not varlen-opt %s --kernel-lower-memory -split-input-file 2>&1 | FileCheck %s

gpu.module @kernels {
  gpu.func @threads() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{expected a kernel with a known_block_size of 256 threads, those of both roles}}
    kernel.roles consumers(4) {
    } producers(4) {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @several() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    kernel.roles consumers(4) {
    } producers(4) {
    }
    // expected-error @below {{expected one kernel.roles in a kernel, got several}}
    kernel.roles consumers(4) {
    } producers(4) {
    }
    gpu.return
  }
}

// -----

!ring = !kernel.ring<memref<1xi32, #gpu.address_space<workgroup>>>
gpu.module @kernels {
  gpu.func @outside(%i: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %ring = kernel.ring stages(1) : !ring
    kernel.roles consumers(4) {
    } producers(4) {
    }
    // expected-error @below {{expected to be in the kernel.roles of its kernel}}
    kernel.ring.release %ring[%i] : !ring
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // CHECK: expected a target whose threads can wait for an mbarrier: the pass has mbarriers=false
  gpu.func @target() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    kernel.roles consumers(4) {
    } producers(4) {
    }
    gpu.return
  }
}

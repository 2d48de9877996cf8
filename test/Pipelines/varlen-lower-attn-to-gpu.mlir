// REQUIRES: plugin
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu{chip=sm_80})' %s | FileCheck %s

// Upstream's pipeline goes on from there, with kernels of the host's beside.
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu,gpu-lower-to-nvvm-pipeline{cubin-chip=sm_80 cubin-features=+ptx80 cubin-format=isa})' %s | FileCheck %s --check-prefix=PTX

// PTX: gpu.binary @kernels
// PTX-SAME: .entry touch
// PTX: gpu.binary @kernels_0
// PTX-SAME: .entry layer_attn_attn
// PTX-NOT: unrealized_conversion_cast

// RUN: not %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu{chip=sm_1})' %s 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: sm_80

// CHECK: module attributes {gpu.container_module}
// CHECK: gpu.module @kernels {
// CHECK-NEXT: gpu.func @touch
// CHECK: memref.load
// CHECK-LABEL: func @layer(
// CHECK: call @layer_attn(
// CHECK: gpu.launch_func @kernels::@touch
// CHECK: func private @layer_attn(
// CHECK-NOT: memref.alloc
// CHECK: call @varlen_gpu_allocate(
// CHECK: gpu.launch_func @kernels_0::@layer_attn_attn
// CHECK: call @varlen_gpu_free(
// CHECK: gpu.module @kernels_0 {
// CHECK: llvm.func @layer_attn_attn({{.*}}gpu.kernel
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @touch(%x: memref<8xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<8xf32>
      %e = arith.addf %v, %v : f32
      memref.store %e, %x[%i] : memref<8xf32>
      gpu.return
    }
  }
  func.func @layer(%q: memref<?x4x64xbf16>, %k: memref<?x4x64xbf16, strided<[?, 64, 1], offset: ?>>,
                   %cu: memref<?xi32>, %out: memref<?x4x64xbf16>, %lse: memref<4x?xf32>, %x: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    varlen.attn %q, %k, %k, %cu, %cu outs(%out, %lse)
        : (memref<?x4x64xbf16>, memref<?x4x64xbf16, strided<[?, 64, 1], offset: ?>>,
           memref<?x4x64xbf16, strided<[?, 64, 1], offset: ?>>, memref<?xi32>, memref<?xi32>,
           memref<?x4x64xbf16>, memref<4x?xf32>) -> ()
    gpu.launch_func @kernels::@touch blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1)
        args(%x : memref<8xf32>)
    return
  }
}

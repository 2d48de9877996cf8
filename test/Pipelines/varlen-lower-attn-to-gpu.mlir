// REQUIRES: plugin
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu{chip=sm_80})' %s | FileCheck %s

// Upstream's pipeline goes on from there, with kernels of the host's beside.
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu,gpu-lower-to-nvvm-pipeline{cubin-chip=sm_80 cubin-features=+ptx80 cubin-format=isa})' %s | FileCheck %s --check-prefix=PTX

// PTX: gpu.binary @kernels
// PTX-SAME: .entry touch
// PTX: gpu.binary @kernels_0
// PTX-SAME: .entry layer_attn_attn
// PTX-NOT: unrealized_conversion_cast

// For Hopper it makes PTX of the instructions that the nvvm dialect lacks, too.
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu{chip=sm_90a},gpu-lower-to-nvvm-pipeline{cubin-chip=sm_90a cubin-features=+ptx80 cubin-format=isa})' %s | FileCheck %s --check-prefix=HOPPER

// HOPPER: wgmma.mma_async.sync.aligned.m64n{{.*}}wgmma.wait_group.sync.aligned 0;

// Before bufferization: destinations, a score with a capture, and gradients. With dense
// tensors kernels copy rows asynchronously.
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu{dense-tensors})' %S/Inputs/before.mlir -o %t.before
// RUN: FileCheck %s --check-prefixes=BEFORE,DENSE --input-file=%t.before
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},convert-bufferization-to-memref,gpu-lower-to-nvvm-pipeline{cubin-chip=sm_80 cubin-features=+ptx80 cubin-format=isa})' %t.before | FileCheck %s --check-prefix=BEFORE-PTX
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu)' %S/Inputs/before.mlir | FileCheck %s --check-prefixes=BEFORE,STRIDED

// DENSE-LABEL: func.func @before(
// DENSE: bufferization.to_buffer %arg1 read_only : tensor<?x2x32xbf16> to memref<?x2x32xbf16>
// STRIDED-LABEL: func.func @before(
// STRIDED: %[[B:.*]] = bufferization.to_buffer %arg1 read_only
// STRIDED: memref.cast %[[B]] : {{.*}} to memref<?x2x32xbf16, strided<[?, ?, 1], offset: ?>>
// BEFORE: %[[O:.*]] = memref.alloc({{.*}}) : memref<?x2x32xbf16>
// BEFORE: call @before_attn({{.*}}, %[[O]], %{{.*}})
// BEFORE: bufferization.to_tensor %[[O]] restrict writable
// BEFORE: call @before_attn_grad(
// BEFORE-NOT: varlen.
// BEFORE: func.func private @before_attn(
// BEFORE: gpu.launch_func @kernels::@before_attn_attn
// STRIDED-NOT: nvvm.cp.async
// DENSE: nvvm.cp.async

// BEFORE-PTX-NOT: unrealized_conversion_cast
// BEFORE-PTX: gpu.binary
// BEFORE-PTX-SAME: .entry before_attn_attn
// BEFORE-PTX-SAME: .entry before_attn_grad_delta
// BEFORE-PTX-SAME: .entry before_attn_grad_dq
// BEFORE-PTX-SAME: .entry before_attn_grad_dkv
// BEFORE-PTX-SAME: .entry before_attn_grad_dcapture
// BEFORE-PTX-NOT: unrealized_conversion_cast

// Upstream's passes that own buffers take no function that launches kernels, of
// any producer: they run before.
// RUN: not %mlir-opt-plugin --pass-pipeline='builtin.module(one-shot-bufferize{bufferize-function-boundaries},ownership-based-buffer-deallocation)' %t.before 2>&1 | FileCheck %s --check-prefix=OWNERS
// OWNERS: error: ops with unknown memory side effects are not supported

// After it: kernels and modules of others stay as they are, to the letter, before and
// after attention on slices.
// RUN: %mlir-opt-plugin %S/Inputs/gpu-after.mlir | sed -n '/gpu.module @own/,/func.func/p' > %t.others
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(varlen-lower-attn-to-gpu)' %S/Inputs/gpu-after.mlir -o %t.after
// RUN: sed -n '/gpu.module @own/,/func.func/p' %t.after | diff %t.others -
// RUN: FileCheck %s --check-prefix=AFTER --input-file=%t.after
// RUN: %mlir-opt-plugin --pass-pipeline='builtin.module(gpu-lower-to-nvvm-pipeline{cubin-chip=sm_80 cubin-features=+ptx80 cubin-format=isa})' %t.after | FileCheck %s --check-prefix=AFTER-PTX

// AFTER-LABEL: func.func @after(
// AFTER-NOT: memref.alloc
// AFTER: gpu.launch_func @own::@twice
// AFTER: call @after_attn(
// AFTER: call @after_attn_grad(
// AFTER: gpu.launch_func @other::@negate
// AFTER-NEXT: return
// AFTER-NOT: varlen.
// AFTER: func.func private @after_attn({{.*}}strided<[128, 32, 1], offset: 64>>{{.*}}strided<[?, ?, 1], offset: ?>>
// AFTER: func.func private @after_attn_grad(

// AFTER-PTX-NOT: unrealized_conversion_cast
// AFTER-PTX: gpu.binary @own
// AFTER-PTX-SAME: .entry twice
// AFTER-PTX: gpu.binary @other
// AFTER-PTX-SAME: .entry negate
// AFTER-PTX: gpu.binary @kernels
// AFTER-PTX-SAME: .entry after_attn_attn
// AFTER-PTX-SAME: .entry after_attn_grad_dq
// AFTER-PTX-SAME: .entry after_attn_grad_dkv
// AFTER-PTX-NOT: unrealized_conversion_cast

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

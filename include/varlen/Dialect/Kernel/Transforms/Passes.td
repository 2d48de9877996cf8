//===- Passes.td - Passes of the kernel dialect ------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KERNEL_TRANSFORMS_PASSES_TD
#define KERNEL_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def KernelLowerMemory : Pass<"kernel-lower-memory", "::mlir::ModuleOp"> {
  let summary = "Place shared memory, and copy to it with cp.async";
  let description = [{
    Every `kernel.alloc` and every slot of a `kernel.ring` gets its place in the
    dynamic shared memory of its kernel, whose size goes to the launches.
    `kernel.copy` becomes 16-byte `cp.async` with zero fill, a chunk of 8
    elements to a thread; rows whose chunks are not aligned (head_dim not a
    multiple of 8, odd strides) and f32 rows, which are split into three bf16
    planes, pass through registers instead. A commit becomes a `cp.async` group,
    a wait the wait for that group and a barrier of the CTA; acquire and release
    cost nothing.

    *Requires*: `gpu.func` kernels with `known_block_size`. Global memory aligned
    to 16 bytes. The protocol of `kernel.ring`.
    *Guarantees*: of the kernel dialect's memory operations only `kernel.tile`,
    `kernel.load` and `kernel.store` are left. An error if a kernel needs more
    shared memory than `shared-bytes`.
    *Numerics*: f32 = b0 + b1 + b2, each rounded to nearest; exact but for the
    last 0 to 2 bits.

    ```mlir
    %k = kernel.ring.wait %ring[%i] younger 0 : !kernel.ring<memref<...>>
    ```
    becomes
    ```mlir
    nvvm.cp.async.wait.group 0
    gpu.barrier
    %stage = arith.andi %i, %c1 : i32
    ...
    %k = memref.view %shared[%offset][] : memref<?xi8, ...> to memref<1x64x64xbf16, ...>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect"];
  let options = [
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448",
           "Bytes of shared memory that a CTA can have">];
  let statistics = [
    Statistic<"numAsync", "async", "Copies by cp.async">,
    Statistic<"numSynchronous", "synchronous", "Copies through registers">];
}

#endif // KERNEL_TRANSFORMS_PASSES_TD

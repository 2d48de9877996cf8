//===- Passes.td - Passes of the executor ------------------*- tablegen -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_EXECUTOR_PASSES_TD
#define VARLEN_EXECUTOR_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertNVVMToExecutor
    : Pass<"convert-nvvm-to-executor", "::mlir::ModuleOp"> {
  let summary = "Make host functions of GPU kernels, for the executor";
  let description = [{
    Kernels in the llvm and nvvm dialects become functions of the host that do
    the same in the executor (Executor/Device.h), thread by thread: every nvvm
    operation is a call, every access to shared and global memory has a check in
    front of it, the accumulators of wgmma are handles, shared globals are
    offsets. What can be a hazard carries the index of its source location.

    The gpu.module becomes a gpu.binary that names an image: the table of
    kernels and locations, which a constructor registers with the runtime
    (Runtime/GPUExecutor.h). Host code, with its gpu.launch_func, is the same as
    for a GPU.

    *Requires*: gpu.modules of llvm.func and llvm.mlir.global, in the llvm and
    nvvm dialects, with kernel.wgmma and kernel.wgmma_wait.

    *Guarantees*: no gpu.module and no nvvm operation is left. An operation or
    an intrinsic that the executor does not have is an error that names it, and
    so is inline PTX.

    *Numerics*: matrix products accumulate in f32 in the order of k; ex2, lg2,
    rcp and their like are those of the host's libm.

    ```mlir
    gpu.module @m {
      llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
        nvvm.barrier0
        ...
    ```
    becomes
    ```mlir
    llvm.func internal @varlen_sim.m.k(%out: !llvm.ptr<1>) {
      llvm.call @varlen_sim_barrier(%c0, %c0, %site) : (i32, i32, i32) -> ()
      ...
    gpu.binary @m [#gpu.object<#nvvm.target, bin = "varlen-executor:m...">]
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
  let statistics = [
    Statistic<"numConverted", "converted", "Kernels made host functions">];
}

def VarlenMutateKernels : Pass<"varlen-mutate-kernels", "::mlir::ModuleOp"> {
  let summary = "Put one fault into the kernels, for tests of tests";
  let description = [{
    Mutants are numbered: first all that weaken synchronisation (an operation
    that orders threads or asynchronous work is deleted, or a wait lets one more
    group be in flight), then all that change an integer constant of one
    operation. `mutant` is the one to apply; -1 changes nothing and lists them
    as remarks. A kernel's tests should fail for each of them, or there is
    something to explain.

    *Requires*: gpu.modules in the llvm and nvvm dialects, with kernel.wgmma and
    kernel.wgmma_wait. *Guarantees*: the same numbers for the same module.
    *Numerics*: what the fault makes of them.

    ```mlir
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    ```
    becomes, with `mutant=2`,
    ```mlir
    nvvm.cp.async.wait.group 0
    ```
  }];
  let options = [
    Option<"mutant", "mutant", "int64_t", "-1",
           "Number of the mutant; -1 lists all">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // VARLEN_EXECUTOR_PASSES_TD

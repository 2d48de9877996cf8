//===- Pipelines.cpp - Registration of the pipelines ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Pipelines/Pipelines.h"

#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::registerPipelines() {
  PassPipelineRegistration<VarlenToCPUOptions>(
      "varlen-to-cpu",
      "From functions on tensors with varlen.attn to the llvm dialect, for a "
      "CPU",
      buildVarlenToCPU);
  PassPipelineRegistration<VarlenToCPUOptions>(
      "varlen-bufferize",
      "The first stage of varlen-to-cpu: from tensors to buffers with owners",
      [](OpPassManager &manager, const VarlenToCPUOptions &options) {
        buildVarlenBufferize(manager, {options.target, /*chip=*/""});
      });
  PassPipelineRegistration<VarlenToCPUOptions>(
      "varlen-attn-to-loops",
      "The second stage of varlen-to-cpu: from varlen.attn on buffers to "
      "vector loops that run on the threads of the runtime",
      buildVarlenAttnToLoops);
  PassPipelineRegistration<VarlenToCPUOptions>(
      "varlen-tiles-to-vectors",
      "The part of varlen-attn-to-loops from linalg on tiles to loops over "
      "vectors",
      buildVarlenTilesToVectors);
  PassPipelineRegistration<VarlenToCPUOptions>(
      "varlen-lower-to-llvm",
      "The last stage of varlen-to-cpu: from loops and upstream operations on "
      "buffers to the llvm dialect",
      buildVarlenLowerToLLVM);
  PassPipelineRegistration<VarlenToNVVMOptions>(
      "varlen-to-nvvm",
      "From functions on device tensors with varlen.attn to host code in the "
      "llvm dialect and kernels for an NVIDIA GPU",
      buildVarlenToNVVM);
  PassPipelineRegistration<VarlenToNVVMOptions>(
      "varlen-attn-to-tiles",
      "The second stage of varlen-to-nvvm: from varlen.attn on buffers to "
      "kernels on tiles",
      buildVarlenAttnToTiles);
  PassPipelineRegistration<VarlenToNVVMOptions>(
      "varlen-tiles-to-instructions",
      "The third stage of varlen-to-nvvm: from tiles to fragments and tensor "
      "core instructions",
      buildVarlenTilesToInstructions);
  PassPipelineRegistration<VarlenToNVVMOptions>(
      "varlen-kernels-to-nvvm",
      "The fourth stage of varlen-to-nvvm: kernels to the llvm and nvvm "
      "dialects",
      buildVarlenKernelsToNVVM);
  PassPipelineRegistration<VarlenToNVVMOptions>(
      "varlen-launches-to-llvm",
      "The last stage of varlen-to-nvvm: host code to the llvm dialect, "
      "kernels "
      "to what a driver loads",
      buildVarlenLaunchesToLLVM);
}

//===- CPU.cpp - The varlen-to-cpu pipeline -------------------------------===//
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

void varlen::buildVarlenToCPU(OpPassManager &manager,
                              const VarlenToCPUOptions &options) {
  manager.addPass(createVarlenOnlineSoftmax());
}

void varlen::registerPipelines() {
  PassPipelineRegistration<VarlenToCPUOptions>(
      "varlen-to-cpu",
      "From functions on tensors with varlen.attn to the llvm dialect, for a "
      "CPU",
      buildVarlenToCPU);
}

//===- Pipelines.h - From varlen.attn to a target ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_PIPELINES_PIPELINES_H
#define VARLEN_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::varlen {

struct VarlenAssignScheduleOptions;

struct VarlenToCPUOptions : PassPipelineOptions<VarlenToCPUOptions> {
  PassOptions::Option<std::string> target{
      *this, "target",
      llvm::cl::desc("CPU to generate code for: host, or a name of the target "
                     "table (avx2, avx512, avx512_bf16, neon)"),
      llvm::cl::init("host")};
};

/// Adds the passes that take functions on tensors with varlen.attn to the llvm
/// dialect. Runs on a module.
void buildVarlenToCPU(OpPassManager &manager,
                      const VarlenToCPUOptions &options);

/// The stages of the pipeline above, in order: tensors to buffers with owners,
/// and schedules (any target's) for what is tiled; varlen.attn on buffers to
/// vector loops that run on the threads of the runtime; loops and upstream
/// operations to the llvm dialect.
void buildVarlenBufferize(OpPassManager &manager,
                          const VarlenAssignScheduleOptions &schedule);
void buildVarlenAttnToLoops(OpPassManager &manager,
                            const VarlenToCPUOptions &options);
void buildVarlenLowerToLLVM(OpPassManager &manager,
                            const VarlenToCPUOptions &options);

void registerPipelines();

} // namespace mlir::varlen

#endif // VARLEN_PIPELINES_PIPELINES_H

//===- GPUTiler.h - Attention on buffers as GPU kernels ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUTILER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUTILER_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// Emits, before `op` (on buffers in device memory), the launches that compute
/// it. Fails, with an error at `op`, if a name of the runtime is taken.
LogicalResult tileForGPU(AttnOp op, GPUScheduleAttr schedule,
                         OpBuilder &builder);
LogicalResult tileForGPU(AttnGradOp op, GPUGradScheduleAttr schedule,
                         OpBuilder &builder);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUTILER_H

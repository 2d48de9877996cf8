//===- CPUGradTiler.h - Gradients of an attention on a CPU ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_CPUGRADTILER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_CPUGRADTILER_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// Makes the gradients of an attention on buffers work tiles and dense blocks.
/// Fails, with an error at `op`, if a name of the runtime is taken.
LogicalResult tileGradForCPU(AttnGradOp op, CPUScheduleAttr schedule,
                             OpBuilder &builder);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_CPUGRADTILER_H

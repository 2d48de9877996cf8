//===- GPUSchedules.h - Tile sizes for GPUs from a table --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUSCHEDULES_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUSCHEDULES_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Target/GPUTarget.h"

namespace mlir::varlen {

/// Gives `op`, whose head sizes are static, the schedule that suits the target;
/// false, with a remark that says what has one, if there is none.
bool assignGPUSchedule(AttentionOpInterface op, const GPUTarget &gpu);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUSCHEDULES_H

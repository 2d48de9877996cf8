//===- TargetOption.h - The target that a pass is for -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TARGET_TARGETOPTION_H
#define VARLEN_TARGET_TARGETOPTION_H

#include "varlen/Target/CPUTarget.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::varlen {

/// The CPU of that name in the table of targets, or null after an error at the
/// operation that lists the names of the table.
const CPUTarget *getCPUTargetOrError(Operation *op, llvm::StringRef name);

} // namespace mlir::varlen

#endif // VARLEN_TARGET_TARGETOPTION_H

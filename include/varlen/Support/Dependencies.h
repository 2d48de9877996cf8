//===- Dependencies.h - What an operation reads -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_DEPENDENCIES_H
#define VARLEN_SUPPORT_DEPENDENCIES_H

#include "mlir/IR/Operation.h"

namespace mlir::varlen {

/// The values from outside that the regions of an operation use. The operation
/// may be in a region without a parent operation.
SmallVector<Value> getCaptured(Operation *op);

/// The values from outside that the operation reads: its operands, and what its
/// regions capture.
SmallVector<Value> getDependencies(Operation *op);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_DEPENDENCIES_H

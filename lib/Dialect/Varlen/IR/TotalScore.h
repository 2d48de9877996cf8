//===- TotalScore.h - Score regions with a value everywhere -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code computes a score region for padding, too, with positions and scores that
// no pair has, and selects afterwards. So no operation of it may fail, and
// each has a value for all operands: docs/scores.md has the list.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_IR_TOTALSCORE_H
#define VARLEN_LIB_DIALECT_VARLEN_IR_TOTALSCORE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::varlen {

/// Verifies that a score region may have the operation: that every target
/// computes it, and that it has a value for all operands or is given one.
LogicalResult verifyScoreOperation(Operation &op);

/// Copies an operation of a score region, with a value in place of traps and of
/// poison. What it takes for operands is mapped; so are its results.
void cloneTotal(OpBuilder &builder, Operation &op, IRMapping &mapping);

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIALECT_VARLEN_IR_TOTALSCORE_H

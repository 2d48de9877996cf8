//===- TileLoops.h - What conversions ask of tile loops ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What conversions of tile loops share: the batch of a loop, the scratch that
// it may use, and the sum of a loop over heads.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_TILELOOPS_H
#define VARLEN_DIALECT_VARLEN_UTILS_TILELOOPS_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {

/// What a loop over heads consists of; an error if it has anything else.
FailureOr<SumRowsOp> findHeadSum(ForTilesOp loop);

/// A batch with its loops and its scratch, in program order.
struct BatchLoops {
  BatchOp batch;
  SmallVector<ForTilesOp> loops;
  SmallVector<RowsOp> rows;
};

/// Calls `convert` for each batch of tile loops in `root`, then erases the
/// loops of the batch, and the batch if nothing else uses it; returns the
/// number of loops. Fails, with an error, if `convert` fails, if a batch is not
/// the result of a `varlen.batch` in the block of its loops, or if a loop uses
/// scratch of another batch.
FailureOr<unsigned> convertTileLoops(
    Operation *root,
    function_ref<LogicalResult(const BatchLoops &, OpBuilder &)> convert);

/// The operands of a step that are numbers of queries.
SmallVector<OpOperand *> getNumbers(StepOpInterface step);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_TILELOOPS_H

//===- TileLoops.h - What conversions ask of tile loops ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is the same for every target: which batch a loop is of, whose scratch it
// may use, and the parts of a loop over heads.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_TILELOOPS_H
#define VARLEN_DIALECT_VARLEN_UTILS_TILELOOPS_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {

/// A loop over heads with a `varlen.online_sink_grad`, the `varlen.rows` that
/// it sums, and the memory of the gradients. No target keeps all rows of a head
/// as a tile.
struct SinkGradLoop {
  Value rows, gradients;
};

/// The parts of such a loop; an error if it is of another form.
FailureOr<SinkGradLoop> findSinkGrad(ForTilesOp loop);

/// A batch and what is of it, in the order of the program.
struct BatchLoops {
  BatchOp batch;
  SmallVector<ForTilesOp> loops;
  SmallVector<RowsOp> rows;
};

/// Has `convert` convert the tile loops in `root`, one batch after the other,
/// and erases them: how many loops there were. An error if that fails, if a
/// batch is not made by a `varlen.batch` in the block of its loops, or if a
/// loop uses scratch of another.
FailureOr<unsigned> convertTileLoops(
    Operation *root,
    function_ref<LogicalResult(const BatchLoops &, OpBuilder &)> convert);

/// The read of `varlen.rows` at `tile` of which lse is the first number, delta
/// the second, and captures the others; null if they are something else.
ReadOp findStatisticsRead(OnlineAttnGradOp step, Value tile);

/// Whether a loop has an operation of that kind.
template <typename Op> bool hasOp(ForTilesOp loop) {
  return !loop.getBody()->getOps<Op>().empty();
}

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_TILELOOPS_H

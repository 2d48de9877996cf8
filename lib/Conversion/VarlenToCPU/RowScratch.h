//===- RowScratch.h - Numbers of rows, on a CPU -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_ROWSCRATCH_H
#define VARLEN_CONVERSION_VARLENTOCPU_ROWSCRATCH_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

namespace mlir::varlen {

/// The memory of `varlen.rows`: for each value kv heads x (rows * group), so
/// that those of the pairs of a sequence and kv head lie side by side, with
/// room to read a panel on past the last.
struct RowScratch {
  SmallVector<Value, 2> memory;
  Value group;

  /// Where the number of a row and query head is.
  SmallVector<Value> placeOf(IndexBuilder &index, Value row, Value head) const {
    return {index.div(head, group),
            index.add(index.mul(row, group), index.rem(head, group))};
  }
};

/// A loop with a `varlen.online_statistics`, the memory of the rows of its dot
/// and of its other operands, and the writes of its results to `varlen.rows`.
struct StatisticsLoop {
  OnlineStatisticsOp op;
  SmallVector<Value> rows, numbers;
  SmallVector<WriteOp> writes;
};

/// The parts of such a loop; an error if it is of another form.
FailureOr<StatisticsLoop> findStatistics(ForTilesOp loop);

/// Emits the loop over the tiles of `list`, whose rows have all `heads` query
/// heads of a token side by side, that leaves statistics in `scratch`.
void emitStatistics(OpBuilder &builder, StatisticsLoop &parts,
                    CPUScheduleAttr schedule, Value list, Value heads,
                    const DenseMap<Value, RowScratch> &scratch);
/// Emits the loop over `heads` that sums what `scratch` has of `rows` rows.
void emitSinkGrad(OpBuilder &builder, const SinkGrad &parts, Value heads,
                  Value rows, const RowScratch &scratch);
/// Emits the loop over `heads` that sums `rows` rows of a table, H x T x M, to
/// `sums`, H x M, in vectors of `lanes` entries.
void emitSumRows(OpBuilder &builder, SumRowsOp op, Value heads, Value rows,
                 int64_t lanes);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_ROWSCRATCH_H

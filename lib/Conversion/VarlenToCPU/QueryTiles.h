//===- QueryTiles.h - The parts of a loop over tiles of queries -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_QUERYTILES_H
#define VARLEN_CONVERSION_VARLENTOCPU_QUERYTILES_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// A loop over tiles of queries that meet keys.
struct QueryTiles {
  ForTilesOp tiles;
  ForBlocksOp blocks;
  OnlineAttnOp step;
  /// Of the factors of the step: q at the tile, k and v at the block.
  ReadOp q, k, v;
  /// The number that each value is all over before the first block.
  SmallVector<double> inits;
  OnlineFinishOp finish;
  /// Of the sink of each query; null if there is none.
  ReadOp sink;
  /// Of the captures of the step, a number for each query.
  SmallVector<ReadOp> captures;
};

/// What the factors of a step have to be on a CPU.
struct FactorForm {
  CPUScheduleAttr schedule;
  /// What products are summed in.
  Type compute;
  /// Columns are rounded up to a multiple of it.
  int64_t columnMultiple;
  /// Whether the pairs of `kv = pairs` lie in a row.
  bool pairsInRows = true;
};

/// The read at `tile` that `factor` of a step is; or an error at the step,
/// which calls it `name`.
LogicalResult findFactor(ReadOp &read, Operation *step, Value factor,
                         StringRef name, Value tile, const FactorForm &form);

/// That the tables of a step in `tiles` can be read from its body; or an error.
LogicalResult checkTables(Operation *step, ForTilesOp tiles);

/// The parts of `tiles`; or an error, if it is of a form that is not known on a
/// CPU with that schedule.
FailureOr<QueryTiles> findQueryTiles(ForTilesOp tiles,
                                     CPUScheduleAttr schedule);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYTILES_H

//===- QueryLoop.h - A loop over tiles of queries ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_QUERYLOOP_H
#define VARLEN_CONVERSION_VARLENTOCPU_QUERYLOOP_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// A loop over tiles of queries, and its loop over blocks of keys with one
/// step, both null if there is none.
struct QueryLoop {
  ForTilesOp tiles;
  ForBlocksOp blocks;
  StepOpInterface step;
};

/// What the factors of a step have to be on a CPU.
struct FactorForm {
  CPUScheduleAttr schedule;
  /// Columns are rounded up to a multiple of it.
  int64_t columnMultiple;
};

/// Verifies that each factor of a step is read at its tile or block, in that
/// form.
LogicalResult verifyFactors(StepOpInterface step, const FactorForm &form);

/// Verifies that the tables of a step in `tiles` can be read from its body.
LogicalResult verifyTables(StepOpInterface step, ForTilesOp tiles);

/// Verifies each operation of `tiles`, as a CPU converts it with that schedule.
FailureOr<QueryLoop> verifyQueryLoop(ForTilesOp tiles,
                                     CPUScheduleAttr schedule);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYLOOP_H

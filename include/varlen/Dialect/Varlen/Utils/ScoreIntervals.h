//===- ScoreIntervals.h - What a score region hides of a block --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_SCOREINTERVALS_H
#define VARLEN_DIALECT_VARLEN_UTILS_SCOREINTERVALS_H

#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

namespace mlir::varlen {

/// Positions from `first` to `last`, both included, as indices.
struct PositionRange {
  Value first, last;
};

/// Emits whether some query of a range may see some key of another, by interval
/// arithmetic over what a score region says of positions: i1, true where it
/// cannot tell. Null if the region hides no key, or nothing can be told of any
/// block. Sequences have less than 2^30 rows.
Value emitMayBeVisible(IndexBuilder &index, Block *score,
                       const PositionRange &queries, const PositionRange &keys);

/// An operation that whether a key is visible depends on, and that
/// `emitMayBeVisible` knows nothing of; null if there is none.
Operation *findUnknownVisibility(Block *score);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_SCOREINTERVALS_H

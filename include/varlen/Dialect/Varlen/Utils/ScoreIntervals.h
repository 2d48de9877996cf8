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

/// Positions from `first` to `last`, both included, of one integer type.
struct PositionRange {
  Value first, last;
};

/// Numbers from `low` to `high`, both included, of one float type. Both are NaN
/// where nothing is known of the numbers, and null if nothing ever is.
struct NumberRange {
  Value low, high;
};

/// Whether a key is visible depends on a number of that capture, of those that
/// are no tables.
bool visibilityReadsCapture(Block *score, unsigned capture);

/// Emits the range of the numbers of a capture, of which `low` is the least and
/// `high` the largest, both NaN if some number is.
NumberRange emitCaptureRange(ImplicitLocOpBuilder &b, Value low, Value high);

/// Emits whether some query of a range may see some key of another, by interval
/// arithmetic over what a score region says of positions and of `captures`, the
/// ranges of the numbers of these queries, of tables none: i1, true where it
/// cannot tell.
/// Null if the region hides no key, or nothing can be told of any block. The
/// type of `index` is that of positions here; nothing is known of integers of
/// the region that might be none of it. Sequences have less than 2^30 rows.
Value emitMayBeVisible(IndexBuilder &index, Block *score,
                       const PositionRange &queries, const PositionRange &keys,
                       ArrayRef<NumberRange> captures);

/// An operation that whether a key is visible depends on, and of whose result
/// `emitMayBeVisible` knows nothing; null if there is none.
Operation *findUnknownVisibility(Block *score);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_SCOREINTERVALS_H

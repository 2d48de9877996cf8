//===- ScoreIntervals.h - What a score region hides of a block --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_SCOREINTERVALS_H
#define VARLEN_DIALECT_VARLEN_UTILS_SCOREINTERVALS_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Support/IndexBuilder.h"

namespace mlir::varlen {

/// Numbers from `low` to `high`, both included, of one type. Both are null if
/// nothing ever is known of the numbers. Of floats, none of which is NaN else,
/// both are NaN where nothing is known of them.
struct NumberRange {
  Value low, high;

  bool isPoint() const { return low == high; }
};

/// Whether the visibility of a key depends on that capture, if it is not a
/// table.
bool visibilityReadsCapture(Block *score, unsigned capture);

/// The lookups that the visibility of a key depends on, in tables of keys, by
/// the position of the query or of the key: who has memory can tell the range
/// of their numbers.
SmallVector<LookupOp> getVisibilityLookups(Block *score);
/// Whether one of these is by the position of the query.
bool isByQuery(LookupOp lookup);

/// Emits the range of the numbers of a capture, of which `low` is the least and
/// `high` the largest, both NaN if some number is.
NumberRange emitCaptureRange(ImplicitLocOpBuilder &b, Value low, Value high);
/// The same for `count` numbers, at least one, of which `load` emits one.
NumberRange emitCaptureRange(ImplicitLocOpBuilder &b, Value count,
                             function_ref<Value(Value i)> load);

/// What a score region hides of the pairs of a block: whether some may be
/// visible, and whether some may be hidden, each an i1, or null if it may be
/// whatever the block is.
struct BlockVisibility {
  Value mayBeVisible, mayBeHidden;
};

/// Emits both, of a region that hides keys, by interval arithmetic; each is
/// true where that cannot decide. `captures` are the ranges of the numbers of
/// these queries, without range for tables; `lookups` those of
/// getVisibilityLookups(), or nothing. Positions are of the type of `index`;
/// integers of the region that may overflow it are unbounded. Sequences have
/// less than 2^30 rows.
BlockVisibility emitVisibility(IndexBuilder &index, Block *score,
                               const NumberRange &queries,
                               const NumberRange &keys,
                               ArrayRef<NumberRange> captures,
                               ArrayRef<NumberRange> lookups = {});

/// An operation on which the visibility of a key depends and whose result is
/// unbounded; null if there is none. With `hasLookups` those of
/// getVisibilityLookups() have ranges.
Operation *findUnknownVisibility(Block *score, bool hasLookups);

/// Whether intervals can tell of a block that a score region hides all of it;
/// not without a region. The same goes for lookups.
bool canHideBlocks(Block *score, bool hasLookups);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_SCOREINTERVALS_H

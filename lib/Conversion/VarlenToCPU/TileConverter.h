//===- TileConverter.h - What bodies of loops over tiles share --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_TILECONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_TILECONVERTER_H

#include "QueryPanels.h"
#include "ScoreInputs.h"
#include "StepFactors.h"
#include "TileLoop.h"

namespace mlir::varlen {

/// Converts the operations that loops over tiles of queries and over sequences
/// have in common: steps, which are cut into panels of queries, and writes.
class TileConverter : public QueryPanels {
protected:
  TileConverter(const CPUTileBuilder &common, TileLoop loop, int64_t size,
                int64_t panels);
  // What steps read refers to the panels of this object.
  TileConverter(const TileConverter &) = delete;

  /// Some keys of the sequence.
  struct KeyBlock {
    Value k0, keys;
  };
  /// `size` keys of a block from `begin` on. All queries of a panel see those
  /// from `seenBegin` to before `seenEnd` of them.
  struct KeyRange {
    Value begin, size, seenBegin, seenEnd;
  };

  /// Says which memory of the score's inputs is used, with the buffers of
  /// captures.
  void useScore(ValueRange memory);
  /// Stores the keys that a query sees to that place of `lo` and `hi`.
  void emitLimits(Value query, ValueRange place);
  /// Emits `body`, which returns new `sums`, for the keys of a block that some
  /// query of a panel may see; without such keys the sums stay.
  ValueRange emitSeen(const Panel &at, const KeyBlock &block, ValueRange sums,
                      function_ref<Values(const KeyRange &)> body);
  /// A step on those; returns `sums` with what it adds to the tiles at `places`
  /// of them.
  Values emitStep(const Panel &at, const KeyBlock &block, const KeyRange &keys,
                  Value limitsLo, Value limitsHi, ValueRange sums,
                  ArrayRef<TileSlice> places);
  /// The factor of a write; null if there is none.
  Value emitFactor(WriteOp write);
  /// Writes numbers of `count` pairs from `first` on, the one of value `i` of
  /// the write in a lane.
  void emitWriteNumbers(WriteOp write, Value first, Value count,
                        function_ref<Value(size_t i, Value lane)> numberOf);
  /// What rows of the tile, or of keys, get that visit nothing or belong to no
  /// sequence.
  void emitOtherwise(WriteOp write, const RowRange &rows);

  TileLoop ops;
  /// Where a number of each query, or its part of a state, is.
  DenseMap<Value, PanelBuffer> buffers;
  /// The keys that each query sees.
  PanelBuffer lo, hi;
  /// The factors and the score of the step, if there is one.
  std::optional<StepFactors> factors;
  std::optional<ScoreInputs> score;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_TILECONVERTER_H

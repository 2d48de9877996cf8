//===- ScoreInputs.h - What score regions read of queries -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_SCOREINPUTS_H
#define VARLEN_CONVERSION_VARLENTOCPU_SCOREINPUTS_H

#include "QueryPanels.h"
#include "varlen/Dialect/Varlen/Utils/ScoreIntervals.h"

namespace mlir::varlen {

/// What the score region of a step reads of each query of a tile beside numbers
/// that are operands of the step, its captures: its position, and its rows in
/// tables and in their gradients. Also the ranges of captures over each panel,
/// which say with the positions which blocks the region hides.
class ScoreInputs {
public:
  ScoreInputs(QueryPanels &panels, StepOpInterface step);

  /// Memory for the queries of `numPanels` panels, a number of each from
  /// `allocateNumbers`; where it is used, `use` says which.
  SmallVector<Value>
  allocate(OpFoldResult numPanels,
           function_ref<PanelBuffer(Type element)> allocateNumbers);
  void use(ValueRange memory, ArrayRef<PanelBuffer> captures);
  /// Emits the views of tables, those of keys as far as they are of the
  /// tile's sequence.
  void emitViews();

  /// Stores what the region reads of the query of a lane; behind the last
  /// query, of that one. No gradient has a row of that.
  void store(const Panel &at, Value lane);
  /// Stores the ranges of captures over the queries of a panel.
  void storeRanges(const Panel &at);
  /// The ranges over all panels of a tile.
  SmallVector<NumberRange> uniteRanges(Value numPanels);
  SmallVector<NumberRange> loadRanges(Value number);
  /// Whether some of the `rows` pairs from `first` on, whose captures have
  /// those ranges, may see a key from `begin` to before `end`, if the region
  /// hides keys; null if intervals do not say.
  Value mayBeVisible(ArrayRef<NumberRange> ranges, Value first, Value rows,
                     Value begin, Value end);

  /// Whether `store` and `storeRanges` have something to store.
  bool isEmpty() const {
    return !position && rows.empty() && gradientRows.empty();
  }
  bool hasRanges() const { return bool(ranges); }
  /// Whether the region says which keys are visible.
  bool hidesKeys() const;
  /// What a step on a panel and keys from `firstKey` on has of all this.
  StepInputs getInputs(const Panel &at, Value firstKey);

private:
  /// Whether that capture says what is hidden.
  bool isRead(unsigned capture);
  void forEachBuffer(function_ref<void(Value &)> body);

  QueryPanels &p;
  StepOpInterface step;
  Block *score;
  std::optional<PanelBuffer> position;
  SmallVector<PanelBuffer> rows, gradientRows, captures;
  /// Panels x 2 bounds of each capture; null if none says what is hidden.
  Value ranges;
  SmallVector<Value> views, gradientViews;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_SCOREINPUTS_H

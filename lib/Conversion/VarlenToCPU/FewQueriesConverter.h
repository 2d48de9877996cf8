//===- FewQueriesConverter.h - A tile of few queries on a CPU ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile whose queries would leave most lanes of a panel empty, as when a
// sequence is decoded token by token: queries are rows (orientation qk), lanes
// are keys and columns of values, and keys and values are read where they are.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_FEWQUERIESCONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_FEWQUERIESCONVERTER_H

#include "CPUTileBuilder.h"
#include "QueryTiles.h"

namespace mlir::varlen {

/// Converts a tile of few queries.
///
/// Its keys are met in parts of a fixed size, counted from the first one that
/// is seen, each with a state of its own; the states become one in the order of
/// parts. So parts may be met at once, by several threads, without a bit that
/// differs.
class FewQueriesConverter : CPUTileBuilder {
public:
  /// The states of all parts of a tile that is cut: acc, m and l.
  using States = SmallVector<Value>;

  /// What a thread does of a tile: it meets parts from `first` to before `end`,
  /// whose states are in memory of its own if it is `whole`, else in `shared`;
  /// or makes one state of those, if it `ends` the tile.
  struct Share {
    Value whole, meets, ends, first, end;
    States shared;
  };
  /// Queries that a tile of this form has at most.
  static int64_t getMaxQueries(CPUScheduleAttr schedule) {
    return schedule.getLanes() / 2;
  }
  /// Queries up to which this form is the faster one, with so many keys: a
  /// quarter of a vector, or half of one where keys are read from memory for
  /// longer than it takes to begin and to end (docs/notes/cpu-kernels.md).
  static Value emitMaxQueries(IndexBuilder index, CPUScheduleAttr schedule,
                              Value keys);

  FewQueriesConverter(QueryTiles parts, CPUScheduleAttr schedule,
                      OpBuilder &builder);

  /// Memory for the states of so many parts.
  States allocateStates(Value parts);
  /// The parts that so many keys have.
  Value emitNumParts(Value keys);
  void emit(const WorkTile &workTile, const Share &share);

private:
  void emitRows();
  void emitInits(ArrayRef<Value> state);
  void emitPart(Value number, ArrayRef<Value> state);
  void emitBlock(Value k0, ArrayRef<Value> state);
  void emitMerge(ArrayRef<Value> state, ArrayRef<Value> more);
  void emitFinish(ArrayRef<Value> state);
  /// The rows of scratch that the tile has.
  Value used(Value scratch);
  SmallVector<Value> usedState(ArrayRef<Value> state);
  UnitAttr getRounded();

  QueryTiles loops;
  int64_t maxQueries;
  WorkTile tile;
  Value q, lo, hi, sinks;
  /// What the score region reads of each query: its position, null if it does
  /// not, captures, and its rows in tables.
  Value position;
  SmallVector<Value> captures;
  SmallVector<NumberRange> captureRanges;
  Tables tables;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_FEWQUERIESCONVERTER_H

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

class FewQueriesConverter : CPUTileBuilder {
public:
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

  void emit(const WorkTile &workTile);

private:
  void emitInits();
  void emitBlock(Value k0);
  void emitFinish();
  /// The rows of scratch that the tile has.
  Value used(Value scratch);
  SmallVector<Value> usedState();

  QueryTiles loops;
  int64_t maxQueries;
  WorkTile tile;
  Value q, lo, hi, sinks;
  /// What the score region reads of each query: its position, null if it does
  /// not, and captures.
  Value position;
  SmallVector<Value> captures;
  /// acc, m and l.
  SmallVector<Value> state;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_FEWQUERIESCONVERTER_H

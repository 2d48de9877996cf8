//===- QueryTileConverter.h - A loop over tiles of queries ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H

#include "FewQueriesConverter.h"
#include "QueryTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {

/// Converts a loop over tiles of queries.
///
/// A tile is cut into panels of as many queries as a micro-kernel has lanes.
/// Its values are scratch, the panels one below the other, where those of the
/// loop over blocks stay. What a tile computes before and after that loop is
/// done panel by panel; a block of keys is read once for all panels.
class QueryTileConverter : CPUTileBuilder {
public:
  QueryTileConverter(QueryTiles parts, CPUScheduleAttr schedule,
                     OpBuilder &builder);

  /// Emits the loop over the tiles of `list`.
  void emit(Value list);

private:
  /// Some queries of the tile: `rows` of them, from pair `first` on.
  struct Panel {
    Value number, first, rows;
  };
  /// Some keys of the sequence, and whether steps may read them where they are.
  struct KeyBlock {
    Value k0, keys, inPlace;
  };
  /// What a product reads: rows of `source`, as they lie in scratch.
  struct Factor {
    Value source;
    int64_t columns;
    TileOrder order;
    Value scratch;
  };

  void forEachPanel(function_ref<void(const Panel &)> body);
  std::pair<Value, Value> emitKind(const WorkTile &item, Value allScores);
  void emitTurn(Value list, Value number, Value isWhole, Value allScores,
                ArrayRef<Value> shared);
  void emitShare(Value isFew, const FewQueriesConverter::Share &share);
  void emitTile();
  void emitOtherwise(WriteOp write);
  void allocateScratch();

  // Of a panel.
  /// `vectors` vectors of columns of a panel, from `column` on, whose `rows`
  /// rows (of perColumn elements a column) are in scratch.
  Value columnsOf(const Panel &at, Value column, int64_t vectors, Value scratch,
                  int64_t rows, int64_t perColumn = 1);
  /// Those of acc, m and l.
  SmallVector<Value> stateColumns(const Panel &at, Value column,
                                  int64_t vectors);
  void emitPack(const Panel &at);
  void emitInits(const Panel &at);
  void emitLimits(const Panel &at);
  /// The ranges of captures over all panels of the tile.
  SmallVector<NumberRange> emitTileRanges();
  void emitFinish(const Panel &at);
  void emitWrite(WriteOp write, const Panel &at);

  // Of a block.
  void emitBlock(Value k0);
  Value emitRead(const Factor &factor, const KeyBlock &block);
  Value emitCopy(const Factor &factor, const KeyBlock &block);
  Value emitInPlace(const Factor &factor, const KeyBlock &block);
  void emitPrefetch(Value k0);

  // Of a panel and a block, whose keys and values are in `kRows` and `vRows`.
  void emitSteps(const Panel &at, const KeyBlock &block, Value kRows,
                 Value vRows);
  /// A step on keys from `from` on. The limits count unless `whole`.
  void emitStep(const Panel &at, Value kRows, Value vRows, Value from,
                Value whole);

  QueryTiles loops;
  Factor q, k, v;
  WorkTile tile;
  /// How many panels the tile has.
  Value panels;
  /// acc, m and l. Row r of panel p is row p * (rows of a panel) + r.
  SmallVector<Value> state;
  /// The keys that each query sees.
  Value lo, hi;
  /// The sinks of a vector of queries; null if there are none.
  Value sinks;
  /// What the score region reads of each query: its position, null if it does
  /// not, captures, and its rows in tables.
  Value position;
  SmallVector<Value> captures;
  /// The ranges of captures over each panel; null if there are none.
  Value captureRanges;
  Tables tables;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H

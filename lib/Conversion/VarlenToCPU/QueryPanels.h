//===- QueryPanels.h - Queries of a tile in scratch -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the values of the queries of a tile are in scratch, in either
// orientation. With keys as rows of a score tile (kq) queries are columns, and
// a tile is cut into panels of as many as a micro-kernel keeps in registers.
// With queries as rows (qk) all of a tile, which has few, are one panel.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_QUERYPANELS_H
#define VARLEN_CONVERSION_VARLENTOCPU_QUERYPANELS_H

#include "CPUTileBuilder.h"

namespace mlir::varlen {

/// Queries that a step takes at once: `rows` pairs of a tile from pair `first`
/// on. In scratch they are panel `number`, from query `offset` on.
struct Panel {
  Value number, offset, first, rows;
};

/// Values of queries in memory, `perQuery` of each: panel below panel, or all
/// queries after each other.
struct PanelBuffer {
  Value memory;
  int64_t perQuery = 1;
  bool isStacked = true;
  /// Where the first query is; null for 0.
  Value row = {}, column = {};
};

/// A tile, and scratch for its queries: at most `panels` panels of at most
/// `size`.
class QueryPanels : public CPUTileBuilder {
public:
  QueryPanels(const CPUTileBuilder &common, Orientation orientation,
              int64_t size, int64_t panels)
      : CPUTileBuilder(common), orientation(orientation), size(size),
        panels(panels) {}

  bool isKQ() const { return orientation == Orientation::KQ; }
  /// The dimension of a tile in scratch that queries are.
  unsigned getQueriesDim() const { return isKQ() ? 1 : 0; }

  /// The extents of scratch for `perQuery` values of each query.
  SmallVector<int64_t> getBufferShape(int64_t perQuery);
  PanelBuffer allocateBuffer(int64_t perQuery, Type type) {
    return {allocate(getBufferShape(perQuery), type), perQuery};
  }
  /// Scratch for a number of each of `queries` queries, one after the other.
  PanelBuffer allocateNumbers(OpFoldResult queries, Type type);
  /// Numbers of `varlen.rows`, where they are: those of the tile's sequence and
  /// kv head.
  PanelBuffer getRowsInPlace(Value memory);

  /// The values of all queries of a panel, as a tile.
  Value view(const PanelBuffer &buffer, const Panel &at);
  Value load(const PanelBuffer &buffer, const Panel &at) {
    return CPUTileBuilder::load(view(buffer, at));
  }
  /// Where a panel is in a tensor that has the values of all queries, as memory
  /// of `getBufferShape` does; its tile, and the tensor with another one there.
  struct TileSlice {
    SmallVector<OpFoldResult, 2> offsets, sizes;
  };
  TileSlice sliceOf(Value all, const Panel &at);
  Value extract(Value all, const TileSlice &at);
  Value insert(Value tile, Value all, const TileSlice &at);
  /// Where the number of a query is.
  SmallVector<Value> placeOf(const PanelBuffer &buffer, const Panel &at,
                             Value lane);
  Value loadNumber(const PanelBuffer &buffer, const Panel &at, Value lane);
  void storeNumber(Value number, const PanelBuffer &buffer, const Panel &at,
                   Value lane);

  /// The number of a pair of the tile in memory of H x T or of H, or the first
  /// `count` numbers of it in `varlen.rows`, in the type of sums; and numbers
  /// of any type to that place.
  Values loadNumbers(Value memory, Value pair, size_t count);
  void storeNumbers(ValueRange numbers, Value memory, Value pair);

  Value lastPair() { return index.sub(index.add(tile.first, tile.rows), 1); }
  /// Processes a tile from now on.
  void setTile(const WorkTile &workTile);
  void forEachPanel(function_ref<void(const Panel &)> body);
  /// The same, with values that go from panel to panel.
  ValueRange forEachPanel(ValueRange inits,
                          function_ref<Values(const Panel &, ValueRange)> body);
  /// Lanes of a panel, and the pair of each: behind the last query its own.
  void forEachLane(const Panel &at,
                   function_ref<void(Value lane, Value pair)> body);
  /// Rows of the keys, and values, of the tile's sequence and kv head.
  RowRange keyRows(Value first, Value count) {
    return {
        {tile.kRow, tile.pairs.kvHead, index.constant(1), pages}, first, count};
  }
  /// The keys of the kv block at k0: 0 or less behind the last key.
  Value blockKeys(Value k0) {
    return index.min(index.sub(tile.kEnd, k0), schedule.getKvBlock());
  }

  WorkTile tile;
  /// How many panels the tile has.
  Value numPanels;
  const Orientation orientation;
  const int64_t size, panels;

  using CPUTileBuilder::load;
  using CPUTileBuilder::view;

private:
  /// The row and the column of the first value of a panel.
  std::pair<Value, Value> originOf(const PanelBuffer &buffer, const Panel &at);
  OpFoldResult getWidth(const Panel &at);
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYPANELS_H

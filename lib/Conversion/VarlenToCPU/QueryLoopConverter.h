//===- QueryLoopConverter.h - A loop over tiles of queries ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_QUERYLOOPCONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_QUERYLOOPCONVERTER_H

#include "QueryTileConverter.h"

namespace mlir::varlen {

/// Converts a loop over tiles of queries: which thread does what, in which
/// orientation.
///
/// A tile of few queries takes the form for these, in which they are rows
/// (orientation qk): lanes are keys and columns of values, and both are read
/// where they are. All others have queries as columns, in panels.
///
/// If the loop has parts, those of a tile with much of all work are items of
/// the list by themselves (`varlen.split_tiles`).
class QueryLoopConverter : CPUTileBuilder {
public:
  QueryLoopConverter(const TileLoopForms &forms, const CPUTileBuilder &common)
      : CPUTileBuilder(common), ops(forms.many), few(forms.few) {}

  /// Emits the loop over the tiles of `list`, whose rows have the pairs of
  /// `group` query heads.
  void emit(Value list, Value group);

private:
  /// What a row of `varlen.split_tiles` says beside its tile.
  struct Item {
    Value isPart, isMerge, isFew, slot;
  };
  /// The parts of tiles in one orientation.
  struct Parts {
    /// Keys of a part: by default more than there are.
    int64_t keys = int64_t(1) << 60;
    /// States that items leave for the item that merges them.
    SmallVector<Value> slots;
  };

  void emitTiles(Value list, Value group);
  /// The items before `firstMerge`, then the others.
  void emitPhases(Value items, Value firstMerge);
  Item itemOf(ValueRange fields);
  void emitItem(Value items, Value number);
  /// The item whose tile is that of `panels`; `own` is memory for two states
  /// in panels.
  void emitInOrientation(QueryTileConverter &panels, ValueRange own,
                         const Item &item);
  /// The item whose tile is that of `body`: computes or reads the states of its
  /// parts, merges them, and ends the tile or stores the state. `own` is memory
  /// for the first state and for another one.
  void emitParts(QueryTileConverter &body, const Parts &parts, ValueRange own,
                 const Item &item);

  /// Queries that a tile of few has at most: none if there is no form for it.
  int64_t getMaxQueries() { return few ? few->getSize() : 0; }
  QueryTileConverter makePanels() {
    return {*this, ops, panel, schedule.getPanels()};
  }
  QueryTileConverter makeFew() {
    return {*this, *few, getMaxQueries(), /*panels=*/1};
  }

  TileLoop ops;
  std::optional<TileLoop> few;
  Parts ofFew, ofPanels;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYLOOPCONVERTER_H

//===- QueryTileConverter.h - A loop over tiles of queries ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H

#include "QueryTileBody.h"

namespace mlir::varlen {

/// Converts a loop over tiles of queries: which thread does what, in which
/// form.
///
/// A tile whose queries would leave most lanes of a panel empty, as when a
/// sequence is decoded token by token, has queries as rows (orientation qk):
/// lanes are keys and columns of values, and both are read where they are. All
/// others have queries as columns, in panels.
///
/// If the loop has parts, those of a tile with much of all work run at
/// once, by several threads.
class QueryTileConverter : CPUTileBuilder {
public:
  QueryTileConverter(TileLoop loop, const CPUTileBuilder &common)
      : CPUTileBuilder(common), ops(loop) {
    if (!ops.parts)
      return;
    ofFew.partKeys = ops.parts.getFew() * schedule.getKvBlock();
    ofPanels.partKeys = ops.parts.getBlocks() * schedule.getKvBlock();
  }

  /// Emits the loop over the tiles of `list`, whose items have the pairs of
  /// `group` query heads.
  void emit(Value list, Value group);

private:
  /// How a tile is converted.
  struct Form {
    /// Keys of a part: by default more than there are.
    int64_t partKeys = int64_t(1) << 60;
    /// The states of all parts of a tile that is cut.
    SmallVector<Value> shared;
  };
  /// What a thread does of a tile: it processes parts from `first` to before
  /// `end`, whose states are in memory of its own if it is `whole`, else in
  /// that of the form; or makes one state of those, if it `ends` the tile.
  struct Share {
    Value whole, visits, ends, first, end;
  };

  void emitTiles(Value list, Value group);
  void emitTurn(Value list, Value number, Value isWhole, Value allScores);
  /// A share of the tile of `panels`, in the form that it has; `own` is memory
  /// for two states in panels.
  void emitShare(QueryTileBody &panels, ValueRange own, Value isFew,
                 const Share &share);
  /// A share of the tile of `body`: processes its parts, merges their states,
  /// and ends the tile. `own` is memory for the first state and for another
  /// one.
  void emitParts(QueryTileBody &body, const Form &form, ValueRange own,
                 const Share &share);

  /// Queries that a tile of few has at most.
  int64_t getMaxQueries() { return lanes / 2; }
  /// Whether that form is the faster one: up to a quarter of a vector, or half
  /// of one where keys are read from memory for longer than it takes to begin
  /// and to end (docs/notes/cpu-kernels.md).
  Value emitIsFew(const WorkTile &tile);
  /// Whether several threads process the keys of a tile.
  Value emitIsCut(const WorkTile &tile, Value isFew, Value allScores);
  /// Keys of a part of a tile of that form.
  Value emitPartKeys(Value isFew);
  /// Parts are numbered from the first key of a sequence on; this is the first
  /// that a tile visits, and how many it visits.
  Value emitFirstPart(const WorkTile &tile, Value partKeys);
  Value emitNumParts(const WorkTile &tile, Value partKeys);
  /// The most that a tile of the list visits, for each number of keys in a
  /// part.
  ValueRange emitMostParts(Value list, Value group, ArrayRef<int64_t> partKeys);
  QueryTileBody makePanels() {
    return {*this, ops, Orientation::KQ, panel, schedule.getPanels()};
  }
  QueryTileBody makeFew() {
    return {*this, ops, Orientation::QK, getMaxQueries(), /*panels=*/1};
  }

  TileLoop ops;
  Form ofFew, ofPanels;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_QUERYTILECONVERTER_H

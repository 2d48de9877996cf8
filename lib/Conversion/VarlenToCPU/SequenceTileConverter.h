//===- SequenceTileConverter.h - A loop over whole sequences ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H

#include "ScoreInputs.h"
#include "SequenceTiles.h"
#include "StepFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {

/// Converts a loop over sequences that own dq, dk and dv.
///
/// q and dout of an item are packed before its first block, twice: by columns,
/// which scores read, and by rows, which dk and dv read. The step of a block is
/// cut into panels of queries.
///
/// A sequence with so much of the work that threads would wait for it is cut to
/// a grid of ranges of panels and chunks of kv blocks. Cells of one diagonal
/// touch different rows of all gradients, so they run at once, one diagonal
/// after the other: every row is still summed in the order of blocks, or of
/// panels, and has the same bits as in one piece.
class SequenceTileConverter : QueryPanels {
public:
  SequenceTileConverter(SequenceTiles parts, const CPUTileBuilder &common);

  /// Emits what becomes of keys that no item has, from a list with keys for
  /// rows.
  void emitUnseenKeys(Value list);
  /// Emits the loop over `items`, of which each is a sequence and a kv head.
  void emit(Value items);

private:
  /// The maxima over all items of query rows, in whole panels, of these panels
  /// and of kv blocks; of scores the total.
  struct Limits {
    Value rows, panels, blocks, scores;
  };
  /// How an item is cut: ranges of `rows` rows and chunks of `blocks` kv
  /// blocks.
  struct Grid {
    Value ranges, chunks, rows, blocks;
  };
  /// What a thread does of an item: some query rows against some kv blocks,
  /// and whether their gradients begin and end here.
  struct Cell {
    Value firstRow, endRow, firstBlock, endBlock;
    Value beginsQueries, endsQueries, beginsKeys, endsKeys;
  };
  /// Whether some item with at most these extents is cut.
  Value emitIsCut(Value scores, Value rows, Value blocks, Value allScores);
  Grid emitGrid(const WorkTile &tile);
  Value emitNumBlocks(const WorkTile &tile);
  Cell emitWholeCell(const WorkTile &tile);
  Cell emitCell(const WorkTile &tile, const Grid &grid, Value range,
                Value chunk);
  /// What outlives a cell of an item that is cut: all its panels of queries,
  /// and the sums of all gradients, those of keys by kv block. `use` says which
  /// of such memory is that of the item at hand.
  SmallVector<Value> allocateMemory(Value rows, Value panels, Value blocks);
  void use(const WorkTile &tile, ValueRange memory);
  void allocateScratch(const WorkTile &tile);
  /// The diagonals of the grid of item `number`, or all items in one piece if
  /// `isWhole`.
  void emitDiagonals(Value items, Value number, Value isWhole,
                     const Limits &most, ArrayRef<Value> shared);
  void emitItem(const WorkTile &tile, const Cell &cell);
  void emitBlock(const WorkTile &tile, const Cell &cell, Value number);
  void emitPanel(const WorkTile &tile, const Panel &at, Value k0, Value keys);
  /// The queries of a tile from `p` on, which are one panel.
  Panel queriesAt(const WorkTile &tile, Value p) {
    return {index.div(p, index.constant(panel)), p, p,
            index.min(index.sub(tile.rows, p), index.constant(panel))};
  }
  /// A panel against `size` keys of the block at k0 from `begin` on.
  void emitStep(const WorkTile &tile, const Panel &at, Value k0, Value begin,
                Value size, Value whole);
  void emitWrite(WriteOp write, Value sum, const RowMap &rows, Value first,
                 Value count);
  /// The gradients of captures of some query rows: what `valueOf` says of a
  /// write and a row.
  void emitWriteCaptures(
      const WorkTile &tile, Value first, Value end,
      function_ref<Value(WriteOp, Value dcaptures, Value row)> valueOf);
  /// Zeros in the gradients of tables of keys, of some keys of a kv head.
  void emitKeyClears(const RowMap &rows, Value first, Value count);
  /// Zeros in rows of the gradients of other tables.
  void emitClears(const WorkTile &tile, Value first, Value end);
  /// What rows get that meet nothing.
  void emitOtherwise(WriteOp write, const RowMap &rows, Value first,
                     Value count);

  SequenceTiles loops;
  const RowScratch &statistics;
  Value group;
  StepFactors factors;
  ScoreInputs score;

  // Of the item at hand: the sums of queries, and of keys by kv block; lse,
  // delta and captures, where they are.
  Value dq, dk, dv;
  SmallVector<Value> dcaptures;
  SmallVector<Slab> numbers;
  // Scratch of a cell: limits of a panel, and gradients of a kv block.
  Value loTile, hiTile, dkTile, dvTile;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H

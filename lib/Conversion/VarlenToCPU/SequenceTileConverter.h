//===- SequenceTileConverter.h - A loop over whole sequences ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H

#include "TileConverter.h"

namespace mlir::varlen {

/// Converts a loop over sequences, operation by operation: which sums its step
/// adds to, and where they are written, does not matter here.
///
/// Rows of an item are packed before its first block, in each order in which a
/// product reads them. The step of a block is cut into panels of queries.
///
/// A sequence with so much of the work that threads would wait for it is cut to
/// a grid of ranges of panels and chunks of kv blocks. Cells of one diagonal
/// touch different rows of all sums, so they run at once, one diagonal after
/// the other: every row is still summed in the order of blocks, or of panels,
/// and has the same bits as in one piece.
class SequenceTileConverter : TileConverter {
public:
  SequenceTileConverter(TileLoop loop, const CPUTileBuilder &common);

  /// Emits what becomes of keys that no item has, from a list with keys for
  /// rows.
  void emitUnseenKeys(Value list);
  /// Emits the loop over `items`, of which each is a sequence and a kv head.
  void emit(Value items);

private:
  /// How many items there are. Over all that see a key: the most query rows, in
  /// whole panels, the most of these panels and of kv blocks, and the scores
  /// (f64) of all items and of the one with most, if each row saw all keys.
  struct Limits {
    Value items, rows, panels, blocks, scores, mostScores;
  };
  Limits emitListLimits(Value items);
  /// The query rows of an item, the keys that they see, the kv blocks of these,
  /// and the scores if each row saw all keys.
  struct Size {
    Value rows, keys, blocks, scores;
  };
  Value emitNumKeys(const WorkExtents &item);
  Value emitScores(Value rows, Value keys);
  Size emitSize(const WorkExtents &item);
  /// How an item is cut: ranges of `rows` rows and chunks of `blocks` kv
  /// blocks.
  struct Grid {
    Value ranges, chunks, rows, blocks;
  };
  /// What a thread does of an item: some query rows against some kv blocks,
  /// and whether their sums begin and end here.
  struct Cell {
    Value firstRow, endRow, firstBlock, endBlock;
    Value beginsQueries, endsQueries, beginsKeys, endsKeys;
  };
  /// What a step adds to: rows of keys or of queries, or numbers of queries.
  struct Sum {
    RankedTensorType type;
    bool ofKeys;
    /// For the item at hand; for keys by kv block, and for the block at hand.
    Value memory = {}, ofBlock = {};

    bool isOfNumbers() const { return !ofKeys && type.getDimSize(0) == 1; }
  };
  /// Whether some item with at most these extents is cut.
  Value emitIsCut(const Size &item, Value allScores);
  Grid emitGrid(const Size &item);
  Cell emitWholeCell(const Size &item);
  Cell emitCell(const Size &item, const Grid &grid, Value range, Value chunk);
  /// What outlives a cell of an item that is cut: all its panels of queries,
  /// and all sums. `use` says which of such memory is that of the item at hand.
  SmallVector<Value> allocateMemory(Value rows, Value panels, Value blocks);
  void use(ValueRange memory);
  void allocateScratch();
  /// First all items that are in one piece, then, if there can be any, one
  /// after the other of those that are cut. `body` takes the number of the item
  /// and whether it is the first phase.
  void forEachPhase(Value count, Value canBeCut,
                    function_ref<void(Value, Value)> body);
  /// The diagonals of the grid of item `number`, or all items in one piece if
  /// `isWhole`.
  void emitDiagonals(Value items, Value number, Value isWhole,
                     const Limits &most, ArrayRef<Value> shared);
  void emitItem(const Cell &cell);
  void emitBlocks(const Cell &cell);
  /// A block, which begins and ends the sums of its keys; returns `ofQueries`,
  /// the sums of queries, with what it adds.
  Values emitBlock(const Cell &cell, Value number, ValueRange ofQueries);
  /// The panels from `begin` to before `end`, and one of them, of all sums.
  ValueRange emitPanels(const KeyBlock &block, Value begin, Value end,
                        ValueRange all);
  Values emitPanel(const Panel &at, const KeyBlock &block, ValueRange all);
  TileSlice sliceOf(const Sum &sum, const Panel &at, const KeyRange &keys);
  /// The queries of a tile from `p` on, which are one panel.
  Panel queriesAt(Value p) {
    return {index.div(p, panel), p, p,
            index.min(index.sub(tile.rows, p), panel)};
  }
  /// The sum that a result of the step or of the loop over blocks is.
  Sum &sumOf(Value result);
  /// What a cell does with its queries before its blocks, and after them.
  void emitBefore(const Cell &cell);
  void emitAfter(const Cell &cell);
  /// Writes the rows of a sum.
  void emitWriteRows(WriteOp write, Value sum, const RowRange &rows);
  void emitClear(ClearOp clear, const RowRange &rows);
  /// What rows get that visit nothing, from the body of the loop over tiles or
  /// of that over blocks.
  void emitUnseen(Block &body, const RowRange &rows);

  Value group;
  SmallVector<Sum> sums;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H

//===- SequenceTileConverter.h - A loop over whole sequences ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H
#define VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H

#include "CPUTileBuilder.h"
#include "RowScratch.h"
#include "SequenceTiles.h"

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
class SequenceTileConverter : CPUTileBuilder {
public:
  SequenceTileConverter(SequenceTiles parts, CPUScheduleAttr schedule,
                        const DenseMap<Value, RowScratch> &scratch,
                        OpBuilder &builder);

  /// Emits what becomes of keys that no item has, from a list with keys for
  /// rows.
  void emitUnseenKeys(Value list);
  /// Emits the loop over `items`, of which each is a sequence and a kv head.
  void emit(Value items);

private:
  /// A factor of products in the orders they read it.
  struct Factor {
    Value columns, rows;
  };
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
  /// What outlives a cell of an item that is cut: all its panels of queries,
  /// and the sums of all gradients, those of keys by kv block.
  struct Memory {
    Factor q, dout;
    Value dq, dk, dv;
    /// Of each query: its position, null if the score region reads none, and
    /// the gradients of captures.
    Value positions;
    SmallVector<Value> dcaptures;
    /// Of each panel: the ranges of captures, null if there are none.
    Value captureRanges;
    /// Rows in tables, then in the gradients of tables.
    SmallVector<Value> tableRows;

    SmallVector<Value> getAll() const;
    /// What stands for the values of getAll().
    Memory with(ValueRange values) const;
  };

  /// Whether some item with at most these extents is cut.
  Value emitIsCut(Value scores, Value rows, Value blocks, Value allScores);
  Grid emitGrid(const WorkTile &tile);
  Value emitNumBlocks(const WorkTile &tile);
  Cell emitWholeCell(const WorkTile &tile);
  Cell emitCell(const WorkTile &tile, const Grid &grid, Value range,
                Value chunk);
  Memory allocateMemory(Value rows, Value panels, Value blocks);
  void allocateScratch(const WorkTile &tile);
  /// The diagonals of the grid of item `number`, or all items in one piece if
  /// `isWhole`.
  void emitDiagonals(Value items, Value number, Value isWhole,
                     const Limits &most, const Memory &shared);
  void emitItem(const WorkTile &tile, const Cell &cell);
  void emitBlock(const WorkTile &tile, const Cell &cell, Value number);
  void emitPanel(const WorkTile &tile, Value p, Value k0, Value keys);
  /// The panel at `p` of a buffer of all panels.
  Value panelAt(Value all, Value p) {
    return matrixAt(all, index.div(p, index.constant(panel)));
  }
  Factor panelAt(const Factor &all, Value p) {
    return {panelAt(all.columns, p), panelAt(all.rows, p)};
  }
  void emitPack(const WorkTile &tile, Value source, Value p, Value columns,
                const Factor &to);
  /// Where the statistics of the pairs from `p` on begin, and the memory of
  /// those that are a capture's numbers, behind lse and delta.
  Value firstStatistic(const WorkTile &tile, Value p) {
    return index.add(tile.pairs.firstPair(index, tile.pairs.firstRow), p);
  }
  Value captureMemory(unsigned capture) {
    return statistics.memory[2 + capture];
  }
  /// The panel at `p` against `size` keys of the block from `begin` on, of
  /// which the first is key `from`.
  void emitStep(const WorkTile &tile, Value p, Value begin, Value size,
                Value from, Value whole);
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
  /// The rows in tables of the pair at a place of scratch, and those in their
  /// gradients, which it has none of behind the last one.
  void emitTableRowsOf(const WorkTile &tile, Value pair);
  /// What rows get that meet nothing.
  void emitOtherwise(WriteOp write, const RowMap &rows, Value first,
                     Value count);

  SequenceTiles loops;
  const DenseMap<Value, RowScratch> &scratch;
  const RowScratch &statistics;
  /// Head sizes in tiles: whole vectors.
  int64_t d, dv;
  /// Neighbours that lie side by side in a row of memory: pairs, or none.
  int64_t perRow;
  Value group;

  /// Of the item at hand.
  Memory item;
  // Scratch of a cell: limits of a panel, a kv block and its gradients.
  Value loTile, hiTile;
  Value kTile, kPairs, vTile, dkTile, dvTile;
  SmallVector<Value> tableViews, dtableViews;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H

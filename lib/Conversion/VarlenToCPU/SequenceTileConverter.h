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

  /// The most rows of a work tile that sees a key.
  Value emitMostRows(Value tiles);
  void allocateScratch(Value mostRows, Value mostPanels);
  void emitItem(const WorkTile &tile);
  void emitBlock(const WorkTile &tile, Value k0);
  void emitPanel(const WorkTile &tile, Value p, Value k0, Value keys);
  /// The panel at `p` of a buffer of all panels.
  Value panelAt(Value all, Value p);
  Factor panelAt(const Factor &all, Value p) {
    return {panelAt(all.columns, p), panelAt(all.rows, p)};
  }
  void emitPack(const WorkTile &tile, Value source, Value p, Value columns,
                const Factor &to);
  /// The panel at `p` against `size` keys of the block from `begin` on, of
  /// which the first is key `from`.
  void emitStep(const WorkTile &tile, Value p, Value begin, Value size,
                Value from, Value whole);
  void emitWrite(WriteOp write, Value sum, const PairMap &rows, Value first,
                 Value count);
  /// The gradients of captures: what `valueOf` says of a write and a row of the
  /// item.
  void emitWriteCaptures(
      const WorkTile &tile,
      function_ref<Value(WriteOp, Value dcaptures, Value row)> valueOf);
  /// What rows get that meet nothing.
  void emitOtherwise(WriteOp write, const PairMap &rows, Value first,
                     Value count);

  Value lessEqual(Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, lhs, rhs);
  }

  SequenceTiles loops;
  const DenseMap<Value, RowScratch> &scratch;
  const RowScratch &statistics;
  /// Head sizes in tiles: whole vectors.
  int64_t d, dv;
  /// Neighbours that lie side by side in a row of memory: pairs, or none.
  int64_t perRow;
  Value group;

  // Scratch of an item: all panels of queries, a kv block, their gradients.
  Factor q, dout;
  Value loTile, hiTile;
  Value kTile, kPairs, vTile, dkTile, dvTile, dqTile;
  /// Of all queries: positions, null if the score region reads none, and the
  /// gradients of captures.
  Value positions;
  SmallVector<Value> dcaptures;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILECONVERTER_H

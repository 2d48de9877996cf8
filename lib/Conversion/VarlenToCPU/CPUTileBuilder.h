//===- CPUTileBuilder.h - What tilings for a CPU have in common -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_CPUTILEBUILDER_H
#define VARLEN_CONVERSION_VARLENTOCPU_CPUTILEBUILDER_H

#include "CPUTileMemory.h"
#include "RowScratch.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::varlen {

/// Control flow, scratch tiles and work tiles of tensors of `element`, which
/// are summed in `compute`. Copies emit at the place of the same builder.
class CPUTileBuilder {
public:
  CPUTileBuilder(ImplicitLocOpBuilder &b, CPUScheduleAttr schedule,
                 FloatType element, const RowScratchMap &scratch)
      : b(b), index{b}, scratch(scratch), schedule(schedule), element(element),
        compute(element.isF64() ? element : FloatType(b.getF32Type())),
        panel(schedule.getPanelSize()), lanes(schedule.getLanes()),
        pairs(schedule.getKv() == KVStorage::Pairs),
        tileElement(pairs ? element : compute) {}

  /// What a work tile of the list says.
  struct WorkTile {
    RowMap pairs;
    Value first, rows, kRow, kRows, queries, offset, kBegin, kEnd;
    /// Of the sequence; whoever asks it has to set it.
    SequenceMask mask;
  };

  void loop(Value from, Value to, int64_t step,
            function_ref<void(Value)> body) {
    emitLoop(b, from, to, step, body);
  }
  Operation *branch(Value condition, function_ref<void()> then,
                    function_ref<void()> otherwise = nullptr) {
    return emitIf(b, condition, then, otherwise);
  }
  /// A parallel loop over 0 to before `count`.
  scf::ForallOp forEach(Value count, function_ref<void(Value)> body);
  /// A row of a list of work tiles.
  WorkTile readTile(Value tiles, Value number, Value group);
  /// A parallel loop over the work tiles of a list.
  scf::ForallOp forEachTile(Value tiles, Value group,
                            function_ref<void(const WorkTile &)> body);
  /// Of all tiles of a list that see a key: the most rows and keys, and the
  /// scores (f64) of all and of the one with most, if each row saw all keys.
  struct Extremes {
    Value rows, keys, scores, mostScores;
  };
  Extremes emitExtremes(Value tiles, Value group);
  Value emitScores(const WorkTile &tile);
  /// Whether a tile has so much of all work that threads would wait for it.
  Value emitIsLarge(Value scores, Value allScores);
  /// Turns of a list: first all tiles that are in one piece, then, if there can
  /// be any, one after the other of those that are cut. `body` takes the number
  /// of the tile and whether it is the first turn.
  void forEachTurn(Value tiles, Value canBeCut,
                   function_ref<void(Value, Value)> body);
  /// The mask of a tile's sequence, one of `batch`.
  SequenceMask maskOf(const WorkTile &tile, BatchOp batch) {
    Position offset;
    if (batch.getQOffset())
      offset = tile.offset;
    return {index, batch.getMask(), tile.queries, tile.kRows, offset};
  }

  Value isNot(Value condition);
  Value floatConstant(double value);
  Value splat(double value);
  Value dim(Value memref, int64_t dim);
  /// rows x columns from `row` (and `column`) on.
  Value rowView(Value memref, OpFoldResult row, OpFoldResult rows,
                OpFoldResult columns);
  Value view(Value memref, OpFoldResult row, OpFoldResult column,
             OpFoldResult rows, OpFoldResult columns);
  /// One of the matrices in a buffer of several.
  Value matrixAt(Value all, Value number);
  /// Memory in whole cache lines; `sizes` are its dynamic extents.
  Value allocate(ArrayRef<int64_t> shape, Type type, ValueRange sizes = {});
  /// Scratch of a work tile.
  Value allocate(int64_t rows, int64_t columns, Type type) {
    return allocate({rows, columns}, type);
  }
  /// The same, with a cache line more in each row: rows whose distance is a
  /// power of two would share few cache sets.
  Value allocatePadded(int64_t rows, int64_t columns, Type type);
  /// The tile that lies in `memref`, in its own order.
  Value load(Value memref);
  /// The rows x columns tile of which `copies` are copies.
  Value load(ArrayRef<TileCopy> copies, int64_t rows, int64_t columns);
  void store(Value tile, Value memref);

  /// The part of a block of `keys` keys at k0 that some of the `rows` pairs
  /// from `first` on see, in whole granules from k0 on.
  struct VisiblePart {
    Value begin, end;
    /// The keys that some, and all, of the pairs see.
    MaskRange<Value> keys;
  };
  VisiblePart visiblePart(const WorkTile &tile, Value first, Value rows,
                          Value k0, Value keys);
  /// Whether all of the pairs see all keys from `begin` to before `end`.
  Value seeAll(const VisiblePart &seen, Value begin, Value end);
  /// The rows of the keys, and values, of a tile's sequence and kv head.
  RowMap keyRows(const WorkTile &tile) {
    return {tile.kRow, tile.pairs.kvHead, index.constant(1)};
  }
  /// The keys of the kv block at k0: 0 or less behind the last key.
  Value blockKeys(const WorkTile &tile, Value k0) {
    return index.min(index.sub(tile.kEnd, k0),
                     index.constant(schedule.getKvBlock()));
  }
  Value lastPair(const WorkTile &tile) {
    return index.sub(index.add(tile.first, tile.rows), index.constant(1));
  }
  /// The number of a pair in memory of H x T or of H, or value `column` of it
  /// in `varlen.rows`, in the type of sums; and a number of any type to that
  /// place.
  Value loadNumber(const WorkTile &tile, Value memory, Value pair,
                   unsigned column = 0);
  void storeNumber(const WorkTile &tile, Value number, Value memory, Value pair,
                   unsigned column = 0);
  /// Stores the visible keys of a query.
  void emitLimits(const WorkTile &tile, Value query, Value lo, Value hi,
                  ValueRange at);
  Value both(Value condition, Value other) {
    return other ? index.both(condition, other) : condition;
  }

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  /// The memory of the `varlen.rows` of the batch.
  const RowScratchMap &scratch;
  CPUScheduleAttr schedule;
  FloatType element, compute;
  int64_t panel, lanes;
  /// Whether tiles stay bf16, for dot products of pairs.
  bool pairs;
  /// Of the factors of products.
  FloatType tileElement;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_CPUTILEBUILDER_H

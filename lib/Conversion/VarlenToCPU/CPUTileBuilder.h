//===- CPUTileBuilder.h - What tilings for a CPU have in common -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_CPUTILEBUILDER_H
#define VARLEN_CONVERSION_VARLENTOCPU_CPUTILEBUILDER_H

#include "RowScratch.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"
#include "varlen/Support/ControlFlow.h"

namespace mlir::varlen {

inline MemRefType memoryType(Value memory) {
  return cast<MemRefType>(memory.getType());
}

inline Type elementOf(Value memory) {
  return memoryType(memory).getElementType();
}

/// Elements in a cache line of 64 bytes.
inline int64_t getCacheLineElements(Type element) {
  return 512 / element.getIntOrFloatBitWidth();
}

/// A scalar or vector in another float type; nothing if it has it already.
Value emitConvert(ImplicitLocOpBuilder &b, Value value, Type element);

/// The rows of `count` pairs from `first` on. Pairs of keys have a group of 1;
/// if they are in pages, they are of one block.
struct RowRange {
  RowMap map;
  Value first, count;
};

/// Control flow, scratch tiles and work tiles of tensors of `element`, which
/// are summed in `compute`. Copies emit at the place of the same builder.
class CPUTileBuilder {
public:
  CPUTileBuilder(ImplicitLocOpBuilder &b, CPUScheduleAttr schedule,
                 FloatType element, const RowScratchMap &scratch, PageMap pages)
      : b(b), index{b}, scratch(scratch), pages(pages), schedule(schedule),
        element(element),
        compute(element.isF64() ? element : FloatType(b.getF32Type())),
        panel(schedule.getPanelSize()), lanes(schedule.getLanes()),
        pairs(schedule.getKv() == KVStorage::Pairs),
        tileElement(pairs ? element : compute) {}

  /// How many rows a work tile has, and the keys that some of them see.
  struct WorkExtents {
    Value rows, kBegin, kEnd;
  };
  /// What a work tile of the list says.
  struct WorkTile : WorkExtents {
    RowMap pairs;
    Value first, kRow, kRows, queries, offset;
    /// The mask of the sequence; must be set before use.
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
  /// A row of a list of work tiles, and parts of it: without the keys that it
  /// sees, and its extents.
  WorkTile readTile(Value tiles, Value number, Value group);
  WorkTile readRows(Value tiles, Value number, Value group);
  WorkExtents readExtents(Value tiles, Value number);
  /// A parallel loop over the work tiles of a list, which visit no keys.
  Operation *forEachTile(Value tiles, Value group,
                         function_ref<void(const WorkTile &)> body);
  /// The mask of a tile's sequence, one of `batch`.
  SequenceMask maskOf(const WorkTile &tile, BatchOp batch) {
    Position offset;
    if (batch.getQOffset())
      offset = tile.offset;
    return {index, batch.getMask(), tile.queries, tile.kRows, offset};
  }

  Value isNot(Value condition);
  Value floatConstant(double value);
  Value splat(int64_t length, Type element, double value);
  /// `rows` rows from `row` on; of these, `columns` columns from `column` on.
  Value rowView(Value memref, OpFoldResult row, OpFoldResult rows);
  Value view(Value memref, OpFoldResult row, OpFoldResult column,
             OpFoldResult rows, OpFoldResult columns);
  /// One of the matrices in a buffer of several.
  Value matrixAt(Value all, Value number);
  /// Memory in whole cache lines; `sizes` are its dynamic extents.
  Value allocate(ArrayRef<int64_t> shape, Type type, ValueRange sizes = {});
  /// A matrix with a cache line more in each row: rows whose distance is a
  /// power of two would share few cache sets.
  Value allocatePadded(int64_t rows, int64_t columns, Type type);
  /// The tile that lies in `memref`, in its own order. What is computed of a
  /// `writable` one may take its place.
  Value load(Value memref, bool writable = false);
  /// The rows x columns tile of which `copies` are copies.
  Value load(ArrayRef<TileCopy> copies, int64_t rows, int64_t columns);
  void store(Value tile, Value memref);

  // Moves between packed tensors and scratch, as linalg on views.
  // Everything is converted to the type of its destination.

  /// Calls `body` with views of rows memory[row, head, :], the number of the
  /// first one, and how many they are: one view where a token has one pair,
  /// else one for each token; one for each page of rows in pages, if blocks may
  /// be in several.
  void
  forEachView(Value memory, const RowRange &rows,
              function_ref<void(Value view, Value from, Value count)> body);
  /// Whether all blocks of keys are in one page each; null if they are.
  Value emitAreInPages();
  /// The rows of pairs with a group of 1, as those of keys; in pages, of one.
  Value emitRowsInPlace(Value source, const RowRange &rows);
  /// Asks for rows source[row, head, :], into the second-level cache: the first
  /// has room for fewer, and for fewer misses.
  void emitPrefetchRows(Value source, const RowRange &rows);
  /// Copies rows source[row, head, :] to destination[i, :], and makes
  /// destination rows rows.count .. paddedRows, and columns that source does
  /// not have, zero.
  void emitReadRows(Value source, const RowRange &rows, Value paddedRows,
                    Value destination);
  /// The same for bf16 rows with a group of 1, so that element d of rows 2 j
  /// and 2 j + 1 become destination[j, 2 d] and [j, 2 d + 1]; paddedRows is
  /// even.
  void emitReadPairs(Value source, const RowRange &rows, Value paddedRows,
                     Value destination);
  /// Copies rows to scratch of another order than rows.
  void emitReorder(Value rows, TileOrder order, Value destination);
  /// Whether the rows of `memory` are elements of that type, one beside the
  /// other.
  static bool isOfRows(Value memory, Type element);
  /// Whether so many rows as a vector has lanes lie in one view of `memory`, as
  /// elements of that type; null if they never do.
  Value emitIsInPlace(Value memory, const RowRange &rows, Type element);
  /// These rows where they are if they are `inPlace`, else `scratch`, for which
  /// `otherwise` may emit something.
  Value emitVectorRows(Value memory, const RowRange &rows, Value inPlace,
                       Value scratch, function_ref<void()> otherwise);
  /// Rows of any distance, so that views of different memory have one type.
  Value castRows(Value rows);
  /// Rows of `source`, times `factor` where that is not null, become rows
  /// destination[row, head, :].
  void emitStoreRows(Value source, Value factor, const RowRange &rows,
                     Value destination);
  /// Makes rows destination[row, head, :] `value`.
  void emitFillRows(double value, const RowRange &rows, Value destination);
  void emitFill(double value, Value memory);

  ImplicitLocOpBuilder &b;
  IndexBuilder index;
  /// The memory of the `varlen.rows` of the batch.
  const RowScratchMap &scratch;
  /// Where the keys of the batch are, if that is in pages.
  PageMap pages;
  CPUScheduleAttr schedule;
  FloatType element, compute;
  int64_t panel, lanes;
  /// Whether tiles stay bf16, for dot products of pairs.
  bool pairs;
  /// Element type of the factors of products.
  FloatType tileElement;

private:
  /// The keys that some row of a work tile sees.
  void readKeys(Value tiles, Value number, WorkExtents &extents);
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_CPUTILEBUILDER_H

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
#include "varlen/Dialect/Varlen/Utils/RowViews.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/Matrices.h"

namespace mlir::varlen {

/// A scalar or vector in another float type; nothing if it has it already.
Value emitConvert(ImplicitLocOpBuilder &b, Value value, Type element);

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
  /// What the fields of a row of a list say (`varlen.read_work`): a work tile,
  /// and without the keys that it sees.
  WorkTile tileOf(ValueRange fields, Value group);
  WorkTile rowsOf(ValueRange fields, Value group);
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
  Value rowView(Value memref, OpFoldResult row, OpFoldResult rows) {
    return emitRows(b, memref, row, rows);
  }
  Value view(Value memref, OpFoldResult row, OpFoldResult column,
             OpFoldResult rows, OpFoldResult columns) {
    return emitPart(b, memref, row, column, rows, columns);
  }
  /// One of the matrices in a buffer of several.
  Value matrixAt(Value all, Value number);
  /// Memory in whole cache lines; `sizes` are its dynamic extents.
  Value allocate(ArrayRef<int64_t> shape, Type type, ValueRange sizes = {}) {
    return emitAllocation(b, shape, type, sizes);
  }
  /// A matrix with a cache line more in each row: rows whose distance is a
  /// power of two would share few cache sets.
  Value allocatePadded(int64_t rows, int64_t columns, Type type);
  /// The tile that lies in `memref`, in its own order. What is computed of a
  /// `writable` one may take its place.
  Value load(Value memref, bool writable = false);
  /// The rows x columns tile of which `copies` are copies.
  Value load(ArrayRef<TileCopy> copies, int64_t rows, int64_t columns);
  void store(Value tile, Value memref);

  // Moves between the rows of a sequence and scratch (VarlenRowOps.td).

  /// Whether pages have a multiple of so many rows; null if they do, or keys
  /// are not in pages.
  Value emitHavePages(int64_t multiple);
  void emitReadRows(Value memory, const RowRange &rows,
                    ArrayRef<TileCopy> copies);
  /// Rows of keys where they are, as a tile.
  Value loadRows(Value memory, const RowRange &rows);
  void emitPrefetchRows(Value memory, const RowRange &rows);
  /// Rows of scratch, times `factor` where that is not null.
  void emitWriteRows(Value scratch, FloatAttr factor, const RowRange &rows,
                     Value memory);
  void emitFillRows(double number, const RowRange &rows, Value memory);
  void emitFill(double number, Value memory) {
    varlen::emitFill(b, number, memory);
  }

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
  WorkExtents extentsOf(ValueRange fields);
  /// Whether pages are known to have whole blocks of keys.
  bool havePagesWholeBlocks();
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_CPUTILEBUILDER_H

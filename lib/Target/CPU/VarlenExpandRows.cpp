//===- VarlenExpandRows.cpp - Rows of sequences as loops over views -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoadedRows.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Dialect/Varlen/Utils/RowViews.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/Matrices.h"
#include "varlen/Support/MergeConstants.h"
#include "varlen/Support/PairMap.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDROWS
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Writes one operation on rows as loops over views, or one on a list as loads.
class RowExpander {
public:
  explicit RowExpander(Operation *op) : b(op->getLoc(), op) {}

  LogicalResult expand(ReadRowsOp read);
  LogicalResult expand(PrefetchRowsOp prefetch);
  LogicalResult expand(WriteRowsOp write);
  LogicalResult expand(FillRowsOp fill);
  LogicalResult expand(ReadWorkOp read);

private:
  /// Rows of memory, and whether they are in one page.
  struct Rows {
    Value memory;
    RowRange range;
    bool isOnePage = false;
  };
  template <typename Op> RowRange rangeOf(Op op) {
    return {{op.getRow(), op.getHead(), op.getGroup()},
            op.getFirst(),
            op.getValid()};
  }
  /// The rows of an operation that may have them in pages.
  template <typename Op> Rows rowsOf(Op op) {
    RowRange range = rangeOf(op);
    if (Value table = op.getBlockTable())
      range.map.pages = {table, index.dim(op.getMemory(), 1)};
    return {op.getMemory(), range, op.getOnePage()};
  }

  /// Calls `body` with a view of rows, the number of its first row, and how
  /// many they are.
  void forEachView(const Rows &rows,
                   function_ref<void(Value, Value, Value)> body) {
    forEachRowView(b, rows.memory, rows.range, rows.isOnePage, body);
  }
  /// To scratch of rows: what has no row is zero.
  void emitRead(const Rows &rows, Value scratch);
  /// To scratch of pairs of rows, of bf16 rows with a group of 1.
  void emitReadPairs(const Rows &rows, int64_t maxRows, Value scratch);
  /// From rows of scratch, or if that is null from memory, to columns: vectors
  /// that have a row.
  void emitColumns(const Rows &rows, Value fromScratch, const TileCopy &to,
                   int64_t lanes);
  /// Rows of scratch to scratch in another order.
  void emitReorder(Value rows, TileOrder order, Value scratch);
  /// A matrix whose dimension `dim` is cut to `count` pairs.
  Value cutToPairs(Value matrix, unsigned dim, OpFoldResult count);
  /// The rows of a matrix from `row` on become zero.
  void emitClear(Value matrix, Value row, OpFoldResult end);

  ImplicitLocOpBuilder b;
  IndexBuilder index{b};
};

} // namespace

//===----------------------------------------------------------------------===//
// To scratch
//===----------------------------------------------------------------------===//

void RowExpander::emitClear(Value matrix, Value row, OpFoldResult end) {
  // Where a tile has the rows that exist and no other, nothing is left.
  if (isEqualConstantIntOrValue(end, row))
    return;
  Value last = getValueOrCreateConstantIndexOp(b, b.getLoc(), end);
  emitFill(b, 0.0, emitRows(b, matrix, row, index.sub(last, row)));
}

void RowExpander::emitRead(const Rows &rows, Value scratch) {
  int64_t size = innerSize(rows.memory), padded = innerSize(scratch);
  OpFoldResult zero = b.getIndexAttr(0), columns = b.getIndexAttr(size);
  Value count = rows.range.count;
  forEachView(rows, [&](Value view, Value from, Value length) {
    linalg::CopyOp::create(b, view,
                           emitPart(b, scratch, from, zero, length, columns));
  });
  if (size != padded)
    emitFill(b, 0.0,
             emitPart(b, scratch, zero, columns, count,
                      b.getIndexAttr(padded - size)));
  emitClear(scratch, count,
            memref::getMixedSize(b, b.getLoc(), scratch, /*dim=*/0));
}

Value RowExpander::cutToPairs(Value matrix, unsigned dim, OpFoldResult count) {
  SmallVector<OpFoldResult> sizes =
      memref::getMixedSizes(b, b.getLoc(), matrix);
  sizes[dim] = count;
  sizes.insert(sizes.begin() + dim + 1, b.getIndexAttr(2));
  SmallVector<ReassociationIndices> dims =
      dim == 0 ? SmallVector<ReassociationIndices>{{0, 1}, {2}}
               : getPairDims(/*rank=*/3);
  SmallVector<int64_t> shape;
  SmallVector<Value> extents;
  dispatchIndexOpFoldResults(sizes, extents, shape);
  return memref::ExpandShapeOp::create(b, shape, matrix, dims, sizes);
}

void RowExpander::emitReorder(Value rows, TileOrder order, Value scratch) {
  SmallVector<int64_t> permutation = {1, 0};
  int64_t columns = innerSize(rows);
  auto sizeOf = [&](Value matrix) {
    return memref::getMixedSize(b, b.getLoc(), matrix, /*dim=*/0);
  };
  if (order == TileOrder::ColumnPairs) {
    scratch = cutToPairs(scratch, 1, sizeOf(rows));
    rows = cutToPairs(rows, 1, b.getIndexAttr(columns / 2));
    permutation = {1, 0, 2};
  } else if (order == TileOrder::RowPairs) {
    rows = cutToPairs(rows, 0, sizeOf(scratch));
    scratch = cutToPairs(scratch, 1, b.getIndexAttr(columns));
    permutation = {0, 2, 1};
  }
  linalg::TransposeOp::create(b, rows, scratch, permutation);
}

void RowExpander::emitReadPairs(const Rows &rows, int64_t maxRows,
                                Value scratch) {
  const RowMap &map = rows.range.map;
  Value first = rows.range.first, count = rows.range.count;
  int64_t size = innerSize(rows.memory), columns = innerSize(scratch) / 2;
  OpFoldResult zero = b.getIndexAttr(0),
               all = memref::getMixedSize(b, b.getLoc(), scratch, /*dim=*/0);
  // Pairs of rows that may be in different pages, or are not of this type yet:
  // of a copy.
  if (elementOf(rows.memory) != elementOf(scratch) ||
      (map.pages && !rows.isOnePage)) {
    Value whole = emitAllocation(b, {maxRows, columns}, elementOf(scratch));
    Value pairs = getValueOrCreateConstantIndexOp(b, b.getLoc(), all);
    Value copy = emitRows(b, whole, zero, index.mul(pairs, 2));
    emitRead(rows, copy);
    return emitReorder(copy, TileOrder::RowPairs, scratch);
  }
  Value even = index.roundDown(count, 2), whole = index.div(even, 2);
  emitReorder(
      emitRowsInPlace(b, rows.memory, {map, first, even}), TileOrder::RowPairs,
      emitPart(b, scratch, zero, zero, whole, b.getIndexAttr(2 * size)));
  if (size != columns)
    emitFill(b, 0.0,
             emitPart(b, scratch, zero, b.getIndexAttr(2 * size), whole,
                      b.getIndexAttr(2 * (columns - size))));
  // The last row, if its pair has no other.
  emitIf(b, index.less(even, count), [&] {
    Value last = emitAllocation(b, {2, columns}, elementOf(scratch));
    emitRead({rows.memory,
              {map, index.add(first, even), index.constant(1)},
              rows.isOnePage},
             last);
    emitReorder(last, TileOrder::RowPairs,
                emitRows(b, scratch, whole, b.getIndexAttr(1)));
  });
  emitClear(scratch, index.ceilDiv(count, 2), all);
}

void RowExpander::emitColumns(const Rows &rows, Value fromScratch,
                              const TileCopy &to, int64_t lanes) {
  const RowMap &map = rows.range.map;
  Value first = rows.range.first, count = rows.range.count;
  Type element = elementOf(to.memref);
  int64_t perColumn = to.order == TileOrder::ColumnPairs ? 2 : 1;
  int64_t columns = memoryType(to.memref).getDimSize(0) * perColumn;
  OpFoldResult zero = b.getIndexAttr(0), width = b.getIndexAttr(lanes);
  auto viewColumns = [&](OpFoldResult first, OpFoldResult count) {
    return emitPart(b, to.memref, zero, first,
                    b.getIndexAttr(columns / perColumn), count);
  };
  bool areWhole = columns == innerSize(rows.memory) && !map.pages;
  if (!fromScratch && areWhole && isConstantIntValue(map.group, 1) &&
      isOfRows(rows.memory, element)) {
    // Lanes behind the last row are 0, whatever the memory held.
    Value whole = index.roundDown(count, lanes);
    emitIf(b, index.less(whole, count), [&] {
      emitFill(b, 0.0,
               viewColumns(index.mul(whole, perColumn),
                           b.getIndexAttr(perColumn * lanes)));
    });
    return emitReorder(emitRowsInPlace(b, rows.memory, rows.range), to.order,
                       viewColumns(zero, index.mul(count, perColumn)));
  }
  Value scratch;
  if (!fromScratch)
    scratch = emitAllocation(b, {lanes, columns}, element);
  emitLoop(b, index.constant(0), count, lanes, [&](Value column) {
    Value vector;
    if (fromScratch) {
      vector = emitRows(b, fromScratch, column, width);
    } else {
      Rows some = rows;
      some.range = {map, index.add(first, column),
                    index.min(index.sub(count, column), lanes)};
      Value inPlace;
      if (areWhole)
        inPlace = emitIsInPlace(b, rows.memory, some.range, element, lanes);
      vector = emitVectorRows(b, rows.memory, some.range, lanes, inPlace,
                              scratch, [&] { emitRead(some, scratch); });
    }
    emitReorder(vector, to.order,
                viewColumns(index.mul(column, perColumn),
                            b.getIndexAttr(perColumn * lanes)));
  });
}

LogicalResult RowExpander::expand(ReadRowsOp read) {
  Rows rows = rowsOf(read);
  SmallVector<TileCopy> copies = read.getTileCopies();
  auto isOf = [](TileOrder order) {
    return [order](const TileCopy &copy) { return copy.order == order; };
  };
  CPUScheduleAttr schedule = getEnclosingSchedule(read);
  if (!schedule && !llvm::all_of(copies, isOf(TileOrder::Rows)))
    return read.emitOpError("expected a #varlen.cpu_schedule around it under ")
           << kScheduleAttrName << " where an order is other than rows";
  // Rows first: a loop over them has more misses in flight than one that
  // transposes. Pairs of keys are as near to each other as those of scratch.
  Value packed;
  const auto *ofRows = llvm::find_if(copies, isOf(TileOrder::Rows));
  if (ofRows != copies.end())
    packed = ofRows->memref;
  const auto *ofPairs = llvm::find_if(copies, isOf(TileOrder::RowPairs));
  int64_t maxRows = 0, columns = 0;
  if (ofPairs != copies.end()) {
    MemRefType type = memoryType(ofPairs->memref);
    maxRows =
        type.isDynamicDim(0) ? schedule.getKvBlock() : 2 * type.getDimSize(0);
    columns = type.getDimSize(1) / 2;
  }
  bool isOfKeys = isConstantIntValue(rows.range.map.group, 1);
  if (ofPairs != copies.end() && !packed && !(isOfKeys && copies.size() == 1)) {
    packed = emitAllocation(b, {maxRows, columns}, elementOf(ofPairs->memref));
    if (memoryType(ofPairs->memref).isDynamicDim(0))
      packed = emitRows(
          b, packed, b.getIndexAttr(0),
          getAsOpFoldResult(index.mul(index.dim(ofPairs->memref, 0), 2)));
  }
  if (packed)
    emitRead(rows, packed);
  for (const TileCopy &copy : copies)
    switch (copy.order) {
    case TileOrder::Rows:
      break;
    case TileOrder::RowPairs:
      if (packed)
        emitReorder(packed, copy.order, copy.memref);
      else
        emitReadPairs(rows, maxRows, copy.memref);
      break;
    case TileOrder::Columns:
    case TileOrder::ColumnPairs:
      emitColumns(rows, packed, copy, schedule.getLanes());
      break;
    }
  return success();
}

LogicalResult RowExpander::expand(PrefetchRowsOp prefetch) {
  Rows rows = rowsOf(prefetch);
  rows.range.count = index.max(rows.range.count, 0);
  int64_t line = getCacheLineElements(elementOf(rows.memory));
  forEachView(rows, [&](Value view, Value, Value count) {
    emitLoop(b, index.constant(0), count, 1, [&](Value row) {
      for (int64_t d = 0; d < innerSize(rows.memory); d += line)
        emitPrefetch(b, view, {row, index.constant(d)});
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// To memory
//===----------------------------------------------------------------------===//

LogicalResult RowExpander::expand(WriteRowsOp write) {
  Value scratch = write.getScratch(), memory = write.getMemory(), factor;
  if (auto number = write.getFactor())
    factor = arith::ConstantOp::create(
        b, b.getFloatAttr(elementOf(scratch), number->convertToDouble()));
  forEachView({memory, rangeOf(write)}, [&](Value to, Value from, Value count) {
    Value part = emitPart(b, scratch, from, b.getIndexAttr(0), count,
                          b.getIndexAttr(innerSize(memory)));
    if (!factor) {
      linalg::CopyOp::create(b, part, to);
      return;
    }
    emitElementwise(b, part, to, [&](ImplicitLocOpBuilder &b, ValueRange args) {
      Value product = arith::MulFOp::create(b, args[0], factor);
      return Values{convertScalarToDtype(b, b.getLoc(), product, elementOf(to),
                                         /*isUnsignedCast=*/false)};
    });
  });
  return success();
}

LogicalResult RowExpander::expand(FillRowsOp fill) {
  double number = fill.getNumber().convertToDouble();
  forEachView({fill.getMemory(), rangeOf(fill)},
              [&](Value view, Value, Value) { emitFill(b, number, view); });
  return success();
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

LogicalResult RowExpander::expand(ReadWorkOp read) {
  for (auto [column, field] : llvm::enumerate(read.getFields()))
    if (!field.use_empty())
      field.replaceAllUsesWith(
          index.load(read.getList(),
                     ValueRange{read.getNumber(), index.constant(column)}));
  return success();
}

namespace {
struct VarlenExpandRows : varlen::impl::VarlenExpandRowsBase<VarlenExpandRows> {
  void runOnOperation() override {
    SmallVector<LoadRowsOp> loads;
    getOperation()->walk([&](LoadRowsOp load) { loads.push_back(load); });
    for (LoadRowsOp load : loads)
      if (failed(expandLoadedRows(load)))
        return signalPassFailure();
    numExpanded += loads.size();
    SetVector<FunctionOpInterface> functions;
    WalkResult result = getOperation()->walk([&](Operation *op) {
      return TypeSwitch<Operation *, WalkResult>(op)
          .Case<ReadRowsOp, PrefetchRowsOp, WriteRowsOp, FillRowsOp,
                ReadWorkOp>([&](auto rows) -> WalkResult {
            if (failed(RowExpander(rows).expand(rows)))
              return failure();
            if (auto function = op->getParentOfType<FunctionOpInterface>())
              functions.insert(function);
            op->erase();
            ++numExpanded;
            return WalkResult::skip();
          })
          .Default(WalkResult::advance());
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    for (FunctionOpInterface function : functions)
      mergeConstants(function);
  }
};
} // namespace

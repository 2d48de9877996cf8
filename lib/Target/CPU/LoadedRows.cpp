//===- LoadedRows.cpp - Tiles of rows where they are ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoadedRows.h"

#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Dialect/Varlen/Utils/RowViews.h"
#include "varlen/Support/Extents.h"
#include "varlen/Support/Matrices.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class LoadedRows {
public:
  explicit LoadedRows(LoadRowsOp load) : load(load), b(load.getLoc(), load) {
    rows = {{load.getRow(), load.getHead(), index.constant(1)},
            load.getFirst(),
            load.getValid()};
    if (Value table = load.getBlockTable())
      rows.map.pages = {table, index.dim(load.getMemory(), 1)};
  }

  LogicalResult expand();

private:
  Value emitView(const RowRange &range) {
    return emitRowsInPlace(b, load.getMemory(), range);
  }
  Value toTensor(Value memory);
  /// The rows of a page behind those of one, of the same or a later page. If
  /// there is no such page, they are any rows of memory, and not read.
  RowRange getRowsBehind(const RowRange &page);
  /// Rows of scratch that are copies; null after an error.
  Value emitCopy();
  /// The loop of an operation that goes over the rows, if it can be cut there.
  std::optional<unsigned> getLoopOverRows(linalg::LinalgOp op);
  void applyToPages(linalg::LinalgOp op, unsigned loop);

  LoadRowsOp load;
  ImplicitLocOpBuilder b;
  IndexBuilder index{b};
  RowRange rows;
};
} // namespace

/// The dimension of an operand that a loop goes over.
static std::optional<unsigned> getDimOf(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

/// The part of a tile that one of its dimensions is cut to.
static Value slice(ImplicitLocOpBuilder &b, Value tile, unsigned dim,
                   Value from, Value count) {
  SmallVector<OpFoldResult> sizes = getExtents(b, tile),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = from;
  sizes[dim] = count;
  return tensor::ExtractSliceOp::create(b, tile, offsets, sizes, strides);
}

Value LoadedRows::toTensor(Value memory) {
  return bufferization::ToTensorOp::create(b, load.getTile().getType(), memory,
                                           /*restrict=*/true);
}

RowRange LoadedRows::getRowsBehind(const RowRange &page) {
  Value size = rows.map.pages.rows;
  // What is fetched while a page of few rows is read is not the next page.
  Value skipped = index.sub(index.ceilDiv(index.constant(kRowsAhead), size), 1);
  Value first =
      index.add(index.add(page.first, page.count), index.mul(skipped, size));
  return {rows.map, first, index.sub(size, index.rem(first, size))};
}

Value LoadedRows::emitCopy() {
  CPUScheduleAttr schedule = getEnclosingSchedule(load);
  if (!schedule) {
    load.emitOpError("expected a #varlen.cpu_schedule around it under ")
        << kScheduleAttrName
        << " where rows in pages are read by an operation that is not of "
           "linalg, or needs more than one page";
    return {};
  }
  Value scratch =
      emitAllocation(b, {schedule.getKvBlock(), innerSize(load.getMemory())},
                     elementOf(load.getMemory()));
  Value copy = emitRows(b, scratch, b.getIndexAttr(0),
                        getAsOpFoldResult(load.getValid()));
  ReadRowsOp::create(b, load.getMemory(), load.getRow(), load.getHead(),
                     load.getFirst(), index.constant(1), load.getValid(),
                     load.getBlockTable(), load.getOnePage(),
                     TileCopy{TileOrder::Rows, copy});
  return toTensor(copy);
}

std::optional<unsigned> LoadedRows::getLoopOverRows(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.hasIndexSemantics())
    return {};
  std::optional<unsigned> loop;
  for (OpOperand &operand : op->getOpOperands()) {
    if (operand.get() != load.getTile())
      continue;
    auto dim = dyn_cast<AffineDimExpr>(
        op.getMatchingIndexingMap(&operand).getResult(0));
    if (!dim || op.isDpsInit(&operand) ||
        loop.value_or(dim.getPosition()) != dim.getPosition())
      return {};
    loop = dim.getPosition();
  }
  auto isCut = [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    return !map.isFunctionOfDim(*loop) || getDimOf(map, *loop);
  };
  if (!llvm::all_of(op->getOpOperands(), isCut))
    return {};
  return loop;
}

void LoadedRows::applyToPages(linalg::LinalgOp op, unsigned loop) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  auto apply = [&](const RowRange &page, ValueRange inits) {
    Value from = index.sub(page.first, rows.first);
    Value tile = toTensor(
        FollowedByOp::create(b, emitView(page), emitView(getRowsBehind(page))));
    auto cut = [&](OpOperand &operand, Value value) {
      auto dim = getDimOf(op.getMatchingIndexingMap(&operand), loop);
      return dim ? slice(b, value, *dim, from, page.count) : value;
    };
    Values operands;
    for (OpOperand *input : op.getDpsInputOperands())
      operands.push_back(
          input->get() == load.getTile() ? tile : cut(*input, input->get()));
    for (auto [operand, init] : llvm::zip_equal(op.getDpsInitsMutable(), inits))
      operands.push_back(cut(operand, init));
    ValueRange parts = ValueRange(operands).take_back(inits.size());
    Values results(clone(b, op, parts.getTypes(), operands)->getResults());
    for (auto [result, init, part] : llvm::zip_equal(results, inits, parts))
      if (part != init) {
        auto place = part.getDefiningOp<tensor::ExtractSliceOp>();
        result = tensor::InsertSliceOp::create(
            b, result, init, place.getMixedOffsets(), place.getMixedSizes(),
            place.getMixedStrides());
      }
    return results;
  };
  ValueRange results = forEachPage(b, rows, op.getDpsInits(), apply);
  op->replaceAllUsesWith(results);
  op->erase();
}

LogicalResult LoadedRows::expand() {
  if (!load.getBlockTable() || load.getOnePage()) {
    load.replaceAllUsesWith(toTensor(emitView(rows)));
    load.erase();
    return success();
  }
  for (Operation *user :
       SetVector<Operation *>(load->user_begin(), load->user_end())) {
    auto dim = dyn_cast<tensor::DimOp>(user);
    if (dim && dim.getConstantIndex() == 0) {
      dim.replaceAllUsesWith(load.getValid());
      dim.erase();
    } else if (auto op = dyn_cast<linalg::LinalgOp>(user)) {
      if (std::optional<unsigned> loop = getLoopOverRows(op))
        applyToPages(op, *loop);
    }
  }
  if (!load.use_empty()) {
    Value copy = emitCopy();
    if (!copy)
      return failure();
    load.replaceAllUsesWith(copy);
  }
  load.erase();
  return success();
}

LogicalResult varlen::expandLoadedRows(LoadRowsOp load) {
  return LoadedRows(load).expand();
}

//===- VarlenChooseCopies.cpp - Which copy of a tile a product reads ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENCHOOSECOPIES
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// The order in which a product reads a factor: the left one by scalars (or
/// pairs of them), the right one by vectors of columns. Nothing if the product
/// is not one of rank-2 tiles.
static std::optional<TileOrder> getOrder(linalg::ContractOp op, unsigned factor,
                                         bool isPaired) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (AffineMap map : maps)
    if (map.getNumResults() != 2 || !map.isProjectedPermutation())
      return std::nullopt;
  if (factor == 0) {
    // Pairs along a row of the left factor are neighbours in it.
    bool isRowFirst = maps[0].getResult(0) == maps[2].getResult(0);
    return isPaired && !isRowFirst ? TileOrder::RowPairs : TileOrder::Rows;
  }
  bool isColumnLast = maps[1].getResult(1) == maps[2].getResult(1);
  if (isPaired)
    return isColumnLast ? TileOrder::RowPairs : TileOrder::ColumnPairs;
  return isColumnLast ? TileOrder::Rows : TileOrder::Columns;
}

namespace {
/// Replaces a tile of several copies by one for each order that is read.
class CopyChooser {
public:
  CopyChooser(ToTileOp tile, CPUScheduleAttr schedule)
      : tile(tile), schedule(schedule), b(tile.getLoc(), tile) {}

  LogicalResult run();

private:
  /// Lets all that reads `part`, the tile or a slice of it, read a copy.
  LogicalResult chooseFor(Value part);
  LogicalResult choose(linalg::ContractOp op, unsigned factor, Value part);
  /// `part` as it lies in memory in an order, or transposed if that is one of
  /// columns; null if it does not.
  Value read(Value part, TileOrder order);

  ToTileOp tile;
  CPUScheduleAttr schedule;
  ImplicitLocOpBuilder b;
  DenseMap<std::pair<Value, TileOrder>, Value> reads;
};
} // namespace

static bool isTransposed(TileOrder order) {
  return order == TileOrder::Columns || order == TileOrder::ColumnPairs;
}

Value CopyChooser::read(Value part, TileOrder order) {
  if (Value known = reads.lookup({part, order}))
    return known;
  if (auto slice = part.getDefiningOp<tensor::ExtractSliceOp>()) {
    Value source = read(slice.getSource(), order);
    if (!source)
      return {};
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(slice);
    SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                              sizes = slice.getMixedSizes();
    if (isTransposed(order)) {
      std::swap(offsets[0], offsets[1]);
      std::swap(sizes[0], sizes[1]);
    }
    return reads[{part, order}] = tensor::ExtractSliceOp::create(
               b, source, offsets, sizes, slice.getMixedStrides());
  }
  const auto copies = tile.getTileCopies();
  const auto *copy = llvm::find_if(
      copies, [&](const TileCopy &copy) { return copy.order == order; });
  if (copy == copies.end())
    return {};
  if (order == TileOrder::Rows || order == TileOrder::Columns)
    return reads[{part, order}] = bufferization::ToTensorOp::create(
               b, memref::getTensorTypeFromMemRefType(copy->memref.getType()),
               copy->memref, /*restrict=*/true);
  RankedTensorType type = tile.getTile().getType();
  if (order == TileOrder::ColumnPairs)
    type = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)},
                                 type.getElementType());
  return reads[{part, order}] = ToTileOp::create(
             b, type, {TileCopy{TileOrder::RowPairs, copy->memref}});
}

LogicalResult CopyChooser::choose(linalg::ContractOp op, unsigned factor,
                                  Value part) {
  Type right = getElementTypeOrSelf(op.getInputs()[1].getType());
  std::optional<TileOrder> order = getOrder(
      op, factor, schedule.getKv() == KVStorage::Pairs && right.isBF16());
  if (!order)
    return op.emitOpError("expected a product of rank-2 tiles");
  Value source = read(part, *order);
  if (!source)
    return op.emitOpError("expected ")
           << tile.getTile().getType() << " to lie in memory in "
           << stringifyTileOrder(*order) << " for this product";
  op->setOperand(factor, source);
  if (!isTransposed(*order))
    return success();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap map = maps[factor];
  maps[factor] =
      AffineMap::get(map.getNumDims(), 0, {map.getResult(1), map.getResult(0)},
                     map.getContext());
  op.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
  return success();
}

LogicalResult CopyChooser::run() {
  if (failed(chooseFor(tile.getTile())))
    return failure();
  tile.erase();
  return success();
}

LogicalResult CopyChooser::chooseFor(Value part) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : part.getUses())
    uses.push_back(&use);
  for (OpOperand *use : uses) {
    Operation *user = use->getOwner();
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user)) {
      if (failed(chooseFor(slice.getResult())))
        return failure();
      slice.erase();
      continue;
    }
    auto contract = dyn_cast<linalg::ContractOp>(user);
    if (contract && use->getOperandNumber() < 2) {
      if (failed(choose(contract, use->getOperandNumber(), part)))
        return failure();
      continue;
    }
    Value rows = read(part, TileOrder::Rows);
    if (!rows)
      return user->emitOpError("expected ")
             << tile.getTile().getType() << " to lie in memory in rows";
    use->set(rows);
  }
  return success();
}

namespace {
struct VarlenChooseCopies
    : varlen::impl::VarlenChooseCopiesBase<VarlenChooseCopies> {
  void runOnOperation() override {
    SmallVector<std::pair<ToTileOp, CPUScheduleAttr>> tiles;
    getOperation()->walk([&](ToTileOp tile) {
      if (CPUScheduleAttr schedule = getEnclosingSchedule(tile))
        tiles.emplace_back(tile, schedule);
    });
    for (auto [tile, schedule] : tiles) {
      if (failed(CopyChooser(tile, schedule).run()))
        return signalPassFailure();
      ++numTiles;
    }
  }
};
} // namespace

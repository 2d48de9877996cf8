//===- VarlenChooseCopies.cpp - Which copy of a tile a product reads ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EnclosingSchedule.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENCHOOSECOPIES
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
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
  LogicalResult choose(linalg::ContractOp op, unsigned factor);
  /// The tile as it lies in memory in an order, or transposed if that is one of
  /// columns; null if it does not.
  Value read(TileOrder order);

  ToTileOp tile;
  CPUScheduleAttr schedule;
  ImplicitLocOpBuilder b;
  DenseMap<TileOrder, Value> reads;
};
} // namespace

Value CopyChooser::read(TileOrder order) {
  Value &result = reads[order];
  if (result)
    return result;
  const auto copies = tile.getTileCopies();
  const auto *copy = llvm::find_if(
      copies, [&](const TileCopy &copy) { return copy.order == order; });
  if (copy == copies.end())
    return {};
  if (order == TileOrder::Rows || order == TileOrder::Columns)
    return result = bufferization::ToTensorOp::create(
               b, memref::getTensorTypeFromMemRefType(copy->memref.getType()),
               copy->memref, /*restrict=*/true);
  RankedTensorType type = tile.getTile().getType();
  if (order == TileOrder::ColumnPairs)
    type = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)},
                                 type.getElementType());
  return result = ToTileOp::create(
             b, type, {TileCopy{TileOrder::RowPairs, copy->memref}});
}

LogicalResult CopyChooser::choose(linalg::ContractOp op, unsigned factor) {
  Type right = getElementTypeOrSelf(op.getInputs()[1].getType());
  std::optional<TileOrder> order = getOrder(
      op, factor, schedule.getKv() == KVStorage::Pairs && right.isBF16());
  if (!order)
    return op.emitOpError("expected a product of rank-2 tiles");
  Value source = read(*order);
  if (!source)
    return op.emitOpError("expected ")
           << tile.getTile().getType() << " to lie in memory in "
           << stringifyTileOrder(*order) << " for this product";
  op->setOperand(factor, source);
  if (*order != TileOrder::Columns && *order != TileOrder::ColumnPairs)
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
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : tile->getUses())
    uses.push_back(&use);
  for (OpOperand *use : uses) {
    Operation *user = use->getOwner();
    auto contract = dyn_cast<linalg::ContractOp>(user);
    if (contract && use->getOperandNumber() < 2) {
      if (failed(choose(contract, use->getOperandNumber())))
        return failure();
      continue;
    }
    Value rows = read(TileOrder::Rows);
    if (!rows)
      return user->emitOpError("expected ")
             << tile.getTile().getType() << " to lie in memory in rows";
    use->set(rows);
  }
  tile.erase();
  return success();
}

/// What is stored to transposed memory as a transpose is stored as it is.
static void foldTransposes(bufferization::MaterializeInDestinationOp store) {
  auto tile = store.getSource().getDefiningOp<linalg::TransposeOp>();
  auto memory = store.getDest().getDefiningOp<memref::TransposeOp>();
  if (!tile || !memory ||
      AffineMap::getPermutationMap(tile.getPermutation(), store.getContext()) !=
          memory.getPermutation())
    return;
  store.getSourceMutable().assign(tile.getInput());
  store.getDestMutable().assign(memory.getIn());
  if (tile->use_empty())
    tile->erase();
}

namespace {
struct VarlenChooseCopies
    : varlen::impl::VarlenChooseCopiesBase<VarlenChooseCopies> {
  void runOnOperation() override {
    SmallVector<std::pair<ToTileOp, CPUScheduleAttr>> tiles;
    getOperation()->walk([&](Operation *op) {
      if (!isa<ToTileOp, bufferization::MaterializeInDestinationOp>(op))
        return;
      CPUScheduleAttr schedule = getEnclosingSchedule(op);
      if (!schedule)
        return;
      if (auto tile = dyn_cast<ToTileOp>(op))
        tiles.emplace_back(tile, schedule);
      else
        foldTransposes(cast<bufferization::MaterializeInDestinationOp>(op));
    });
    for (auto [tile, schedule] : tiles) {
      if (failed(CopyChooser(tile, schedule).run()))
        return signalPassFailure();
      ++numTiles;
    }
  }
};
} // namespace

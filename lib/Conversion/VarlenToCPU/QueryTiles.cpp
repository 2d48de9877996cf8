//===- QueryTiles.cpp - The parts of a loop over tiles of queries ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryTiles.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class QueryTilesFinder {
public:
  QueryTilesFinder(ForTilesOp tiles, CPUScheduleAttr schedule)
      : schedule(schedule) {
    found.tiles = tiles;
  }

  FailureOr<QueryTiles> find();

private:
  LogicalResult checkSizes();
  /// What stands in the bodies of the two loops.
  LogicalResult findTileOps();
  LogicalResult findBlockOps();
  LogicalResult checkStep();
  /// That the values of the loop over blocks can stay where they are.
  LogicalResult checkState();
  LogicalResult checkFinish();
  LogicalResult checkWrite(WriteOp write);

  CPUScheduleAttr schedule;
  QueryTiles found;
  SmallVector<WriteOp> writes;
};
} // namespace

static int64_t memoryRank(Value memory) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  return type ? type.getRank() : 0;
}

LogicalResult varlen::findFactor(ReadOp &read, Operation *step, Value factor,
                                 StringRef name, Value tile,
                                 const FactorForm &form) {
  read = factor.getDefiningOp<ReadOp>();
  if (!read || read.getTile() != tile || !read.isOfVectors())
    return step->emitOpError("expected ")
           << name << " to be rows that are read at the "
           << (isa<ForBlocksOp>(tile.getParentBlock()->getParentOp()) ? "block"
                                                                      : "tile");
  auto source = cast<MemRefType>(read.getSource().getType());
  auto type = cast<RankedTensorType>(factor.getType());
  bool isPaired = form.schedule.getKv() == KVStorage::Pairs;
  if (isPaired && !source.getElementType().isBF16())
    return read.emitOpError("expected rows of bf16 for kv = pairs, got ")
           << source;
  if (isPaired && form.pairsInRows && source.getDimSize(2) % 2 != 0)
    return read.emitOpError("expected an even number of columns for kv = "
                            "pairs, got ")
           << source;
  Type element = isPaired ? source.getElementType() : form.compute;
  int64_t columns = llvm::alignTo(source.getDimSize(2), form.columnMultiple);
  if (type.getElementType() != element || type.getDimSize(1) != columns)
    return read.emitOpError("expected rows of ")
           << columns << " x " << element << ", got " << type;
  if (read.getOtherwise() && read.getOtherwise()->front() != 0)
    return read.emitOpError("expected 0 for rows that are not in use, got ")
           << read.getOtherwise()->front();
  return success();
}

LogicalResult varlen::checkTables(Operation *step, ForTilesOp tiles) {
  for (Value operand : step->getOperands())
    if (isa<MemRefType>(operand.getType()) &&
        tiles->isAncestor(operand.getParentBlock()->getParentOp()))
      return step->emitOpError(
          "expected tables that are defined outside of the "
          "loop over tiles");
  return success();
}

LogicalResult QueryTilesFinder::checkSizes() {
  TileType tile = found.tiles.getTileType(),
           block = found.blocks.getBlockType();
  if (found.blocks.getTile() != found.tiles.getTile())
    return found.blocks.emitOpError("expected blocks that meet the tile of "
                                    "their loop");
  if (tile.getAxis() != Axis::Queries)
    return found.tiles.emitOpError("expected tiles of queries on a CPU, got ")
           << tile;
  if (tile.getSize() != schedule.getBlockM())
    return found.tiles.emitOpError("expected tiles of ")
           << schedule.getBlockM() << " queries, as many as the panels of "
           << "the schedule have, got " << tile.getSize();
  if (block.getSize() != schedule.getKvBlock())
    return found.blocks.emitOpError("expected blocks of ")
           << schedule.getKvBlock() << " keys, the kv_block of the schedule, "
           << "got " << block.getSize();
  return success();
}

LogicalResult QueryTilesFinder::findTileOps() {
  for (Operation &op : *found.tiles.getBody()) {
    if (auto blocks = dyn_cast<ForBlocksOp>(op)) {
      if (found.blocks)
        return blocks.emitOpError(
            "expected one loop over blocks for each tile");
      found.blocks = blocks;
    } else if (auto finish = dyn_cast<OnlineFinishOp>(op)) {
      if (found.finish)
        return finish.emitOpError("expected one end of the state of a tile");
      found.finish = finish;
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      writes.push_back(write);
    } else if (!isa<ReadOp, YieldOp, tensor::EmptyOp, linalg::FillOp>(op) &&
               !op.hasTrait<OpTrait::ConstantLike>()) {
      return op.emitOpError("is not known to tile loops on a CPU");
    }
  }
  if (!found.blocks)
    return found.tiles.emitOpError("expected a loop over blocks for each tile, "
                                   "got none");
  return success();
}

LogicalResult QueryTilesFinder::findBlockOps() {
  for (Operation &op : *found.blocks.getBody()) {
    if (auto step = dyn_cast<OnlineAttnOp>(op); step && !found.step)
      found.step = step;
    else if (!isa<ReadOp, YieldOp>(op))
      return op.emitOpError("expected reads and one varlen.online_attn in a "
                            "loop over blocks on a CPU");
  }
  if (!found.step)
    return found.blocks.emitOpError("expected a varlen.online_attn, got none");
  return success();
}

LogicalResult QueryTilesFinder::checkStep() {
  OnlineAttnOp step = found.step;
  Value tile = found.tiles.getTile(), block = found.blocks.getBlock();
  if (step.getQueries() != tile || step.getKeys() != block)
    return step.emitOpError("expected a step at the tile and the block of its "
                            "loops");
  if (step.getOrientation() != Orientation::KQ)
    return step.emitOpError("expected orientation kq on a CPU, got ")
           << stringifyOrientation(step.getOrientation());
  FactorForm form{schedule, step.getM().getType().getElementType(),
                  /*columnMultiple=*/1};
  // Values have their pairs across rows.
  FactorForm valueForm = form;
  valueForm.pairsInRows = false;
  if (failed(findFactor(found.q, step, step.getQ(), "q", tile, form)) ||
      failed(findFactor(found.k, step, step.getK(), "k", block, form)) ||
      failed(findFactor(found.v, step, step.getV(), "v", block, valueForm)))
    return failure();
  for (Value capture : step.getCaptures()) {
    auto read = capture.getDefiningOp<ReadOp>();
    if (!read || read.getTile() != tile || memoryRank(read.getSource()) == 0)
      return step.emitOpError("expected captures that are read at the tile, "
                              "from memory of an attention");
    found.captures.push_back(read);
  }
  return checkTables(step, found.tiles);
}

/// The number that a tile is all over, if it is one.
static std::optional<double> getNumber(Value tile) {
  Value number = tile;
  if (auto fill = tile.getDefiningOp<linalg::FillOp>())
    number = fill.getInputs().front();
  FloatAttr scalar;
  if (matchPattern(number, m_Constant(&scalar)))
    return scalar.getValueAsDouble();
  DenseFPElementsAttr elements;
  if (matchPattern(number, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<FloatAttr>().getValueAsDouble();
  return std::nullopt;
}

LogicalResult QueryTilesFinder::checkState() {
  ForBlocksOp blocks = found.blocks;
  if (ValueRange(blocks.getIterArgs()) !=
          ValueRange(found.step.getDpsInits()) ||
      ValueRange(blocks.getYielded()) != ValueRange(found.step.getResults()))
    return blocks.emitOpError("expected the step to take the iter_args as they "
                              "are, and its results to be yielded");
  for (Value init : blocks.getInits()) {
    std::optional<double> number = getNumber(init);
    if (!number)
      return blocks.emitOpError("expected inits that are one number all over");
    found.inits.push_back(*number);
  }
  return success();
}

LogicalResult QueryTilesFinder::checkFinish() {
  auto results = found.blocks.getResults();
  OnlineFinishOp finish = found.finish;
  if (!finish || finish.getAcc() != results[0] || finish.getM() != results[1] ||
      finish.getL() != results[2] ||
      !llvm::all_of(results, [](Value result) { return result.hasOneUse(); }))
    return found.blocks.emitOpError("expected one varlen.online_finish to take "
                                    "all results, in their order");
  if (finish.getSink()) {
    found.sink = finish.getSink().getDefiningOp<ReadOp>();
    if (!found.sink || found.sink.getTile() != found.tiles.getTile() ||
        memoryRank(found.sink.getSource()) == 0)
      return finish.emitOpError(
          "expected a sink that is read at the tile, from "
          "memory of an attention");
  }
  for (WriteOp write : writes)
    if (failed(checkWrite(write)))
      return failure();
  return success();
}

LogicalResult QueryTilesFinder::checkWrite(WriteOp write) {
  if (write.getTile() != found.tiles.getTile())
    return write.emitOpError("expected a write at the tile of its loop");
  Value value = write.getValues().front();
  int64_t rank = memoryRank(write.getDestination());
  bool isOut = value == found.finish.getOut() && rank == 3;
  bool isLse = value == found.finish.getLse() && rank == 2;
  if (!isOut && !isLse)
    return write.emitOpError("expected out to memory of T x H x D, or lse to "
                             "memory of H x T, got ")
           << value.getType() << " to " << write.getDestination().getType();
  if (write.getFactor())
    return write.emitOpError("expected no 'times' on a CPU");
  int64_t columns = cast<RankedTensorType>(value.getType()).getDimSize(1);
  int64_t extent =
      cast<MemRefType>(write.getDestination().getType()).getShape().back();
  if (isOut && columns != extent)
    return write.emitOpError("expected rows of ")
           << extent << " columns, as memory has them, got " << columns;
  return success();
}

FailureOr<QueryTiles> QueryTilesFinder::find() {
  if (failed(findTileOps()) || failed(checkSizes()) || failed(findBlockOps()) ||
      failed(checkStep()) || failed(checkState()) || failed(checkFinish()))
    return failure();
  return found;
}

FailureOr<QueryTiles> varlen::findQueryTiles(ForTilesOp tiles,
                                             CPUScheduleAttr schedule) {
  return QueryTilesFinder(tiles, schedule).find();
}

//===- QueryLoop.cpp - A loop over tiles of queries -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryLoop.h"

#include "CPUTileMemory.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// `factor` is what a read at `tile` returns, or an error at the step.
static LogicalResult verifyFactor(StepOpInterface step,
                                  const StepFactor &factor,
                                  const FactorForm &form) {
  Value tile = factor.ofQueries ? step.getQueries() : step.getKeys();
  auto read = factor.operand->get().getDefiningOp<ReadOp>();
  if (!read || read.getTile() != tile || !read.isOfVectors())
    return step->emitOpError("expected ")
           << factor.name << " to be rows that are read at the "
           << (isa<ForBlocksOp>(tile.getParentBlock()->getParentOp()) ? "block"
                                                                      : "tile");
  auto source = memoryType(read.getSource());
  auto type = cast<RankedTensorType>(factor.operand->get().getType());
  bool isPaired = form.schedule.getKv() == KVStorage::Pairs;
  if (isPaired && !source.getElementType().isBF16())
    return read.emitOpError("expected rows of bf16 for kv = pairs, got ")
           << source;
  // Pairs that are summed over rows are made of two of them.
  if (isPaired && factor.alongColumns && source.getDimSize(2) % 2 != 0)
    return read.emitOpError("expected an even number of columns for kv = "
                            "pairs, got ")
           << source;
  Type element = isPaired ? source.getElementType() : step.getComputeType();
  int64_t columns = llvm::alignTo(source.getDimSize(2), form.columnMultiple);
  if (type.getElementType() != element || type.getDimSize(1) != columns)
    return read.emitOpError("expected rows of ")
           << columns << " x " << element << ", got " << type;
  if (read.getOtherwise() && read.getOtherwise()->front() != 0)
    return read.emitOpError("expected 0 for rows that are not in use, got ")
           << read.getOtherwise()->front();
  return success();
}

LogicalResult varlen::verifyFactors(StepOpInterface step,
                                    const FactorForm &form) {
  if (step.getOrientation() != Orientation::KQ)
    return step->emitOpError("expected orientation kq on a CPU, got ")
           << stringifyOrientation(step.getOrientation());
  for (const StepFactor &factor : step.getFactors())
    if (failed(verifyFactor(step, factor, form)))
      return failure();
  return success();
}

LogicalResult varlen::verifyTables(StepOpInterface step, ForTilesOp tiles) {
  for (Value operand : step->getOperands())
    if (isa<MemRefType>(operand.getType()) &&
        tiles->isAncestor(operand.getParentBlock()->getParentOp()))
      return step->emitOpError("expected tables that are defined outside of "
                               "the loop over tiles");
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {
class QueryLoopVerifier {
public:
  QueryLoopVerifier(ForTilesOp tiles, CPUScheduleAttr schedule)
      : schedule(schedule) {
    loop.tiles = tiles;
  }

  FailureOr<QueryLoop> verify();

private:
  /// The dimension of a value that queries are, if it is computed, or read as
  /// numbers, at the tile: it is in scratch then.
  std::optional<unsigned> getQueriesDim(Value value);
  LogicalResult verifyOp(ForBlocksOp blocks);
  LogicalResult verifyOp(ReadOp read);
  LogicalResult verifyOp(RowDotOp dot);
  LogicalResult verifyOp(QueryTileOpInterface op);
  LogicalResult verifyOp(WriteOp write);
  LogicalResult verifyStep();
  LogicalResult verifyState();

  CPUScheduleAttr schedule;
  QueryLoop loop;
};
} // namespace

std::optional<unsigned> QueryLoopVerifier::getQueriesDim(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.tiles.getBody())
    return std::nullopt;
  if (auto computed = dyn_cast<QueryTileOpInterface>(op))
    return computed.getQueriesDim(value);
  // Steps have orientation kq.
  if (isa<ForBlocksOp>(op))
    return 1;
  auto read = dyn_cast<ReadOp>(op);
  if (isa<RowDotOp>(op) || (read && !read.isOfVectors()))
    return cast<RankedTensorType>(value.getType()).getDimSize(0) == 1 ? 1 : 0;
  return std::nullopt;
}

LogicalResult QueryLoopVerifier::verifyOp(ForBlocksOp blocks) {
  TileType tile = loop.tiles.getTileType(), block = blocks.getBlockType();
  if (blocks.getTile() != loop.tiles.getTile())
    return blocks.emitOpError("expected blocks that meet the tile of their "
                              "loop");
  if (tile.getSize() != schedule.getBlockM())
    return loop.tiles.emitOpError("expected tiles of ")
           << schedule.getBlockM() << " queries, as many as the panels of "
           << "the schedule have, got " << tile.getSize();
  if (block.getSize() != schedule.getKvBlock())
    return blocks.emitOpError("expected blocks of ")
           << schedule.getKvBlock() << " keys, the kv_block of the schedule, "
           << "got " << block.getSize();
  for (Operation &op : *blocks.getBody()) {
    // States of a tile that is cut have to become one.
    if (isa<OnlineAttnOp>(op) && !loop.step)
      loop.step = cast<StepOpInterface>(op);
    else if (!isa<ReadOp, YieldOp>(op))
      return op.emitOpError("expected reads and one varlen.online_attn in a "
                            "loop over blocks on a CPU");
  }
  if (!loop.step)
    return blocks.emitOpError("expected a varlen.online_attn, got none");
  return failure(failed(verifyStep()) || failed(verifyState()));
}

LogicalResult QueryLoopVerifier::verifyStep() {
  StepOpInterface step = loop.step;
  if (step.getQueries() != loop.tiles.getTile() ||
      step.getKeys() != loop.blocks.getBlock())
    return step->emitOpError("expected a step at the tile and the block of its "
                             "loops");
  if (failed(verifyFactors(step, {schedule, /*columnMultiple=*/1})))
    return failure();
  // Few queries read keys and values as they are in memory.
  auto elementOf = [](const StepFactor &factor) {
    auto read = factor.operand->get().getDefiningOp<ReadOp>();
    return memoryType(read.getSource()).getElementType();
  };
  for (const StepFactor &factor : step.getFactors())
    if (Type first = elementOf(step.getFactors().front()),
        other = elementOf(factor);
        first != other)
      return step->emitOpError("expected rows of one element type in memory, "
                               "got ")
             << first << " and, of " << factor.name << ", " << other;
  for (Value capture : step.getCaptures())
    if (!getQueriesDim(capture))
      return step->emitOpError("expected captures that are numbers of the "
                               "tile, got ")
             << capture.getType();
  return verifyTables(step, loop.tiles);
}

LogicalResult QueryLoopVerifier::verifyState() {
  ForBlocksOp blocks = loop.blocks;
  auto step = cast<DestinationStyleOpInterface>(loop.step.getOperation());
  if (ValueRange(blocks.getIterArgs()) != ValueRange(step.getDpsInits()) ||
      ValueRange(blocks.getYielded()) != ValueRange(step->getResults()))
    return blocks.emitOpError("expected the step to take the iter_args as they "
                              "are, and its results to be yielded");
  // What each part of a tile that is cut begins with.
  auto begin = blocks.getInits().front().getDefiningOp<OnlineInitOp>();
  if (!begin || blocks.getInits() != begin->getResults())
    return blocks.emitOpError("expected a state that begins with "
                              "varlen.online_init");
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(ReadOp read) {
  if (read.getTile() != loop.tiles.getTile())
    return read.emitOpError("expected a read at the tile of its loop");
  if (!read.isOfVectors())
    return success();
  for (Operation *user : read->getUsers())
    if (!isa<StepOpInterface, RowDotOp>(user))
      return user->emitOpError(
          "expected rows that are read to be operands of a "
          "step or of varlen.row_dot on a CPU");
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(RowDotOp dot) {
  SmallVector<MemRefType, 2> types;
  for (Value operand : dot->getOperands()) {
    auto read = operand.getDefiningOp<ReadOp>();
    if (!read || !read.isOfVectors())
      return dot.emitOpError("expected rows that are read at the tile, got ")
             << operand.getType();
    types.push_back(memoryType(read.getSource()));
  }
  if (types[0].getDimSize(2) != types[1].getDimSize(2))
    return dot.emitOpError("expected rows of one head_dim, got ")
           << types[0] << " and " << types[1];
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(QueryTileOpInterface op) {
  for (Value operand : op->getOperands()) {
    std::optional<unsigned> queries = getQueriesDim(operand);
    if (!queries)
      return op->emitOpError("expected operands that are numbers of the tile, "
                             "or computed of it, got ")
             << operand.getType();
    if (*queries != op.getQueriesDim(operand))
      return op->emitOpError("expected queries to be the ")
             << (*queries == 0 ? "columns" : "rows") << " of "
             << operand.getType() << ", not the "
             << (*queries == 0 ? "rows" : "columns");
  }
  return success();
}

LogicalResult QueryLoopVerifier::verifyOp(WriteOp write) {
  if (write.getTile() != loop.tiles.getTile())
    return write.emitOpError("expected a write at the tile of its loop");
  auto type = dyn_cast<MemRefType>(write.getDestination().getType());
  bool isOfVectors = type && type.getRank() == 3;
  for (Value value : write.getValues()) {
    std::optional<unsigned> queries = getQueriesDim(value);
    if (!queries || (isOfVectors && *queries != 0))
      return write.emitOpError("expected numbers of the tile, or rows that are "
                               "computed of it, got ")
             << value.getType();
  }
  if (write.getFactor())
    return write.emitOpError("expected no 'times' on a CPU");
  if (!isOfVectors)
    return success();
  int64_t columns =
      cast<RankedTensorType>(write.getValues().front().getType()).getDimSize(1);
  if (columns != type.getDimSize(2))
    return write.emitOpError("expected rows of ")
           << type.getDimSize(2) << " columns, as memory has them, got "
           << columns;
  return success();
}

FailureOr<QueryLoop> QueryLoopVerifier::verify() {
  for (auto blocks : loop.tiles.getBody()->getOps<ForBlocksOp>()) {
    if (loop.blocks)
      return blocks.emitOpError("expected one loop over blocks for each tile");
    loop.blocks = blocks;
  }
  for (Operation &op : *loop.tiles.getBody()) {
    LogicalResult result =
        TypeSwitch<Operation *, LogicalResult>(&op)
            .Case<ForBlocksOp, ReadOp, RowDotOp, QueryTileOpInterface, WriteOp>(
                [&](auto known) { return verifyOp(known); })
            .Case<YieldOp, OnlineInitOp>([](Operation *) { return success(); })
            .Default([](Operation *other) -> LogicalResult {
              if (other->hasTrait<OpTrait::ConstantLike>())
                return success();
              return other->emitOpError("is not known to tile loops on a CPU");
            });
    if (failed(result))
      return failure();
  }
  return loop;
}

FailureOr<QueryLoop> varlen::verifyQueryLoop(ForTilesOp tiles,
                                             CPUScheduleAttr schedule) {
  if (tiles.getTileType().getAxis() != Axis::Queries)
    return tiles.emitOpError("expected tiles of queries on a CPU, got ")
           << tiles.getTileType();
  return QueryLoopVerifier(tiles, schedule).verify();
}

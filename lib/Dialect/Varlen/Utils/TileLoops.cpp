//===- TileLoops.cpp - What conversions ask of tile loops -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

using namespace mlir;
using namespace mlir::varlen;

/// The rank of memory, 0 of scratch.
static int64_t getRank(Value memory) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  return type ? type.getRank() : 0;
}

/// The memory of that rank that a value is read from at `tile`; null, with an
/// error, if it is something else.
static Value findSource(Value value, Value tile, int64_t rank,
                        Operation *user) {
  auto read = value.getDefiningOp<ReadOp>();
  if (read && read.getTile() == tile && getRank(read.getSource()) == rank)
    return read.getSource();
  user->emitOpError("expected operands that are read at the tile, from the "
                    "memory of an attention, got ")
      << value.getType();
  return {};
}

/// The one write at `tile` of all results of `op`; null, with an error, if
/// there is something else.
static WriteOp findWrite(Operation *op, Value tile) {
  WriteOp write;
  for (Operation *user : op->getUsers()) {
    auto next = dyn_cast<WriteOp>(user);
    if (!next || (write && next != write) || next.getTile() != tile ||
        next.getFactor() || ValueRange(next.getValues()) != op->getResults()) {
      op->emitOpError("expected one write of all results at the tile");
      return {};
    }
    write = next;
  }
  if (!write)
    op->emitOpError("expected a write of its results, got none");
  return write;
}

ReadOp varlen::findStatisticsRead(Value lse, Value delta, Value tile) {
  auto read = lse.getDefiningOp<ReadOp>();
  if (!read || read.getTile() != tile || getRank(read.getSource()) != 0 ||
      ValueRange(read.getValues()) != ValueRange({lse, delta}))
    return {};
  return read;
}

FailureOr<StatisticsLoop> varlen::findStatistics(ForTilesOp loop) {
  StatisticsLoop found;
  found.op = *loop.getBody()->getOps<OnlineStatisticsOp>().begin();
  found.write = findWrite(found.op, loop.getTile());
  if (!found.write)
    return failure();
  std::tuple<Value *, Value, int64_t> operands[] = {
      {&found.dout, found.op.getDout(), 3},
      {&found.out, found.op.getOut(), 3},
      {&found.lse, found.op.getLse(), 2},
      {&found.dlse, found.op.getDlse(), 2}};
  for (auto [memory, value, rank] : operands)
    if (value && !(*memory = findSource(value, loop.getTile(), rank, found.op)))
      return failure();
  auto columns = [](Value memory) {
    return cast<MemRefType>(memory.getType()).getDimSize(2);
  };
  if (columns(found.dout) != columns(found.out))
    return found.op.emitOpError("expected dout and out of one head_dim, got ")
           << found.dout.getType() << " and " << found.out.getType();
  if (getRank(found.write.getDestination()) != 0)
    return found.write.emitOpError("expected statistics to go to varlen.rows, "
                                   "got ")
           << found.write.getDestination().getType();
  return found;
}

FailureOr<SinkGradLoop> varlen::findSinkGrad(ForTilesOp loop) {
  SinkGradLoop found;
  found.op = *loop.getBody()->getOps<OnlineSinkGradOp>().begin();
  WriteOp write = findWrite(found.op, loop.getTile());
  found.sinks =
      findSource(found.op.getSink(), loop.getTile(), /*rank=*/1, found.op);
  found.rows =
      findSource(found.op.getLse(), loop.getTile(), /*rank=*/0, found.op);
  if (!write || !found.sinks || !found.rows)
    return failure();
  found.gradients = write.getDestination();
  if (!findStatisticsRead(found.op.getLse(), found.op.getDelta(),
                          loop.getTile()))
    return found.op.emitOpError("expected lse and delta of one varlen.rows");
  return found;
}

/// That scratch that is read and written in a loop is of its batch.
static LogicalResult verifyScratch(ForTilesOp loop) {
  WalkResult result = loop.walk([&](Operation *op) {
    if (!isa<ReadOp, WriteOp>(op))
      return WalkResult::advance();
    for (Value memory : op->getOperands()) {
      if (!isa<RowsType>(memory.getType()))
        continue;
      auto rows = memory.getDefiningOp<RowsOp>();
      if (rows && rows.getBatch() == loop.getBatch())
        continue;
      op->emitOpError("expected varlen.rows of the batch of its loop");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static FailureOr<BatchLoops> findLoops(BatchOp batch) {
  BatchLoops found;
  found.batch = batch;
  for (Operation *user : batch->getUsers()) {
    if (user->getBlock() != batch->getBlock())
      return user->emitOpError("expected to be in the block of its batch");
    if (auto loop = dyn_cast<ForTilesOp>(user))
      found.loops.push_back(loop);
    else
      found.rows.push_back(cast<RowsOp>(user));
  }
  auto isBefore = [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
  };
  llvm::sort(found.loops, isBefore);
  llvm::sort(found.rows, isBefore);
  for (ForTilesOp loop : found.loops)
    if (failed(verifyScratch(loop)))
      return failure();
  return found;
}

static FailureOr<SmallVector<BatchLoops>> findTileLoops(Operation *root) {
  SmallVector<BatchLoops> batches;
  WalkResult result = root->walk([&](Operation *op) {
    if (auto loop = dyn_cast<ForTilesOp>(op); loop && !loop.getBatchOp()) {
      loop.emitOpError("expected a batch that a varlen.batch makes");
      return WalkResult::interrupt();
    }
    auto batch = dyn_cast<BatchOp>(op);
    if (!batch)
      return WalkResult::advance();
    FailureOr<BatchLoops> found = findLoops(batch);
    if (failed(found))
      return WalkResult::interrupt();
    batches.push_back(std::move(*found));
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return batches;
}

static void erase(const BatchLoops &found, RewriterBase &rewriter) {
  for (ForTilesOp loop : found.loops)
    rewriter.eraseOp(loop);
  for (RowsOp op : found.rows) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      rewriter.eraseOp(user);
    rewriter.eraseOp(op);
  }
  rewriter.eraseOp(found.batch);
}

FailureOr<unsigned> varlen::convertTileLoops(
    Operation *root,
    function_ref<LogicalResult(const BatchLoops &, OpBuilder &)> convert) {
  FailureOr<SmallVector<BatchLoops>> batches = findTileLoops(root);
  if (failed(batches))
    return failure();
  IRRewriter rewriter(root->getContext());
  unsigned count = 0;
  for (const BatchLoops &batch : *batches) {
    if (failed(convert(batch, rewriter)))
      return failure();
    count += batch.loops.size();
    erase(batch, rewriter);
  }
  return count;
}

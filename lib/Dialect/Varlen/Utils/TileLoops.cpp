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

static FailureOr<SinkGrad> findSinkGrad(OnlineSinkGradOp op, ForTilesOp loop) {
  auto read = op.getTerms().getDefiningOp<ReadOp>();
  if (!read || read.getTile() != loop.getTile() ||
      !isa<RowsType>(read.getSource().getType()))
    return op.emitOpError("expected terms that are read from varlen.rows at "
                          "the tile");
  auto write =
      op->hasOneUse() ? dyn_cast<WriteOp>(*op->user_begin()) : WriteOp();
  if (!write || write.getTile() != loop.getTile() || write.getFactor())
    return op.emitOpError("expected one write of its result at the tile");
  return SinkGrad{op, read.getSource(), write.getDestination()};
}

FailureOr<HeadSums> varlen::findHeadSums(ForTilesOp loop) {
  HeadSums found;
  for (Operation &op : *loop.getBody()) {
    if (auto sum = dyn_cast<SumRowsOp>(op)) {
      found.tables.push_back(sum);
    } else if (auto sink = dyn_cast<OnlineSinkGradOp>(op)) {
      if (found.sink.op)
        return sink.emitOpError("expected one varlen.online_sink_grad in a "
                                "loop over heads, got another");
      FailureOr<SinkGrad> parts = findSinkGrad(sink, loop);
      if (failed(parts))
        return failure();
      found.sink = *parts;
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      if (!write.getValues().front().getDefiningOp<OnlineSinkGradOp>())
        return write.emitOpError("expected a write of what "
                                 "varlen.online_sink_grad returns in a loop "
                                 "over heads");
    } else if (!isa<ReadOp, YieldOp>(op)) {
      return op.emitOpError("is not known to loops over heads");
    }
  }
  if (!found.sink.op && found.tables.empty())
    return loop.emitOpError("expected varlen.online_sink_grad or "
                            "varlen.sum_rows in a loop over heads");
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

SmallVector<OpOperand *> varlen::getNumbers(StepOpInterface step) {
  SmallVector<StepFactor> factors = step.getFactors();
  SmallVector<OpOperand *> numbers;
  for (OpOperand &operand : step->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) &&
        !step.isDpsInit(&operand) &&
        llvm::none_of(factors, [&](const StepFactor &factor) {
          return factor.operand == &operand;
        }))
      numbers.push_back(&operand);
  return numbers;
}

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

FailureOr<SumRowsOp> varlen::findHeadSum(ForTilesOp loop) {
  auto sum = dyn_cast<SumRowsOp>(loop.getBody()->front());
  if (sum && isa<YieldOp>(sum->getNextNode()))
    return sum;
  return loop.emitOpError("expected one varlen.sum_rows, and nothing else, in "
                          "a loop over heads");
}

/// That scratch that is used in a loop is of its batch.
static LogicalResult verifyScratch(ForTilesOp loop) {
  WalkResult result = loop.walk([&](Operation *op) {
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
    else if (auto rows = dyn_cast<RowsOp>(user))
      found.rows.push_back(rows);
    else
      return user->emitOpError("expected varlen.for_tiles and varlen.rows to "
                               "be all that uses a batch");
  }
  for (RowsOp rows : found.rows)
    for (Operation *user : rows->getUsers())
      if (!isa<FreeRowsOp>(user) && !user->getParentOfType<ForTilesOp>())
        return user->emitOpError("expected varlen.free_rows, and operations in "
                                 "a varlen.for_tiles, to be all that uses "
                                 "varlen.rows");
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
  // What reads entries of cu_seqlens may be left.
  if (found.batch->use_empty())
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
  SmallVector<OpOperand *> ofKeys = step.getKeyNumbers(), numbers;
  for (OpOperand &operand : step->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) &&
        !step.isDpsInit(&operand) && !llvm::is_contained(ofKeys, &operand) &&
        llvm::none_of(factors, [&](const StepFactor &factor) {
          return factor.operand == &operand;
        }))
      numbers.push_back(&operand);
  return numbers;
}

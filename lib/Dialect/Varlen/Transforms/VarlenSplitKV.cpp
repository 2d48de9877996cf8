//===- VarlenSplitKV.cpp - Blocks of a tile in parts ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENSPLITKV
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// The parts in which `loop` is to visit its blocks: none if it is in one
/// already.
static PartSizes getPartSizes(ForBlocksOp loop) {
  auto tiles = dyn_cast<ForTilesOp>(loop->getParentOp());
  if (!tiles || tiles.getTileType().getAxis() != Axis::Queries)
    return {};
  auto schedule =
      tiles->getAttrOfType<ScheduleAttrInterface>(kScheduleAttrName);
  return schedule ? schedule.getPartSizes() : PartSizes();
}

static LogicalResult splitBlocks(ForBlocksOp loop, PatternRewriter &rewriter) {
  PartSizes sizes = getPartSizes(loop);
  StateInitOpInterface init = loop.getBeginning();
  StepOpInterface step = loop.getStateStep();
  if (!sizes.few || !init || !step)
    return failure();
  // Its operands are known once there is a region for it.
  OpBuilder unplaced(loop.getContext());
  ValueRange like = step->getResults();
  Operation *merge = step.createMerge(unplaced, like, like);
  if (!merge)
    return failure();
  auto parts = ForPartsOp::create(rewriter, loop.getLoc(), loop.getTile(),
                                  sizes, loop.getResultTypes());
  rewriter.replaceAllUsesWith(loop.getResults(), parts.getResults());
  rewriter.setInsertionPointToStart(parts.getBody());
  Operation *begin = rewriter.clone(*init);
  auto yield = YieldOp::create(rewriter, loop.getLoc(), loop.getResults());
  rewriter.moveOpBefore(loop, yield);
  rewriter.modifyOpInPlace(loop, [&] {
    loop.getTileMutable().assign(parts.getPart());
    loop.getInitsMutable().assign(begin->getResults());
  });
  rewriter.setInsertionPointToStart(parts.getMergeBody());
  merge->setOperands(parts.getMergeBody()->getArguments());
  rewriter.insert(merge);
  YieldOp::create(rewriter, merge->getLoc(), merge->getResults());
  if (init->use_empty())
    rewriter.eraseOp(init);
  return success();
}

namespace {
struct VarlenSplitKV : varlen::impl::VarlenSplitKVBase<VarlenSplitKV> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(splitBlocks);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation()->walk([&](ForPartsOp) { ++numSplit; });
  }
};
} // namespace

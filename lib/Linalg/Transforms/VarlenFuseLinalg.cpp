//===- VarlenFuseLinalg.cpp - Few operations for few kernels --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WideSum.h"
#include "varlen/Linalg/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENFUSELINALG
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Operands of one kernel: as many descriptors as its parameters have room for.
static constexpr unsigned kMaxOperands = 16;

/// Whether nothing is computed twice, or kept by anybody, if the producer of
/// the operand is computed where it is read.
static bool isFused(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  if (!producer || !consumer || linalg::isaContractionOpInterface(consumer) ||
      !consumer.getMatchingIndexingMap(operand).isPermutation() ||
      producer->getNumOperands() + consumer->getNumOperands() > kMaxOperands)
    return false;
  return llvm::all_of(producer->getUsers(), [&](Operation *user) {
    return user == consumer || isa<tensor::DimOp>(user);
  });
}

/// A fill of what nothing is read for.
static LogicalResult makeFill(linalg::GenericOp op, PatternRewriter &rewriter) {
  // A body may have checks, too.
  if (op->getNumOperands() != 1 || !op.hasPureTensorSemantics() ||
      !op.isAllParallelLoops() ||
      !op.getIndexingMapsArray().front().isIdentity() ||
      !llvm::all_of(*op.getBody(), [](Operation &inner) {
        return isMemoryEffectFree(&inner);
      }))
    return rewriter.notifyMatchFailure(op, "reads something");
  Value number = op.getBody()->getTerminator()->getOperand(0);
  Operation *source = number.getDefiningOp();
  if (number.getParentRegion() == &op.getRegion()) {
    if (!source || !source->hasTrait<OpTrait::ConstantLike>())
      return rewriter.notifyMatchFailure(op, "no number");
    rewriter.moveOpBefore(source, op);
  }
  rewriter.replaceOpWithNewOp<linalg::FillOp>(op, number,
                                              op.getDpsInits().front());
  return success();
}

namespace {
struct VarlenFuseLinalg : varlen::impl::VarlenFuseLinalgBase<VarlenFuseLinalg> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureTensorSemantics())
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      if (linalg::isaContractionOpInterface(op)) {
        widenSum(op);
      } else if (!isa<linalg::GenericOp, linalg::FillOp>(op)) {
        rewriter.setInsertionPoint(op);
        (void)linalg::generalizeNamedOp(rewriter, op);
      }
    }
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, isFused);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    patterns.add(makeFill);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    giveFills();
  }

private:
  /// Every user its own fill: one that is shared is copied for each who writes
  /// over it.
  void giveFills() {
    SmallVector<linalg::FillOp> fills;
    getOperation().walk([&](linalg::FillOp fill) {
      if (fill.hasPureTensorSemantics() &&
          fill.getOutputs().front().getDefiningOp<tensor::EmptyOp>())
        fills.push_back(fill);
    });
    for (linalg::FillOp fill : fills) {
      Operation *empty = fill.getOutputs().front().getDefiningOp();
      OpBuilder b(fill);
      for (OpOperand &use :
           llvm::make_early_inc_range(llvm::drop_begin(fill->getUses()))) {
        IRMapping map;
        b.clone(*empty, map);
        use.set(b.clone(*fill, map)->getResult(0));
      }
    }
  }
};

} // namespace

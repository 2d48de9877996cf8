//===- VarlenFuseReductions.cpp - Reductions where elements are computed --===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// upstream's fusion of elementwise operations keeps a producer that others read
// and computes it twice. A reduction may come with all elements that it reads
// as another result.
//
//===----------------------------------------------------------------------===//

#include "LoopVectorizer.h"
#include "varlen/Dialect/Linalg/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENFUSEREDUCTIONS
#include "varlen/Dialect/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Whether the loops of one have a vector form wherever those of both apart
/// have one.
static bool isVectorizable(linalg::GenericOp producer,
                           linalg::GenericOp reduction) {
  for (auto [number, type] : llvm::enumerate(reduction.getResultTypes())) {
    SmallVector<Operation *> combiners;
    if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() < 32 ||
        !matchReduction(reduction.getRegionOutputArgs(), number, combiners) ||
        combiners.size() != 1)
      return false;
  }
  return llvm::none_of(producer.getBody()->without_terminator(),
                       [](Operation &inner) { return isLibraryCall(&inner); });
}

/// Whether the reduction can compute the operand, for all who read that.
static bool canFuse(OpOperand &operand) {
  auto reduction = cast<linalg::GenericOp>(operand.getOwner());
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  if (!producer || producer->getBlock() != reduction->getBlock() ||
      producer->getNumResults() != 1 || !producer.isAllParallelLoops() ||
      !reduction.getMatchingIndexingMap(&operand).isIdentity() ||
      !producer.getMatchingIndexingMap(producer.getDpsInitOperand(0))
           .isIdentity() ||
      !linalg::areElementwiseOpsFusable(&operand) ||
      !isVectorizable(producer, reduction))
    return false;
  return llvm::all_of(operand.get().getUses(), [&](OpOperand &use) {
    Operation *user =
        reduction->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return use.getOwner() == reduction ? &use == &operand
                                       : reduction->isBeforeInBlock(user);
  });
}

namespace {
struct VarlenFuseReductions
    : varlen::impl::VarlenFuseReductionsBase<VarlenFuseReductions> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> reductions;
    getOperation().walk([&](linalg::GenericOp op) {
      if (op.hasPureTensorSemantics() && op.getNumReductionLoops() != 0)
        reductions.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::GenericOp reduction : reductions) {
      OpOperand *found = nullptr;
      for (OpOperand *operand : reduction.getDpsInputOperands())
        if (!found && canFuse(*operand))
          found = operand;
      if (!found)
        continue;
      Operation *producer = found->get().getDefiningOp();
      rewriter.setInsertionPoint(reduction);
      FailureOr<linalg::ElementwiseOpFusionResult> fused =
          linalg::fuseElementwiseOps(rewriter, found);
      if (failed(fused))
        continue;
      for (auto [before, after] : fused->replacements)
        rewriter.replaceAllUsesWith(before, after);
      rewriter.eraseOp(reduction);
      if (producer->use_empty())
        rewriter.eraseOp(producer);
      // The indices of the producer, which are those of the reduction.
      fused->fusedOp->walk([&](affine::AffineApplyOp index) {
        SmallVector<Value> folded;
        if (OpBuilder(index).tryFold(index, folded).succeeded())
          rewriter.replaceOp(index, folded);
      });
      ++numFused;
    }
  }
};
} // namespace

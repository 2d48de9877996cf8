//===- FlattenForall.cpp - Parallel loops with one index ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlattenForall.h"

#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::varlen;

/// The iterations of a loop from `lower` to `upper`, none if that is nowhere to
/// go.
static Value emitCount(ImplicitLocOpBuilder &b, OpFoldResult lower,
                       OpFoldResult upper, OpFoldResult step) {
  AffineExpr lo = b.getAffineSymbolExpr(0), hi = b.getAffineSymbolExpr(1),
             by = b.getAffineSymbolExpr(2);
  OpFoldResult count = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), (hi - lo).ceilDiv(by), {lower, upper, step});
  IndexBuilder index{b};
  return index.max(getValueOrCreateConstantIndexOp(b, b.getLoc(), count), 0);
}

static void flatten(IRRewriter &rewriter, scf::ForallOp loop) {
  rewriter.setInsertionPoint(loop);
  ImplicitLocOpBuilder b(loop.getLoc(), rewriter);
  IndexBuilder index{b};
  SmallVector<OpFoldResult> lower = loop.getMixedLowerBound(),
                            upper = loop.getMixedUpperBound(),
                            step = loop.getMixedStep();
  SmallVector<Value> counts;
  Value total = index.constant(1);
  for (auto [from, to, by] : llvm::zip_equal(lower, upper, step)) {
    counts.push_back(emitCount(b, from, to, by));
    total = index.mul(total, counts.back());
  }
  auto flat = scf::ForallOp::create(b, ArrayRef<OpFoldResult>{total},
                                    ValueRange{}, std::nullopt);
  b.setInsertionPointToStart(flat.getBody());
  // The last index runs fastest.
  Value rest = flat.getInductionVar(0);
  SmallVector<Value> indices(counts.size());
  for (size_t i = counts.size(); i-- > 0;) {
    Value number = i ? index.rem(rest, counts[i]) : rest;
    if (i)
      rest = index.div(rest, counts[i]);
    Value by = getValueOrCreateConstantIndexOp(b, b.getLoc(), step[i]);
    Value from = getValueOrCreateConstantIndexOp(b, b.getLoc(), lower[i]);
    indices[i] = index.add(from, index.mul(number, by));
  }
  rewriter.eraseOp(loop.getTerminator());
  rewriter.inlineBlockBefore(loop.getBody(), flat.getTerminator(), indices);
  rewriter.eraseOp(loop);
}

int64_t varlen::flattenForalls(Operation *root) {
  SmallVector<scf::ForallOp> loops;
  root->walk([&](scf::ForallOp loop) {
    if (loop->getNumResults() == 0 && !loop.getMapping() &&
        (loop.getRank() > 1 || !loop.isNormalized()))
      loops.push_back(loop);
  });
  IRRewriter rewriter(root->getContext());
  for (scf::ForallOp loop : loops)
    flatten(rewriter, loop);
  return loops.size();
}

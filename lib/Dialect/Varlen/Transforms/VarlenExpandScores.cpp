//===- VarlenExpandScores.cpp - Scores and weights as arithmetic ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDSCORES
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// By choices of numbers: of a vector's flags only some targets have registers.
static LogicalResult expandHide(HideOp op, PatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Value key = arith::IndexCastOp::create(b, b.getI32Type(), op.getKey());
  key = arith::AddIOp::create(b, key, op.getK0());
  auto compare = [&](arith::CmpIPredicate predicate, Value limit) -> Value {
    return arith::CmpIOp::create(b, predicate, key, limit);
  };
  auto choose = [&](Value condition, Value then, Value otherwise) -> Value {
    return arith::SelectOp::create(b, condition, then, otherwise);
  };
  Value isAfter;
  if (op.hasLower())
    isAfter = compare(arith::CmpIPredicate::sge, op.getLo());
  Value isBefore = compare(arith::CmpIPredicate::slt, op.getHi());
  Value result = choose(isBefore, op.getScore(), op.getHidden());
  if (isAfter)
    result = choose(isAfter, result, op.getHidden());
  if (Value whole = op.getWhole())
    result = choose(whole, op.getScore(), result);
  rewriter.replaceOp(op, result);
  return success();
}

static LogicalResult expandWeight(WeightOp op, PatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  auto exp = math::Exp2Op::create(b, math::FmaOp::create(b, op.getOperands()));
  exp->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.replaceOp(op, exp);
  return success();
}

namespace {
struct HidePattern : OpRewritePattern<HideOp> {
  HidePattern(MLIRContext *context, bool keepsColumns)
      : OpRewritePattern(context), keepsColumns(keepsColumns) {}

  LogicalResult matchAndRewrite(HideOp op,
                                PatternRewriter &rewriter) const override {
    auto key = op.getKey().getDefiningOp<linalg::IndexOp>();
    if (keepsColumns && key && key.getDim() == 1)
      return rewriter.notifyMatchFailure(op, "of keys along columns");
    return expandHide(op, rewriter);
  }

  bool keepsColumns;
};

struct VarlenExpandScores
    : varlen::impl::VarlenExpandScoresBase<VarlenExpandScores> {
  using VarlenExpandScoresBase::VarlenExpandScoresBase;

  void runOnOperation() override {
    auto count = [&] {
      unsigned operations = 0;
      getOperation()->walk(
          [&](Operation *op) { operations += isa<HideOp, WeightOp>(op); });
      return operations;
    };
    unsigned before = count();
    RewritePatternSet patterns(&getContext());
    patterns.add<HidePattern>(&getContext(), keepsColumns);
    patterns.add(expandWeight);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    numExpanded += before - count();
  }
};
} // namespace

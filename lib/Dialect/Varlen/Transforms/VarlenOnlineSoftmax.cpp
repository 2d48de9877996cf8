//===- VarlenOnlineSoftmax.cpp - The steps of attention on tiles ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that says what a step of online softmax computes, and what its
// gradients are. Targets differ in the orientation of the score tile and in how
// they lower the resulting linalg, not in this text.
//
//===----------------------------------------------------------------------===//

#include "OnlineAttnBuilder.h"
#include "OnlineAttnGradBuilder.h"
#include "OnlineAttnJVPBuilder.h"
#include "OnlineAttnJVPGradBuilder.h"
#include "ScoreReference.h"
#include "StepBuilder.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENONLINESOFTMAX
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What each operation becomes
//===----------------------------------------------------------------------===//

/// On a CPU the keys that queries see are bounds of loops.
template <typename Builder, typename Step>
static SmallVector<Value> writeStep(Builder builder, Step step) {
  CPUScheduleAttr schedule = getEnclosingSchedule(step);
  return StepPanel::isPanel(step, schedule) ? builder.emitPanel(schedule)
                                            : builder.emit();
}

static SmallVector<Value> write(OnlineAttnGradOp step, OpBuilder &builder) {
  return writeStep(OnlineAttnGradBuilder(step, builder), step);
}

static SmallVector<Value> write(OnlineAttnJVPOp step, OpBuilder &builder) {
  return writeStep(OnlineAttnJVPBuilder(step, builder), step);
}

static SmallVector<Value> write(OnlineAttnJVPGradOp step, OpBuilder &builder) {
  return writeStep(OnlineAttnJVPGradBuilder(step, builder), step);
}

/// The union of two states: acc, m, l and tangents.
static SmallVector<Value> write(OnlineMergeOp merge, OpBuilder &builder) {
  StateBuilder s(merge, merge.getRounded(), builder);
  StateBuilder::Reference to = s.getReference(merge.getM(), merge.getMoreM());
  Value alpha = s.rescaling(merge.getM(), to);
  Value beta = s.rescaling(merge.getMoreM(), to);
  auto sum = [&](Value tile, Value more) {
    Value rescaled = s.multiply(tile, alpha);
    return s.elementwise({more, beta, rescaled}, /*init=*/rescaled,
                         s.bodyOf<math::FmaOp>);
  };
  SmallVector<Value> state = {sum(merge.getAcc(), merge.getMoreAcc()), to.m,
                              sum(merge.getL(), merge.getMoreL())};
  for (auto [tangent, more] :
       llvm::zip_equal(merge.getTangents(), merge.getMoreTangents()))
    state.push_back(sum(tangent, more));
  return state;
}

/// The beginning of a state: acc, m, l and tangents.
static SmallVector<Value> write(OnlineInitOp begin, OpBuilder &builder) {
  StepBuilder s(begin, begin.getOrientation(), begin.getM(), builder);
  SmallVector<Value> state;
  for (auto [tile, number] :
       llvm::zip_equal(begin->getResults(), begin.getNumbers()))
    state.push_back(s.fill(number, s.empty(tile, s.compute)));
  return state;
}

/// `tile`, of a row for each query in orientation qk, with queries as rows.
static Value toRows(StepBuilder &s, Value tile) {
  if (!s.kq)
    return tile;
  SmallVector<OpFoldResult> sizes = getExtents(s.b, tile);
  std::swap(sizes[0], sizes[1]);
  Value rows = tensor::EmptyOp::create(s.b, sizes, s.compute);
  return linalg::TransposeOp::create(s.b, tile, rows, ArrayRef<int64_t>{1, 0})
      ->getResult(0);
}

/// `value`, or 0 for a row whose `factor` is 0: a row without a key may have
/// multiplied NaN by a weight of 0.
static Value unlessUnseen(ImplicitLocOpBuilder &inner, Value factor,
                          Value value) {
  Value zero = arith::ConstantOp::create(
      inner, inner.getFloatAttr(cast<FloatType>(factor.getType()), 0.0));
  Value none =
      arith::CmpFOp::create(inner, arith::CmpFPredicate::OEQ, factor, zero);
  return arith::SelectOp::create(inner, none, zero, value);
}

/// The end of the tangents of a state, those of acc and l: of out and lse. acc
/// is multiplied by `factor` to make out.
static SmallVector<Value> writeTangents(OnlineFinishOp end, StepBuilder &s,
                                        Value factor, Value lse) {
  ValueRange tangents = end.getTangents();
  Value tacc = tangents[0];
  auto ofLse = [&](Value tl) {
    SmallVector<Value> inputs = {tl, factor};
    if (end.getTsink())
      inputs.append({end.getSink(), end.getTsink(), lse});
    return s.perQuery(
        inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
          Value x = arith::MulFOp::create(inner, args[0], args[1]);
          x = unlessUnseen(inner, args[1], x);
          if (!end.getTsink())
            return x;
          Value term = RecomputedReference(s.compute, /*isNatural=*/true)
                           .emitSinkTerm(inner, args[2], /*lse=*/args[4],
                                         /*delta=*/args[3]);
          return arith::AddFOp::create(inner, x, term).getResult();
        });
  };
  Value tlse = ofLse(tangents[1]);
  // The mean of the terms that tacc has.
  Value mean = tangents.size() > 2 ? ofLse(tangents[2]) : tlse;
  Value tout = s.elementwise(
      {tacc, end.getAcc(), mean, factor}, s.empty(tacc, s.compute),
      [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        Value change = arith::MulFOp::create(inner, args[2], args[1]);
        Value x = arith::SubFOp::create(inner, args[0], change);
        x = arith::MulFOp::create(inner, x, args[3]);
        return unlessUnseen(inner, args[3], x);
      });
  return {toRows(s, tout), tlse};
}

/// The end of a state: out and lse, and their tangents.
static SmallVector<Value> write(OnlineFinishOp end, OpBuilder &builder) {
  StepBuilder s(end, end.getOrientation(), end.getM(), builder);
  ScoreReference reference(end.getScale().convertToDouble(), s.compute,
                           end.getRounded());
  SmallVector<Value> inputs = {end.getM(), end.getL()};
  if (end.getSink())
    inputs.push_back(end.getSink());
  // Each result from its own text: what they share is common to both.
  auto result = [&](Value ScoreReference::Result::*field) {
    return s.perQuery(
        inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
          return reference.emitResult(inner, args[0], args[1],
                                      end.getSink() ? args[2] : Value()).*
                 field;
        });
  };
  Value factor = result(&ScoreReference::Result::factor);
  Value lse = result(&ScoreReference::Result::lse);
  Value acc = end.getAcc();
  Value out =
      s.elementwise({acc, factor}, s.empty(acc, s.compute),
                    [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                      Value x = arith::MulFOp::create(inner, args[0], args[1]);
                      return unlessUnseen(inner, args[1], x);
                    });
  SmallVector<Value> results = {toRows(s, out), lse};
  if (!end.getTangents().empty())
    llvm::append_range(results, writeTangents(end, s, factor, lse));
  return results;
}

/// Products of rows.
static Value write(RowDotOp dot, OpBuilder &builder) {
  StepBuilder s(dot, Orientation::QK, dot.getResult(), builder);
  return s.reduce(
      {dot.getLhs(), dot.getRhs()},
      s.fill(0.0, s.empty(dot.getResult(), s.compute)),
      [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        auto widen = [&](Value x) {
          return convertScalarToDtype(inner, inner.getLoc(), x, s.compute,
                                      /*isUnsignedCast=*/false);
        };
        Value x = arith::MulFOp::create(inner, widen(args[0]), widen(args[1]));
        return arith::AddFOp::create(inner, args[2], x);
      });
}

/// What gradients need of rows: lse, delta and, with a sink, its terms.
static SmallVector<Value> write(OnlineStatisticsOp rows, OpBuilder &builder) {
  StepBuilder s(rows, Orientation::QK, rows.getLse(), builder);
  RecomputedReference reference(s.compute, rows.getNatural());
  Value lse = s.perQuery(rows.getLse(),
                         [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                           return reference.emitLse(inner, args[0]);
                         });
  SmallVector<Value> inputs = {rows.getLse(), rows.getDot()};
  if (rows.getDlse())
    inputs.push_back(rows.getDlse());
  Value delta =
      s.perQuery(inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        return reference.emitDelta(inner, args[0], args[1],
                                   rows.getDlse() ? args[2] : Value());
      });
  SmallVector<Value> results = {lse, delta};
  if (rows.getSink())
    results.push_back(s.perQuery(
        {rows.getSink(), lse, delta},
        [&](ImplicitLocOpBuilder &inner, ValueRange args) {
          return reference.emitSinkTerm(inner, args[0], args[1], args[2]);
        }));
  return results;
}

/// What gradients of tangents need of rows: tdelta and, with a sink, its terms.
static SmallVector<Value> write(OnlineTangentStatisticsOp rows,
                                OpBuilder &builder) {
  StepBuilder s(rows, Orientation::QK, rows.getLse(), builder);
  RecomputedReference reference(s.compute, rows.getNatural());
  SmallVector<Value> inputs = {rows.getLse()};
  llvm::append_range(inputs, rows.getDots());
  if (rows.getDlse())
    inputs.push_back(rows.getDlse());
  Value tdelta =
      s.perQuery(inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        Value dot = args[1];
        for (Value more : args.slice(2, rows.getDots().size() - 1))
          dot = arith::AddFOp::create(inner, dot, more);
        return reference.emitDelta(inner, args[0], dot,
                                   rows.getDlse() ? args.back() : Value());
      });
  if (!rows.getSink())
    return {tdelta};
  inputs = {rows.getSink(), rows.getLse(), rows.getDelta(), rows.getTlse(),
            tdelta};
  if (rows.getTsink())
    inputs.push_back(rows.getTsink());
  Value term =
      s.perQuery(inputs, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        Value change =
            rows.getTsink()
                ? arith::SubFOp::create(inner, args[5], args[3]).getResult()
                : arith::NegFOp::create(inner, args[3]).getResult();
        Value sum = math::FmaOp::create(inner, change, args[2], args[4]);
        return reference.emitSinkTerm(inner, args[0],
                                      reference.emitLse(inner, args[1]), sum);
      });
  return {tdelta, term};
}

template <typename Op>
static LogicalResult writeOut(Op op, PatternRewriter &rewriter) {
  rewriter.replaceOp(op, write(op, rewriter));
  return success();
}

namespace {
struct OnlineAttnPattern : OpRewritePattern<OnlineAttnOp> {
  OnlineAttnPattern(MLIRContext *context, bool skipsRescaling)
      : OpRewritePattern(context), skipsRescaling(skipsRescaling) {}

  LogicalResult matchAndRewrite(OnlineAttnOp step,
                                PatternRewriter &rewriter) const override {
    OnlineAttnBuilder builder(step, skipsRescaling, rewriter);
    rewriter.replaceOp(step, writeStep(builder, step));
    return success();
  }

  bool skipsRescaling;
};

struct VarlenOnlineSoftmax
    : varlen::impl::VarlenOnlineSoftmaxBase<VarlenOnlineSoftmax> {
  using VarlenOnlineSoftmaxBase::VarlenOnlineSoftmaxBase;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      numSteps += isa<OnlineAttnOp>(op);
      numGradSteps += isa<OnlineAttnGradOp>(op);
    });
    RewritePatternSet patterns(&getContext());
    populateOnlineSoftmaxPatterns(patterns, skipsRescaling);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void varlen::populateOnlineSoftmaxPatterns(RewritePatternSet &patterns,
                                           bool skipsRescaling) {
  patterns.add<OnlineAttnPattern>(patterns.getContext(), skipsRescaling)
      .add(writeOut<OnlineAttnGradOp>)
      .add(writeOut<OnlineAttnJVPOp>)
      .add(writeOut<OnlineAttnJVPGradOp>)
      .add(writeOut<OnlineInitOp>)
      .add(writeOut<OnlineMergeOp>)
      .add(writeOut<OnlineFinishOp>)
      .add(writeOut<RowDotOp>)
      .add(writeOut<OnlineStatisticsOp>)
      .add(writeOut<OnlineTangentStatisticsOp>);
}

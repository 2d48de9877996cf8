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

#include "ScoreReference.h"
#include "StepBuilder.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/Utils/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <cmath>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENONLINESOFTMAX
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// What changes the state of queries.
struct StateBuilder : StepBuilder {
  template <typename Op>
  StateBuilder(Op op, bool isRounded, OpBuilder &builder)
      : StepBuilder(op, op.getOrientation(), op.getM(), builder),
        isRounded(isRounded),
        reference(op.getScale().convertToDouble(), compute, isRounded) {}

  /// What acc and l are relative to.
  struct Reference {
    Value m, factor, minus;
  };
  /// The larger of the maxima `m` and `other`, or `m` if that is at most
  /// `threshold` in units of log2 below it, and what that implies.
  Reference getReference(Value m, Value other, int64_t threshold = 0);
  /// What acc and l that are relative to `m` change by.
  Value rescaling(Value m, const Reference &to);
  /// Part of a state, times a factor of each query, in its place.
  Value multiply(Value tile, Value factor);

  bool isRounded;
  ScoreReference reference;
};

/// The step of online softmax; emit() returns the new acc, m and l.
struct OnlineAttnBuilder : StateBuilder {
  // Where p is rounded, the weight of the first key of all must be 1: a row
  // that sees one key is that key's value, as it is.
  OnlineAttnBuilder(OnlineAttnOp step, bool skipsRescaling, OpBuilder &builder)
      : StateBuilder(step, elementOf(step.getV()) != elementOf(step.getM()),
                     builder),
        step(step), skipsRescaling(skipsRescaling) {}
  SmallVector<Value> emit();

private:
  /// The accumulator times `alpha`.
  Value rescaleAcc(Value alpha);

  OnlineAttnOp step;
  bool skipsRescaling;
};

/// Its gradients; emit() returns the new dq, dk, dv and gradients of captures
/// that are no tables, as far as asked for.
struct OnlineAttnGradBuilder : StepBuilder {
  OnlineAttnGradBuilder(OnlineAttnGradOp step, OpBuilder &builder)
      : StepBuilder(step, step.getOrientation(), step.getLse(), builder),
        step(step) {}
  SmallVector<Value> emit();

private:
  /// exp(scale * s - lse), which is at most 1.
  Value probabilities(Value s);
  /// The cotangents of an argument of the score region, or of a lookup in it,
  /// for those of scores.
  Value pullBack(Value products, Value dscores, Value source);
  /// Adds to the gradient of a table, a capture, what its lookups do.
  void addToTable(Value products, Value dscores, unsigned capture,
                  Value gradient, Value rows);

  OnlineAttnGradOp step;
};

} // namespace

StateBuilder::Reference StateBuilder::getReference(Value m, Value other,
                                                   int64_t threshold) {
  Value most = perQuery(
      {m, other}, [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        Value larger = arith::MaxNumFOp::create(inner, args);
        if (threshold == 0)
          return larger;
        return reference.emitKept(inner, args[0], larger, threshold);
      });
  Value factor =
      perQuery(most, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        return reference.emitFactor(inner, args[0]);
      });
  Value minus =
      perQuery({most, factor},
               [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
                 return arith::NegFOp::create(
                     inner, reference.emitReference(inner, args[0], args[1]));
               });
  return {most, factor, minus};
}

Value StateBuilder::rescaling(Value m, const Reference &to) {
  // A rounded p asks for no exact quotient of these, which takes less.
  return perQuery(
      {m, to.m, to.factor, to.minus},
      [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        if (isRounded) {
          Value x = arith::SubFOp::create(inner, args[0], args[1]);
          return exp2(inner, arith::MulFOp::create(inner, x, args[2]));
        }
        Value before = reference.emitReference(
            inner, args[0], reference.emitFactor(inner, args[0]));
        return exp2(inner, arith::AddFOp::create(inner, before, args[3]));
      });
}

Value StateBuilder::multiply(Value tile, Value factor) {
  return elementwise({tile, factor}, /*init=*/tile, bodyOf<arith::MulFOp>);
}

Value OnlineAttnBuilder::rescaleAcc(Value alpha) {
  Value acc = step.getAcc();
  // Targets with such a branch have queries as rows.
  if (kq || step.getRescaleThreshold() == 0 || !skipsRescaling)
    return multiply(acc, alpha);
  return RescaleOp::create(b, acc.getType(), acc, alpha);
}

SmallVector<Value> OnlineAttnBuilder::emit() {
  Value m = step.getM();
  Value s =
      products(step.getQ(), step.getK(), emptyScores(step.getQ(), step.getK()));
  s = hide(step, score(step, s), -kInfinity);

  Value top =
      reduce(s, fill(-kInfinity, empty(m, compute)), bodyOf<arith::MaxNumFOp>);
  Reference to = getReference(m, top, step.getRescaleThreshold());
  Value alpha = rescaling(m, to);
  // Beside the sum of thousands of keys the term of one is small, and loses
  // places in it. So a block's are summed apart, unless p, rounded, has lost
  // more than that, or tensor cores keep the sum in their accumulators.
  bool isApart = kq && !isRounded;
  auto beginApart = [&](Value before) {
    return fill(0.0, empty(before, compute));
  };
  auto endSum = [&](Value before, Value sum) {
    if (!isApart)
      return sum;
    return elementwise({before, alpha, sum}, /*init=*/before,
                       bodyOf<math::FmaOp>);
  };
  Value lBegin =
      isApart ? beginApart(step.getL()) : multiply(step.getL(), alpha);

  Value p = elementwise({s, to.factor, to.minus}, empty(s, compute),
                        [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                          return weight(inner, args);
                        });
  Value lSum = reduce(p, lBegin, bodyOfSum);
  Value lNew = endSum(step.getL(), lSum);

  // The tensor cores and dot instructions want both factors in one type.
  p = round(p, step.getV());

  Value accBegin = isApart ? beginApart(step.getAcc()) : rescaleAcc(alpha);
  Value accSum = kq ? contract(step.getV(), p, accBegin, {2, 0}, {2, 1})
                    : contract(p, step.getV(), accBegin, {0, 2}, {2, 1});
  return {endSum(step.getAcc(), accSum), to.m, lNew};
}

Value OnlineAttnGradBuilder::probabilities(Value s) {
  double scale = step.getScale().convertToDouble();
  bool isNatural = step.getNatural();
  Value c = constant(isNatural ? scale : scale * M_LOG2E);
  Value zero = constant(0.0), log2e = constant(M_LOG2E);
  return elementwise({s, negate(step.getLse())}, empty(s, compute),
                     [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                       Value x =
                           math::FmaOp::create(inner, args[0], c, args[1]);
                       // The scores that made lse were summed in another order.
                       x = arith::MinimumFOp::create(inner, x, zero);
                       if (isNatural)
                         x = arith::MulFOp::create(inner, x, log2e);
                       return exp2(inner, x);
                     });
}

Value OnlineAttnGradBuilder::pullBack(Value products, Value dscores,
                                      Value source) {
  return overScores(step, products, dscores,
                    [&](ImplicitLocOpBuilder &inner, const ScorePoint &point,
                        ValueRange more) {
                      Block *region = step.getScoreBody();
                      Value cotangent =
                          emitScoreVJP(inner, inner.getLoc(), region, point,
                                       more[0], source);
                      return unlessHidden(inner, region, point, cotangent, 0.0);
                    });
}

void OnlineAttnGradBuilder::addToTable(Value products, Value dscores,
                                       unsigned capture, Value gradient,
                                       Value rows) {
  for (LookupOp lookup : getScoreLookups(step.getScoreBody(), capture)) {
    auto pulled = [&] {
      return hide(step, pullBack(products, dscores, lookup.getEntry()), 0.0);
    };
    if (isKeyTable(step.getScoreBody(), capture)) {
      AddKeysOp::create(b, pulled(), gradient, rows, step.getFirstKey());
      continue;
    }
    Value index = overScores(
        step, products, {},
        [&](ImplicitLocOpBuilder &inner, const ScorePoint &point, ValueRange) {
          return emitIndex(inner, point, lookup);
        },
        b.getI32Type());
    Value values = pulled();
    ScatterAddOp::create(b, values, index, gradient, rows);
  }
}

SmallVector<Value> OnlineAttnGradBuilder::emit() {
  Value s =
      products(step.getQ(), step.getK(), emptyScores(step.getQ(), step.getK()));
  Value dq = step.getDq(), dk = step.getDk(), dv = step.getDv();
  auto multiplyDout = [&] {
    return products(step.getDout(), step.getV(), empty(s, compute));
  };
  bool hasDp = dq || dk || !step.getWrtCaptures().empty();
  Value dp;
  if (hasDp && step.getScoresFirst())
    dp = multiplyDout();
  // Hidden by value, not by a score of -inf: lse may be anything there.
  Value p = hide(step, probabilities(score(step, s)), 0.0);
  // The queries are the reduction of dk and dv, the keys that of dq.
  SmallVector<unsigned> keysFirst = {0, 2}, queriesFirst = {2, 0};
  if (!kq)
    std::swap(keysFirst, queriesFirst);

  SmallVector<Value> dcaptures;
  if (dv)
    dv = contract(round(p, step.getDout()), step.getDout(), dv, keysFirst,
                  {2, 1});
  if (hasDp) {
    if (!dp)
      dp = multiplyDout();
    Value ds =
        elementwise({p, dp, step.getDelta()}, empty(p, compute),
                    [](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
                      Value x = arith::SubFOp::create(inner, args[1], args[2]);
                      return arith::MulFOp::create(inner, args[0], x);
                    });
    Block *region = step.getScoreBody();
    ValueRange sums = step.getDcaptures(), dtables = step.getDtables(),
               drows = step.getDrows();
    for (int64_t number : step.getWrtCaptures()) {
      if (isTable(region, number)) {
        addToTable(s, ds, number, dtables.front(), drows.front());
        dtables = dtables.drop_front();
        drows = drows.drop_front();
        continue;
      }
      Value argument = region->getArgument(Captures + number);
      dcaptures.push_back(reduce(hide(step, pullBack(s, ds, argument), 0.0),
                                 sums.front(), bodyOfSum));
      sums = sums.drop_front();
    }
    if (region)
      ds = pullBack(s, ds, region->getArgument(Score));
    // A p of 0 does not hide a NaN.
    ds = round(hide(step, ds, 0.0), step.getQ());
    if (dk)
      dk = contract(ds, step.getQ(), dk, keysFirst, {2, 1});
    if (dq)
      dq = contract(ds, step.getK(), dq, queriesFirst, {2, 1});
  }
  SmallVector<Value> gradients = {dq, dk, dv};
  llvm::erase(gradients, Value());
  llvm::append_range(gradients, dcaptures);
  return gradients;
}

//===----------------------------------------------------------------------===//
// What each operation becomes
//===----------------------------------------------------------------------===//

static SmallVector<Value> write(OnlineAttnGradOp step, OpBuilder &builder) {
  return OnlineAttnGradBuilder(step, builder).emit();
}

/// The union of two states: acc, m and l.
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
  return {sum(merge.getAcc(), merge.getMoreAcc()), to.m,
          sum(merge.getL(), merge.getMoreL())};
}

/// The beginning of a state: acc, m and l.
static SmallVector<Value> write(OnlineInitOp begin, OpBuilder &builder) {
  StepBuilder s(begin, begin.getOrientation(), begin.getM(), builder);
  SmallVector<Value> state;
  for (auto [tile, number] :
       llvm::zip_equal(begin->getResults(), begin.getNumbers()))
    state.push_back(s.fill(number, s.empty(tile, s.compute)));
  return state;
}

/// The end of a state: out and lse.
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
  // A row without a key may have met NaN with a weight of 0.
  auto weigh = [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
    Value zero =
        arith::ConstantOp::create(inner, inner.getFloatAttr(s.compute, 0.0));
    Value none =
        arith::CmpFOp::create(inner, arith::CmpFPredicate::OEQ, args[1], zero);
    Value x = arith::MulFOp::create(inner, args[0], args[1]);
    return arith::SelectOp::create(inner, none, zero, x);
  };
  Value out = s.elementwise({acc, factor}, s.empty(acc, s.compute), weigh);
  if (s.kq) {
    SmallVector<OpFoldResult> sizes = getExtents(s.b, acc);
    std::swap(sizes[0], sizes[1]);
    Value rows = tensor::EmptyOp::create(s.b, sizes, s.compute);
    out = linalg::TransposeOp::create(s.b, out, rows, ArrayRef<int64_t>{1, 0})
              ->getResult(0);
  }
  return {out, lse};
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
    rewriter.replaceOp(step, builder.emit());
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
      .add(writeOut<OnlineInitOp>)
      .add(writeOut<OnlineMergeOp>)
      .add(writeOut<OnlineFinishOp>)
      .add(writeOut<RowDotOp>)
      .add(writeOut<OnlineStatisticsOp>);
}

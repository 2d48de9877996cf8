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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>
#include <limits>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENONLINESOFTMAX
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// The step of online softmax; emit() returns the new acc, m and l.
struct OnlineAttnBuilder : StepBuilder {
  OnlineAttnBuilder(OnlineAttnOp step, OpBuilder &builder)
      : StepBuilder(step, step.getOrientation(), step.getM(), builder),
        step(step) {}
  SmallVector<Value> emit();

private:
  OnlineAttnOp step;
};

/// Its gradients; emit() returns the new dq, dk and dv, as far as asked for.
struct OnlineAttnGradBuilder : StepBuilder {
  OnlineAttnGradBuilder(OnlineAttnGradOp step, OpBuilder &builder)
      : StepBuilder(step, step.getOrientation(), step.getLse(), builder),
        step(step) {}
  SmallVector<Value> emit();

private:
  /// exp(scale * s - lse), which is at most 1.
  Value probabilities(Value s);

  OnlineAttnGradOp step;
};

/// The end of a state; emit() returns out and lse.
struct OnlineFinishBuilder : StepBuilder {
  OnlineFinishBuilder(OnlineFinishOp end, OpBuilder &builder)
      : StepBuilder(end, end.getOrientation(), end.getM(), builder), end(end) {}
  SmallVector<Value> emit();

private:
  OnlineFinishOp end;
};

/// Products of rows.
struct RowDotBuilder : StepBuilder {
  RowDotBuilder(RowDotOp dot, OpBuilder &builder)
      : StepBuilder(dot, Orientation::QK, dot.getResult(), builder), dot(dot) {}
  Value emit();

private:
  RowDotOp dot;
};

/// What gradients need of rows; emit() returns lse, delta and, with a sink, its
/// terms.
struct OnlineStatisticsBuilder : StepBuilder {
  OnlineStatisticsBuilder(OnlineStatisticsOp rows, OpBuilder &builder)
      : StepBuilder(rows, Orientation::QK, rows.getLse(), builder), rows(rows) {
  }
  SmallVector<Value> emit();

private:
  OnlineStatisticsOp rows;
};

} // namespace

SmallVector<Value> OnlineAttnBuilder::emit() {
  const double infinity = std::numeric_limits<double>::infinity();
  Value m = step.getM(), l = step.getL(), acc = step.getAcc();
  Value s =
      products(step.getQ(), step.getK(), emptyScores(step.getQ(), step.getK()));
  s = hide(step, s, -infinity);

  Value top =
      reduce(s, fill(-infinity, empty(m, compute)),
             [](OpBuilder &n, Location loc, ValueRange args) -> Value {
               return arith::MaxNumFOp::create(n, loc, args[0], args[1]);
             });
  Value mNew = perQuery(
      {m, top}, [](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return arith::MaxNumFOp::create(n, loc, args[0], args[1]);
      });
  // Where p is rounded, the weight of the first key of all must be 1: a row
  // that sees one key is that key's value, as it is.
  bool isRounded = elementOf(step.getV()) != compute;
  ScoreReference reference(step.getScale().convertToDouble(), compute,
                           isRounded);
  Value factor =
      perQuery(mNew, [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return reference.emitFactor(n, loc, args[0]);
      });
  Value minusReference =
      perQuery({mNew, factor},
               [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                 return arith::NegFOp::create(
                     n, loc, reference.emitReference(n, loc, args[0], args[1]));
               });
  // What acc and l are relative to changes from the old reference to the new
  // one. A rounded p asks for no exact quotient of these, which takes less.
  Value alpha = perQuery(
      {m, mNew, factor, minusReference},
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        if (isRounded) {
          Value x = arith::SubFOp::create(n, loc, args[0], args[1]);
          return exp2(n, loc, arith::MulFOp::create(n, loc, x, args[2]));
        }
        Value before = reference.emitReference(
            n, loc, args[0], reference.emitFactor(n, loc, args[0]));
        return exp2(n, loc, arith::AddFOp::create(n, loc, before, args[3]));
      });
  auto multiply = [](OpBuilder &n, Location loc, ValueRange args) -> Value {
    return arith::MulFOp::create(n, loc, args[0], args[1]);
  };
  Value lScaled = elementwise({l, alpha}, empty(l, compute), multiply);

  Value p = elementwise(
      {s, factor, minusReference}, empty(s, compute),
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        return exp2(n, loc,
                    math::FmaOp::create(n, loc, args[0], args[1], args[2]));
      });
  Value lNew = reduce(p, lScaled,
                      [](OpBuilder &n, Location loc, ValueRange args) -> Value {
                        return arith::AddFOp::create(n, loc, args[1], args[0]);
                      });

  // The tensor cores and dot instructions want both factors in one type.
  p = round(p, step.getV());

  Value scaled = elementwise({acc, alpha}, empty(acc, compute), multiply);
  Value accNew = kq ? contract(step.getV(), p, scaled, {2, 0}, {2, 1})
                    : contract(p, step.getV(), scaled, {0, 2}, {2, 1});
  return {accNew, mNew, lNew};
}

Value OnlineAttnGradBuilder::probabilities(Value s) {
  double scale = step.getScale().convertToDouble();
  bool isNatural = step.getNatural();
  Value c = constant(isNatural ? scale : scale * M_LOG2E);
  Value zero = constant(0.0), log2e = constant(M_LOG2E);
  return elementwise({s, negate(step.getLse())}, empty(s, compute),
                     [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
                       Value x =
                           math::FmaOp::create(n, loc, args[0], c, args[1]);
                       // The scores that made lse were summed in another order.
                       x = arith::MinimumFOp::create(n, loc, x, zero);
                       if (isNatural)
                         x = arith::MulFOp::create(n, loc, x, log2e);
                       return exp2(n, loc, x);
                     });
}

SmallVector<Value> OnlineAttnGradBuilder::emit() {
  Value s =
      products(step.getQ(), step.getK(), emptyScores(step.getQ(), step.getK()));
  // Hidden by value, not by a score of -inf: lse may be anything there.
  Value p = hide(step, probabilities(s), 0.0);
  // The queries are the reduction of dk and dv, the keys that of dq.
  SmallVector<int64_t> keysFirst = {0, 2}, queriesFirst = {2, 0};
  if (!kq)
    std::swap(keysFirst, queriesFirst);

  Value dq = step.getDq(), dk = step.getDk(), dv = step.getDv();
  if (dv)
    dv = contract(round(p, step.getDout()), step.getDout(), dv, keysFirst,
                  {2, 1});
  if (dq || dk) {
    Value dp = products(step.getDout(), step.getV(), empty(p, compute));
    Value ds =
        elementwise({p, dp, step.getDelta()}, empty(p, compute),
                    [](OpBuilder &n, Location loc, ValueRange args) -> Value {
                      Value x = arith::SubFOp::create(n, loc, args[1], args[2]);
                      return arith::MulFOp::create(n, loc, args[0], x);
                    });
    // A p of 0 does not hide a NaN.
    ds = round(hide(step, ds, 0.0), step.getQ());
    if (dk)
      dk = contract(ds, step.getQ(), dk, keysFirst, {2, 1});
    if (dq)
      dq = contract(ds, step.getK(), dq, queriesFirst, {2, 1});
  }
  SmallVector<Value> gradients = {dq, dk, dv};
  llvm::erase(gradients, Value());
  return gradients;
}

SmallVector<Value> OnlineFinishBuilder::emit() {
  ScoreReference reference(end.getScale().convertToDouble(), compute,
                           end.getRounded());
  SmallVector<Value> inputs = {end.getM(), end.getL()};
  if (end.getSink())
    inputs.push_back(end.getSink());
  // Each result from its own text: what they share is common to both.
  auto result = [&](Value ScoreReference::Result::*field) {
    return elementwise(
        inputs, empty(end.getM(), compute),
        [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
          return reference.emitResult(n, loc, args[0], args[1],
                                      end.getSink() ? args[2] : Value()).*
                 field;
        });
  };
  Value factor = result(&ScoreReference::Result::factor);
  Value lse = result(&ScoreReference::Result::lse);
  Value acc = end.getAcc();
  Value out = elementwise(
      {acc, factor}, empty(acc, compute),
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        // A row without a key may have met NaN with a weight of 0.
        Value zero =
            arith::ConstantOp::create(n, loc, n.getFloatAttr(compute, 0.0));
        Value none = arith::CmpFOp::create(n, loc, arith::CmpFPredicate::OEQ,
                                           args[1], zero);
        Value x = arith::MulFOp::create(n, loc, args[0], args[1]);
        return arith::SelectOp::create(n, loc, none, zero, x);
      });
  if (kq) {
    Value rows = tensor::EmptyOp::create(
        b,
        SmallVector<OpFoldResult>{tensor::getMixedSize(b, b.getLoc(), acc, 1),
                                  tensor::getMixedSize(b, b.getLoc(), acc, 0)},
        compute);
    out = linalg::TransposeOp::create(b, out, rows, ArrayRef<int64_t>{1, 0})
              ->getResult(0);
  }
  return {out, lse};
}

Value RowDotBuilder::emit() {
  return reduce(
      {dot.getLhs(), dot.getRhs()}, fill(0.0, empty(dot.getResult(), compute)),
      [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
        auto widen = [&](Value x) -> Value {
          return x.getType() == compute
                     ? x
                     : arith::ExtFOp::create(n, loc, compute, x).getResult();
        };
        Value x = arith::MulFOp::create(n, loc, widen(args[0]), widen(args[1]));
        return arith::AddFOp::create(n, loc, args[2], x);
      });
}

SmallVector<Value> OnlineStatisticsBuilder::emit() {
  RecomputedReference reference(compute, rows.getNatural());
  Value lse =
      perQuery(rows.getLse(), [&](OpBuilder &n, Location loc, ValueRange args) {
        return reference.emitLse(n, loc, args[0]);
      });
  SmallVector<Value> inputs = {rows.getLse(), rows.getDot()};
  if (rows.getDlse())
    inputs.push_back(rows.getDlse());
  Value delta =
      perQuery(inputs, [&](OpBuilder &n, Location loc, ValueRange args) {
        return reference.emitDelta(n, loc, args[0], args[1],
                                   rows.getDlse() ? args[2] : Value());
      });
  SmallVector<Value> results = {lse, delta};
  if (rows.getSink())
    results.push_back(perQuery(
        {rows.getSink(), lse, delta},
        [&](OpBuilder &n, Location loc, ValueRange args) -> Value {
          return reference.emitSinkTerm(n, loc, args[0], args[1], args[2]);
        }));
  return results;
}

namespace {
struct VarlenOnlineSoftmax
    : varlen::impl::VarlenOnlineSoftmaxBase<VarlenOnlineSoftmax> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](Operation *op) {
      rewriter.setInsertionPoint(op);
      if (auto step = dyn_cast<OnlineAttnOp>(op)) {
        rewriter.replaceOp(op, OnlineAttnBuilder(step, rewriter).emit());
        ++numSteps;
      } else if (auto step = dyn_cast<OnlineAttnGradOp>(op)) {
        rewriter.replaceOp(op, OnlineAttnGradBuilder(step, rewriter).emit());
        ++numGradSteps;
      } else if (auto end = dyn_cast<OnlineFinishOp>(op)) {
        rewriter.replaceOp(op, OnlineFinishBuilder(end, rewriter).emit());
      } else if (auto dot = dyn_cast<RowDotOp>(op)) {
        rewriter.replaceOp(op, RowDotBuilder(dot, rewriter).emit());
      } else if (auto rows = dyn_cast<OnlineStatisticsOp>(op)) {
        rewriter.replaceOp(op, OnlineStatisticsBuilder(rows, rewriter).emit());
      }
    });
  }
};
} // namespace

//===- ScoreReference.cpp - What scores are taken relative to -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreReference.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::varlen;

static const double kInfinity = std::numeric_limits<double>::infinity();

/// Also of a type that is const, which the method is not for.
static int getMantissaWidth(FloatType type) {
  return type.getFPMantissaWidth();
}

/// From here on neighbours of this type differ by 1 or more.
static double getFirstCoarse(FloatType type) {
  return std::ldexp(1.0, getMantissaWidth(type));
}

static Value emitConstant(ImplicitLocOpBuilder &b, FloatType type,
                          double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

static Value emitSelect(ImplicitLocOpBuilder &b, arith::CmpFPredicate predicate,
                        Value lhs, Value rhs, Value then, Value otherwise) {
  Value condition = arith::CmpFOp::create(b, predicate, lhs, rhs);
  return arith::SelectOp::create(b, condition, then, otherwise);
}

//===----------------------------------------------------------------------===//
// ScoreReference
//===----------------------------------------------------------------------===//

Value ScoreReference::emitKept(ImplicitLocOpBuilder &b, Value m, Value larger,
                               int64_t threshold) const {
  // Not rounded up: from first coarse on weights are powers of two, and less
  // than 2^16 because the factor there is less than 2 c.
  APFloat most(threshold / (scale * M_LOG2E));
  bool losesInfo;
  most.convert(compute.getFloatSemantics(), APFloat::rmTowardZero, &losesInfo);
  Value limit = arith::ConstantOp::create(b, b.getFloatAttr(compute, most));
  Value difference = arith::SubFOp::create(b, larger, m);
  return emitSelect(b, arith::CmpFPredicate::OGT, difference, limit, larger, m);
}

Value ScoreReference::emitFactor(ImplicitLocOpBuilder &b, Value m) const {
  double c = scale * M_LOG2E;
  Value size = math::AbsFOp::create(b, m);
  return emitSelect(
      b, arith::CmpFPredicate::OGE, size,
      emitConstant(b, compute, getFirstCoarse(compute) / c),
      emitConstant(b, compute, OnlineAttnOp::getCoarseFactor(scale)),
      emitConstant(b, compute, c));
}

Value ScoreReference::emitReference(ImplicitLocOpBuilder &b, Value m,
                                    Value factor) const {
  Value x = arith::MulFOp::create(b, m, factor);
  return isRounded ? x : math::CeilOp::create(b, x);
}

ScoreReference::Result ScoreReference::emitResult(ImplicitLocOpBuilder &b,
                                                  Value m, Value l,
                                                  Value sink) const {
  auto number = [&](double value) { return emitConstant(b, compute, value); };
  auto exp = [&](Value x) -> Value {
    x = arith::MulFOp::create(b, x, number(M_LOG2E));
    return math::Exp2Op::create(b, x);
  };
  // l is relative to the reference; of log(l) the part that the reference is
  // off the maximum is subtracted, exactly, so that lse is rounded once.
  // Without a key l = 0, hence lse = -inf.
  Value factor = emitFactor(b, m);
  Value reference = emitReference(b, m, factor);
  Value off =
      math::FmaOp::create(b, arith::NegFOp::create(b, factor), m, reference);
  Value log = arith::AddFOp::create(b, math::Log2Op::create(b, l), off);
  Value lse = math::FmaOp::create(b, m, number(scale),
                                  arith::MulFOp::create(b, log, number(M_LN2)));
  Value total = l;
  if (sink) {
    Value none = number(-kInfinity);
    Value difference = arith::SubFOp::create(b, sink, lse);
    difference =
        emitSelect(b, arith::CmpFPredicate::OEQ, sink, none, none, difference);
    total = math::FmaOp::create(b, l, exp(difference), l);
    // log(e^x + e^y) = max(x, y) + log(1 + e^-|x - y|).
    Value most = emitSelect(b, arith::CmpFPredicate::OGT, sink, lse, sink, lse);
    Value least =
        exp(arith::NegFOp::create(b, math::AbsFOp::create(b, difference)));
    Value more =
        math::Log2Op::create(b, arith::AddFOp::create(b, least, number(1.0)));
    lse = math::FmaOp::create(b, more, number(M_LN2), most);
  }
  Value inverse = arith::DivFOp::create(b, number(1.0), total);
  // Beside a sink alone, total is 0 * inf.
  return {emitSelect(b, arith::CmpFPredicate::OEQ, l, number(0.0), number(0.0),
                     inverse),
          lse};
}

//===----------------------------------------------------------------------===//
// RecomputedReference
//===----------------------------------------------------------------------===//

Value RecomputedReference::convert(ImplicitLocOpBuilder &b,
                                   Value natural) const {
  if (isNatural)
    return natural;
  Value x =
      arith::MulFOp::create(b, natural, emitConstant(b, compute, M_LOG2E));
  // A sink may be so large that this overflows; its lse is as large.
  double largest =
      APFloat::getLargest(compute.getFloatSemantics()).convertToDouble();
  Value most = emitConstant(b, compute, largest);
  return emitSelect(b, arith::CmpFPredicate::OGT, x, most, most, x);
}

Value RecomputedReference::unlessUnseen(ImplicitLocOpBuilder &b, Value lse,
                                        Value value, double none) const {
  return emitSelect(b, arith::CmpFPredicate::OEQ, lse,
                    emitConstant(b, compute, -kInfinity),
                    emitConstant(b, compute, none), value);
}

Value RecomputedReference::emitLse(ImplicitLocOpBuilder &b, Value lse) const {
  Value x = convert(b, lse);
  Value size = math::AbsFOp::create(b, x);
  // Scores differ from those that made lse by some units of the last place, for
  // their products are summed in another order.
  constexpr int width = 4;
  Value margin = arith::MulFOp::create(
      b, size,
      emitConstant(b, compute,
                   std::ldexp(1.0, width - getMantissaWidth(compute))));
  Value less = arith::SubFOp::create(b, x, margin);
  x = emitSelect(b, arith::CmpFPredicate::OGE, size,
                 emitConstant(b, compute, getFirstCoarse(compute)), less, x);
  return unlessUnseen(b, lse, x, kInfinity);
}

Value RecomputedReference::emitDelta(ImplicitLocOpBuilder &b, Value lse,
                                     Value product, Value dlse) const {
  if (dlse)
    product = arith::SubFOp::create(b, product, dlse);
  return unlessUnseen(b, lse, product, 0.0);
}

Value RecomputedReference::emitSinkTerm(ImplicitLocOpBuilder &b, Value sink,
                                        Value lse, Value delta) const {
  Value zero = emitConstant(b, compute, 0.0),
        none = emitConstant(b, compute, -kInfinity);
  Value x = arith::SubFOp::create(b, convert(b, sink), lse);
  x = arith::MinimumFOp::create(b, x, zero);
  if (isNatural)
    x = arith::MulFOp::create(b, x, emitConstant(b, compute, M_LOG2E));
  Value term = arith::MulFOp::create(b, math::Exp2Op::create(b, x), delta);
  return emitSelect(b, arith::CmpFPredicate::OEQ, sink, none, zero, term);
}

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

static Value emitConstant(OpBuilder &b, Location loc, FloatType type,
                          double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

static Value emitSelect(OpBuilder &b, Location loc,
                        arith::CmpFPredicate predicate, Value lhs, Value rhs,
                        Value then, Value otherwise) {
  Value condition = arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  return arith::SelectOp::create(b, loc, condition, then, otherwise);
}

//===----------------------------------------------------------------------===//
// ScoreReference
//===----------------------------------------------------------------------===//

Value ScoreReference::emitFactor(OpBuilder &b, Location loc, Value m) const {
  double c = scale * M_LOG2E;
  Value size = math::AbsFOp::create(b, loc, m);
  return emitSelect(
      b, loc, arith::CmpFPredicate::OGE, size,
      emitConstant(b, loc, compute, getFirstCoarse(compute) / c),
      emitConstant(b, loc, compute, OnlineAttnOp::getCoarseFactor(scale)),
      emitConstant(b, loc, compute, c));
}

Value ScoreReference::emitReference(OpBuilder &b, Location loc, Value m,
                                    Value factor) const {
  Value x = arith::MulFOp::create(b, loc, m, factor);
  return isRounded ? x : math::CeilOp::create(b, loc, x);
}

ScoreReference::Result ScoreReference::emitResult(OpBuilder &b, Location loc,
                                                  Value m, Value l,
                                                  Value sink) const {
  auto number = [&](double value) {
    return emitConstant(b, loc, compute, value);
  };
  auto exp = [&](Value x) -> Value {
    x = arith::MulFOp::create(b, loc, x, number(M_LOG2E));
    return math::Exp2Op::create(b, loc, x);
  };
  // l is relative to the reference; of log(l) the part that the reference is
  // off the maximum is taken off, exactly, so that lse is rounded once. Without
  // a key l = 0, hence lse = -inf.
  Value factor = emitFactor(b, loc, m);
  Value reference = emitReference(b, loc, m, factor);
  Value off = math::FmaOp::create(b, loc, arith::NegFOp::create(b, loc, factor),
                                  m, reference);
  Value log =
      arith::AddFOp::create(b, loc, math::Log2Op::create(b, loc, l), off);
  Value lse =
      math::FmaOp::create(b, loc, m, number(scale),
                          arith::MulFOp::create(b, loc, log, number(M_LN2)));
  Value total = l;
  if (sink) {
    Value none = number(-kInfinity);
    Value difference = arith::SubFOp::create(b, loc, sink, lse);
    difference = emitSelect(b, loc, arith::CmpFPredicate::OEQ, sink, none, none,
                            difference);
    total = math::FmaOp::create(b, loc, l, exp(difference), l);
    // log(e^x + e^y) = max(x, y) + log(1 + e^-|x - y|).
    Value most =
        emitSelect(b, loc, arith::CmpFPredicate::OGT, sink, lse, sink, lse);
    Value least = exp(arith::NegFOp::create(
        b, loc, math::AbsFOp::create(b, loc, difference)));
    Value more = math::Log2Op::create(
        b, loc, arith::AddFOp::create(b, loc, least, number(1.0)));
    lse = math::FmaOp::create(b, loc, more, number(M_LN2), most);
  }
  Value inverse = arith::DivFOp::create(b, loc, number(1.0), total);
  // Beside a sink alone, total is 0 * inf.
  return {emitSelect(b, loc, arith::CmpFPredicate::OEQ, l, number(0.0),
                     number(0.0), inverse),
          lse};
}

//===----------------------------------------------------------------------===//
// RecomputedReference
//===----------------------------------------------------------------------===//

Value RecomputedReference::convert(OpBuilder &b, Location loc,
                                   Value natural) const {
  if (isNatural)
    return natural;
  Value x = arith::MulFOp::create(b, loc, natural,
                                  emitConstant(b, loc, compute, M_LOG2E));
  // A sink may be so large that this overflows; its lse is as large.
  double largest =
      APFloat::getLargest(compute.getFloatSemantics()).convertToDouble();
  Value most = emitConstant(b, loc, compute, largest);
  return emitSelect(b, loc, arith::CmpFPredicate::OGT, x, most, most, x);
}

Value RecomputedReference::unlessUnseen(OpBuilder &b, Location loc, Value lse,
                                        Value value, double none) const {
  return emitSelect(b, loc, arith::CmpFPredicate::OEQ, lse,
                    emitConstant(b, loc, compute, -kInfinity),
                    emitConstant(b, loc, compute, none), value);
}

Value RecomputedReference::emitLse(OpBuilder &b, Location loc,
                                   Value lse) const {
  Value x = convert(b, loc, lse);
  Value size = math::AbsFOp::create(b, loc, x);
  // Scores differ from those that made lse by some units of the last place, for
  // their products are summed in another order.
  constexpr int width = 4;
  Value margin = arith::MulFOp::create(
      b, loc, size,
      emitConstant(b, loc, compute,
                   std::ldexp(1.0, width - getMantissaWidth(compute))));
  Value less = arith::SubFOp::create(b, loc, x, margin);
  x = emitSelect(b, loc, arith::CmpFPredicate::OGE, size,
                 emitConstant(b, loc, compute, getFirstCoarse(compute)), less,
                 x);
  return unlessUnseen(b, loc, lse, x, kInfinity);
}

Value RecomputedReference::emitDelta(OpBuilder &b, Location loc, Value lse,
                                     Value product, Value dlse) const {
  if (dlse)
    product = arith::SubFOp::create(b, loc, product, dlse);
  return unlessUnseen(b, loc, lse, product, 0.0);
}

Value RecomputedReference::emitSinkTerm(OpBuilder &b, Location loc, Value sink,
                                        Value lse, Value delta) const {
  Value zero = emitConstant(b, loc, compute, 0.0),
        none = emitConstant(b, loc, compute, -kInfinity);
  Value x = arith::SubFOp::create(b, loc, convert(b, loc, sink), lse);
  x = arith::MinimumFOp::create(b, loc, x, zero);
  if (isNatural)
    x = arith::MulFOp::create(b, loc, x,
                              emitConstant(b, loc, compute, M_LOG2E));
  Value term =
      arith::MulFOp::create(b, loc, math::Exp2Op::create(b, loc, x), delta);
  return emitSelect(b, loc, arith::CmpFPredicate::OEQ, sink, none, zero, term);
}

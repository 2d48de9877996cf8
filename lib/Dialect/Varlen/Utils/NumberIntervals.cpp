//===- NumberIntervals.cpp - Intervals of the numbers of a region ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NumberIntervals.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What is known of any block
//===----------------------------------------------------------------------===//

/// Whether all numbers of a range are signed ones of a type.
static bool fits(const ConstantIntRanges &range, Type type) {
  unsigned width = ConstantIntRanges::getStorageBitwidth(type);
  return range.smin().isSignedIntN(width) && range.smax().isSignedIntN(width);
}

void NumberIntervals::setPosition(Value argument, const NumberRange &range,
                                  int64_t least) {
  intervals[argument] = range;
  auto number = [&](int64_t value) {
    return APInt(argument.getType().getIntOrFloatBitWidth(), value,
                 /*isSigned=*/true);
  };
  ranges.try_emplace(argument, ConstantIntRanges::fromSigned(
                                   number(least), number(kFarthestPosition)));
}

void NumberIntervals::setCapture(Value argument, const NumberRange &range) {
  intervals[argument] = range;
  most[argument] = kMostOfCapture;
}

std::optional<NumberRange> NumberIntervals::get(Value number) const {
  auto found = intervals.find(number);
  if (found == intervals.end())
    return std::nullopt;
  return found->second;
}

ConstantIntRanges NumberIntervals::getRange(Value integer) const {
  auto found = ranges.find(integer);
  return found != ranges.end()
             ? found->second
             : ConstantIntRanges::maxRange(
                   ConstantIntRanges::getStorageBitwidth(integer.getType()));
}

void NumberIntervals::inferRange(Operation &op) {
  auto isInteger = [](Type type) { return type.isIntOrIndex(); };
  // Upstream's rules are those of arith.
  if (isa<math::AbsIOp>(op)) {
    ConstantIntRanges range = getRange(op.getOperand(0));
    if (!range.smin().isMinSignedValue())
      ranges.try_emplace(
          op.getResult(0),
          ConstantIntRanges::fromSigned(
              APInt::getZero(range.smin().getBitWidth()),
              llvm::APIntOps::smax(-range.smin(), range.smax())));
    return;
  }
  auto inferred = dyn_cast<InferIntRangeInterface>(op);
  if (!inferred || !llvm::all_of(op.getOperandTypes(), isInteger))
    return;
  auto operands = llvm::map_to_vector(
      op.getOperands(), [&](Value operand) { return getRange(operand); });
  inferred.inferResultRanges(operands,
                             [&](Value result, const ConstantIntRanges &range) {
                               ranges.try_emplace(result, range);
                             });
}

std::optional<APInt> NumberIntervals::getConstant(Value integer) const {
  return getRange(integer).getConstantValue();
}

bool NumberIntervals::isNonNegative(Value integer) const {
  return getRange(integer).smin().isNonNegative();
}

bool NumberIntervals::mayOverflow(Operation &op) const {
  constexpr unsigned wide = 128;
  auto operands = llvm::map_to_vector(op.getOperands(), [&](Value operand) {
    return intrange::extSIRange(getRange(operand), wide);
  });
  ConstantIntRanges result =
      llvm::TypeSwitch<Operation *, ConstantIntRanges>(&op)
          .Case([&](arith::AddIOp) { return intrange::inferAdd(operands); })
          .Case([&](arith::SubIOp) { return intrange::inferSub(operands); })
          .Case([&](arith::MulIOp) { return intrange::inferMul(operands); })
          .Default([&](Operation *) { return operands.front(); });
  return !fits(result, op.getResult(0).getType());
}

//===----------------------------------------------------------------------===//
// Integers and floats
//===----------------------------------------------------------------------===//

Value NumberIntervals::constant(Type type, double value) {
  return arith::ConstantOp::create(index.b, index.b.getFloatAttr(type, value));
}

Value NumberIntervals::negate(Value x) {
  return index.b.createOrFold<arith::NegFOp>(x);
}

Value NumberIntervals::min(Value x, Value y) {
  return isa<FloatType>(x.getType()) ? make<arith::MinimumFOp>(x, y)
                                     : index.min(x, y);
}

Value NumberIntervals::max(Value x, Value y) {
  return isa<FloatType>(x.getType()) ? make<arith::MaximumFOp>(x, y)
                                     : index.max(x, y);
}

Value NumberIntervals::mul(Value x, Value y) {
  return isa<FloatType>(x.getType()) ? make<arith::MulFOp>(x, y)
                                     : index.mul(x, y);
}

/// The sign of b, if it is known, says which product is the least.
NumberRange NumberIntervals::multiply(const NumberRange &a,
                                      const NumberRange &b, bool isNonNegative,
                                      bool isNonPositive) {
  if (b.isPoint()) {
    Value x = mul(a.low, b.low), y = mul(a.high, b.low);
    if (isNonNegative)
      return {x, y};
    if (isNonPositive)
      return {y, x};
    return {min(x, y), max(x, y)};
  }
  Value ll = mul(a.low, b.low), lh = mul(a.low, b.high);
  Value hl = mul(a.high, b.low), hh = mul(a.high, b.high);
  return {min(min(ll, lh), min(hl, hh)), max(max(ll, lh), max(hl, hh))};
}

NumberRange NumberIntervals::choose(const NumberRange &a, const NumberRange &b,
                                    Value mayBeTrue, Value mayBeFalse) {
  // Only one of them, where the condition is known.
  auto unlessKnown = [&](Value both, Value x, Value y) {
    if (mayBeFalse)
      both = index.select(mayBeFalse, both, x);
    if (mayBeTrue)
      both = index.select(mayBeTrue, both, y);
    return both;
  };
  Value low = unlessKnown(min(a.low, b.low), a.low, b.low);
  return {low, unlessKnown(max(a.high, b.high), a.high, b.high)};
}

bool NumberIntervals::emit(Operation &op, Value mayBeTrue, Value mayBeFalse) {
  Value result = op.getResult(0);
  Type type = result.getType();
  std::optional<NumberRange> interval;
  if (type.isIntOrIndex()) {
    inferRange(op);
    if (!fits(getRange(result), index.type))
      return false;
  }
  if (isa<arith::SelectOp>(op)) {
    std::optional<NumberRange> a = get(op.getOperand(1)),
                               b = get(op.getOperand(2));
    if (a && b) {
      interval = choose(*a, *b, mayBeTrue, mayBeFalse);
      if (isa<FloatType>(type))
        most[result] = std::max(most.lookup(op.getOperand(1)),
                                most.lookup(op.getOperand(2)));
    }
  } else {
    interval = isa<FloatType>(type) ? computeFloat(op) : computeInteger(op);
  }
  ConstantIntRanges range =
      type.isIntOrIndex() ? getRange(result) : ConstantIntRanges::maxRange(1);
  bool isBounded =
      !range.smin().isMinSignedValue() || !range.smax().isMaxSignedValue();
  if (!interval && type.isIntOrIndex() && isBounded) {
    Value low = index.constant(range.smin().getSExtValue());
    interval = {low, range.getConstantValue()
                         ? low
                         : index.constant(range.smax().getSExtValue())};
  }
  if (interval)
    intervals[result] = *interval;
  return interval.has_value();
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Within one period remainders grow with the dividend, whose sign they have.
NumberRange NumberIntervals::remainder(const NumberRange &a, int64_t divisor) {
  Value n = index.constant(divisor);
  auto quotient = [&](Value x) {
    return index.b.createOrFold<arith::DivSIOp>(x, n);
  };
  Value begin = index.mul(quotient(a.low), n);
  Value isOne = index.equal(begin, index.mul(quotient(a.high), n));
  Value least = index.min(index.max(a.low, 1 - divisor), 0);
  Value most = index.max(index.min(a.high, divisor - 1), 0);
  return {index.select(isOne, index.sub(a.low, begin), least),
          index.select(isOne, index.sub(a.high, begin), most)};
}

/// Where a bound is no number of the type, the integer may be anything.
std::optional<NumberRange>
NumberIntervals::truncateToInteger(const NumberRange &a, IntegerType type) {
  unsigned width = type.getWidth();
  if (width >= 64)
    return std::nullopt;
  ImplicitLocOpBuilder &b = index.b;
  Type from = a.low.getType();
  double end = std::ldexp(1.0, static_cast<int>(width) - 1);
  auto convert = [&](Value bound, int64_t otherwise) {
    using arith::CmpFPredicate;
    Value fits = arith::AndIOp::create(
        b,
        arith::CmpFOp::create(b, CmpFPredicate::OGE, bound,
                              constant(from, -end)),
        arith::CmpFOp::create(b, CmpFPredicate::OLT, bound,
                              constant(from, end)));
    Value safe = arith::SelectOp::create(b, fits, bound, constant(from, 0.0));
    Value integer = arith::FPToSIOp::create(b, type, safe);
    return index.select(fits, index.cast(integer), index.constant(otherwise));
  };
  return NumberRange{
      convert(a.low, APInt::getSignedMinValue(width).getSExtValue()),
      convert(a.high, APInt::getSignedMaxValue(width).getSExtValue())};
}

SmallVector<NumberRange> NumberIntervals::getOperands(Operation &op) const {
  SmallVector<NumberRange> operands;
  for (Value operand : op.getOperands()) {
    std::optional<NumberRange> interval = get(operand);
    if (!interval)
      return {};
    operands.push_back(*interval);
  }
  return operands;
}

std::optional<NumberRange> NumberIntervals::computeInteger(Operation &op) {
  SmallVector<NumberRange> operands = getOperands(op);
  if (operands.empty())
    return std::nullopt;
  const NumberRange &a = operands.front(), &b = operands.back();
  using Result = std::optional<NumberRange>;
  auto unlessOverflow = [&](function_ref<NumberRange()> emit) -> Result {
    if (mayOverflow(op))
      return std::nullopt;
    return emit();
  };
  // Of what grows with its first operand, by a constant that is at least `lo`.
  auto byConstant = [&](int64_t lo, function_ref<Value(Value, int64_t)> emit) {
    std::optional<APInt> number = getConstant(op.getOperand(1));
    if (!number || number->slt(lo) || number->getSignificantBits() > 62)
      return Result();
    return Result(NumberRange{emit(a.low, number->getSExtValue()),
                              emit(a.high, number->getSExtValue())});
  };
  return llvm::TypeSwitch<Operation *, Result>(&op)
      .Case([&](arith::AddIOp) {
        return unlessOverflow([&] {
          return NumberRange{index.add(a.low, b.low),
                             index.add(a.high, b.high)};
        });
      })
      .Case([&](arith::SubIOp) {
        return unlessOverflow([&] {
          return NumberRange{index.sub(a.low, b.high),
                             index.sub(a.high, b.low)};
        });
      })
      .Case([&](arith::MulIOp) {
        ConstantIntRanges range = getRange(op.getOperand(1));
        return unlessOverflow([&] {
          return multiply(a, b, range.smin().isNonNegative(),
                          !range.smax().isStrictlyPositive());
        });
      })
      .Case([&](arith::MinSIOp) {
        return NumberRange{index.min(a.low, b.low), index.min(a.high, b.high)};
      })
      .Case([&](arith::MaxSIOp) {
        return NumberRange{index.max(a.low, b.low), index.max(a.high, b.high)};
      })
      .Case([&](math::AbsIOp) -> Result {
        ConstantIntRanges range = getRange(op.getOperand(0));
        if (range.smin().isMinSignedValue())
          return std::nullopt;
        return NumberRange{index.max(index.max(a.low, index.sub(0, a.high)), 0),
                           index.max(index.sub(0, a.low), a.high)};
      })
      .Case([&](arith::DivSIOp) {
        return byConstant(1, [&](Value x, int64_t divisor) {
          return index.b.createOrFold<arith::DivSIOp>(x,
                                                      index.constant(divisor));
        });
      })
      .Case([&](arith::FloorDivSIOp) {
        return byConstant(1, [&](Value x, int64_t divisor) {
          return index.floorDiv(x, divisor);
        });
      })
      .Case([&](arith::CeilDivSIOp) {
        return byConstant(1, [&](Value x, int64_t divisor) {
          return index.b.createOrFold<arith::CeilDivSIOp>(
              x, index.constant(divisor));
        });
      })
      .Case([&](arith::ShRSIOp) {
        return byConstant(0, [&](Value x, int64_t bits) {
          return index.b.createOrFold<arith::ShRSIOp>(x, index.constant(bits));
        });
      })
      .Case([&](arith::RemSIOp) -> Result {
        std::optional<APInt> divisor = getConstant(op.getOperand(1));
        if (!divisor || !divisor->isStrictlyPositive())
          return std::nullopt;
        return remainder(a, divisor->getSExtValue());
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [&](Operation *) { return unlessOverflow([&] { return a; }); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](Operation *) -> Result {
        if (!isNonNegative(op.getOperand(0)))
          return std::nullopt;
        return unlessOverflow([&] { return a; });
      })
      .Case([&](arith::FPToSIOp) -> Result {
        return truncateToInteger(a,
                                 cast<IntegerType>(op.getResult(0).getType()));
      })
      .Default(Result());
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

std::optional<NumberRange> NumberIntervals::computeFloat(Operation &op) {
  using Result = std::optional<NumberRange>;
  Type type = op.getResult(0).getType();
  if (type.getIntOrFloatBitWidth() > 64)
    return std::nullopt;
  double largest =
      APFloat::getLargest(cast<FloatType>(type).getFloatSemantics())
          .convertToDouble() /
      2;
  // What may be too large for the type may become infinite, and then NaN.
  auto bounded = [&](double size, function_ref<NumberRange()> emit) -> Result {
    if (!(size <= largest))
      return std::nullopt;
    most[op.getResult(0)] = size;
    return emit();
  };
  APFloat number(0.0);
  if (matchPattern(&op, m_ConstantFloat(&number))) {
    if (!number.isFinite())
      return std::nullopt;
    double value = number.convertToDouble();
    return bounded(std::abs(value), [&] {
      Value bound = constant(type, value);
      return NumberRange{bound, bound};
    });
  }
  SmallVector<NumberRange> operands = getOperands(op);
  if (operands.empty())
    return std::nullopt;
  const NumberRange &a = operands.front(), &b = operands.back();
  double mostA = most.lookup(op.getOperand(0));
  double mostB = most.lookup(op.getOperands().back());
  // An operation that keeps the order of its operands.
  auto onBounds = [&](double size, function_ref<Value(Value)> emit) {
    return bounded(size,
                   [&] { return NumberRange{emit(a.low), emit(a.high)}; });
  };
  auto convert = [&]() -> Result {
    ConstantIntRanges range = getRange(op.getOperand(0));
    double size = std::max(std::abs(range.smin().signedRoundToDouble()),
                           std::abs(range.smax().signedRoundToDouble()));
    IndexBuilder integer{index.b, op.getOperand(0).getType()};
    return onBounds(size, [&](Value x) {
      return index.b.createOrFold<arith::SIToFPOp>(type, integer.cast(x));
    });
  };
  return llvm::TypeSwitch<Operation *, Result>(&op)
      .Case([&](arith::SIToFPOp) { return convert(); })
      .Case([&](arith::UIToFPOp) {
        return isNonNegative(op.getOperand(0)) ? convert() : Result();
      })
      .Case([&](arith::AddFOp) {
        return bounded(mostA + mostB, [&] {
          return NumberRange{make<arith::AddFOp>(a.low, b.low),
                             make<arith::AddFOp>(a.high, b.high)};
        });
      })
      .Case([&](arith::SubFOp) {
        return bounded(mostA + mostB, [&] {
          return NumberRange{make<arith::SubFOp>(a.low, b.high),
                             make<arith::SubFOp>(a.high, b.low)};
        });
      })
      .Case([&](arith::MulFOp) {
        APFloat factor(0.0);
        bool isConstant =
            matchPattern(op.getOperand(1), m_ConstantFloat(&factor));
        return bounded(mostA * mostB, [&] {
          return multiply(a, b, isConstant && !factor.isNegative(),
                          isConstant && factor.isNegative());
        });
      })
      .Case([&](arith::NegFOp) {
        return bounded(
            mostA, [&] { return NumberRange{negate(a.high), negate(a.low)}; });
      })
      .Case([&](math::AbsFOp) {
        return bounded(mostA, [&] {
          Value low = make<arith::MaximumFOp>(a.low, negate(a.high));
          return NumberRange{make<arith::MaximumFOp>(low, constant(type, 0.0)),
                             make<arith::MaximumFOp>(negate(a.low), a.high)};
        });
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](Operation *) {
        return bounded(std::max(mostA, mostB), [&] {
          return NumberRange{make<arith::MinimumFOp>(a.low, b.low),
                             make<arith::MinimumFOp>(a.high, b.high)};
        });
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](Operation *) {
        return bounded(std::max(mostA, mostB), [&] {
          return NumberRange{make<arith::MaximumFOp>(a.low, b.low),
                             make<arith::MaximumFOp>(a.high, b.high)};
        });
      })
      .Case<arith::ExtFOp, arith::TruncFOp, math::FloorOp, math::CeilOp,
            math::TruncOp, math::RoundOp, math::RoundEvenOp>([&](Operation *) {
        return onBounds(mostA + 1, [&](Value x) {
          return mlir::clone(index.b, &op, type, x)->getResult(0);
        });
      })
      .Default(Result());
}

//===- TotalScore.cpp - Score regions with a value everywhere -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TotalScore.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The widest integers that code for every target has.
static constexpr unsigned kMostBits = 64;

static bool isNumber(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() > 0 && integer.getWidth() <= kMostBits;
  return isa<IndexType, Float16Type, BFloat16Type, Float32Type, Float64Type>(
      type);
}

static bool isSignedDivision(Operation &op) {
  return isa<arith::DivSIOp, arith::CeilDivSIOp, arith::FloorDivSIOp,
             arith::RemSIOp>(op);
}

static bool isDivision(Operation &op) {
  return isSignedDivision(op) ||
         isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp>(op);
}

static bool isShift(Operation &op) {
  return isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op);
}

LogicalResult varlen::verifyScoreOperation(Operation &op) {
  if (auto lookup = dyn_cast<LookupOp>(op);
      lookup && isa<BlockArgument>(lookup.getTable()))
    return success();
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  if (!isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
      op.getNumRegions() != 0 || !(isPure(&op) || isDivision(op)) ||
      !llvm::all_of(op.getOperandTypes(), isScalar) ||
      !llvm::all_of(op.getResultTypes(), isScalar))
    return op.emitOpError("expected operations of arith and math on numbers, "
                          "and varlen.lookup, in a score region");
  SmallVector<Type> types(op.getOperandTypes());
  llvm::append_range(types, op.getResultTypes());
  for (Type type : types)
    if (!isNumber(type))
      return op.emitOpError("expected numbers of f16, bf16, f32 and f64, of "
                            "index, and of integers with 1 to ")
             << kMostBits << " bits in a score region, got " << type;
  auto refuse = [&](StringRef instead) {
    return op.emitOpError("is no operation of score regions: expected ")
           << instead;
  };
  // A power is a function with loops in it, which kernels have not; nor have
  // all targets the others.
  if (isa<math::IPowIOp>(op))
    return refuse("products, or math.powf of floats");
  if (isa<math::ClampFOp>(op))
    return refuse("arith.maximumf and arith.minimumf");
  if (isa<arith::MulSIExtendedOp, arith::MulUIExtendedOp,
          arith::AddUIExtendedOp>(op))
    return refuse("operations on wider integers");
  if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
    return refuse("arith.mulf, and arith.extf or arith.truncf");
  // No target has another one in a vector, nor in a kernel.
  if (auto truncate = dyn_cast<arith::TruncFOp>(op);
      truncate && truncate.getRoundingmode().value_or(
                      arith::RoundingMode::to_nearest_even) !=
                      arith::RoundingMode::to_nearest_even)
    return op.emitOpError("expected to round to nearest even in a score "
                          "region");
  return success();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

namespace {
/// Writes a value for all operands of one operation.
class TotalEmitter {
public:
  TotalEmitter(OpBuilder &builder, Operation &op, IRMapping &mapping)
      : b(op.getLoc(), builder), op(op), mapping(mapping) {}

  void emit();

private:
  Value operand(unsigned i) {
    return mapping.lookupOrDefault(op.getOperand(i));
  }
  Value constant(Type type, const APInt &value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }
  Value constant(Type type, const APFloat &value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  Value isEqual(Value x, const APInt &value) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x,
                                 constant(x.getType(), value));
  }
  Value compare(arith::CmpFPredicate predicate, Value x, const APFloat &bound) {
    return arith::CmpFOp::create(b, predicate, x, constant(x.getType(), bound));
  }

  /// A copy without what makes poison of a value. `last` takes the place of the
  /// second operand, if it is not null.
  void copy(Value last = {});
  /// 1 in place of a divisor that has no quotient.
  Value getDivisor();
  /// The number of places, modulo the width.
  Value getPlaces();
  Value saturate(bool isSigned);
  Value countZeros(bool isLeading);
  Value classify();

  ImplicitLocOpBuilder b;
  Operation &op;
  IRMapping &mapping;
};
} // namespace

static unsigned getWidth(Type type) {
  return isa<IndexType>(type) ? IndexType::kInternalStorageBitWidth
                              : type.getIntOrFloatBitWidth();
}

void TotalEmitter::copy(Value last) {
  Operation *clone = b.clone(op, mapping);
  if (last)
    clone->setOperand(1, last);
  if (auto integer = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(clone))
    clone->setAttr(integer.getIntegerOverflowAttrName(),
                   arith::IntegerOverflowFlagsAttr::get(
                       b.getContext(), arith::IntegerOverflowFlags::none));
  TypeSwitch<Operation *>(clone)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [](auto exact) { exact.setIsExact(false); });
  auto floats = dyn_cast<arith::ArithFastMathInterface>(clone);
  if (!floats || !floats.getFastMathFlagsAttr())
    return;
  // A NaN of padding would be poison.
  arith::FastMathFlags flags =
      floats.getFastMathFlagsAttr().getValue() &
      ~(arith::FastMathFlags::nnan | arith::FastMathFlags::ninf);
  clone->setAttr(floats.getFastMathAttrName(),
                 arith::FastMathFlagsAttr::get(b.getContext(), flags));
}

/// With a divisor of 1 the smallest number has the quotient by -1 that wraps
/// around, and the remainder 0.
Value TotalEmitter::getDivisor() {
  Value divisor = operand(1);
  Type type = divisor.getType();
  unsigned width = getWidth(type);
  APInt one(width, 1), minusOne = APInt::getAllOnes(width);
  APInt known;
  bool isKnown = matchPattern(divisor, m_ConstantInt(&known));
  Value isBad;
  if (!isKnown)
    isBad = isEqual(divisor, APInt::getZero(width));
  else if (known.isZero())
    return constant(type, one);
  if (isSignedDivision(op) && (!isKnown || known.isAllOnes())) {
    Value overflows = isEqual(operand(0), APInt::getSignedMinValue(width));
    if (!isKnown)
      overflows =
          arith::AndIOp::create(b, overflows, isEqual(divisor, minusOne));
    isBad = isBad ? arith::OrIOp::create(b, isBad, overflows).getResult()
                  : overflows;
  }
  if (!isBad)
    return divisor;
  return arith::SelectOp::create(b, isBad, constant(type, one), divisor);
}

Value TotalEmitter::getPlaces() {
  Value places = operand(1);
  Type type = places.getType();
  unsigned width = getWidth(type);
  APInt known;
  if (matchPattern(places, m_ConstantInt(&known)))
    return known.ult(width) ? places
                            : constant(type, APInt(width, known.urem(width)));
  if (llvm::isPowerOf2_32(width))
    return arith::AndIOp::create(b, places,
                                 constant(type, APInt(width, width - 1)));
  return arith::RemUIOp::create(b, places, constant(type, APInt(width, width)));
}

/// The nearest integer towards 0, of one beyond the type the type's last one,
/// and of NaN 0.
Value TotalEmitter::saturate(bool isSigned) {
  using arith::CmpFPredicate;
  Value x = operand(0);
  Type type = op.getResult(0).getType();
  unsigned width = type.getIntOrFloatBitWidth();
  APInt least = isSigned ? APInt::getSignedMinValue(width)
                         : APInt::getMinValue(width),
        most = isSigned ? APInt::getSignedMaxValue(width)
                        : APInt::getMaxValue(width);
  // The last floats that are in bounds; the next one is the integer behind.
  const llvm::fltSemantics &semantics =
      cast<FloatType>(x.getType()).getFloatSemantics();
  auto toFloat = [&](const APInt &bound) {
    APFloat number(semantics);
    number.convertFromAPInt(bound, isSigned, APFloat::rmTowardZero);
    return number;
  };
  Value isLow = compare(CmpFPredicate::OLT, x, toFloat(least));
  Value isHigh = compare(CmpFPredicate::OGT, x, toFloat(most));
  Value isNaN = arith::CmpFOp::create(b, CmpFPredicate::UNO, x, x);
  Value isOut =
      arith::OrIOp::create(b, arith::OrIOp::create(b, isLow, isHigh), isNaN);
  Value safe = arith::SelectOp::create(
      b, isOut, constant(x.getType(), APFloat::getZero(semantics)), x);
  Value integer = isSigned ? arith::FPToSIOp::create(b, type, safe).getResult()
                           : arith::FPToUIOp::create(b, type, safe).getResult();
  integer = arith::SelectOp::create(b, isLow, constant(type, least), integer);
  return arith::SelectOp::create(b, isHigh, constant(type, most), integer);
}

/// By ctpop, which kernels have: of the bits before the first 1, all of which
/// are 0 in a number that is filled up behind it; or of those behind the last.
Value TotalEmitter::countZeros(bool isLeading) {
  Value x = operand(0);
  Type type = x.getType();
  unsigned width = getWidth(type);
  auto places = [&](unsigned count) {
    return constant(type, APInt(width, count));
  };
  Value ones = constant(type, APInt::getAllOnes(width));
  if (isLeading) {
    for (unsigned count = 1; count < width; count *= 2)
      x = arith::OrIOp::create(b, x,
                               arith::ShRUIOp::create(b, x, places(count)));
    return math::CtPopOp::create(b, arith::XOrIOp::create(b, x, ones));
  }
  Value below = arith::AddIOp::create(b, x, ones);
  return math::CtPopOp::create(
      b, arith::AndIOp::create(b, below, arith::XOrIOp::create(b, x, ones)));
}

/// Upstream makes intrinsics of these, which vectors and kernels do not have.
Value TotalEmitter::classify() {
  using arith::CmpFPredicate;
  Value x = operand(0);
  if (isa<math::IsNaNOp>(op))
    return arith::CmpFOp::create(b, CmpFPredicate::UNO, x, x);
  const llvm::fltSemantics &semantics =
      cast<FloatType>(x.getType()).getFloatSemantics();
  Value size = math::AbsFOp::create(b, x);
  APFloat infinity = APFloat::getInf(semantics);
  if (isa<math::IsInfOp>(op))
    return compare(CmpFPredicate::OEQ, size, infinity);
  Value isFinite = compare(CmpFPredicate::OLT, size, infinity);
  if (isa<math::IsFiniteOp>(op))
    return isFinite;
  return arith::AndIOp::create(
      b, isFinite,
      compare(CmpFPredicate::OGE, size,
              APFloat::getSmallestNormalized(semantics)));
}

void TotalEmitter::emit() {
  if (isDivision(op))
    return copy(getDivisor());
  if (isShift(op))
    return copy(getPlaces());
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return mapping.map(op.getResult(0), saturate(isa<arith::FPToSIOp>(op)));
  if (isa<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp, math::IsNormalOp>(op))
    return mapping.map(op.getResult(0), classify());
  if (isa<math::CountLeadingZerosOp, math::CountTrailingZerosOp>(op))
    return mapping.map(op.getResult(0),
                       countZeros(isa<math::CountLeadingZerosOp>(op)));
  if (auto both = dyn_cast<math::SincosOp>(op)) {
    Value x = operand(0);
    mapping.map(both.getSin(), math::SinOp::create(b, x).getResult());
    mapping.map(both.getCos(), math::CosOp::create(b, x).getResult());
    return;
  }
  copy();
}

void varlen::cloneTotal(OpBuilder &builder, Operation &op, IRMapping &mapping) {
  TotalEmitter(builder, op, mapping).emit();
}

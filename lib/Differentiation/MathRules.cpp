//===- MathRules.cpp - Rules of the math dialect --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "varlen/Differentiation/Registration.h"
#include "varlen/Interfaces/VJPInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::varlen;

// Where Models.h looks for rules.
namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// Functions of one number
//===----------------------------------------------------------------------===//

namespace {
/// The number that an operation is applied to and what it makes of it.
struct Unary {
  template <typename OpTy>
  Unary(OpTy op, VJPBuilder &b) : x(op.getOperand()), y(op.getResult()), b(b) {}

  Value number(double value) { return b.constantLike(x, value); }
  Value square(Value value) { return b.mul(value, value); }
  Value inverse(Value value) { return b.div(number(1), value); }
  /// 1 / sqrt(value).
  Value rsqrt(Value value) { return math::RsqrtOp::create(b, value); }

  Value x, y;
  VJPBuilder &b;
};
} // namespace

static Value getSlope(math::ExpOp op, VJPBuilder &b) { return op; }
static Value getSlope(math::Exp2Op op, VJPBuilder &b) {
  Unary f(op, b);
  return b.mul(f.y, f.number(llvm::numbers::ln2));
}
static Value getSlope(math::ExpM1Op op, VJPBuilder &b) {
  Unary f(op, b);
  return b.add(f.y, f.number(1));
}
static Value getSlope(math::LogOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.inverse(f.x);
}
static Value getSlope(math::Log2Op op, VJPBuilder &b) {
  Unary f(op, b);
  return b.div(f.number(llvm::numbers::log2e), f.x);
}
static Value getSlope(math::Log10Op op, VJPBuilder &b) {
  Unary f(op, b);
  return b.div(f.number(llvm::numbers::log10e), f.x);
}
static Value getSlope(math::Log1pOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.add(f.number(1), f.x));
}
static Value getSlope(math::SqrtOp op, VJPBuilder &b) {
  Unary f(op, b);
  return b.div(f.number(0.5), f.y);
}
static Value getSlope(math::RsqrtOp op, VJPBuilder &b) {
  Unary f(op, b);
  return b.mul(f.number(-0.5), b.div(f.y, f.x));
}
static Value getSlope(math::CbrtOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.mul(f.number(3), f.square(f.y)));
}
static Value getSlope(math::SinOp op, VJPBuilder &b) {
  return math::CosOp::create(b, op.getOperand());
}
static Value getSlope(math::CosOp op, VJPBuilder &b) {
  return b.neg(math::SinOp::create(b, op.getOperand()));
}
static Value getSlope(math::TanOp op, VJPBuilder &b) {
  Unary f(op, b);
  return b.add(f.number(1), f.square(f.y));
}
static Value getSlope(math::AsinOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.rsqrt(b.sub(f.number(1), f.square(f.x)));
}
static Value getSlope(math::AcosOp op, VJPBuilder &b) {
  Unary f(op, b);
  return b.neg(f.rsqrt(b.sub(f.number(1), f.square(f.x))));
}
static Value getSlope(math::AtanOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.add(f.number(1), f.square(f.x)));
}
static Value getSlope(math::SinhOp op, VJPBuilder &b) {
  return math::CoshOp::create(b, op.getOperand());
}
static Value getSlope(math::CoshOp op, VJPBuilder &b) {
  return math::SinhOp::create(b, op.getOperand());
}
static Value getSlope(math::TanhOp op, VJPBuilder &b) {
  Unary f(op, b);
  return b.sub(f.number(1), f.square(f.y));
}
static Value getSlope(math::AsinhOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.rsqrt(b.add(f.square(f.x), f.number(1)));
}
static Value getSlope(math::AcoshOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.rsqrt(b.sub(f.square(f.x), f.number(1)));
}
static Value getSlope(math::AtanhOp op, VJPBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.sub(f.number(1), f.square(f.x)));
}
static Value getSlope(math::ErfOp op, VJPBuilder &b) {
  Unary f(op, b);
  Value bell = math::ExpOp::create(b, b.neg(f.square(f.x)));
  return b.mul(f.number(2 * llvm::numbers::inv_sqrtpi), bell);
}
static Value getSlope(math::ErfcOp op, VJPBuilder &b) {
  Unary f(op, b);
  Value bell = math::ExpOp::create(b, b.neg(f.square(f.x)));
  return b.mul(f.number(-2 * llvm::numbers::inv_sqrtpi), bell);
}
/// 0 at 0.
static Value getSlope(math::AbsFOp op, VJPBuilder &b) {
  Unary f(op, b);
  Value zero = f.number(0);
  Value isNegative = b.compare(arith::CmpFPredicate::OLT, f.x, zero);
  Value isPositive = b.compare(arith::CmpFPredicate::OGT, f.x, zero);
  return b.select(isPositive, f.number(1),
                  b.select(isNegative, f.number(-1), zero));
}

//===----------------------------------------------------------------------===//
// Functions of several
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(math::FmaOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  b.accumulate(op.getA(), b.mul(dy, op.getB()));
  b.accumulate(op.getB(), b.mul(dy, op.getA()));
  b.accumulate(op.getC(), dy);
  return success();
}

/// The power has the derivative 0 where it is 1 for every number.
static LogicalResult pullBack(math::FPowIOp op, VJPBuilder &b) {
  Value x = op.getLhs(), n = op.getRhs();
  // The exponent below the least one of a narrow type.
  if (getElementTypeOrSelf(n).getIntOrFloatBitWidth() < 32) {
    Type wide = b.getI32Type();
    if (auto shaped = dyn_cast<ShapedType>(n.getType()))
      wide = shaped.clone(wide);
    n = arith::ExtSIOp::create(b, wide, n);
  }
  Value isZero = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, n,
                                       b.constantLike(n, 0));
  Value less = arith::SubIOp::create(b, n, b.constantLike(n, 1));
  Value power = math::FPowIOp::create(b, x, less);
  Value factor = arith::SIToFPOp::create(b, x.getType(), n);
  Value slope = b.select(isZero, b.zerosLike(x), b.mul(factor, power));
  b.accumulate(x, b.mul(b.getCotangent(op), slope));
  return success();
}

/// x^0 = 1 has slope 0 at x = 0, and so has 0^y by y.
static LogicalResult pullBack(math::PowFOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op), x = op.getLhs(), y = op.getRhs();
  Value zero = b.zerosLike(y);
  auto isZero = [&](Value value) {
    return b.compare(arith::CmpFPredicate::OEQ, value, zero);
  };
  Value power = math::PowFOp::create(b, x, b.sub(y, b.constantLike(y, 1)));
  Value byX = b.select(isZero(y), zero, b.mul(y, power));
  Value log = math::LogOp::create(b, x);
  Value byY = b.select(isZero(x), zero, b.mul(op.getResult(), log));
  b.accumulate(x, b.mul(dy, byX));
  b.accumulate(y, b.mul(dy, byY));
  return success();
}

static LogicalResult pullBack(math::Atan2Op op, VJPBuilder &b) {
  Value dy = b.getCotangent(op), y = op.getLhs(), x = op.getRhs();
  Value radius = b.add(b.mul(x, x), b.mul(y, y));
  b.accumulate(y, b.mul(dy, b.div(x, radius)));
  b.accumulate(x, b.neg(b.mul(dy, b.div(y, radius))));
  return success();
}

/// By the magnitude; the sign is a step.
static LogicalResult pullBack(math::CopySignOp op, VJPBuilder &b) {
  Value one = b.constantLike(op, 1);
  Value from = math::CopySignOp::create(b, one, op.getLhs());
  Value to = math::CopySignOp::create(b, one, op.getRhs());
  b.accumulate(op.getLhs(), b.mul(b.getCotangent(op), b.mul(from, to)));
  return success();
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerMathVJPExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    attach<SlopeModel, math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp,
           math::Log2Op, math::Log10Op, math::Log1pOp, math::SqrtOp,
           math::RsqrtOp, math::CbrtOp, math::SinOp, math::CosOp, math::TanOp,
           math::AsinOp, math::AcosOp, math::AtanOp, math::SinhOp, math::CoshOp,
           math::TanhOp, math::AsinhOp, math::AcoshOp, math::AtanhOp,
           math::ErfOp, math::ErfcOp, math::AbsFOp>(*context);
    attach<PullBackModel, math::FmaOp, math::FPowIOp, math::PowFOp,
           math::Atan2Op, math::CopySignOp>(*context);
    attach<StepModel, math::FloorOp, math::CeilOp, math::RoundOp,
           math::RoundEvenOp, math::TruncOp>(*context);
  });
}

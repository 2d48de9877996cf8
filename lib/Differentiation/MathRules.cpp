//===- MathRules.cpp - Rules of the math dialect --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "varlen/Differentiation/Registration.h"

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
  Unary(OpTy op, DerivativeBuilder &b)
      : x(op.getOperand()), y(op.getResult()), b(b) {}

  Value number(double value) { return b.constantLike(x, value); }
  Value square(Value value) { return b.mul(value, value); }
  Value inverse(Value value) { return b.div(number(1), value); }
  /// 1 / sqrt(value).
  Value rsqrt(Value value) { return math::RsqrtOp::create(b, value); }

  Value x, y;
  DerivativeBuilder &b;
};
} // namespace

static Value getSlope(math::ExpOp op, DerivativeBuilder &b) { return op; }
static Value getSlope(math::Exp2Op op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.mul(f.y, f.number(llvm::numbers::ln2));
}
static Value getSlope(math::ExpM1Op op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.add(f.y, f.number(1));
}
static Value getSlope(math::LogOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.inverse(f.x);
}
static Value getSlope(math::Log2Op op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.div(f.number(llvm::numbers::log2e), f.x);
}
static Value getSlope(math::Log10Op op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.div(f.number(llvm::numbers::log10e), f.x);
}
static Value getSlope(math::Log1pOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.add(f.number(1), f.x));
}
static Value getSlope(math::SqrtOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.div(f.number(0.5), f.y);
}
static Value getSlope(math::RsqrtOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.mul(f.number(-0.5), b.div(f.y, f.x));
}
static Value getSlope(math::CbrtOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.mul(f.number(3), f.square(f.y)));
}
static Value getSlope(math::SinOp op, DerivativeBuilder &b) {
  return math::CosOp::create(b, op.getOperand());
}
static Value getSlope(math::CosOp op, DerivativeBuilder &b) {
  return b.neg(math::SinOp::create(b, op.getOperand()));
}
static Value getSlope(math::TanOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.add(f.number(1), f.square(f.y));
}
static Value getSlope(math::AsinOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.rsqrt(b.sub(f.number(1), f.square(f.x)));
}
static Value getSlope(math::AcosOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.neg(f.rsqrt(b.sub(f.number(1), f.square(f.x))));
}
static Value getSlope(math::AtanOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.add(f.number(1), f.square(f.x)));
}
static Value getSlope(math::SinhOp op, DerivativeBuilder &b) {
  return math::CoshOp::create(b, op.getOperand());
}
static Value getSlope(math::CoshOp op, DerivativeBuilder &b) {
  return math::SinhOp::create(b, op.getOperand());
}
static Value getSlope(math::TanhOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return b.sub(f.number(1), f.square(f.y));
}
static Value getSlope(math::AsinhOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.rsqrt(b.add(f.square(f.x), f.number(1)));
}
static Value getSlope(math::AcoshOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.rsqrt(b.sub(f.square(f.x), f.number(1)));
}
static Value getSlope(math::AtanhOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  return f.inverse(b.sub(f.number(1), f.square(f.x)));
}
static Value getSlope(math::ErfOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  Value bell = math::ExpOp::create(b, b.neg(f.square(f.x)));
  return b.mul(f.number(2 * llvm::numbers::inv_sqrtpi), bell);
}
static Value getSlope(math::ErfcOp op, DerivativeBuilder &b) {
  Unary f(op, b);
  Value bell = math::ExpOp::create(b, b.neg(f.square(f.x)));
  return b.mul(f.number(-2 * llvm::numbers::inv_sqrtpi), bell);
}
/// 0 at 0.
static Value getSlope(math::AbsFOp op, DerivativeBuilder &b) {
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

static void visitPartials(math::FmaOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visit(op.getA(), [&](Value t) { return b.mul(t, op.getB()); });
  visit(op.getB(), [&](Value t) { return b.mul(t, op.getA()); });
  visit(op.getC(), [](Value t) { return t; });
}

/// The power has the derivative 0 where it is 1 for every number.
static void visitPartials(math::FPowIOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  Value x = op.getLhs();
  visit(x, [&](Value t) {
    Value n = op.getRhs();
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
    return b.mul(t, b.select(isZero, b.zerosLike(x), b.mul(factor, power)));
  });
}

/// x^0 = 1 has slope 0 at x = 0, and so has 0^y by y.
static void visitPartials(math::PowFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  Value x = op.getLhs(), y = op.getRhs();
  auto zeroWhere = [&](Value value, Value slope) {
    Value zero = b.zerosLike(y);
    return b.select(b.compare(arith::CmpFPredicate::OEQ, value, zero), zero,
                    slope);
  };
  visit(x, [&](Value t) {
    Value power = math::PowFOp::create(b, x, b.sub(y, b.constantLike(y, 1)));
    return b.mul(t, zeroWhere(y, b.mul(y, power)));
  });
  visit(y, [&](Value t) {
    Value log = math::LogOp::create(b, x);
    return b.mul(t, zeroWhere(x, b.mul(op.getResult(), log)));
  });
}

static void visitPartials(math::Atan2Op op, DerivativeBuilder &b,
                          VisitPartial visit) {
  Value y = op.getLhs(), x = op.getRhs();
  auto byRadius = [&](Value value) {
    return b.div(value, b.add(b.mul(x, x), b.mul(y, y)));
  };
  visit(y, [&](Value t) { return b.mul(t, byRadius(x)); });
  visit(x, [&](Value t) { return b.neg(b.mul(t, byRadius(y))); });
}

/// By the magnitude; the sign is a step.
static void visitPartials(math::CopySignOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visit(op.getLhs(), [&](Value t) {
    Value one = b.constantLike(op, 1);
    Value from = math::CopySignOp::create(b, one, op.getLhs());
    Value to = math::CopySignOp::create(b, one, op.getRhs());
    return b.mul(t, b.mul(from, to));
  });
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerMathDerivativeExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    attachElementwise<SlopeRule, math::ExpOp, math::Exp2Op, math::ExpM1Op,
                      math::LogOp, math::Log2Op, math::Log10Op, math::Log1pOp,
                      math::SqrtOp, math::RsqrtOp, math::CbrtOp, math::SinOp,
                      math::CosOp, math::TanOp, math::AsinOp, math::AcosOp,
                      math::AtanOp, math::SinhOp, math::CoshOp, math::TanhOp,
                      math::AsinhOp, math::AcoshOp, math::AtanhOp, math::ErfOp,
                      math::ErfcOp, math::AbsFOp>(*context);
    attachElementwise<PartialsRule, math::FmaOp, math::FPowIOp, math::PowFOp,
                      math::Atan2Op, math::CopySignOp>(*context);
    attach<StepVJPModel, math::FloorOp, math::CeilOp, math::RoundOp,
           math::RoundEvenOp, math::TruncOp>(*context);
    attach<StepJVPModel, math::FloorOp, math::CeilOp, math::RoundOp,
           math::RoundEvenOp, math::TruncOp>(*context);
  });
}

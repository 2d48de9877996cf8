//===- ArithRules.cpp - Rules of the arith dialect ------------------------===//
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

using namespace mlir;
using namespace mlir::varlen;

// Where Models.h looks for rules.
namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

static Value same(Value t) { return t; }

static void visitPartials(arith::AddFOp op, DerivativeBuilder &,
                          VisitPartial visit) {
  visit(op.getLhs(), same);
  visit(op.getRhs(), same);
}

static void visitPartials(arith::SubFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visit(op.getLhs(), same);
  visit(op.getRhs(), [&](Value t) { return b.neg(t); });
}

static void visitPartials(arith::MulFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visit(op.getLhs(), [&](Value t) { return b.mul(t, op.getRhs()); });
  visit(op.getRhs(), [&](Value t) { return b.mul(t, op.getLhs()); });
}

static void visitPartials(arith::DivFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visit(op.getLhs(), [&](Value t) { return b.div(t, op.getRhs()); });
  visit(op.getRhs(), [&](Value t) {
    return b.neg(b.mul(b.div(t, op.getRhs()), op.getResult()));
  });
}

/// x - y * trunc(x / y).
static void visitPartials(arith::RemFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visit(op.getLhs(), same);
  visit(op.getRhs(), [&](Value t) {
    Value times = math::TruncOp::create(b, b.div(op.getLhs(), op.getRhs()));
    return b.neg(b.mul(t, times));
  });
}

static void visitPartials(arith::NegFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visit(op.getOperand(), [&](Value t) { return b.neg(t); });
}

/// The larger (smaller) one gets it all, equal ones half each.
template <typename OpTy>
static void visitExtremum(OpTy op, arith::CmpFPredicate better,
                          DerivativeBuilder &b, VisitPartial visit) {
  auto visitSide = [&](Value value, Value other) {
    visit(value, [&](Value t) {
      Value zero = b.zerosLike(t), half = b.mul(t, b.constantLike(t, 0.5));
      Value isEqual =
          b.compare(arith::CmpFPredicate::OEQ, op.getLhs(), op.getRhs());
      Value rest = b.select(isEqual, half, zero);
      return b.select(b.compare(better, value, other), t, rest);
    });
  };
  visitSide(op.getLhs(), op.getRhs());
  visitSide(op.getRhs(), op.getLhs());
}
static void visitPartials(arith::MaximumFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visitExtremum(op, arith::CmpFPredicate::OGT, b, visit);
}
static void visitPartials(arith::MaxNumFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visitExtremum(op, arith::CmpFPredicate::OGT, b, visit);
}
static void visitPartials(arith::MinimumFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visitExtremum(op, arith::CmpFPredicate::OLT, b, visit);
}
static void visitPartials(arith::MinNumFOp op, DerivativeBuilder &b,
                          VisitPartial visit) {
  visitExtremum(op, arith::CmpFPredicate::OLT, b, visit);
}

//===----------------------------------------------------------------------===//
// Linear operations whose transpose is another operation
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(arith::ExtFOp op, VJPBuilder &b) {
  b.accumulate(op.getIn(), arith::TruncFOp::create(b, op.getIn().getType(),
                                                   b.getCotangent(op)));
  return success();
}

static LogicalResult pullBack(arith::TruncFOp op, VJPBuilder &b) {
  b.accumulate(op.getIn(), arith::ExtFOp::create(b, op.getIn().getType(),
                                                 b.getCotangent(op)));
  return success();
}

/// By selection, not by a product with 0: what is not chosen may be infinite.
static LogicalResult pullBack(arith::SelectOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op), zero = b.zerosLike(dy);
  b.accumulate(op.getTrueValue(), b.select(op.getCondition(), dy, zero));
  b.accumulate(op.getFalseValue(), b.select(op.getCondition(), zero, dy));
  return success();
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerArithDerivativeExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    // What the rules are written in.
    context->loadDialect<math::MathDialect>();
    attachElementwise<PartialsRule, arith::AddFOp, arith::SubFOp, arith::MulFOp,
                      arith::DivFOp, arith::RemFOp, arith::NegFOp,
                      arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
                      arith::MinNumFOp>(*context);
    attach<PullBackModel, arith::ExtFOp, arith::TruncFOp, arith::SelectOp>(
        *context);
    attach<LinearModel, arith::ExtFOp, arith::TruncFOp, arith::SelectOp>(
        *context);
  });
}

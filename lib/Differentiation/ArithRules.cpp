//===- ArithRules.cpp - Rules of the arith dialect ------------------------===//
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

using namespace mlir;
using namespace mlir::varlen;

// Where Models.h looks for rules.
namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static LogicalResult pullBack(arith::AddFOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  b.accumulate(op.getLhs(), dy);
  b.accumulate(op.getRhs(), dy);
  return success();
}

static LogicalResult pullBack(arith::SubFOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  b.accumulate(op.getLhs(), dy);
  b.accumulate(op.getRhs(), b.neg(dy));
  return success();
}

static LogicalResult pullBack(arith::MulFOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  b.accumulate(op.getLhs(), b.mul(dy, op.getRhs()));
  b.accumulate(op.getRhs(), b.mul(dy, op.getLhs()));
  return success();
}

static LogicalResult pullBack(arith::DivFOp op, VJPBuilder &b) {
  Value dx = b.div(b.getCotangent(op), op.getRhs());
  b.accumulate(op.getLhs(), dx);
  b.accumulate(op.getRhs(), b.neg(b.mul(dx, op.getResult())));
  return success();
}

/// x - y * trunc(x / y).
static LogicalResult pullBack(arith::RemFOp op, VJPBuilder &b) {
  Value dy = b.getCotangent(op);
  Value times = math::TruncOp::create(b, b.div(op.getLhs(), op.getRhs()));
  b.accumulate(op.getLhs(), dy);
  b.accumulate(op.getRhs(), b.neg(b.mul(dy, times)));
  return success();
}

static LogicalResult pullBack(arith::NegFOp op, VJPBuilder &b) {
  b.accumulate(op.getOperand(), b.neg(b.getCotangent(op)));
  return success();
}

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

/// The larger (smaller) one gets it all, equal ones half each.
template <typename OpTy>
static LogicalResult pullBackExtremum(OpTy op, arith::CmpFPredicate better,
                                      VJPBuilder &b) {
  Value dy = b.getCotangent(op), zero = b.zerosLike(dy);
  Value lhs = op.getLhs(), rhs = op.getRhs();
  Value half = b.mul(dy, b.constantLike(dy, 0.5));
  Value isEqual = b.compare(arith::CmpFPredicate::OEQ, lhs, rhs);
  Value rest = b.select(isEqual, half, zero);
  b.accumulate(lhs, b.select(b.compare(better, lhs, rhs), dy, rest));
  b.accumulate(rhs, b.select(b.compare(better, rhs, lhs), dy, rest));
  return success();
}
static LogicalResult pullBack(arith::MaximumFOp op, VJPBuilder &b) {
  return pullBackExtremum(op, arith::CmpFPredicate::OGT, b);
}
static LogicalResult pullBack(arith::MaxNumFOp op, VJPBuilder &b) {
  return pullBackExtremum(op, arith::CmpFPredicate::OGT, b);
}
static LogicalResult pullBack(arith::MinimumFOp op, VJPBuilder &b) {
  return pullBackExtremum(op, arith::CmpFPredicate::OLT, b);
}
static LogicalResult pullBack(arith::MinNumFOp op, VJPBuilder &b) {
  return pullBackExtremum(op, arith::CmpFPredicate::OLT, b);
}

} // namespace mlir::varlen

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void varlen::registerArithVJPExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    // What the rules are written in.
    context->loadDialect<math::MathDialect>();
    attach<PullBackModel, arith::AddFOp, arith::SubFOp, arith::MulFOp,
           arith::DivFOp, arith::RemFOp, arith::NegFOp, arith::ExtFOp,
           arith::TruncFOp, arith::SelectOp, arith::MaximumFOp,
           arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp>(*context);
  });
}

//===- ReduceAngle.cpp - Angles of a turn ---------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/ReduceAngle.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::reduceAngle(Operation *op) {
  if (!isa<math::SinOp, math::CosOp, math::TanOp>(op))
    return;
  Type type = op->getResult(0).getType();
  if (!getElementTypeOrSelf(type).isF32())
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto constant = [&](float value) {
    return createScalarOrSplatConstant(b, b.getLoc(), type, APFloat(value));
  };
  // x - k * 2 pi, with 2 pi as the sum of three numbers, the first of so few
  // bits that no rounding hides what is left (Cody and Waite, 1980).
  Value angle = op->getOperand(0);
  Value turns = math::RoundEvenOp::create(
      b, arith::MulFOp::create(b, angle, constant(0.15915494F)));
  turns = arith::NegFOp::create(b, turns);
  for (float part : {6.28125F, 1.9353072e-03F, 1.0253376e-11F})
    angle = math::FmaOp::create(b, turns, constant(part), angle);
  op->setOperand(0, angle);
}

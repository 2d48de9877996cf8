//===- AppendElements.cpp - Numbers on their way into a cache -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/AppendElements.h"

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::varlen;

static Value createF32(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

std::pair<Value, Value> varlen::emitTurnedPair(ImplicitLocOpBuilder &b, Value x,
                                               Value y, Value cos, Value sin) {
  auto mul = [&](Value lhs, Value rhs) -> Value {
    return arith::MulFOp::create(b, lhs, rhs);
  };
  Value turnedX = arith::SubFOp::create(b, mul(x, cos), mul(y, sin));
  Value turnedY = arith::AddFOp::create(b, mul(x, sin), mul(y, cos));
  return {turnedX, turnedY};
}

Value varlen::emitLargestMagnitude(ImplicitLocOpBuilder &b, Value largest,
                                   Value x) {
  return arith::MaximumFOp::create(b, largest, math::AbsFOp::create(b, x));
}

Value varlen::emitRowScale(ImplicitLocOpBuilder &b, Value largest,
                           Type element) {
  Value isZero = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, largest,
                                       createF32(b, 0));
  Value scale = arith::DivFOp::create(
      b, largest, createF32(b, getLargestQuantised(element)));
  return arith::SelectOp::create(b, isZero, createF32(b, 1), scale);
}

Value varlen::emitQuantisedElement(ImplicitLocOpBuilder &b, Value x,
                                   Value scale, Type element) {
  Value number = arith::DivFOp::create(b, x, scale);
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, number, number);
  number = arith::SelectOp::create(b, isNaN, createF32(b, 0), number);
  if (element.isInteger())
    number = math::RoundEvenOp::create(b, number);
  double largest = getLargestQuantised(element);
  number = arith::MaximumFOp::create(b, number, createF32(b, -largest));
  number = arith::MinimumFOp::create(b, number, createF32(b, largest));
  if (element.isInteger())
    return arith::FPToSIOp::create(b, element, number);
  return arith::TruncFOp::create(b, element, number);
}

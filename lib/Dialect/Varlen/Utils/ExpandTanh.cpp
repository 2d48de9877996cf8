//===- ExpandTanh.cpp - tanh of vectors -----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/ExpandTanh.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::varlen;

/// (tanh(x) / x - 1) / x^2 in powers of x^2, of the least relative error of
/// tanh up to kSmall: 0.07 units in the last place.
static constexpr float kCoefficients[] = {
    -0.33333284F, 0.13331491F, -0.053743497F, 0.020650586F, -0.0057170433F};
/// Below it 1 - 2 / (e^2x + 1) would lose places.
static constexpr float kSmall = 0.625F;

void varlen::expandTanh(Operation *op) {
  if (!isa<math::TanhOp>(op))
    return;
  Type type = op->getResult(0).getType();
  if (!getElementTypeOrSelf(type).isF32())
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto constant = [&](float value) {
    return createScalarOrSplatConstant(b, b.getLoc(), type, APFloat(value));
  };
  Value x = op->getOperand(0), one = constant(1.0F), two = constant(2.0F);

  Value square = arith::MulFOp::create(b, x, x);
  Value p = constant(std::end(kCoefficients)[-1]);
  for (float coefficient : llvm::reverse(ArrayRef(kCoefficients).drop_back()))
    p = math::FmaOp::create(b, p, square, constant(coefficient));
  Value small =
      math::FmaOp::create(b, arith::MulFOp::create(b, x, square), p, x);

  constexpr float twoLog2e = 2.88539008F;
  Value a = math::AbsFOp::create(b, x);
  Value power =
      math::Exp2Op::create(b, arith::MulFOp::create(b, a, constant(twoLog2e)));
  Value rest =
      arith::DivFOp::create(b, two, arith::AddFOp::create(b, power, one));
  Value large =
      math::CopySignOp::create(b, arith::SubFOp::create(b, one, rest), x);

  Value isSmall =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, a, constant(kSmall));
  op->getResult(0).replaceAllUsesWith(
      arith::SelectOp::create(b, isSmall, small, large));
  op->erase();
}

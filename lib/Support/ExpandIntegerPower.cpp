//===- ExpandIntegerPower.cpp - Powers by integers ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/ExpandIntegerPower.h"

#include "varlen/Support/LaneType.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

static LogicalResult expandIntegerPower(math::FPowIOp op,
                                        PatternRewriter &rewriter) {
  Value n = op.getRhs();
  if (matchPattern(n, m_Constant()))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Type type = op.getType(), compute = type;
  if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() < 32)
    compute = getLaneType(type, b.getF32Type());
  Value x = op.getLhs();
  if (compute != type)
    x = arith::ExtFOp::create(b, compute, x);
  Value power = math::PowFOp::create(b, math::AbsFOp::create(b, x),
                                     arith::SIToFPOp::create(b, compute, n));
  Value isOdd =
      arith::TruncIOp::create(b, getLaneType(n.getType(), b.getI1Type()), n);
  power = arith::SelectOp::create(b, isOdd,
                                  math::CopySignOp::create(b, power, x), power);
  if (compute != type)
    power = arith::TruncFOp::create(b, type, power);
  rewriter.replaceOp(op, power);
  return success();
}

void varlen::populateExpandIntegerPowerPatterns(RewritePatternSet &patterns) {
  patterns.add(expandIntegerPower, /*benefit=*/2);
}

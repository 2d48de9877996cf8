//===- ExpandPairs.cpp - Pairs of bf16 in 32-bit lanes --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bf16 is the upper half of an f32, so a pair of them is a 32-bit lane, and
// both halves are reached by shifts and masks, on integer ports. Two converted
// vectors are interleaved by five shuffles instead.
//
//===----------------------------------------------------------------------===//

#include "LegalizeForCPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

/// The bits of the upper one of two bf16 in 32 bits.
static constexpr int32_t kUpperHalf = -65536;

static Value emitConstant(ImplicitLocOpBuilder &b, VectorType type,
                          int32_t value) {
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, b.getI32IntegerAttr(value)));
}

/// What is rounded to bf16, to nearest and away from zero on a tie.
static Value getRounded(Value narrow) {
  auto op = narrow.getDefiningOp<arith::TruncFOp>();
  if (!op || op.getRoundingmode() != arith::RoundingMode::to_nearest_away)
    return Value();
  auto from = dyn_cast<VectorType>(op.getIn().getType());
  auto to = dyn_cast<VectorType>(op.getType());
  if (!from || from.getRank() != 1 || from.isScalable() ||
      !from.getElementType().isF32() || !to.getElementType().isBF16())
    return Value();
  return op.getIn();
}

/// Sign and magnitude of a float are apart, so half of the last place that is
/// kept rounds away from zero on a tie, whatever the sign.
static LogicalResult expandRounding(vector::InterleaveOp op,
                                    PatternRewriter &rewriter) {
  Value even = getRounded(op.getLhs()), odd = getRounded(op.getRhs());
  if (!even || !odd)
    return rewriter.notifyMatchFailure(
        op, "expected two vectors that are rounded away from zero to bf16");
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  auto words = cast<VectorType>(even.getType()).clone(b.getI32Type());
  auto addHalf = [&](Value value) -> Value {
    value = arith::BitcastOp::create(b, words, value);
    return arith::AddIOp::create(b, value, emitConstant(b, words, 1 << 15));
  };
  Value low = addHalf(even);
  low = arith::ShRUIOp::create(b, low, emitConstant(b, words, 16));
  Value high = addHalf(odd);
  high = arith::AndIOp::create(b, high, emitConstant(b, words, kUpperHalf));
  rewriter.replaceOpWithNewOp<vector::BitCastOp>(
      op, op.getType(), arith::OrIOp::create(b, low, high));
  return success();
}

static LogicalResult expandDot(x86vector::DotBF16Op op,
                               PatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  auto type = cast<VectorType>(op.getType());
  auto words = type.clone(b.getI32Type());
  auto half = [&](Value value, bool odd) -> Value {
    value = vector::BitCastOp::create(b, words, value);
    if (odd)
      value =
          arith::AndIOp::create(b, value, emitConstant(b, words, kUpperHalf));
    else
      value = arith::ShLIOp::create(b, value, emitConstant(b, words, 16));
    return arith::BitcastOp::create(b, type, value);
  };
  Value sum = op.getSrc();
  for (bool odd : {false, true}) {
    Value lhs = half(op.getA(), odd), rhs = half(op.getB(), odd);
    sum = math::FmaOp::create(b, lhs, rhs, sum);
  }
  rewriter.replaceOp(op, sum);
  return success();
}

static LogicalResult convertDotToNeon(x86vector::DotBF16Op op,
                                      PatternRewriter &rewriter) {
  // arm_neon has no operation for it.
  constexpr int64_t lanes = 4;
  if (op.getType().getNumElements() != lanes)
    return rewriter.notifyMatchFailure(op, "expected a vector of 128 bits");
  rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
      op, op.getType(), rewriter.getStringAttr("llvm.aarch64.neon.bfdot"),
      ValueRange{op.getSrc(), op.getA(), op.getB()});
  return success();
}

void varlen::expandPairs(ModuleOp module, const CPUTarget &target) {
  RewritePatternSet patterns(module.getContext());
  patterns.add(expandRounding);
  if (!target.hasBF16Dot)
    patterns.add(expandDot);
  else if (target.arch == llvm::Triple::aarch64)
    patterns.add(convertDotToNeon);
  walkAndApplyPatterns(module, std::move(patterns));
}

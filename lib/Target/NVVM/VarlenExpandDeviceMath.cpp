//===- VarlenExpandDeviceMath.cpp - Functions that a GPU has not ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Support/ExpandIntegerPower.h"
#include "varlen/Support/ExpandTanh.h"
#include "varlen/Support/ReduceAngle.h"
#include "varlen/Support/WidenNarrowFloats.h"
#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDDEVICEMATH
#include "varlen/Target/NVVM/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Arithmetic and functions of f16 and bf16 in f32, each rounded; conversions
/// of f8E4M3FN in terms of those of f16.
static LogicalResult widen(Operation *kernel) {
  if (failed(widenNarrowFloats(kernel)))
    return failure();
  expandF8Conversions(kernel);
  // Upstream lets a rounding and the widening behind it cancel out.
  kernel->walk([&](Operation *op) {
    if (auto extend = dyn_cast<arith::ExtFOp>(op))
      extend.removeFastmathAttr();
    else if (auto truncate = dyn_cast<arith::TruncFOp>(op))
      truncate.removeFastmathAttr();
  });
  return success();
}

static bool isMath(Operation *op) {
  return isa_and_present<math::MathDialect>(op->getDialect());
}

namespace {
/// Builds functions of f32 by cases: a number or a vector of `type`.
struct CaseBuilder {
  Value constant(float value) {
    return createScalarOrSplatConstant(b, b.getLoc(), type, APFloat(value));
  }
  Value compare(arith::CmpFPredicate predicate, Value left, Value right) {
    return arith::CmpFOp::create(b, predicate, left, right);
  }
  Value choose(Value condition, Value then, Value otherwise) {
    return arith::SelectOp::create(b, condition, then, otherwise);
  }

  ImplicitLocOpBuilder &b;
  Type type;
};
} // namespace

/// x^y as exp(y * log|x|) with the sign and the exceptions of C's pow (C17,
/// F.10.4.4). Upstream's expansion is a NaN where x is negative.
static LogicalResult expandPower(math::PowFOp op, PatternRewriter &rewriter) {
  using arith::CmpFPredicate;
  if (!getElementTypeOrSelf(op.getType()).isF32())
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  CaseBuilder c{b, op.getType()};
  // Large numbers are even.
  auto isWhole = [&](Value value) {
    return c.compare(CmpFPredicate::OEQ, value,
                     math::TruncOp::create(b, value));
  };
  Value x = op.getLhs(), y = op.getRhs();
  Value zero = c.constant(0), one = c.constant(1);
  Value size = math::AbsFOp::create(b, x);
  Value power = math::ExpOp::create(
      b, arith::MulFOp::create(b, y, math::LogOp::create(b, size)));
  power = c.choose(c.compare(CmpFPredicate::OEQ, size, one), one, power);
  Value isInteger = isWhole(y);
  Value isEven = isWhole(arith::MulFOp::create(b, y, c.constant(0.5)));
  Value negated =
      c.choose(isEven, power, math::CopySignOp::create(b, power, x));
  Value isNegative = arith::AndIOp::create(
      b, c.compare(CmpFPredicate::OLT, x, zero),
      c.compare(CmpFPredicate::ONE, size, c.constant(INFINITY)));
  Value nan = c.constant(NAN);
  Value ofOthers = c.choose(isNegative, nan, power);
  power = c.choose(isInteger, negated, ofOthers);
  Value isOne = arith::OrIOp::create(b, c.compare(CmpFPredicate::OEQ, x, one),
                                     c.compare(CmpFPredicate::OEQ, y, zero));
  rewriter.replaceOp(op, c.choose(isOne, one, power));
  return success();
}

/// atan2 by the atan of a quotient that is at most 1, with the zeros and the
/// infinities of C (C17, F.10.1.4), of whose quotients upstream's expansion
/// makes NaN.
static LogicalResult expandAtan2(math::Atan2Op op, PatternRewriter &rewriter) {
  using arith::CmpFPredicate;
  if (!getElementTypeOrSelf(op.getType()).isF32())
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  CaseBuilder c{b, op.getType()};
  Value y = op.getLhs(), x = op.getRhs();
  Value height = math::AbsFOp::create(b, y), width = math::AbsFOp::create(b, x);
  Value less = arith::MinimumFOp::create(b, height, width);
  Value more = arith::MaximumFOp::create(b, height, width);
  // 0 / 0 is 0 / 1, and what is infinite twice 1 / 1.
  Value one = c.constant(1);
  Value isZero = c.compare(CmpFPredicate::OEQ, more, c.constant(0));
  Value isInfinite = c.compare(CmpFPredicate::OEQ, less, c.constant(INFINITY));
  Value divisor =
      c.choose(arith::OrIOp::create(b, isZero, isInfinite), one, more);
  Value angle = math::AtanOp::create(
      b, arith::DivFOp::create(b, c.choose(isInfinite, one, less), divisor));
  Value isSteep = c.compare(CmpFPredicate::OGT, height, width);
  angle = c.choose(
      isSteep,
      arith::SubFOp::create(b, c.constant(llvm::numbers::pif / 2), angle),
      angle);
  // -0 is on the left, too.
  Value isLeft = c.compare(CmpFPredicate::OLT,
                           math::CopySignOp::create(b, one, x), c.constant(0));
  angle = c.choose(
      isLeft, arith::SubFOp::create(b, c.constant(llvm::numbers::pif), angle),
      angle);
  rewriter.replaceOpWithNewOp<math::CopySignOp>(op, angle, y);
  return success();
}

/// Polynomials, and functions in terms of others: of f32, and what libdevice's
/// others make of f64.
static LogicalResult expand(Operation *kernel) {
  kernel->walk(reduceAngle);
  // A division that is rounded takes a GPU eight instructions and a branch.
  kernel->walk([](math::TanhOp op) {
    // One that need not be exact has an instruction.
    if (getElementTypeOrSelf(op.getType()).isF32() && !isApproximate(op))
      expandTanh(op, arith::FastMathFlags::afn);
  });
  SmallVector<Operation *> ops;
  kernel->walk([&](Operation *op) {
    if (isMath(op) &&
        (getElementTypeOrSelf(op->getResult(0).getType()).isF32() ||
         isa<math::RsqrtOp, math::FPowIOp, math::TruncOp, math::RoundEvenOp>(
             op)))
      ops.push_back(op);
  });
  if (ops.empty())
    return success();
  MLIRContext *context = kernel->getContext();
  RewritePatternSet patterns(context);
  // log2 has an instruction too, but not one that is exact near 1.
  populateMathPolynomialApproximationPatterns(
      patterns, [](StringRef) { return true; }, /*benefit=*/2);
  math::populateExpansionPatterns(patterns,
                                  {"rsqrt", "tan", "sinh", "cosh", "asinh",
                                   "acosh", "atanh", "fpowi", "clampf"});
  // Before upstream's polynomials.
  patterns.add(expandPower, /*benefit=*/3);
  patterns.add(expandAtan2, /*benefit=*/3);
  populateExpandIntegerPowerPatterns(patterns);
  kernel::populateExpandMathPatterns(patterns);
  return applyOpPatternsGreedily(
      ops, std::move(patterns),
      GreedyRewriteConfig().setStrictness(
          GreedyRewriteStrictness::ExistingAndNewOps));
}

/// What is left, of f64, is libdevice's.
static LogicalResult callLibdevice(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateLibDeviceConversionPatterns(converter, patterns);
  ConversionTarget target(*context);
  target.markUnknownOpDynamicallyLegal(
      [](Operation *op) { return !isMath(op) && !isa<arith::RemFOp>(op); });
  // Those that LLVM has for GPUs.
  target.addLegalOp<math::FmaOp, math::AbsIOp, math::CountLeadingZerosOp,
                    math::CountTrailingZerosOp, math::CtPopOp>();
  return applyPartialConversion(module, target, std::move(patterns));
}

namespace {

struct VarlenExpandDeviceMath
    : varlen::impl::VarlenExpandDeviceMathBase<VarlenExpandDeviceMath> {
  void runOnOperation() override {
    SmallVector<Operation *> kernels;
    SmallVector<gpu::GPUModuleOp> modules;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto module = dyn_cast<gpu::GPUModuleOp>(op))
        modules.push_back(module);
      if (!isa<gpu::LaunchOp, gpu::GPUFuncOp>(op))
        return WalkResult::advance();
      kernels.push_back(op);
      return WalkResult::skip();
    });
    for (Operation *kernel : kernels)
      if (failed(widen(kernel)) || failed(expand(kernel)))
        return signalPassFailure();
    for (gpu::GPUModuleOp module : modules)
      if (failed(callLibdevice(module)))
        return signalPassFailure();
  }
};

} // namespace

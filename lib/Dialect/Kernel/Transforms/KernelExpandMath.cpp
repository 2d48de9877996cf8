//===- KernelExpandMath.cpp - Exponentials in instructions ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Dialect/Kernel/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELEXPANDMATH
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// A function of f32, or of another type, as one instruction per element, which
/// LLVM has an intrinsic for.
template <typename Op> struct ExpandToIntrinsic : OpRewritePattern<Op> {
  ExpandToIntrinsic(MLIRContext *context, StringRef intrinsic,
                    Type element = {},
                    LLVM::FastmathFlags flags = LLVM::FastmathFlags::none,
                    PatternBenefit benefit = 1)
      : OpRewritePattern<Op>(context, benefit), intrinsic(intrinsic),
        element(element ? element : Float32Type::get(context)), flags(flags) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (getElementTypeOrSelf(op.getType()) != element)
      return rewriter.notifyMatchFailure(op, "another type");
    auto vector = dyn_cast<VectorType>(op.getType());
    if (vector && !kernel::isInRegisters(vector))
      return rewriter.notifyMatchFailure(op, "not in registers");
    // By element, then by operand.
    SmallVector<SmallVector<Value>> arguments;
    for (Value operand : op->getOperands()) {
      SmallVector<Value> elements = {operand};
      if (vector)
        elements = llvm::to_vector_of<Value>(
            vector::ToElementsOp::create(rewriter, op.getLoc(), operand)
                .getResults());
      arguments.resize(elements.size());
      for (auto [of, element] : llvm::zip_equal(arguments, elements))
        of.push_back(element);
    }
    SmallVector<Value> elements;
    for (ArrayRef<Value> of : arguments)
      elements.push_back(
          LLVM::CallIntrinsicOp::create(
              rewriter, op.getLoc(), element, rewriter.getStringAttr(intrinsic),
              of, LLVM::FastmathFlagsAttr::get(rewriter.getContext(), flags))
              .getResult(0));
    if (vector)
      rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, vector, elements);
    else
      rewriter.replaceOp(op, elements);
    return success();
  }

private:
  StringRef intrinsic;
  Type element;
  LLVM::FastmathFlags flags;
};

/// tanh.approx, off by up to 2^-11, where the source allows that. LLVM selects
/// it by the flag.
struct ExpandTanh : ExpandToIntrinsic<math::TanhOp> {
  ExpandTanh(MLIRContext *context)
      // Before upstream's polynomial.
      : ExpandToIntrinsic(context, "llvm.tanh.f32", /*element=*/{},
                          LLVM::FastmathFlags::afn, /*benefit=*/3) {}

  LogicalResult matchAndRewrite(math::TanhOp op,
                                PatternRewriter &rewriter) const override {
    if (!isApproximate(op))
      return rewriter.notifyMatchFailure(op, "has to be exact");
    return ExpandToIntrinsic::matchAndRewrite(op, rewriter);
  }
};

} // namespace

/// LLVM has an intrinsic, but upstream's conversion has none for elements of a
/// vector in registers. The absolute value of the smallest number wraps around.
static LogicalResult expandAbsI(math::AbsIOp op, PatternRewriter &rewriter) {
  Value zero = arith::ConstantOp::create(rewriter, op.getLoc(),
                                         rewriter.getZeroAttr(op.getType()));
  Value negated =
      arith::SubIOp::create(rewriter, op.getLoc(), zero, op.getOperand());
  rewriter.replaceOpWithNewOp<arith::MaxSIOp>(op, op.getOperand(), negated);
  return success();
}

namespace {
struct KernelExpandMath : kernel::impl::KernelExpandMathBase<KernelExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    kernel::populateExpandMathPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void kernel::populateExpandMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add(expandAbsI);
  patterns.add<ExpandTanh>(context);
  patterns.add<ExpandToIntrinsic<math::Exp2Op>>(context,
                                                "llvm.nvvm.ex2.approx.ftz.f32");
  patterns.add<ExpandToIntrinsic<math::Log2Op>>(context,
                                                "llvm.nvvm.lg2.approx.ftz.f");
  // One instruction each, but convert-gpu-to-nvvm would call libdevice.
  patterns.add<ExpandToIntrinsic<math::CeilOp>>(context, "llvm.ceil.f32");
  patterns.add<ExpandToIntrinsic<math::AbsFOp>>(context, "llvm.fabs.f32");
  patterns.add<ExpandToIntrinsic<math::CopySignOp>>(context,
                                                    "llvm.copysign.f32");
  patterns.add<ExpandToIntrinsic<math::FloorOp>>(context, "llvm.floor.f32");
  patterns.add<ExpandToIntrinsic<math::RoundOp>>(context, "llvm.round.f32");
  patterns.add<ExpandToIntrinsic<math::RoundEvenOp>>(context,
                                                     "llvm.roundeven.f32");
  patterns.add<ExpandToIntrinsic<math::SqrtOp>>(context, "llvm.sqrt.f32");
  patterns.add<ExpandToIntrinsic<math::TruncOp>>(context, "llvm.trunc.f32");
  // Which it does not know for f64.
  Type f64 = Float64Type::get(context);
  patterns.add<ExpandToIntrinsic<math::RoundEvenOp>>(context,
                                                     "llvm.roundeven.f64", f64);
  patterns.add<ExpandToIntrinsic<math::TruncOp>>(context, "llvm.trunc.f64",
                                                 f64);
}

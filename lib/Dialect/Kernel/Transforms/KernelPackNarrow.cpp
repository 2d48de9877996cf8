//===- KernelPackNarrow.cpp - Conversions of 16 bits in pairs -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Dialect/Kernel/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELPACKNARROW
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;

template <typename Op>
static Value convert(OpBuilder &b, Location loc, Type type, Value high,
                     Value low) {
  return Op::create(b, loc, type, high, low, /*random_bits=*/Value(),
                    NVVM::FPRoundingMode::RN);
}

/// One instruction rounds two f32 into a register. Written as an operation of
/// the target, because LLVM moves selections behind a rounding of two elements
/// and no longer sees the pair then.
static LogicalResult packTruncation(arith::TruncFOp op,
                                    PatternRewriter &rewriter) {
  auto type = dyn_cast<VectorType>(op.getType());
  if (!type || !kernel::isInRegisters(type) || type.getNumElements() % 2 != 0 ||
      !getElementTypeOrSelf(op.getIn().getType()).isF32() ||
      (!type.getElementType().isBF16() && !type.getElementType().isF16()))
    return rewriter.notifyMatchFailure(op, "not pairs of f32 to 16 bits");
  Location loc = op.getLoc();
  auto pair = VectorType::get(2, type.getElementType());
  auto wide = vector::ToElementsOp::create(rewriter, loc, op.getIn());
  SmallVector<Value> narrow;
  for (int64_t i = 0; i < type.getNumElements(); i += 2) {
    Value low = wide.getResult(i), high = wide.getResult(i + 1);
    Value packed = type.getElementType().isBF16()
                       ? convert<NVVM::ConvertF32x2ToBF16x2Op>(rewriter, loc,
                                                               pair, high, low)
                       : convert<NVVM::ConvertF32x2ToF16x2Op>(rewriter, loc,
                                                              pair, high, low);
    llvm::append_range(
        narrow,
        vector::ToElementsOp::create(rewriter, loc, packed).getResults());
  }
  rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, narrow);
  return success();
}

/// Two bf16 of a register are the upper halves of two f32: one instruction
/// each. Element by element ptxas takes a half out of the register first.
static LogicalResult unpackExtension(arith::ExtFOp op,
                                     PatternRewriter &rewriter) {
  auto type = dyn_cast<VectorType>(op.getType());
  if (!type || !kernel::isInRegisters(type) || type.getNumElements() % 2 != 0 ||
      !type.getElementType().isF32() ||
      !getElementTypeOrSelf(op.getIn().getType()).isBF16())
    return rewriter.notifyMatchFailure(op, "not pairs of bf16 to f32");
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Type f32 = b.getF32Type();
  auto pair = VectorType::get(2, b.getBF16Type());
  auto bits = VectorType::get(1, b.getI32Type());
  Value half = arith::ConstantOp::create(b, b.getI32IntegerAttr(16));
  Value upper = arith::ConstantOp::create(b, b.getI32IntegerAttr(0xffff0000));
  auto narrow = vector::ToElementsOp::create(b, op.getIn());
  SmallVector<Value> wide;
  for (int64_t i = 0; i < type.getNumElements(); i += 2) {
    Value packed = vector::FromElementsOp::create(
        b, pair, ValueRange{narrow.getResult(i), narrow.getResult(i + 1)});
    packed = vector::BitCastOp::create(b, bits, packed);
    packed = vector::ExtractOp::create(b, packed, 0);
    Value low = arith::ShLIOp::create(b, packed, half);
    Value high = arith::AndIOp::create(b, packed, upper);
    for (Value x : {low, high})
      wide.push_back(arith::BitcastOp::create(b, f32, x));
  }
  rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, wide);
  return success();
}

namespace {
struct KernelPackNarrow : kernel::impl::KernelPackNarrowBase<KernelPackNarrow> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    kernel::populatePackNarrowPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void kernel::populatePackNarrowPatterns(RewritePatternSet &patterns) {
  patterns.add(packTruncation);
  patterns.add(unpackExtension);
}

//===- VarlenExpandGather.cpp - Entries of tables as loads ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Utils/VectorUtils.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDGATHER
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

static LogicalResult expandGather(GatherOp op, PatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  IndexBuilder index{b};
  Value zero = index.constant(0);
  Value memory = emitFlatTable(index, op.getTable());
  Value offset =
      emitTableOffset(index, op.getTable(), op.getRow(), op.getIndex());
  auto load = [&](Value offset) -> Value {
    return memref::LoadOp::create(b, memory, index.cast(offset));
  };
  auto type = dyn_cast<VectorType>(op.getEntry().getType());
  if (!type) {
    rewriter.replaceOp(op, load(offset));
    return success();
  }
  Value entries = arith::ConstantOp::create(b, b.getZeroAttr(type));
  if (type.getRank() == 1) {
    auto flags = type.clone(b.getI1Type());
    Value mask =
        arith::ConstantOp::create(b, DenseElementsAttr::get(flags, true));
    rewriter.replaceOpWithNewOp<vector::GatherOp>(op, type, memory, zero,
                                                  offset, mask, entries);
    return success();
  }
  for (const SmallVector<int64_t> &at : StaticTileOffsetRange(
           type.getShape(), SmallVector<int64_t>(type.getRank(), 1)))
    entries = vector::InsertOp::create(
        b, load(vector::ExtractOp::create(b, offset, at)), entries, at);
  rewriter.replaceOp(op, entries);
  return success();
}

namespace {
struct VarlenExpandGather
    : varlen::impl::VarlenExpandGatherBase<VarlenExpandGather> {
  void getDependentDialects(DialectRegistry &registry) const override {
    VarlenExpandGatherBase::getDependentDialects(registry);
    // Of indices that are frozen.
    registry.insert<LLVM::LLVMDialect>();
  }
  void runOnOperation() override {
    getOperation()->walk([&](GatherOp) { ++numGathers; });
    RewritePatternSet patterns(&getContext());
    patterns.add(expandGather);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

//===- KernelExpandReductions.cpp - Row reductions in instructions --------===//
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
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELEXPANDREDUCTIONS
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

static bool isIdentity(vector::CombiningKind kind, Attribute start) {
  auto splat = dyn_cast<SplatElementsAttr>(start);
  if (!splat || !isa<FloatType>(splat.getElementType()))
    return false;
  APFloat value = splat.getSplatValue<APFloat>();
  if (kind == vector::CombiningKind::ADD)
    return value.isNegZero();
  return kind == vector::CombiningKind::MAXNUMF && value.isInfinity() &&
         value.isNegative();
}

/// The reduction of columns that a thread has, as a balanced tree: upstream
/// lowers it to a chain, whose latency shows.
static LogicalResult reduceInThread(vector::MultiDimReductionOp op,
                                    PatternRewriter &rewriter) {
  VectorType type = op.getSourceVectorType();
  if (type.getRank() != 4 || op.getReductionDims() != ArrayRef<int64_t>{1, 3} ||
      !isInRegisters(type))
    return rewriter.notifyMatchFailure(op, "not of a fragment's columns");
  Location loc = op.getLoc();
  auto acc = vector::ToElementsOp::create(rewriter, loc, op.getAcc());
  // The start that kernel-distribute gives changes nothing.
  Attribute start;
  bool hasStart = !matchPattern(op.getAcc(), m_Constant(&start)) ||
                  !isIdentity(op.getKind(), start);
  SmallVector<Value> results;
  for (int64_t mTile = 0; mTile < type.getDimSize(0); ++mTile)
    for (int64_t half = 0; half < type.getDimSize(2); ++half) {
      SmallVector<Value> level;
      for (int64_t nTile = 0; nTile < type.getDimSize(1); ++nTile)
        for (int64_t column = 0; column < type.getDimSize(3); ++column)
          level.push_back(vector::ExtractOp::create(
              rewriter, loc, op.getSource(),
              ArrayRef<int64_t>{mTile, nTile, half, column}));
      if (hasStart)
        level.push_back(acc.getResult(results.size()));
      while (level.size() > 1) {
        SmallVector<Value> next;
        for (size_t i = 0; i + 1 < level.size(); i += 2)
          next.push_back(vector::makeArithReduction(rewriter, loc, op.getKind(),
                                                    level[i], level[i + 1]));
        if (level.size() % 2 == 1)
          next.push_back(level.back());
        level = std::move(next);
      }
      results.push_back(level.front());
    }
  rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
      op, cast<VectorType>(op.getDestType()), results);
  return success();
}

/// Upstream's pattern for clusters takes scalars only.
static LogicalResult reduceEachElement(gpu::SubgroupReduceOp op,
                                       PatternRewriter &rewriter) {
  auto type = dyn_cast<VectorType>(op.getType());
  if (!type || !op.getClusterSize() || !isInRegisters(type))
    return rewriter.notifyMatchFailure(op, "not a cluster's vector");
  Location loc = op.getLoc();
  SmallVector<Value> results;
  for (Value element :
       vector::ToElementsOp::create(rewriter, loc, op.getValue()).getResults())
    results.push_back(gpu::SubgroupReduceOp::create(
        rewriter, loc, element, op.getOp(), op.getUniform(),
        op.getClusterSize(), op.getClusterStride()));
  rewriter.replaceOpWithNewOp<vector::FromElementsOp>(op, type, results);
  return success();
}

static constexpr unsigned kShuffleBits = 32;

/// That shuffles of a warp can do the reduction.
static LogicalResult verifyReduction(gpu::SubgroupReduceOp op) {
  std::optional<uint32_t> size = op.getClusterSize();
  if (!size)
    return success();
  if (*size > kWarpLanes)
    return op.emitOpError("expected a cluster of at most ")
           << kWarpLanes << " lanes, got " << *size;
  auto vector = dyn_cast<VectorType>(op.getType());
  Type element = getElementTypeOrSelf(op.getType());
  if (element.getIntOrFloatBitWidth() <= kShuffleBits &&
      (!vector || isInRegisters(vector)))
    return success();
  return op.emitOpError("expected numbers of at most ")
         << kShuffleBits << " bits, as many as registers hold, got "
         << op.getType();
}

namespace {
struct KernelExpandReductions
    : kernel::impl::KernelExpandReductionsBase<KernelExpandReductions> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](gpu::SubgroupReduceOp op) {
      return WalkResult(verifyReduction(op));
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    populateExpandReductionsPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void kernel::populateExpandReductionsPatterns(RewritePatternSet &patterns) {
  patterns.add(reduceInThread).add(reduceEachElement);
  populateGpuLowerClusteredSubgroupReduceToShufflePatterns(patterns, kWarpLanes,
                                                           kShuffleBits);
}

//===- KernelDeferRowSum.cpp - Sum over lanes after the loop --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// l = l * alpha + sum(p) in a loop, with the sum over the four lanes of a row:
// each lane can as well keep its own part of l and the lanes be summed once,
// after the loop. That holds because a row statistic, and so alpha, is the same
// in the four lanes, and because l is linear in its parts.
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELDEFERROWSUM
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

namespace {
/// A loop-carried sum: iteration argument `index` of `loop`.
struct Site {
  scf::ForOp loop;
  unsigned index;
  /// The sum over lanes that each iteration adds.
  gpu::SubgroupReduceOp sum;

  Value init() { return loop.getInitArgs()[index]; }
  OpOperand &initOperand() { return loop.getInitsMutable()[index]; }
  Value result() { return loop.getResult(index); }
};
} // namespace

/// The sum over the lanes of a row that `value` is, if nothing else uses it.
static gpu::SubgroupReduceOp getRowSum(Value value) {
  auto cast = value.getDefiningOp<vector::ShapeCastOp>();
  if (!cast || !cast->hasOneUse())
    return {};
  auto sum = cast.getSource().getDefiningOp<gpu::SubgroupReduceOp>();
  return sum && sum->hasOneUse() &&
                 sum.getOp() == gpu::AllReduceOperation::ADD &&
                 sum.getClusterSize() == 4u && sum.getClusterStride() == 1
             ? sum
             : nullptr;
}

static std::optional<Site> match(scf::ForOp loop, unsigned index) {
  BlockArgument carried = loop.getRegionIterArg(index);
  auto add = loop.getYieldedValues()[index].getDefiningOp<arith::AddFOp>();
  if (!add || !add->hasOneUse() || !carried.hasOneUse())
    return std::nullopt;
  Value kept = add.getLhs();
  gpu::SubgroupReduceOp sum = getRowSum(add.getRhs());
  if (!sum) {
    kept = add.getRhs();
    sum = getRowSum(add.getLhs());
  }
  auto scaled = kept.getDefiningOp<arith::MulFOp>();
  bool isLinear =
      kept == carried || (scaled && scaled->hasOneUse() &&
                          llvm::is_contained(scaled->getOperands(), carried));
  if (!sum || !isLinear)
    return std::nullopt;
  return Site{loop, index, sum};
}

/// A value that one of the four lanes of a row has, and the others have as
/// zero.
static Value keepInFirstLane(ThreadBuilder &b, Value value) {
  if (matchPattern(value, m_AnyZeroFloat()))
    return value;
  auto type = cast<VectorType>(value.getType());
  Value isFirst = vector::BroadcastOp::create(b, type.clone(b.getI1Type()),
                                              b.isFirstOfRow());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return arith::SelectOp::create(b, isFirst, value, zero);
}

namespace {
struct KernelDeferRowSum
    : kernel::impl::KernelDeferRowSumBase<KernelDeferRowSum> {
  void runOnOperation() override {
    SmallVector<Site> sites;
    getOperation()->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
        if (std::optional<Site> site = match(loop, i))
          sites.push_back(*site);
    });
    numDeferred += sites.size();
    // A loop may carry the parts of an earlier one on: uses between the two
    // stay parts.
    auto isCarriedOn = [&](OpOperand &use) {
      return llvm::any_of(
          sites, [&](Site &site) { return &site.initOperand() == &use; });
    };
    auto isPart = [&](Value value) {
      return llvm::any_of(sites,
                          [&](Site &site) { return site.result() == value; });
    };
    for (Site &site : sites)
      if (!isPart(site.init())) {
        ThreadBuilder b(site.loop.getLoc(), OpBuilder(site.loop));
        site.initOperand().set(keepInFirstLane(b, site.init()));
      }
    for (Site &site : sites) {
      site.sum.replaceAllUsesWith(site.sum.getValue());
      site.sum.erase();
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : site.result().getUses())
        if (!isCarriedOn(use))
          uses.push_back(&use);
      if (uses.empty())
        continue;
      OpBuilder after(site.loop->getContext());
      after.setInsertionPointAfter(site.loop);
      ThreadBuilder b(site.loop.getLoc(), after);
      Value parts = site.result();
      Value total = reduceLanes(b, parts, gpu::AllReduceOperation::ADD,
                                cast<VectorType>(parts.getType()));
      for (OpOperand *use : uses)
        use->set(total);
    }
  }
};
} // namespace

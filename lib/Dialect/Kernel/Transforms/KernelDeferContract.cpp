//===- KernelDeferContract.cpp - Contractions one iteration later ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of attention multiplies, computes on the product, and multiplies the
// result: what lies between waits for the first contraction, and the second
// waits for that. With the second one iteration later both contractions are
// independent of the work between, which they run beside (Shah et al.,
// FlashAttention-3, section 3.2: overlap within a warpgroup).
//
// The first iteration is peeled, but for what is deferred, and the last one's
// deferred contraction comes after the loop: a branch in the loop would make
// ptxas wait for each instruction of wgmma (C7520).
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELDEFERCONTRACT
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

namespace {
/// A contraction of a loop into what the loop carries.
struct Deferred {
  kernel::ContractOp contract;
  /// Numbers of the iteration argument and of the operand of the yield.
  unsigned index;
  /// The tile of the slot that it reads.
  unsigned tile;
};

/// A loop over the slots of a ring.
class SlotLoop {
public:
  static std::optional<SlotLoop> match(scf::ForOp loop);

  void rewrite(IRRewriter &rewriter);

private:
  Value emitContract(ImplicitLocOpBuilder &b, Deferred &deferred, Value factor,
                     ValueRange slot, Value acc);
  Operation *getPlace(ArrayRef<BlockArgument> sums, Operation *from);

  scf::ForOp loop;
  RingWaitOp wait;
  RingReleaseOp release;
  /// What does not need the sums, and goes before what is deferred.
  kernel::ContractOp first;
  SmallVector<Deferred, 2> all;
};

struct KernelDeferContract
    : kernel::impl::KernelDeferContractBase<KernelDeferContract> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    for (scf::ForOp loop : loops)
      if (std::optional<SlotLoop> slots = SlotLoop::match(loop)) {
        slots->rewrite(rewriter);
        ++numDeferred;
      }
  }
};
} // namespace

/// The operation of a type in the loop's block that is on the slot of the
/// iteration, if there is one.
template <typename Op> static Op getOnSlot(scf::ForOp loop) {
  for (auto op : loop.getBody()->getOps<Op>())
    if (op.getI() == loop.getInductionVar())
      return op;
  return {};
}

std::optional<SlotLoop> SlotLoop::match(scf::ForOp loop) {
  SlotLoop slots;
  slots.loop = loop;
  slots.wait = getOnSlot<RingWaitOp>(loop);
  slots.release = getOnSlot<RingReleaseOp>(loop);
  if (!slots.wait || !slots.release ||
      slots.wait.getRing() != slots.release.getRing() ||
      getConstantIntValue(loop.getStep()) != 1)
    return std::nullopt;
  // The slot before is read while that of the iteration is.
  auto ring = slots.wait.getRing().getDefiningOp<RingOp>();
  if (!ring || ring.getLag() == 0)
    return std::nullopt;
  for (auto [index, yielded] :
       llvm::enumerate(loop.getBody()->getTerminator()->getOperands())) {
    auto contract = yielded.getDefiningOp<kernel::ContractOp>();
    if (!contract || contract->getBlock() != loop.getBody() ||
        !contract->hasOneUse() || !isFactor(contract.getA().getType()) ||
        contract.getAcc().getDefiningOp<kernel::ContractOp>() ||
        contract.getB().getDefiningOp() != slots.wait.getOperation())
      continue;
    slots.all.push_back({contract, static_cast<unsigned>(index),
                         cast<OpResult>(contract.getB()).getResultNumber()});
  }
  auto isDeferred = [&](kernel::ContractOp contract) {
    return llvm::is_contained(
        llvm::map_range(slots.all, [](auto &d) { return d.contract; }),
        contract);
  };
  for (auto contract : loop.getBody()->getOps<kernel::ContractOp>())
    if (!isDeferred(contract)) {
      slots.first = contract;
      break;
    }
  if (slots.all.empty() || !slots.first)
    return std::nullopt;
  // Sums are complete only after `first`.
  for (Deferred &deferred : slots.all)
    for (Operation *user : loop.getRegionIterArg(deferred.index).getUsers()) {
      Operation *ancestor = loop.getBody()->findAncestorOpInBlock(*user);
      if (!slots.first->isBeforeInBlock(ancestor))
        return std::nullopt;
    }
  return slots;
}

Value SlotLoop::emitContract(ImplicitLocOpBuilder &b, Deferred &deferred,
                             Value factor, ValueRange slot, Value acc) {
  kernel::ContractOp contract = deferred.contract;
  return kernel::ContractOp::create(b, acc.getType(), factor,
                                    slot[deferred.tile], acc, contract.getK(),
                                    contract.getAT(), contract.getBT());
}

/// Before the first use of the sums, and before another factor is written.
Operation *SlotLoop::getPlace(ArrayRef<BlockArgument> sums, Operation *from) {
  Block *block = loop.getBody();
  auto uses = [&](Operation *op) {
    return llvm::any_of(sums, [&](BlockArgument sum) {
      return llvm::any_of(sum.getUsers(), [&](Operation *user) {
        return block->findAncestorOpInBlock(*user) == op;
      });
    });
  };
  Operation *op = from;
  while (op != block->getTerminator() && !uses(op) &&
         llvm::none_of(op->getResultTypes(), isFactor))
    op = op->getNextNode();
  return op;
}

void SlotLoop::rewrite(IRRewriter &rewriter) {
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Value ring = wait.getRing();
  auto before = [&](Value i) -> Value {
    Value one = arith::ConstantOp::create(b, b.getIntegerAttr(i.getType(), 1));
    return arith::SubIOp::create(b, i, one);
  };
  auto slotOf = [&](Value i) {
    return RingSlotOp::create(b, ring, i).getResults();
  };
  Value begin = loop.getLowerBound(), end = loop.getUpperBound();
  Value any = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, begin, end);
  auto branch = scf::IfOp::create(b, loop.getResultTypes(), any,
                                  /*withElseRegion=*/true);
  rewriter.replaceAllUsesWith(loop.getResults(), branch.getResults());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loop.getInitArgs());
  b.setInsertionPointToStart(branch.thenBlock());

  // The first iteration, but for what is deferred.
  IRMapping map;
  map.map(loop.getInductionVar(), begin);
  map.map(loop.getRegionIterArgs(), loop.getInitArgs());
  auto isLeft = [&](Operation &op) {
    return &op == release.getOperation() ||
           llvm::any_of(all, [&](Deferred &deferred) {
             return deferred.contract.getOperation() == &op;
           });
  };
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isLeft(op))
      b.clone(op, map);
  auto *yield = loop.getBody()->getTerminator();
  for (Deferred &deferred : all)
    yield->setOperand(deferred.index, deferred.contract.getAcc());
  SmallVector<Value> inits, factors, newFactors;
  for (Value value : yield->getOperands())
    inits.push_back(map.lookupOrDefault(value));
  for (Deferred &deferred : all) {
    factors.push_back(map.lookupOrDefault(deferred.contract.getA()));
    newFactors.push_back(deferred.contract.getA());
  }

  // The others, each with what the one before has deferred.
  Value one =
      arith::ConstantOp::create(b, b.getIntegerAttr(begin.getType(), 1));
  Value second = arith::AddIOp::create(b, begin, one);
  rewriter.moveOpBefore(loop, branch.thenBlock(), b.getInsertionPoint());
  loop.getLowerBoundMutable().assign(second);
  loop.getInitArgsMutable().assign(inits);
  rewriter.setInsertionPoint(loop);
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, factors, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return newFactors;
      }));
  SmallVector<BlockArgument> sums;
  for (Deferred &deferred : all)
    sums.push_back(loop.getRegionIterArg(deferred.index));
  auto carried = loop.getRegionIterArgs().take_back(all.size());
  b.setInsertionPointAfter(first);
  Value i = before(loop.getInductionVar());
  ValueRange slot = slotOf(i);
  b.setInsertionPoint(getPlace(sums, slot.front().getDefiningOp()));
  for (auto [deferred, sum, factor] : llvm::zip_equal(all, sums, carried)) {
    Value result = emitContract(b, deferred, factor, slot, sum);
    sum.replaceAllUsesExcept(result, result.getDefiningOp());
  }
  RingReleaseOp::create(b, ring, i);
  rewriter.eraseOp(release);
  for (Deferred &deferred : all)
    rewriter.eraseOp(deferred.contract);

  // What the last one has deferred.
  b.setInsertionPointAfter(loop);
  SmallVector<Value> results(loop.getResults().drop_back(all.size()));
  Value last = before(end);
  slot = slotOf(last);
  auto lastFactors = loop.getResults().take_back(all.size());
  for (auto [deferred, factor] : llvm::zip_equal(all, lastFactors))
    results[deferred.index] =
        emitContract(b, deferred, factor, slot, results[deferred.index]);
  RingReleaseOp::create(b, ring, last);
  scf::YieldOp::create(b, results);
}

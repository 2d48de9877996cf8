//===- KernelPlaceWaits.cpp - Slots of several rings no longer than used --===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELPLACEWAITS
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// The uses of the memory of a slot, as operations of the block of its wait, in
/// order.
static SmallVector<Operation *> getUses(RingWaitOp wait) {
  SmallVector<Operation *> uses;
  for (Operation *user : wait->getUsers())
    uses.push_back(wait->getBlock()->findAncestorOpInBlock(*user));
  llvm::sort(uses, [](Operation *x, Operation *y) {
    return x != y && x->isBeforeInBlock(y);
  });
  return uses;
}

/// Whether `op` fetches a slot of `ring`, or says that it has.
static bool fetches(Operation *op, Value ring) {
  if (auto commit = dyn_cast<RingCommitOp>(op))
    return commit.getRing() == ring;
  auto isOfRing = [&](RingAcquireOp acquire) {
    return acquire.getRing() == ring ? WalkResult::interrupt()
                                     : WalkResult::advance();
  };
  return op->walk(isOfRing).wasInterrupted();
}

/// Moves the wait, and what is fetched to its ring behind it, to the first use
/// of the slot, and the release behind the last one.
static bool place(RingWaitOp wait) {
  SmallVector<Operation *> uses = getUses(wait);
  if (uses.empty())
    return false;
  SmallVector<Operation *> moved = {wait};
  RingReleaseOp release;
  for (Operation *op = wait->getNextNode(); op && !release;
       op = op->getNextNode()) {
    auto other = dyn_cast<RingReleaseOp>(op);
    if (other && other.getRing() == wait.getRing() &&
        other.getI() == wait.getI())
      release = other;
    else if (fetches(op, wait.getRing()))
      moved.push_back(op);
  }
  for (Operation *op : moved)
    op->moveBefore(uses.front());
  if (release)
    release->moveAfter(uses.back());
  return true;
}

namespace {
struct KernelPlaceWaits : kernel::impl::KernelPlaceWaitsBase<KernelPlaceWaits> {
  void runOnOperation() override {
    SmallVector<RingWaitOp> waits;
    getOperation()->walk([&](Block *block) {
      SmallVector<RingWaitOp> ofBlock(block->getOps<RingWaitOp>());
      auto ringOf = [](RingWaitOp wait) { return wait.getRing(); };
      if (!llvm::all_equal(llvm::map_range(ofBlock, ringOf)))
        llvm::append_range(waits, ofBlock);
    });
    for (RingWaitOp wait : waits)
      numPlaced += place(wait);
  }
};
} // namespace

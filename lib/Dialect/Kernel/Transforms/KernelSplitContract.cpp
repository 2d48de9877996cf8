//===- KernelSplitContract.cpp - Contractions in flight -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELSPLITCONTRACT
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// Whether shared memory may be written again after `op`, or by an operation
/// within it.
static bool mayHandBackMemory(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        return isa<gpu::BarrierOp, RingReleaseOp>(nested)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The operation before which the result of `contract` has to be there.
static Operation *getFirstUse(kernel::ContractOp contract) {
  Block *block = contract->getBlock();
  Operation *first = block->getTerminator();
  for (Operation *user : contract->getUsers())
    if (Operation *ancestor = block->findAncestorOpInBlock(*user);
        ancestor && ancestor->isBeforeInBlock(first))
      first = ancestor;
  for (Operation *op = contract->getNextNode(); op != first;
       op = op->getNextNode())
    if (mayHandBackMemory(op))
      return op;
  return first;
}

namespace {
struct KernelSplitContract
    : kernel::impl::KernelSplitContractBase<KernelSplitContract> {
  void runOnOperation() override {
    SmallVector<kernel::ContractOp> contracts;
    getOperation()->walk(
        [&](kernel::ContractOp contract) { contracts.push_back(contract); });
    SmallVector<WaitOp> waits;
    for (kernel::ContractOp contract : contracts) {
      OpBuilder b(contract);
      auto start = StartOp::create(
          b, contract.getLoc(),
          PendingType::get(b.getContext(), contract.getResult().getType()),
          contract.getA(), contract.getB(), contract.getAcc(), contract.getK(),
          contract.getAT(), contract.getBT());
      b.setInsertionPoint(getFirstUse(contract));
      auto wait =
          WaitOp::create(b, contract.getLoc(), contract.getResult().getType(),
                         start.getResult(), /*younger=*/0);
      contract.getResult().replaceAllUsesWith(wait.getResult());
      contract.erase();
      waits.push_back(wait);
    }
    for (WaitOp wait : waits) {
      Operation *start = wait.getPending().getDefiningOp();
      int32_t younger = 0;
      for (Operation *op = start->getNextNode(); op != wait;
           op = op->getNextNode())
        // One in a loop or a branch may not have happened.
        younger += isa<StartOp>(op);
      wait.setYounger(younger);
      numOverlapped += start->getNextNode() != wait;
    }
  }
};
} // namespace

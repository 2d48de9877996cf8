//===- KernelSplitContract.cpp - Contractions in flight -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"
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
        return isa<gpu::BarrierOp, RingReleaseOp, RingRestartOp>(nested)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether `op` writes registers that a later contraction reads as its factor:
/// no contraction may be in flight then, or the assembler makes them all wait
/// (ptxas, C7513).
static bool writesFactor(Operation *op) {
  return llvm::any_of(op->getResultTypes(), isFactor);
}

/// Whether the contraction is one term of a sum of several, which
/// kernel-lower-contract takes together.
static bool isTerm(kernel::ContractOp contract) {
  auto isSum = [&](Operation *user) {
    auto next = dyn_cast<kernel::ContractOp>(user);
    return next && next.getAcc() == contract.getResult();
  };
  return contract.getAcc().getDefiningOp<kernel::ContractOp>() ||
         llvm::any_of(contract->getUsers(), isSum);
}

/// Registers of a thread that accumulators may take, of 255, if contractions
/// are to be in flight beside other work: what waits has its registers
/// meanwhile. With 176 and more dk and dv at head_dim 128 spill, and are no
/// faster (H200).
static constexpr int64_t kAccumulatorRegisters = 160;

/// Registers of the fragments of a block: those that a loop carries, and the
/// accumulators that its contractions start with zero.
static int64_t countRegisters(Block *block) {
  int64_t count = 0;
  auto add = [&](Value value) {
    if (auto fragment = dyn_cast<VectorType>(value.getType()))
      count +=
          fragment.getNumElements() * fragment.getElementTypeBitWidth() / 32;
  };
  llvm::for_each(block->getArguments(), add);
  for (auto contract : block->getOps<kernel::ContractOp>())
    if (!isa<BlockArgument>(contract.getAcc()))
      add(contract.getResult());
  return count;
}

/// Whether the result of `other` is used before `contract`.
static bool isUsedBefore(kernel::ContractOp other,
                         kernel::ContractOp contract) {
  return llvm::any_of(other->getUsers(), [&](Operation *user) {
    Operation *ancestor = contract->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && ancestor->isBeforeInBlock(contract);
  });
}

/// Moves a contraction behind the last operation that makes one of its operands
/// or lets shared memory be read or written, and behind the contractions that
/// are there and come first: a step that writes two products before it uses
/// either says which it needs first.
static void moveUp(kernel::ContractOp contract) {
  auto isOperand = [&](Operation *op) {
    return llvm::any_of(contract->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() == op;
    });
  };
  Operation *last = contract->getPrevNode();
  while (last && !isOperand(last) && !mayHandBackMemory(last) &&
         !isa<RingWaitOp>(last))
    last = last->getPrevNode();
  while (last) {
    auto next = dyn_cast_or_null<kernel::ContractOp>(last->getNextNode());
    if (!next || next == contract || isUsedBefore(next, contract))
      break;
    last = next;
  }
  if (last)
    contract->moveAfter(last);
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
    if (mayHandBackMemory(op) || writesFactor(op))
      return op;
  return first;
}

namespace {
struct KernelSplitContract
    : kernel::impl::KernelSplitContractBase<KernelSplitContract> {
  void runOnOperation() override {
    SmallVector<kernel::ContractOp> contracts;
    getOperation()->walk([&](Block *block) {
      if (countRegisters(block) > kAccumulatorRegisters)
        return;
      for (auto contract : block->getOps<kernel::ContractOp>())
        if (!isTerm(contract) && !contract.getB().getDefiningOp<RingSlotOp>())
          contracts.push_back(contract);
    });
    for (kernel::ContractOp contract : contracts)
      moveUp(contract);
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

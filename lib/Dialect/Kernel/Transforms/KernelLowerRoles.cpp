//===- KernelLowerRoles.cpp - Roles to a branch of the CTA's warps --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"
#include "Roles.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELLOWERROLES
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// Barriers of a region become those of its warps alone. Number 0 is that of
/// the whole CTA.
static void lowerBarriers(Region &region, int32_t number, int64_t warps) {
  SmallVector<gpu::BarrierOp> barriers;
  region.walk([&](gpu::BarrierOp barrier) { barriers.push_back(barrier); });
  for (gpu::BarrierOp barrier : barriers) {
    ThreadBuilder b(barrier.getLoc(), barrier);
    NVVM::BarrierOp::create(b, TypeRange{}, b.constant(number),
                            b.constant(warps * kWarpLanes),
                            NVVM::BarrierReductionAttr{}, Value{});
    barrier.erase();
  }
}

namespace {
struct KernelLowerRoles : kernel::impl::KernelLowerRolesBase<KernelLowerRoles> {
  using KernelLowerRolesBase::KernelLowerRolesBase;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    if (failed(verifyRoles(kernel)))
      return signalPassFailure();
    if (RolesOp roles = getRoles(kernel))
      lower(roles);
  }

  void lower(RolesOp roles);
  void limitRegisters(RolesOp roles);
};
} // namespace

/// Threads have those of the whole pool alike until their warpgroup asks for
/// its own.
void KernelLowerRoles::limitRegisters(RolesOp roles) {
  int64_t warps = roles.getConsumers() + roles.getProducers();
  int64_t pool = *roles.getConsumerRegisters() * roles.getConsumers() +
                 *roles.getProducerRegisters() * roles.getProducers();
  int64_t each =
      llvm::alignTo(llvm::divideCeilSigned(pool, warps), kRegisterUnit);
  getOperation()->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(),
                          Builder(&getContext()).getI32IntegerAttr(each));
}

void KernelLowerRoles::lower(RolesOp roles) {
  lowerBarriers(roles.getConsuming(), 1, roles.getConsumers());
  lowerBarriers(roles.getProducing(), 2, roles.getProducers());
  bool moves = movesRegisters && roles.getConsumerRegisters();
  if (moves)
    limitRegisters(roles);
  ThreadBuilder b(roles.getLoc(), roles);
  // All lanes have the number from one: the branch is one of the whole warp.
  Value warp =
      gpu::ShuffleOp::create(b, b.warp(), b.constant(0), b.constant(kWarpLanes),
                             gpu::ShuffleMode::IDX)
          .getShuffleResult();
  Value consumes = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, warp,
                                         b.constant(roles.getConsumers()));
  auto place = [&](Region &region, std::optional<uint64_t> registers,
                   NVVM::SetMaxRegisterAction action) {
    if (moves)
      NVVM::SetMaxRegisterOp::create(b, *registers, action);
    Block &block = region.front();
    block.getTerminator()->erase();
    b.getInsertionBlock()->getOperations().splice(b.getInsertionPoint(),
                                                  block.getOperations());
  };
  emitIf(
      b, consumes,
      [&] {
        place(roles.getConsuming(), roles.getConsumerRegisters(),
              NVVM::SetMaxRegisterAction::increase);
      },
      [&] {
        place(roles.getProducing(), roles.getProducerRegisters(),
              NVVM::SetMaxRegisterAction::decrease);
      });
  roles.erase();
  ++numLowered;
}

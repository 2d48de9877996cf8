//===- RingProtocol.h - Who may use a slot of a ring ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_TRANSFORMS_RINGPROTOCOL_H
#define VARLEN_DIALECT_KERNEL_TRANSFORMS_RINGPROTOCOL_H

#include "FragmentLayout.h"
#include "Roles.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen::kernel {

/// How the threads of a CTA agree that a slot is full, or empty. Each function
/// emits what one operation on the ring stands for, but for its memory.
class RingProtocol {
public:
  virtual ~RingProtocol() = default;

  virtual void lower(RingOp /*ring*/) {}
  virtual void lower(RingRestartOp /*restart*/) {}
  virtual void lower(RingAcquireOp /*acquire*/) {}
  virtual void lower(RingCommitOp /*commit*/) {}
  /// `landed` emits what a thread does with its own copies to the slot when
  /// they are there, before another one reads them.
  virtual void lower(RingWaitOp wait,
                     function_ref<void(ThreadBuilder &)> landed) = 0;
  virtual void lower(RingReleaseOp /*release*/) {}
};

/// The next operation that is an `Op`, or else the end of the block.
template <typename Op> Operation *getNextOrEnd(Operation *op) {
  do
    op = op->getNextNode();
  while (!op->hasTrait<OpTrait::IsTerminator>() && !isa<Op>(op));
  return op;
}

/// What the memory of a ring is used by.
struct RingUse {
  gpu::GPUFuncOp kernel;
  /// Whether copies of the kernel are asynchronous: all, or any.
  bool allAsync, anyAsync;
  /// wgmma reads shared memory through the async proxy: it sees what threads
  /// have written, cp.async included, from the next fence of that proxy on.
  bool readByProxy;
};

/// What the thread knows to be written is there for the async proxy from here
/// on.
void emitProxyFence(ImplicitLocOpBuilder &b);

/// A barrier of the CTA at each wait, which all pass together.
std::unique_ptr<RingProtocol> createBarrierProtocol(const RingUse &use);

/// What arrives in the slots of a ring: what cp.async copies says so itself,
/// what threads store, they have to say. Of copies by map bytes are counted;
/// with `wholeByMap` all tiles of which all rows exist are copied so.
struct RingArrivals {
  bool ofCopies, ofStores, ofBytes, wholeByMap;
};

/// Two mbarriers for each slot (PTX ISA, "Parallel Synchronization and
/// Communication Instructions: mbarrier"): the first counts the arrivals of
/// each thread that copies, the second the warps that have released the slot.
/// `mbarriers` is their memory, kSlotMBarrierBytes for each stage.
std::unique_ptr<RingProtocol> createMBarrierProtocol(const RingUse &use,
                                                     RingArrivals arrivals,
                                                     Value mbarriers,
                                                     int64_t stages);

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_RINGPROTOCOL_H

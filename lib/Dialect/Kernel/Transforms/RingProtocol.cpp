//===- RingProtocol.cpp - Who may use a slot of a ring --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RingProtocol.h"

#include "FragmentLayout.h"
#include "MemRefAddress.h"
#include "TensorMaps.h"
#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

void kernel::emitProxyFence(ImplicitLocOpBuilder &b) {
  NVVM::FenceProxyOp::create(
      b,
      NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

//===----------------------------------------------------------------------===//
// Barriers of the CTA
//===----------------------------------------------------------------------===//

namespace {
class BarrierProtocol final : public RingProtocol {
public:
  explicit BarrierProtocol(const RingUse &use) : use(use) {}

  void lower(RingCommitOp commit) override {
    OpBuilder b(commit);
    if (use.anyAsync)
      NVVM::CpAsyncCommitGroupOp::create(b, commit.getLoc());
  }

  void lower(RingWaitOp wait,
             function_ref<void(ThreadBuilder &)> landed) override {
    ThreadBuilder b(wait.getLoc(), wait);
    // Copies that all go through registers are done when a barrier is passed.
    if (use.anyAsync)
      NVVM::CpAsyncWaitGroupOp::create(b, wait.getYounger());
    landed(b);
    // What this thread has copied.
    if (use.readByProxy)
      emitProxyFence(b);
    gpu::BarrierOp::create(b);
  }

private:
  RingUse use;
};
} // namespace

std::unique_ptr<RingProtocol>
kernel::createBarrierProtocol(const RingUse &use) {
  return std::make_unique<BarrierProtocol>(use);
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

namespace {
class MBarrierProtocol final : public RingProtocol {
public:
  MBarrierProtocol(const RingUse &use, RingArrivals arrivals, Value mbarriers,
                   int64_t stages)
      : use(use), arrivals(arrivals), mbarriers(mbarriers), stages(stages) {}

  void lower(RingOp ring) override;
  void lower(RingRestartOp restart) override;
  void lower(RingAcquireOp acquire) override;
  void lower(RingWaitOp wait,
             function_ref<void(ThreadBuilder &)> landed) override;
  void lower(RingReleaseOp release) override;

private:
  enum Kind : int8_t { Full, Empty };

  Value address(ThreadBuilder &b, Kind kind, Value stage);
  Value address(ThreadBuilder &b, Kind kind, int64_t stage) {
    return address(b, kind, b.constant(stage));
  }
  Value stageOf(ThreadBuilder &b, Value i) { return b.rem(i, stages); }
  /// The parity of the number of times that the slot of i was full before.
  Value parityOf(ThreadBuilder &b, Value i) {
    return b.bitAnd(b.div(i, stages), 1);
  }
  void emitIfThread(ThreadBuilder &b, int64_t modulus,
                    function_ref<void()> body);
  void emitInit(ThreadBuilder &b);
  void emitPass(ThreadBuilder &b, Kind kind, Value i, Value parity);
  /// `before` is in front of the copies to the slot.
  void lowerCopiesByMap(ThreadBuilder &before, RingAcquireOp acquire);

  int64_t threads() { return use.kernel.getKnownBlockSize()->front(); }

  RingUse use;
  RingArrivals arrivals;
  Value mbarriers;
  int64_t stages;
};
} // namespace

std::unique_ptr<RingProtocol>
kernel::createMBarrierProtocol(const RingUse &use, RingArrivals arrivals,
                               Value mbarriers, int64_t stages) {
  return std::make_unique<MBarrierProtocol>(use, arrivals, mbarriers, stages);
}

/// Barriers of one kind are consecutive.
Value MBarrierProtocol::address(ThreadBuilder &b, Kind kind, Value stage) {
  Value base = getAddress(b, mbarriers);
  Value number = kind == Full ? stage : b.add(stage, stages);
  return LLVM::GEPOp::create(b, base.getType(), b.getI64Type(), base,
                             ValueRange{number});
}

void MBarrierProtocol::emitIfThread(ThreadBuilder &b, int64_t modulus,
                                    function_ref<void()> body) {
  Value isFirst = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, b.rem(b.thread(), modulus), b.constant(0));
  emitIf(b, isFirst, body);
}

void MBarrierProtocol::emitInit(ThreadBuilder &b) {
  int64_t full = getCopyingThreads(use.kernel).count *
                 (int64_t{arrivals.ofCopies} + int64_t{arrivals.ofStores});
  int64_t empty = getComputingThreads(use.kernel).count / kWarpLanes;
  for (int64_t stage = 0; stage < stages; ++stage) {
    NVVM::MBarrierInitOp::create(b, address(b, Full, stage), b.constant(full),
                                 Value());
    NVVM::MBarrierInitOp::create(b, address(b, Empty, stage), b.constant(empty),
                                 Value());
  }
  // The async proxy arrives as well.
  if (arrivals.ofBytes)
    NVVM::FenceMbarrierInitOp::create(b);
}

void MBarrierProtocol::lower(RingOp ring) {
  ThreadBuilder b(ring.getLoc(), ring);
  emitIfThread(b, threads(), [&] { emitInit(b); });
}

/// Phases begin anew, so that i alone says which one a thread waits for.
void MBarrierProtocol::lower(RingRestartOp restart) {
  ThreadBuilder b(restart.getLoc(), restart);
  emitIfThread(b, threads(), [&] {
    for (int64_t stage = 0; stage < stages; ++stage)
      for (Kind kind : {Full, Empty})
        NVVM::MBarrierInvalOp::create(b, address(b, kind, stage));
    emitInit(b);
  });
  // One for all rings.
  if (restart.getRings().size() == 1)
    gpu::BarrierOp::create(b);
}

void MBarrierProtocol::emitPass(ThreadBuilder &b, Kind kind, Value i,
                                Value parity) {
  Value mbarrier = address(b, kind, stageOf(b, i));
  emitWhile(
      b, {},
      [&](ValueRange) -> Value {
        Value isOver = NVVM::MBarrierTryWaitOp::create(
            b, b.getI1Type(), mbarrier, parity, /*ticks=*/Value());
        return arith::XOrIOp::create(
            b, isOver, arith::ConstantOp::create(b, b.getBoolAttr(true)));
      },
      [](ValueRange) { return Values{}; });
}

/// The thread that asks for a copy arrives itself only behind it, as all others
/// do: counts are the same with and without one.
void MBarrierProtocol::lowerCopiesByMap(ThreadBuilder &before,
                                        RingAcquireOp acquire) {
  SmallVector<CopyByMapOp> copies;
  for (Operation *user : acquire->getUsers())
    if (auto copy = dyn_cast<CopyByMapOp>(user))
      copies.push_back(copy);
  if (copies.empty())
    return;
  // What was stored to the slot before is overwritten by the async proxy; those
  // who read it by that proxy have published it.
  if (!use.readByProxy)
    emitIfAsks(before, use.kernel, [&] { emitProxyFence(before); });
  for (CopyByMapOp copy : copies) {
    ThreadBuilder b(copy.getLoc(), copy);
    lowerCopyByMap(use.kernel, copy,
                   address(b, Full, stageOf(b, acquire.getI())));
  }
}

void MBarrierProtocol::lower(RingAcquireOp acquire) {
  ThreadBuilder b(acquire.getLoc(), acquire);
  // An mbarrier that was just initialised passes for one whose phase of the
  // other parity is over.
  Value i = acquire.getI();
  emitPass(b, Empty, i, b.bitXor(parityOf(b, i), 1));
  lowerCopiesByMap(b, acquire);
  // Behind its copies: before the commit, which may be outside of a branch.
  b.setInsertionPoint(getNextOrEnd<RingCommitOp>(acquire));
  Value full = address(b, Full, stageOf(b, i));
  if (arrivals.ofCopies)
    NVVM::CpAsyncMBarrierArriveOp::create(b, full, /*noinc=*/true);
  if (arrivals.ofStores)
    NVVM::MBarrierArriveOp::create(b, Type(), full, Value());
}

/// Nothing is copied as bytes: others wait than those who have copied.
void MBarrierProtocol::lower(RingWaitOp wait,
                             function_ref<void(ThreadBuilder &)> /*landed*/) {
  ThreadBuilder b(wait.getLoc(), wait);
  emitPass(b, Full, wait.getI(), parityOf(b, wait.getI()));
  // What all threads have copied.
  if (use.readByProxy && !(wait.getWhole() && arrivals.wholeByMap))
    emitProxyFence(b);
}

void MBarrierProtocol::lower(RingReleaseOp release) {
  ThreadBuilder b(release.getLoc(), release);
  NVVM::SyncWarpOp::create(b, b.constant(-1));
  emitIfThread(b, kWarpLanes, [&] {
    NVVM::MBarrierArriveOp::create(
        b, Type(), address(b, Empty, stageOf(b, release.getI())), Value());
  });
}

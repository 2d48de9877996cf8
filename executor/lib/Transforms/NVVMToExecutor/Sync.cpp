//===- Sync.cpp - Barriers and fences -------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

//===----------------------------------------------------------------------===//
// Barriers of the CTA and the cluster
//===----------------------------------------------------------------------===//

static Value orZero(CallBuilder &b, Value value) {
  return value ? value : b.i32Constant(0);
}

static Lowered lower(NVVM::BarrierOp op, CallBuilder &b) {
  Value id = orZero(b, op.getBarrierId());
  Value threads = orZero(b, op.getNumberOfThreads());
  if (!op.getReductionOp())
    return b.replaceWithCall("varlen_sim_barrier", {id, threads});
  Value kind = b.i32Constant(static_cast<int64_t>(*op.getReductionOp()));
  Value result =
      b.call("varlen_sim_barrier_reduce", b.i32,
             {id, threads, kind, op.getReductionPredicate(), b.site()});
  return b.replaceOp(result);
}

static Lowered lowerBarrier(Operation *op, CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](NVVM::Barrier0Op) {
        return b.replaceWithCall("varlen_sim_barrier",
                                 {b.i32Constant(0), b.i32Constant(0)});
      })
      .Case([&](NVVM::BarrierOp barrier) { return lower(barrier, b); })
      .Case([&](NVVM::BarrierArriveOp arrive) {
        return b.replaceWithCall(
            "varlen_sim_barrier_arrive",
            {orZero(b, arrive.getBarrierId()), arrive.getNumberOfThreads()});
      })
      .Case([&](NVVM::SyncWarpOp sync) {
        return b.replaceWithCall("varlen_sim_syncwarp", {sync.getMask()});
      })
      .Case([&](NVVM::ClusterArriveOp) {
        return b.replaceWithCall("varlen_sim_cluster_arrive",
                                 {b.i32Constant(0)});
      })
      .Case([&](NVVM::ClusterArriveRelaxedOp) {
        return b.replaceWithCall("varlen_sim_cluster_arrive",
                                 {b.i32Constant(1)});
      })
      .Case([&](NVVM::ClusterWaitOp) {
        return b.replaceWithCall("varlen_sim_cluster_wait");
      })
      .Case([&](NVVM::MapaOp mapa) {
        Value address = b.call("varlen_sim_mapa", b.pointer,
                               {b.flat(mapa.getA()), mapa.getB(), b.site()});
        return b.replaceOp(b.castTo(mapa.getRes().getType(), address));
      })
      .Default([](Operation *) { return Lowered::No; });
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

/// Runs `call` only where the predicate holds.
static Lowered lowerPredicated(CallBuilder &b, Value predicate,
                               function_ref<void()> call) {
  Operation *op = b.getOp();
  if (!predicate) {
    call();
    return b.eraseOp();
  }
  Block *before = op->getBlock();
  Block *after = before->splitBlock(op);
  Block *body = b.createBlock(after);
  b.setInsertionPointToEnd(before);
  LLVM::CondBrOp::create(b, predicate, body, after);
  b.setInsertionPointToStart(body);
  call();
  LLVM::BrOp::create(b, after);
  return b.eraseOp();
}

/// The state that an arrival gives, if the operation has it.
static Lowered lowerArrival(CallBuilder &b, StringRef function, Value address,
                            Value operand) {
  Value state = b.call(function, b.i64, {b.flat(address), operand, b.site()});
  return b.getOp()->getNumResults() ? b.replaceOp(state) : b.eraseOp();
}

static Value orOne(CallBuilder &b, Value count) {
  return count ? count : b.i32Constant(1);
}

/// The state of 64 bits or the parity of 32 that a wait is for.
static Lowered lowerTest(CallBuilder &b, StringRef function, Value address,
                         Value state) {
  std::string name = ("varlen_sim_mbarrier_" + function).str();
  if (state.getType() == b.i32)
    name += "_parity";
  return b.replaceOp(
      b.toBool(b.call(name, b.i32, {b.flat(address), state, b.site()})));
}

static Lowered lowerMBarrier(Operation *op, CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case([&](NVVM::MBarrierInitOp init) {
        return lowerPredicated(b, init.getPredicate(), [&] {
          b.call("varlen_sim_mbarrier_init",
                 {b.flat(init.getAddr()), init.getCount(), b.site()});
        });
      })
      .Case([&](NVVM::MBarrierInvalOp inval) {
        return b.replaceWithCall("varlen_sim_mbarrier_inval",
                                 {b.flat(inval.getAddr())});
      })
      .Case([&](NVVM::MBarrierArriveOp arrive) {
        return lowerArrival(b, "varlen_sim_mbarrier_arrive", arrive.getAddr(),
                            orOne(b, arrive.getCount()));
      })
      .Case([&](NVVM::MBarrierArriveNocompleteOp arrive) {
        return lowerArrival(b, "varlen_sim_mbarrier_arrive_nocomplete",
                            arrive.getAddr(), arrive.getCount());
      })
      .Case([&](NVVM::MBarrierArriveDropOp arrive) {
        return lowerArrival(b, "varlen_sim_mbarrier_arrive_drop",
                            arrive.getAddr(), orOne(b, arrive.getCount()));
      })
      .Case([&](NVVM::MBarrierArriveExpectTxOp arrive) {
        if (arrive.getPredicate() && op->getNumResults())
          return b.refuse("a predicate with a result");
        if (arrive.getPredicate())
          return lowerPredicated(b, arrive.getPredicate(), [&] {
            b.call("varlen_sim_mbarrier_arrive_expect_tx", b.i64,
                   {b.flat(arrive.getAddr()), arrive.getTxcount(), b.site()});
          });
        return lowerArrival(b, "varlen_sim_mbarrier_arrive_expect_tx",
                            arrive.getAddr(), arrive.getTxcount());
      })
      .Case([&](NVVM::MBarrierArriveDropExpectTxOp arrive) {
        return lowerArrival(b, "varlen_sim_mbarrier_arrive_drop_expect_tx",
                            arrive.getAddr(), arrive.getTxcount());
      })
      .Case([&](NVVM::MBarrierExpectTxOp expect) {
        return b.replaceWithCall(
            "varlen_sim_mbarrier_expect_tx",
            {b.flat(expect.getAddr()), expect.getTxcount()});
      })
      .Case([&](NVVM::MBarrierCompleteTxOp complete) {
        return b.replaceWithCall(
            "varlen_sim_mbarrier_complete_tx",
            {b.flat(complete.getAddr()), complete.getTxcount()});
      })
      .Case([&](NVVM::MBarrierTryWaitParityOp wait) {
        return b.replaceWithCall("varlen_sim_mbarrier_wait_parity",
                                 {b.flat(wait.getAddr()), wait.getPhase()});
      })
      .Case([&](NVVM::MBarrierTryWaitOp wait) {
        return lowerTest(b, "try_wait", wait.getAddr(), wait.getStateOrPhase());
      })
      .Case([&](NVVM::MBarrierTestWaitOp wait) {
        return lowerTest(b, "test_wait", wait.getAddr(),
                         wait.getStateOrPhase());
      })
      .Default([](Operation *) { return Lowered::No; });
}

//===----------------------------------------------------------------------===//
// Fences and control
//===----------------------------------------------------------------------===//

static Lowered lowerFence(CallBuilder &b, NVVM::MemScopeKind scope) {
  return b.replaceWithCall("varlen_sim_fence",
                           {b.i32Constant(static_cast<int64_t>(scope))});
}

static Lowered lowerProxyFence(CallBuilder &b, NVVM::ProxyKind kind) {
  return b.replaceWithCall("varlen_sim_fence_proxy",
                           {b.i32Constant(static_cast<int64_t>(kind))});
}

Lowered executor::lowerSync(CallBuilder &b) {
  Operation *op = b.getOp();
  if (lowerBarrier(op, b) == Lowered::Yes ||
      lowerMBarrier(op, b) == Lowered::Yes)
    return Lowered::Yes;
  return llvm::TypeSwitch<Operation *, Lowered>(op)
      .Case(
          [&](NVVM::MembarOp fence) { return lowerFence(b, fence.getScope()); })
      .Case([&](NVVM::FenceScClusterOp) {
        return lowerFence(b, NVVM::MemScopeKind::CLUSTER);
      })
      .Case(
          [&](LLVM::FenceOp) { return lowerFence(b, NVVM::MemScopeKind::GPU); })
      .Case([&](NVVM::FenceMbarrierInitOp) {
        return b.replaceWithCall("varlen_sim_fence_mbarrier_init");
      })
      .Case([&](NVVM::FenceProxyOp fence) {
        return lowerProxyFence(b, fence.getKind());
      })
      // One-way fences for tensor maps that kernels write. The executor has
      // the release of kernel.publish_map alone.
      .Case([&](NVVM::FenceProxyAcquireOp fence) {
        return b.replaceWithCall("varlen_sim_tensormap_acquire",
                                 {b.flat(fence.getAddr())});
      })
      .Case([&](NVVM::FenceProxyReleaseOp) {
        return lowerProxyFence(b, NVVM::ProxyKind::TENSORMAP);
      })
      .Case([&](NVVM::SetMaxRegisterOp set) {
        bool increase = set.getAction() == NVVM::SetMaxRegisterAction::increase;
        return b.replaceWithCall(
            "varlen_sim_setmaxnreg",
            {b.i32Constant(set.getRegCount()), b.i32Constant(increase)});
      })
      .Case([&](NVVM::NanosleepOp sleep) {
        return b.replaceWithCall("varlen_sim_nanosleep", {sleep.getDuration()});
      })
      .Case([&](NVVM::Exit) { return b.replaceWithCall("varlen_sim_exit"); })
      .Case<LLVM::Trap, LLVM::UBSanTrap, NVVM::Breakpoint>(
          [&](auto) { return b.replaceWithCall("varlen_sim_trap"); })
      // Kernels behind this one run when it has ended.
      .Case([&](NVVM::GriddepcontrolOp control) {
        if (control.getKind() == NVVM::GridDepActionKind::wait)
          return b.replaceWithCall("varlen_sim_grid_wait");
        return b.eraseOp();
      })
      // Hints: the executor has no cache.
      .Case<NVVM::PMEventOp, NVVM::PrefetchOp, NVVM::CpAsyncBulkPrefetchOp>(
          [&](auto) { return b.eraseOp(); })
      .Default([](Operation *) { return Lowered::No; });
}

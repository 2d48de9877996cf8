//===- MBarrier.cpp - mbarriers -------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MBarrier.h"

#include "State.h"

#include <cinttypes>

using namespace varlen::executor;

/// The largest count an mbarrier holds.
static constexpr uint32_t maxCount = (1U << 20) - 1;

MBarrier *varlen::executor::findMBarrier(Block &block, uint32_t offset,
                                         uint32_t site) {
  auto found = block.mbarriers.find(offset);
  if (found != block.mbarriers.end())
    return &found->second;
  report("mbarrier", site, "smem+0x%x is no initialised mbarrier", offset);
  return nullptr;
}

void varlen::executor::checkInitialised(Thread &thread, const MBarrier &barrier,
                                        uint32_t offset, uint32_t site) {
  if (!worker->detector || barrier.initialiser == thread.clock.self)
    return;
  const Clock *clock = thread.clock.base;
  if (clock->values[barrier.initialiser] < barrier.initialised)
    report("race", site,
           "use of the mbarrier at smem+0x%x not ordered after its "
           "initialisation by thread %u",
           offset, (barrier.initialiser - 1) % worker->launch->threads);
}

void varlen::executor::completeMBarrier(MBarrier &barrier) {
  if (barrier.pending || barrier.transactions)
    return;
  Worker &w = *worker;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.completedTime = std::max(barrier.completedTime, barrier.gatherTime);
  if (w.detector) {
    if (barrier.completed)
      w.clocks.release(barrier.completed);
    barrier.completed = barrier.gather.freeze(w.clocks);
  }
  progress();
  std::vector<Thread *> waiters;
  waiters.swap(barrier.waiters);
  for (Thread *thread : waiters)
    if (thread->waitsPhase != (barrier.phase & 1))
      makeReady(*thread);
    else
      barrier.waiters.push_back(thread);
}

void varlen::executor::arriveMBarrier(MBarrier &barrier, uint32_t offset,
                                      uint32_t count, uint32_t site) {
  if (count > barrier.pending) {
    report("mbarrier", site,
           "%u arrivals on the mbarrier at smem+0x%x, which waits for %u of %u "
           "in phase %" PRIu64,
           count, offset, barrier.pending, barrier.expected, barrier.phase);
    return;
  }
  barrier.pending -= count;
  completeMBarrier(barrier);
}

void varlen::executor::completeTransaction(Block &block, uint32_t offset,
                                           uint32_t bytes,
                                           uint32_t slotComponent, Tick tick,
                                           uint64_t time, uint32_t site) {
  MBarrier *barrier = findMBarrier(block, offset, site);
  if (!barrier)
    return;
  if (worker->detector)
    barrier->gather.addSlot(worker->clocks, slotComponent, tick);
  barrier->gatherTime = std::max(barrier->gatherTime, time);
  barrier->transactions -= bytes;
  completeMBarrier(*barrier);
}

//===----------------------------------------------------------------------===//
// Initialisation
//===----------------------------------------------------------------------===//

void varlen_sim_mbarrier_init(void *p, uint32_t count, uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  Block &block = *self.block;
  self.site = site;
  uint32_t offset;
  if (!sharedOffset(block, p, 8, site, offset))
    return;
  if (offset & 7) {
    report("misaligned", site, "mbarrier at smem+0x%x, wanted 8 bytes", offset);
    return;
  }
  if (count < 1 || count > maxCount) {
    report("mbarrier", site, "count %u: wanted 1 to %u", count, maxCount);
    return;
  }
  if (w.detector) {
    Actor who = actor(self);
    if (!block.mbarriers.count(offset))
      if (Conflict conflict = block.shadow.checkWrite(offset, 8, who))
        reportConflict(block, conflict, "mbarrier.init", who, site);
    block.shadow.setBarrierObject(offset, true);
  }
  MBarrier &barrier = block.mbarriers[offset];
  if (!barrier.waiters.empty())
    report("mbarrier", site,
           "the mbarrier at smem+0x%x is initialised while a thread waits for "
           "it",
           offset);
  std::vector<Thread *> waiters = std::move(barrier.waiters);
  barrier = MBarrier();
  barrier.waiters = std::move(waiters);
  barrier.expected = barrier.pending = count;
  barrier.initialiser = self.clock.self;
  barrier.initialised = self.clock.own;
  if (w.detector) {
    barrier.gather.init(w.clocks);
    ++self.clock.own;
  }
}

void varlen_sim_mbarrier_inval(void *p, uint32_t site) {
  settle();
  Thread &self = *worker->current;
  Block &block = *self.block;
  self.site = site;
  uint32_t offset;
  if (!sharedOffset(block, p, 8, site, offset) ||
      !findMBarrier(block, offset, site))
    return;
  block.mbarriers.erase(offset);
  if (worker->detector)
    block.shadow.setBarrierObject(offset, false);
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

/// One operation of the current thread on a barrier of its cluster. Returns the
/// phase before it.
static uint64_t arrive(void *p, uint32_t count, uint32_t expectBytes, bool drop,
                       bool noComplete, uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  self.site = site;
  Block *block = sharedOwner(p);
  uint32_t offset;
  if (!sharedOffset(block ? *block : *self.block, p, 8, site, offset))
    return 0;
  MBarrier *barrier = findMBarrier(*block, offset, site);
  if (!barrier)
    return 0;
  progress();
  checkInitialised(self, *barrier, offset, site);
  uint64_t phase = barrier->phase;
  barrier->transactions += expectBytes;
  if (noComplete && count >= barrier->pending)
    report("mbarrier", site,
           "arrive.noComplete of %u completes the phase of the mbarrier at "
           "smem+0x%x",
           count, offset);
  if (drop)
    barrier->expected -= std::min(count, barrier->expected);
  if (Track *track = self.warp->track)
    barrier->gatherTime = std::max(barrier->gatherTime, track->now);
  if (count) {
    releaseTo(self, barrier->gather);
    arriveMBarrier(*barrier, offset, count, site);
    // What the thread does next may come long after what it has released.
    if (w.config.scheduler != VARLEN_SIM_ROUND_ROBIN && w.below(8) == 0)
      giveWay();
  }
  return phase;
}

uint64_t varlen_sim_mbarrier_arrive(void *p, uint32_t count, uint32_t site) {
  return arrive(p, count, 0, false, false, site);
}
uint64_t varlen_sim_mbarrier_arrive_nocomplete(void *p, uint32_t count,
                                               uint32_t site) {
  return arrive(p, count, 0, false, true, site);
}
uint64_t varlen_sim_mbarrier_arrive_drop(void *p, uint32_t count,
                                         uint32_t site) {
  return arrive(p, count, 0, true, false, site);
}
uint64_t varlen_sim_mbarrier_arrive_expect_tx(void *p, uint32_t bytes,
                                              uint32_t site) {
  return arrive(p, 1, bytes, false, false, site);
}
uint64_t varlen_sim_mbarrier_arrive_drop_expect_tx(void *p, uint32_t bytes,
                                                   uint32_t site) {
  return arrive(p, 1, bytes, true, false, site);
}
void varlen_sim_mbarrier_expect_tx(void *p, uint32_t bytes, uint32_t site) {
  arrive(p, 0, bytes, false, false, site);
}

void varlen_sim_mbarrier_complete_tx(void *p, uint32_t bytes, uint32_t site) {
  settle();
  Thread &self = *worker->current;
  self.site = site;
  Block *block = sharedOwner(p);
  uint32_t offset;
  if (!sharedOffset(block ? *block : *self.block, p, 8, site, offset))
    return;
  MBarrier *barrier = findMBarrier(*block, offset, site);
  if (!barrier)
    return;
  barrier->transactions -= bytes;
  completeMBarrier(*barrier);
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static bool isOver(const MBarrier &barrier, uint32_t parity) {
  return (barrier.phase & 1) != parity;
}

/// The barrier that the current thread asks about, or null.
static MBarrier *waitOperand(void *p, uint32_t site, uint32_t &offset) {
  settle();
  Thread &self = *worker->current;
  self.site = site;
  if (!sharedOffset(*self.block, p, 8, site, offset))
    return nullptr;
  MBarrier *barrier = findMBarrier(*self.block, offset, site);
  if (barrier)
    checkInitialised(self, *barrier, offset, site);
  return barrier;
}

static void acquirePhase(Thread &self, const MBarrier &barrier, uint32_t site) {
  acquire(self, barrier.completed);
  if (Track *track = self.warp->track)
    track->waitUntil(barrier.completedTime, "mbarrier", site);
}

static void block(MBarrier &barrier, uint32_t offset, uint32_t parity,
                  uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  self.wait = Wait::MBarrier;
  self.waitsFor = offset;
  self.waitsPhase = parity;
  barrier.waiters.push_back(&self);
  switchAway();
}

void varlen_sim_mbarrier_wait_parity(void *p, uint32_t parity, uint32_t site) {
  uint32_t offset;
  MBarrier *barrier = waitOperand(p, site, offset);
  if (!barrier)
    return;
  parity &= 1;
  while (!isOver(*barrier, parity))
    block(*barrier, offset, parity, site);
  acquirePhase(*worker->current, *barrier, site);
}

static uint32_t test(void *p, uint32_t parity, bool mayWait, uint32_t site) {
  uint32_t offset;
  MBarrier *barrier = waitOperand(p, site, offset);
  if (!barrier)
    return 1;
  Worker &w = *worker;
  parity &= 1;
  // The hardware may say "not yet" whenever it likes, but not for ever.
  bool spurious =
      w.config.scheduler != VARLEN_SIM_ROUND_ROBIN && w.below(8) == 0;
  if (!isOver(*barrier, parity)) {
    if (!mayWait || spurious) {
      poll();
      return 0;
    }
    do
      block(*barrier, offset, parity, site);
    while (!isOver(*barrier, parity));
  } else if (spurious) {
    giveWay();
    return 0;
  }
  acquirePhase(*w.current, *barrier, site);
  return 1;
}

uint32_t varlen_sim_mbarrier_test_wait(void *p, uint64_t state, uint32_t site) {
  return test(p, static_cast<uint32_t>(state), /*mayWait=*/false, site);
}
uint32_t varlen_sim_mbarrier_try_wait(void *p, uint64_t state, uint32_t site) {
  return test(p, static_cast<uint32_t>(state), /*mayWait=*/true, site);
}
uint32_t varlen_sim_mbarrier_test_wait_parity(void *p, uint32_t parity,
                                              uint32_t site) {
  return test(p, parity, /*mayWait=*/false, site);
}
uint32_t varlen_sim_mbarrier_try_wait_parity(void *p, uint32_t parity,
                                             uint32_t site) {
  return test(p, parity, /*mayWait=*/true, site);
}

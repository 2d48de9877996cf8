//===- Scheduler.cpp - Which thread runs next -----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Deadlock.h"
#include "State.h"

#include <cstdlib>

using namespace varlen::executor;

thread_local Worker *varlen::executor::worker = nullptr;

/// On average, threads that wait between two preemptions and between two pieces
/// of asynchronous work that are done at a random time.
static constexpr uint32_t choiceEvery = 64;
/// How many of the times that the scheduler chooses a warp change a
/// priority.
static constexpr uint32_t priorityEvery = 64;

void varlen::executor::makeReady(Thread &thread) {
  thread.wait = Wait::Nothing;
  thread.warp->ready |= 1U << thread.lane;
}

bool varlen::executor::progressAsync() {
  Worker &w = *worker;
  if (w.jobs.empty())
    return false;
  size_t index = w.below(static_cast<uint32_t>(w.jobs.size()));
  std::shared_ptr<AsyncJob> job = std::move(w.jobs[index]);
  w.jobs[index] = std::move(w.jobs.back());
  w.jobs.pop_back();
  job->run();
  progress();
  return true;
}

/// Chooses a warp that has a lane ready, or null.
static Warp *chooseWarp(Worker &w) {
  auto count = static_cast<uint32_t>(w.warps.size());
  if (w.config.scheduler == VARLEN_SIM_PRIORITY) {
    if (w.below(priorityEvery) == 0)
      w.warps[w.below(count)]->priority = static_cast<uint32_t>(w.next());
    Warp *best = nullptr;
    for (Warp *warp : w.warps)
      if (warp->ready && (!best || warp->priority > best->priority))
        best = warp;
    return best;
  }
  uint32_t start = w.config.scheduler == VARLEN_SIM_RANDOM
                       ? w.below(count)
                       : (w.nextWarp = (w.nextWarp + 1) % count);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t at = start + i < count ? start + i : start + i - count;
    if (w.warps[at]->ready) {
      w.nextWarp = at;
      return w.warps[at];
    }
  }
  return nullptr;
}

/// Takes a ready lane off a warp.
static Thread *takeLane(Worker &w, Warp &warp) {
  // Upwards from a place that is random, or follows who gave way last.
  uint32_t ready = warp.ready;
  uint32_t above = ready >> w.firstLane << w.firstLane;
  auto lane = static_cast<uint32_t>(__builtin_ctz(above ? above : ready));
  warp.ready = ready & ~(1U << lane);
  return warp.threads[lane];
}

/// The next thread when the scheduler has a choice, or null if none can run.
/// Asynchronous work is done when no thread can run.
[[gnu::noinline]] static Thread *chooseAnew(Worker &w) {
  bool preempt = w.untilChoice == 0;
  if (preempt)
    w.untilChoice = 1 + w.below(2 * choiceEvery);
  if (preempt && w.config.async == VARLEN_SIM_RANDOM_TIME)
    progressAsync();
  for (;;) {
    Warp *warp = w.last;
    if (!warp || !warp->ready ||
        (preempt && w.config.scheduler != VARLEN_SIM_ROUND_ROBIN))
      warp = chooseWarp(w);
    if (warp) {
      if (warp != w.last && w.config.scheduler != VARLEN_SIM_ROUND_ROBIN)
        w.firstLane = w.below(32);
      w.last = warp;
      return takeLane(w, *warp);
    }
    if (!progressAsync())
      return nullptr;
  }
}

static inline Thread *chooseThread(Worker &w) {
  if (__builtin_expect(--w.untilChoice != 0 && w.last && w.last->ready, 1))
    return takeLane(w, *w.last);
  return chooseAnew(w);
}

/// All the threads that are left wait for each other.
[[noreturn]] static void giveUp(Context &from, const char *reason) {
  reportDeadlock(*worker, reason);
  worker->stuck = true;
  worker->current = nullptr;
  switchContext(from, worker->host, /*final=*/true);
  abort();
}

static inline void switchTo(Worker &w, Thread &from, Thread &to) {
  ++w.stats.switches;
  w.current = &to;
  // The next thread of this warp will read its registers.
#if defined(__x86_64__)
  uint32_t ready = to.warp->ready >> to.lane;
  if (ready) {
    const char *stack = static_cast<const char *>(
        to.warp->threads[to.lane + __builtin_ctz(ready)]->context.stackPointer);
    __builtin_prefetch(stack);
    __builtin_prefetch(stack + 64);
  }
#endif
  switchContext(from.context, to.context);
}

void varlen::executor::switchAway() {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  Thread *next = chooseThread(w);
  if (!next)
    giveUp(self.context, "no thread can run and no asynchronous work is left");
  if (next != &self)
    switchTo(w, self, *next);
}

void varlen::executor::giveWay() {
  Worker &w = *worker;
  makeReady(*w.current);
  w.firstLane = (w.current->lane + 1) % 32;
  w.last = nullptr;
  switchAway();
}

void varlen::executor::poll() {
  Worker &w = *worker;
  Thread &self = *w.current;
  settle();
  self.wait = Wait::Polling;
  ++w.idlePolls;
  // Give all the others several turns, and asynchronous work too, before
  // nothing can be expected any more.
  if (w.idlePolls > 4 * uint64_t(w.alive) && progressAsync())
    ;
  else if (w.idlePolls > 64 * uint64_t(w.alive) + 4096)
    if (!othersWork(w))
      giveUp(self.context, "every thread left polls memory or waits");
  // A poller must not keep off those that it waits for.
  self.warp->priority = static_cast<uint32_t>(w.next()) >> 16;
  self.warp->ready |= 1U << self.lane;
  w.firstLane = (self.lane + 1) % 32;
  w.last = nullptr;
  switchAway();
  self.wait = Wait::Nothing;
}

void varlen::executor::finishThread() {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  if (!self.sawGrids)
    report("grid", self.site,
           "a thread ends without griddepcontrol.wait: kernels behind this one "
           "would not wait for those before it");
  threadExits(self);
  progress();
  if (w.alive == 0) {
    w.current = nullptr;
    switchContext(self.context, w.host, /*final=*/true);
    abort();
  }
  Thread *next = chooseThread(w);
  if (!next)
    giveUp(self.context, "no thread can run and no asynchronous work is left");
  ++w.stats.switches;
  w.current = next;
  switchContext(self.context, next->context, /*final=*/true);
  abort();
}

void varlen::executor::runThreads() {
  Worker &w = *worker;
  w.last = nullptr;
  w.idlePolls = 0;
  w.untilChoice = 1 + w.below(2 * choiceEvery);
  Thread *first = chooseThread(w);
  w.current = first;
  switchContext(w.host, first->context);
  w.current = nullptr;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

const char *varlen::executor::name(Collective kind) {
  switch (kind) {
  case Collective::None:
    return "nothing";
  case Collective::Shfl:
    return "shfl.sync";
  case Collective::Vote:
    return "vote.sync";
  case Collective::Match:
    return "match.sync";
  case Collective::Redux:
    return "redux.sync";
  case Collective::Elect:
    return "elect.sync";
  case Collective::SyncWarp:
    return "bar.warp.sync";
  case Collective::LdMatrix:
    return "ldmatrix";
  case Collective::StMatrix:
    return "stmatrix";
  case Collective::MMA:
    return "mma.sync";
  case Collective::WgmmaFence:
    return "wgmma.fence";
  case Collective::WgmmaCommit:
    return "wgmma.commit_group";
  case Collective::WgmmaWait:
    return "wgmma.wait_group";
  case Collective::Wgmma:
    return "wgmma.mma_async";
  case Collective::SetMaxNReg:
    return "setmaxnreg";
  case Collective::PublishMap:
    return "tensormap.cp_fenceproxy";
  }
  return "?";
}

/// The group of `mask`, or an unused one.
static Group &findGroup(Warp &warp, uint32_t mask) {
  Group *unused = nullptr;
  for (Group &group : warp.groups) {
    if (group.arrived && group.mask == mask)
      return group;
    if (!group.arrived && !unused)
      unused = &group;
  }
  return *unused;
}

void varlen::executor::collective(Collective kind, uint32_t mask,
                                  uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  Warp &warp = *self.warp;
  uint32_t bit = 1U << self.lane;
  self.site = site;
  self.collective = kind;
  if (__builtin_expect((mask & bit) == 0 || (mask & ~warp.alive) != 0, 0)) {
    if ((mask & bit) == 0)
      report("collective", site, "lane %u is not in its member mask %08x",
             self.lane, mask);
    if (mask & ~warp.alive)
      report("collective", site,
             "member mask %08x names lanes that have exited (alive: %08x)",
             mask, warp.alive);
  }
  Group *group = &warp.groups[0];
  if (__builtin_expect(group->arrived == 0 || group->mask != mask, 0))
    group = &findGroup(warp, mask);
  if (group->arrived == 0) {
    group->mask = mask;
    group->kind = kind;
    group->site = site;
    group->disagree = false;
  } else if (__builtin_expect(group->kind != kind || group->site != site, 0)) {
    group->disagree = true;
    report("collective", site, "lanes of one warp disagree: %s here, %s at %s",
           name(kind), name(group->kind),
           w.launch->reports->siteName(group->site));
  }
  group->arrived |= bit;
  if ((group->arrived & mask) != mask) {
    self.wait = Wait::Collective;
    self.waitsFor = mask;
    switchAway();
    // Here, and not where it was made ready: this thread is in the cache now.
    self.wait = Wait::Nothing;
    return;
  }
  group->arrived = 0;
  ++w.stats.collectives;
  progress();
  if (!group->disagree)
    runCollective(warp, kind, mask);
  warp.ready |= mask & ~bit;
}

//===- GlobalOrder.cpp - What is ordered between CTAs ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GlobalOrder.h"

#include "Atomics.h"
#include "State.h"

#include <algorithm>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// What a thread knows
//===----------------------------------------------------------------------===//

/// Whether the thread has that tick of a component of its own cluster behind
/// it.
static bool isBehind(const Thread &thread, uint32_t component, Tick tick) {
  if (component == thread.clock.self)
    return tick <= thread.clock.own;
  return tick <= worker->clocks.ordered(thread.clock.base)[component];
}

static void joinInto(Knowledge &to, const Knowledge &from) {
  for (const auto &[cluster, ticks] : from) {
    std::vector<Tick> &own = to[cluster];
    own.resize(ticks.size());
    for (size_t i = 0; i < ticks.size(); ++i)
      own[i] = std::max(own[i], ticks[i]);
  }
}

static bool knows(const Thread &thread, const GlobalOrder::Access &access) {
  const auto &acquisitions = thread.block->cluster->acquisitions;
  return std::any_of(acquisitions.begin(), acquisitions.end(),
                     [&](const Acquisition &acquisition) {
                       auto found = acquisition.knowledge->find(access.cluster);
                       return found != acquisition.knowledge->end() &&
                              access.tick <= found->second[access.component] &&
                              isBehind(thread, acquisition.component,
                                       acquisition.tick);
                     });
}

/// What the thread publishes; what it does later is not part of it.
static SharedKnowledge takeSnapshot(Thread &thread) {
  Worker &w = *worker;
  Cluster &cluster = *thread.block->cluster;
  auto result = std::make_shared<Knowledge>();
  for (const Acquisition &acquisition : cluster.acquisitions)
    if (isBehind(thread, acquisition.component, acquisition.tick))
      joinInto(*result, *acquisition.knowledge);
  Gather gather;
  gather.init(w.clocks);
  releaseTo(thread, gather);
  Clock *clock = gather.freeze(w.clocks);
  const Tick *ticks = w.clocks.ordered(clock);
  (*result)[cluster.index].assign(ticks, ticks + w.clocks.size());
  w.clocks.release(clock);
  gather.clear(w.clocks);
  return result;
}

static void acquireKnowledge(Thread &thread, const SharedKnowledge &knowledge) {
  std::vector<Acquisition> &all = thread.block->cluster->acquisitions;
  Acquisition own = {thread.clock.self, thread.clock.own, knowledge};
  for (Acquisition &last : all)
    if (last.component == own.component && last.tick == own.tick) {
      // A thread knows of both or of neither.
      auto both = std::make_shared<Knowledge>(*last.knowledge);
      joinInto(*both, *knowledge);
      last.knowledge = both;
      return;
    }
  all.push_back(own);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Whether two accesses may be to the same bytes in any order: those of one
/// cluster are not looked at.
static bool areApart(const Thread &thread, const GlobalOrder::Access &before,
                     const GlobalOrder::Access &now) {
  return (before.bytes & now.bytes) == 0 || before.cluster == now.cluster ||
         (before.isAtomic && now.isAtomic) || knows(thread, before);
}

static void reportRace(const GlobalOrder::Access &before, bool wasWrite,
                       const GlobalOrder::Access &now, bool isStore,
                       uint32_t site) {
  uint32_t thread = before.component - 1, perBlock = worker->launch->threads;
  report("race", site,
         "%s%s of global memory not ordered after the %s%s by thread %u of "
         "another CTA",
         now.isAtomic ? "atomic " : "", isStore ? "write" : "read",
         before.isAtomic ? "atomic " : "", wasWrite ? "write" : "read",
         thread % perBlock);
}

void varlen::executor::orderGlobal(const void *p, uint64_t size, bool isStore,
                                   bool isAtomic, uint32_t site) {
  Worker &w = *worker;
  if (!w.detector)
    return;
  Thread &self = *w.current;
  GlobalOrder &order = w.launch->globalOrder;
  std::lock_guard<std::mutex> lock(order.mutex);
  auto begin = reinterpret_cast<uint64_t>(p), end = begin + size;
  for (uint64_t at = begin & ~uint64_t(3); at < end; at += 4) {
    GlobalOrder::Access now = {self.block->cluster->index, self.clock.self,
                               self.clock.own, 0, isAtomic};
    for (uint64_t i = 0; i < 4; ++i)
      if (begin <= at + i && at + i < end)
        now.bytes = static_cast<uint8_t>(now.bytes | 1U << i);
    GlobalOrder::Word &word = order.words[at];
    if (!areApart(self, word.write, now)) {
      reportRace(word.write, /*wasWrite=*/true, now, isStore, site);
      return;
    }
    auto &reads = word.reads;
    if (!isStore) {
      // Those that this one is ordered after say nothing more.
      auto isSame = [&](const GlobalOrder::Access &read) {
        return read.component == now.component && read.cluster == now.cluster &&
               (read.bytes & ~now.bytes) == 0;
      };
      reads.erase(std::remove_if(reads.begin(), reads.end(), isSame),
                  reads.end());
      reads.push_back(now);
      continue;
    }
    for (const GlobalOrder::Access &read : reads)
      if (!areApart(self, read, now)) {
        reportRace(read, /*wasWrite=*/false, now, isStore, site);
        return;
      }
    reads.clear();
    word.write = now;
    if (!isAtomic)
      order.published.erase(at);
  }
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

void varlen::executor::releaseGlobal(const void *p, uint32_t order,
                                     bool isUpdate) {
  Worker &w = *worker;
  if (!w.detector || !w.ordersGlobal)
    return;
  Thread &self = *w.current;
  SharedKnowledge own = releases(order) ? takeSnapshot(self) : self.fenced;
  GlobalOrder &global = w.launch->globalOrder;
  std::lock_guard<std::mutex> lock(global.mutex);
  SharedKnowledge &published = global.published[reinterpret_cast<uint64_t>(p)];
  if (!isUpdate || !published) {
    published = own;
    return;
  }
  // Updates go on with what was released before them.
  if (!own)
    return;
  auto both = std::make_shared<Knowledge>(*published);
  joinInto(*both, *own);
  published = both;
}

void varlen::executor::acquireGlobal(const void *p, uint32_t order) {
  Worker &w = *worker;
  if (!w.detector || !w.ordersGlobal)
    return;
  Thread &self = *w.current;
  SharedKnowledge found;
  {
    GlobalOrder &global = w.launch->globalOrder;
    std::lock_guard<std::mutex> lock(global.mutex);
    auto at = global.published.find(reinterpret_cast<uint64_t>(p));
    if (at != global.published.end())
      found = at->second;
  }
  if (!found)
    return;
  if (acquires(order)) {
    acquireKnowledge(self, found);
    return;
  }
  // A fence may follow.
  auto seen = std::make_shared<Knowledge>(*found);
  if (self.seen)
    joinInto(*seen, *self.seen);
  self.seen = seen;
}

void varlen::executor::fenceGlobal() {
  Worker &w = *worker;
  if (!w.detector || !w.ordersGlobal)
    return;
  Thread &self = *w.current;
  if (self.seen)
    acquireKnowledge(self, self.seen);
  self.fenced = takeSnapshot(self);
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

void varlen_sim_order_global() { worker->ordersGlobal = true; }

void varlen_sim_release(void *p, uint32_t order, uint32_t site) {
  worker->current->site = site;
  releaseGlobal(p, order, /*isUpdate=*/false);
}

void varlen_sim_acquire(void *p, uint32_t order, uint32_t site) {
  worker->current->site = site;
  acquireGlobal(p, order);
}

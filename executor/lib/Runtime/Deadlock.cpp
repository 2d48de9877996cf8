//===- Deadlock.cpp - Threads that end, and those that cannot -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Deadlock.h"

#include "Barrier.h"
#include "State.h"

#include <cinttypes>
#include <sched.h>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// Exit
//===----------------------------------------------------------------------===//

static void reportPending(Thread &thread) {
  const CopyQueue &queue = thread.copies;
  uint64_t waitedFor = std::max(queue.retired, queue.handedOver);
  if (waitedFor < queue.first + queue.copies.size())
    report("exit-with-pending", queue.copies[waitedFor - queue.first].site,
           "the thread exits without waiting for this cp.async");
  if (!thread.bulk.uncommitted.empty())
    report("exit-with-pending", thread.site,
           "the thread exits with a bulk store that is in no group");
  for (const auto &group : thread.bulk.groups)
    if (!group.empty())
      report("exit-with-pending", thread.site,
             "the thread exits without waiting for its bulk stores, which may "
             "still read shared memory");
}

void varlen::executor::threadExits(Thread &thread) {
  Warp &warp = *thread.warp;
  Block &block = *thread.block;
  reportPending(thread);
  thread.wait = Wait::Exited;
  warp.alive &= ~(1U << thread.lane);
  --block.alive;
  --block.cluster->alive;
  --worker->alive;
  for (Group &group : warp.groups)
    if (group.arrived && group.mask >> thread.lane & 1)
      report("collective", group.site,
             "lane %u exits though lanes wait for it in %s", thread.lane,
             name(group.kind));
  if (!warp.alive) {
    const WgmmaQueue &queue = warp.wgmma;
    if (!queue.groups.empty() || !queue.uncommitted.operations.empty())
      report("exit-with-pending", thread.site,
             "the warp exits without waiting for its wgmma");
  }
  barrierMemberExits(block);
}

//===----------------------------------------------------------------------===//
// Deadlock
//===----------------------------------------------------------------------===//

static std::string describe(const Worker &worker, const Thread &thread) {
  const char *site = worker.launch->reports->siteName(thread.site);
  switch (thread.wait) {
  case Wait::Nothing:
    return "runs";
  case Wait::Exited:
    return "exited";
  case Wait::Collective:
    return format("waits for lanes %08x in %s at %s", thread.waitsFor,
                  name(thread.collective), site);
  case Wait::Barrier:
    return format("waits at barrier %u at %s", thread.waitsFor, site);
  case Wait::MBarrier:
    return format("waits for parity %u of the mbarrier at smem+0x%x at %s",
                  thread.waitsPhase, thread.waitsFor, site);
  case Wait::Cluster:
    return format("waits for the cluster at %s", site);
  case Wait::Registers:
    return format("waits for %u registers per thread at %s", thread.waitsFor,
                  site);
  case Wait::Polling:
    return format("polls at %s", site);
  }
  return "?";
}

static void describe(const Worker &worker, const Block &block,
                     std::string &text) {
  for (const Warp &warp : block.warps) {
    std::map<std::string, uint32_t> lanes;
    for (const Thread *thread : warp.threads)
      if (thread && thread->wait != Wait::Exited)
        lanes[describe(worker, *thread)] |= 1U << thread->lane;
    for (const auto &[what, mask] : lanes)
      text += format("\n  cta %u,%u,%u warp %u lanes %08x: ", block.id[0],
                     block.id[1], block.id[2], warp.id, mask) +
              what;
  }
  for (const auto &[offset, barrier] : block.mbarriers)
    text += format("\n  cta %u,%u,%u mbarrier smem+0x%x: phase %" PRIu64
                   ", %u of %u arrivals missing, %" PRId64 " bytes missing",
                   block.id[0], block.id[1], block.id[2], offset, barrier.phase,
                   barrier.pending, barrier.expected, barrier.transactions);
  for (uint32_t i = 0; i < 16; ++i) {
    const NamedBarrier &barrier = block.barriers[i];
    if (barrier.arrived)
      text += format("\n  cta %u,%u,%u barrier %u: %u of %u threads arrived",
                     block.id[0], block.id[1], block.id[2], i, barrier.arrived,
                     barrier.expected ? barrier.expected : block.alive);
  }
}

void varlen::executor::reportDeadlock(Worker &worker, const char *reason) {
  std::string text = reason;
  for (const auto &cluster : worker.clusters)
    if (cluster->alive)
      for (const Block &block : cluster->blocks)
        describe(worker, block, text);
  worker.launch->reports->add("deadlock", noSite, text, "");
}

bool varlen::executor::othersWork(Worker &worker) {
  Launch &launch = *worker.launch;
  if (launch.working.load() <= 1)
    return false;
  sched_yield();
  return true;
}

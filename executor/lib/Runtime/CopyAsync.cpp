//===- CopyAsync.cpp - cp.async -------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include <cstring>

using namespace varlen::executor;

static void perform(Copy &copy) {
  if (copy.done)
    return;
  copy.done = true;
  // A source that is not read may be null.
  if (copy.sourceSize)
    memcpy(copy.dst, copy.src, copy.sourceSize);
  memset(copy.dst + copy.sourceSize, 0, copy.size - copy.sourceSize);
}

/// The copies before index `end` become writes of `who`.
static void retire(Block &block, CopyQueue &queue, uint64_t end,
                   const Actor &who) {
  for (; queue.retired < end; ++queue.retired) {
    Copy &copy = queue.copies[queue.retired - queue.first];
    perform(copy);
    if (worker->detector) {
      block.shadow.addInFlightWrite(copy.offset, copy.size, -1);
      block.shadow.write(copy.offset, copy.size, who);
    }
  }
}

static void drop(CopyQueue &queue, size_t count) {
  queue.copies.erase(queue.copies.begin(),
                     queue.copies.begin() + static_cast<ptrdiff_t>(count));
  queue.first += count;
}

void varlen_sim_cp_async(void *dst, const void *src, uint32_t size,
                         uint32_t sourceSize, uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  Block &block = *self.block;
  self.site = site;
  ++w.stats.cp_async;
  progress();
  if (size != 4 && size != 8 && size != 16) {
    report("unsupported", site, "cp.async of %u bytes: wanted 4, 8 or 16",
           size);
    return;
  }
  if (sourceSize > size) {
    report("out-of-bounds", site, "cp.async reads %u bytes of %u", sourceSize,
           size);
    sourceSize = size;
  }
  auto to = reinterpret_cast<uint64_t>(dst);
  auto from = reinterpret_cast<uint64_t>(src);
  if (to % size || (sourceSize && from % size)) {
    report("misaligned", site,
           "cp.async of %u bytes from an address that ends in 0x%x to one that "
           "ends in 0x%x",
           size, static_cast<uint32_t>(from & 15),
           static_cast<uint32_t>(to & 15));
    return;
  }
  uint32_t offset;
  if (!sharedOffset(block, dst, size, site, offset))
    return;
  // An address that is not read need not be valid.
  if (sourceSize && !checkGlobal(src, sourceSize, "cp.async", site))
    sourceSize = 0;
  ++w.stats.accesses;
  if (w.detector) {
    Actor who = actor(self);
    if (Conflict conflict = block.shadow.checkWrite(offset, size, who))
      reportConflict(block, conflict, "cp.async write", who, site);
    block.shadow.addInFlightWrite(offset, size, 1);
  }
  // Undefined until a thread has waited: NaN in every float type.
  memset(dst, 0xff, size);
  self.copies.copies.push_back(
      {static_cast<char *>(dst), static_cast<const char *>(src), offset, site,
       static_cast<uint8_t>(size), static_cast<uint8_t>(sourceSize), false});
  ++self.copies.uncommitted;
  if (doneAtIssue())
    perform(self.copies.copies.back());
  if (Track *track = self.warp->track)
    if (self.lane == 0)
      track->add(Activity::Copy, "cp.async", site, cost::issue);
}

void varlen_sim_cp_async_commit(uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  CopyQueue &queue = self.copies;
  queue.groups.push_back(queue.uncommitted);
  queue.uncommitted = 0;
  Track *track = self.warp->track;
  if (!track || self.lane != 0)
    return;
  // A group without copies is a pipeline's end, and done at once.
  if (!queue.groups.back()) {
    queue.times.push_back(track->now);
    return;
  }
  uint64_t bytes = 32 * 16 * uint64_t(queue.groups.back());
  queue.times.push_back(track->now + cost::copyLatency +
                        bytes / cost::copyBytesPerCycle);
  self.block->trace->copies.addSpan(Activity::Copy, "cp.async group", site,
                                    track->now, queue.times.back());
}

static void waitFor(size_t groups, uint32_t site) {
  settle();
  Thread &self = *worker->current;
  self.site = site;
  CopyQueue &queue = self.copies;
  size_t count = 0;
  for (; groups; --groups) {
    count += queue.groups.front();
    queue.groups.pop_front();
    if (queue.times.empty())
      continue;
    self.warp->track->waitUntil(queue.times.front(), "cp.async.wait_group",
                                site);
    queue.times.pop_front();
  }
  retire(*self.block, queue, queue.first + count, actor(self));
  drop(queue, count);
}

void varlen_sim_cp_async_wait_group(uint32_t pending, uint32_t site) {
  size_t groups = worker->current->copies.groups.size();
  if (groups > pending)
    waitFor(groups - pending, site);
}

void varlen_sim_cp_async_wait_all(uint32_t site) {
  CopyQueue &queue = worker->current->copies;
  queue.groups.push_back(queue.uncommitted);
  queue.uncommitted = 0;
  waitFor(queue.groups.size(), site);
}

//===----------------------------------------------------------------------===//
// Completion on an mbarrier
//===----------------------------------------------------------------------===//

namespace {
/// The arrival that follows a thread's copies.
struct CopyArrival final : AsyncJob {
  Thread &thread;
  Block &block; ///< of the mbarrier
  uint32_t offset;
  uint32_t site;
  /// Copies of the thread that come first.
  uint64_t copies;
  uint64_t time;

  CopyArrival(Thread &thread, Block &block, uint32_t offset, uint32_t site,
              uint64_t copies, uint64_t time)
      : thread(thread), block(block), offset(offset), site(site),
        copies(copies), time(time) {}

private:
  void perform() override {
    CopyQueue &queue = thread.copies;
    MBarrier *barrier = findMBarrier(block, offset, site);
    // A copy is a write of the first arrival behind it, even if this one is
    // earlier; who waits for this one is ordered after all that it follows.
    for (PendingArrival &arrival : queue.arrivals) {
      if (arrival.end > copies)
        break;
      const Slot &by = arrival.slot;
      retire(*thread.block, queue, arrival.end,
             {thread.block->shadow.epoch(by.component, by.tick), &thread.clock,
              false, false});
      if (barrier && worker->detector)
        barrier->gather.addCopy(by.component, by.tick);
      arrival.done |= by.component == slot.component && by.tick == slot.tick;
    }
    while (!queue.arrivals.empty() && queue.arrivals.front().done)
      queue.arrivals.pop_front();
    if (!barrier)
      return;
    barrier->gatherTime = std::max(barrier->gatherTime, time);
    arriveMBarrier(*barrier, offset, 1, site);
  }
};
} // namespace

void varlen_sim_cp_async_mbarrier_arrive(void *p, uint32_t noinc,
                                         uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  Block &block = *self.block;
  self.site = site;
  progress();
  uint32_t offset;
  if (!sharedOffset(block, p, 8, site, offset))
    return;
  MBarrier *barrier = findMBarrier(block, offset, site);
  if (!barrier)
    return;
  checkInitialised(self, *barrier, offset, site);
  // Without .noinc the barrier waits for one arrival more than it would.
  if (!noinc)
    ++barrier->pending;
  CopyQueue &queue = self.copies;
  queue.handedOver = queue.first + queue.copies.size();
  uint64_t time =
      self.warp->track ? self.warp->track->now + cost::copyLatency : 0;
  auto job = std::make_shared<CopyArrival>(self, block, offset, site,
                                           queue.handedOver, time);
  job->slot = newSlot(*block.cluster);
  queue.arrivals.push_back({queue.handedOver, job->slot});
  if (w.config.async == VARLEN_SIM_EARLY)
    job->run();
  else
    w.jobs.push_back(std::move(job));
}

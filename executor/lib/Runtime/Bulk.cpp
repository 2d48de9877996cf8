//===- Bulk.cpp - Bulk copies ---------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cp.async.bulk without tensor maps, and the groups that bulk stores of both
// kinds are waited for in.
//
//===----------------------------------------------------------------------===//

#include "Bulk.h"

#include <cstring>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// What all of them do
//===----------------------------------------------------------------------===//

void varlen::executor::beginSharedWrite(const SharedSpan &span, uint32_t site) {
  Worker &w = *worker;
  Thread &self = *w.current;
  Block &block = *span.block;
  if (w.detector) {
    Actor who = asyncActor(self, span.slot);
    if (Conflict conflict =
            block.shadow.checkWrite(span.offset, span.bytes, who))
      reportConflict(block, conflict, "write", who, site);
    block.shadow.addInFlightWrite(span.offset, span.bytes, 1);
  }
  // Undefined until a thread has waited: NaN in every float type.
  memset(block.shared + span.offset, 0xff, span.bytes);
}

void varlen::executor::endSharedWrite(const SharedSpan &span) {
  if (!worker->detector)
    return;
  Shadow &shadow = span.block->shadow;
  shadow.addInFlightWrite(span.offset, span.bytes, -1);
  Actor who = {shadow.epoch(span.slot.component, span.slot.tick), nullptr, true,
               false};
  shadow.write(span.offset, span.bytes, who);
}

void varlen::executor::beginSharedRead(const SharedSpan &span, uint32_t site) {
  Worker &w = *worker;
  if (!w.detector)
    return;
  Block &block = *span.block;
  Actor who = asyncActor(*w.current, span.slot);
  if (Conflict conflict = block.shadow.read(span.offset, span.bytes, who))
    reportConflict(block, conflict, "read", who, site);
  block.shadow.addInFlightRead(span.offset, span.bytes, 1);
}

void varlen::executor::endSharedRead(const SharedSpan &span) {
  if (worker->detector)
    span.block->shadow.addInFlightRead(span.offset, span.bytes, -1);
}

bool varlen::executor::checkAsyncMBarrier(Block &block, const void *p,
                                          uint32_t &offset, uint32_t site) {
  if (!sharedOffset(block, p, 8, site, offset))
    return false;
  MBarrier *barrier = findMBarrier(block, offset, site);
  if (!barrier)
    return false;
  if (!barrier->fenced)
    report("proxy", site,
           "the async proxy uses the mbarrier at smem+0x%x without "
           "fence.mbarrier_init or fence.proxy.async after its initialisation",
           offset);
  checkInitialised(*worker->current, *barrier, offset, site);
  return true;
}

void varlen::executor::submit(std::shared_ptr<AsyncJob> job) {
  if (worker->config.async == VARLEN_SIM_EARLY)
    job->run();
  else
    worker->jobs.push_back(std::move(job));
}

void varlen::executor::submitStore(std::shared_ptr<AsyncJob> job) {
  worker->current->bulk.uncommitted.push_back(job);
  submit(std::move(job));
}

uint64_t varlen::executor::traceCopy(const char *what, uint32_t bytes,
                                     uint32_t site) {
  Thread &self = *worker->current;
  Track *track = self.warp->track;
  if (!track)
    return 0;
  track->add(Activity::Copy, what, site, cost::issue);
  uint64_t end =
      track->now + cost::copyLatency + bytes / cost::copyBytesPerCycle;
  self.block->trace->copies.addSpan(Activity::Copy, what, site, track->now,
                                    end);
  return end;
}

//===----------------------------------------------------------------------===//
// Copies of a number of bytes
//===----------------------------------------------------------------------===//

namespace {
/// Into shared memory, from global memory or that of another CTA.
struct BulkLoad final : AsyncJob {
  SharedSpan to;
  SharedSpan from; ///< if the source is shared
  const char *src = nullptr;
  uint32_t barrier = 0, site = 0;
  uint64_t time = 0;

private:
  void perform() override {
    memcpy(to.block->shared + to.offset, src, to.bytes);
    if (from.block)
      endSharedRead(from);
    endSharedWrite(to);
    completeTransaction(*to.block, barrier, to.bytes, to.slot.component,
                        to.slot.tick, time, site);
  }
};

/// From shared to global memory.
struct BulkStore final : AsyncJob {
  SharedSpan from;
  char *dst = nullptr;

private:
  void perform() override {
    memcpy(dst, from.block->shared + from.offset, from.bytes);
    endSharedRead(from);
  }
};
} // namespace

/// Both addresses and the size of a bulk copy are multiples of 16.
static bool checkBulk(const void *a, const void *b, uint32_t bytes,
                      uint32_t site) {
  auto low =
      (reinterpret_cast<uint64_t>(a) | reinterpret_cast<uint64_t>(b) | bytes) &
      15;
  if (low == 0)
    return true;
  report("misaligned", site,
         "bulk copy of %u bytes between addresses that end in 0x%x and 0x%x: "
         "wanted multiples of 16",
         bytes, static_cast<uint32_t>(reinterpret_cast<uint64_t>(a) & 15),
         static_cast<uint32_t>(reinterpret_cast<uint64_t>(b) & 15));
  return false;
}

static void begin(uint32_t site) {
  settle();
  worker->current->site = site;
  ++worker->stats.tma;
  progress();
}

/// One destination of a bulk load.
static void loadInto(Block &block, void *dst, const char *src, void *mbarrier,
                     uint32_t bytes, const SharedSpan *from, uint32_t site) {
  auto job = std::make_shared<BulkLoad>();
  job->slot = newSlot(*block.cluster);
  job->to = {&block, 0, bytes, job->slot};
  job->src = src;
  job->site = site;
  if (!sharedOffset(block, dst, bytes, site, job->to.offset) ||
      !checkAsyncMBarrier(block, mbarrier, job->barrier, site))
    return;
  if (from) {
    job->from = *from;
    job->from.slot = job->slot;
    beginSharedRead(job->from, site);
  }
  beginSharedWrite(job->to, site);
  job->time = traceCopy("cp.async.bulk", bytes, site);
  submit(std::move(job));
}

void varlen_sim_bulk_load(void *dst, const void *src, void *mbarrier,
                          uint32_t bytes, uint32_t multicast, uint32_t site) {
  begin(site);
  if (!checkBulk(dst, src, bytes, site) ||
      !checkGlobal(src, bytes, "bulk load", site))
    return;
  const char *from = static_cast<const char *>(src);
  forDestinations(dst, mbarrier, multicast,
                  [&](Block &block, char *to, char *barrier) {
                    loadInto(block, to, from, barrier, bytes, nullptr, site);
                  });
}

void varlen_sim_bulk_copy_cluster(void *dst, const void *src, void *mbarrier,
                                  uint32_t bytes, uint32_t site) {
  begin(site);
  Block &block = *worker->current->block;
  SharedSpan from = {&block, 0, bytes, {}};
  if (!checkBulk(dst, src, bytes, site) ||
      !sharedOffset(block, src, bytes, site, from.offset))
    return;
  Block *target = sharedOwner(dst);
  loadInto(target ? *target : block, dst, static_cast<const char *>(src),
           mbarrier, bytes, &from, site);
}

void varlen_sim_bulk_store(void *dst, const void *src, uint32_t bytes,
                           uint32_t site) {
  begin(site);
  Block &block = *worker->current->block;
  auto job = std::make_shared<BulkStore>();
  job->slot = newSlot(*block.cluster);
  job->from = {&block, 0, bytes, job->slot};
  job->dst = static_cast<char *>(dst);
  if (!checkBulk(dst, src, bytes, site) ||
      !checkGlobal(dst, bytes, "bulk store", site) ||
      !sharedOffset(block, src, bytes, site, job->from.offset))
    return;
  beginSharedRead(job->from, site);
  traceCopy("cp.async.bulk store", bytes, site);
  submitStore(std::move(job));
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

void varlen_sim_bulk_commit(uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  self.bulk.groups.push_back(std::move(self.bulk.uncommitted));
  self.bulk.uncommitted.clear();
}

void varlen_sim_bulk_wait_group(uint32_t pending, uint32_t read,
                                uint32_t site) {
  settle();
  Thread &self = *worker->current;
  self.site = site;
  while (self.bulk.groups.size() > pending) {
    for (const auto &job : self.bulk.groups.front()) {
      job->run();
      acquire(self, job->slot);
    }
    self.bulk.groups.pop_front();
  }
}

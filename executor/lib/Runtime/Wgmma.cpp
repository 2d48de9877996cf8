//===- Wgmma.cpp - wgmma --------------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp issues its quarter of the product alone: the hardware needs the four
// warps of a warpgroup for the whole, but orders nothing between them, so
// neither does the executor. It only checks that they issue the same.
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"

#include "State.h"
#include "Warp.h"

#include <cstring>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

varlen_sim_acc *AccumulatorArena::allocate(uint32_t count) {
  size_t bytes =
      sizeof(varlen_sim_acc) + (count * sizeof(float) + 15) / 16 * 16;
  if (chunk < chunks.size() && used + bytes > chunkBytes) {
    ++chunk;
    used = 0;
  }
  if (chunk == chunks.size())
    chunks.push_back(std::make_unique<char[]>(chunkBytes));
  auto *acc = reinterpret_cast<varlen_sim_acc *>(chunks[chunk].get() + used);
  used += bytes;
  acc->count = count;
  acc->pending = 0;
  acc->written = 0;
  return acc;
}

varlen_sim_acc *varlen_sim_acc_new(uint32_t registers, uint32_t site) {
  Thread &self = *worker->current;
  varlen_sim_acc *acc = self.accumulators.allocate(registers);
  memset(acc->values(), 0, registers * sizeof(float));
  acc->written = self.registerTime;
  return acc;
}

varlen_sim_acc *varlen_sim_acc_set(varlen_sim_acc *acc, uint32_t index,
                                   float value, uint32_t inPlace,
                                   uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  if (acc->pending)
    report("wgmma", site,
           "accumulator register %u is written while wgmma is in flight",
           index);
  if (!inPlace) {
    varlen_sim_acc *copy = self.accumulators.allocate(acc->count);
    memcpy(copy->values(), acc->values(), acc->count * sizeof(float));
    acc = copy;
  }
  acc->values()[index] = value;
  acc->written = self.registerTime;
  return acc;
}

float varlen_sim_acc_get(varlen_sim_acc *acc, uint32_t index, uint32_t site) {
  if (!acc->pending)
    return acc->values()[index];
  worker->current->site = site;
  report("wgmma", site,
         "accumulator register %u is read before wgmma.wait_group", index);
  return __builtin_nanf("");
}

//===----------------------------------------------------------------------===//
// Reads of shared memory
//===----------------------------------------------------------------------===//

/// Checks the reads of a wgmma that is issued, and marks them as in flight.
static void issueReads(Warp &warp, Wgmma &operation, Slot slot) {
  Block &block = *warp.block;
  Actor who = asyncActor(*warp.threads[0], slot);
  auto base = static_cast<uint32_t>(block.shared - block.window);
  bool outside = false, conflicts = false;
  for (uint32_t address : wgmmaReads(warp, operation)) {
    uint32_t offset = address - base;
    if (address < base || offset + 16 > block.sharedBytes) {
      if (!outside)
        report("out-of-bounds", operation.site,
               "wgmma operand at address 0x%x; shared memory is from 0x%x to "
               "0x%x",
               address, base, base + block.sharedBytes);
      outside = true;
      continue;
    }
    if (!worker->detector)
      continue;
    operation.reads.push_back(offset);
    block.shadow.addInFlightRead(offset, 16, 1);
    if (conflicts)
      continue;
    if (Conflict conflict = block.shadow.read(offset, 16, who)) {
      reportConflict(block, conflict, "wgmma read", who, operation.site);
      conflicts = true;
    }
  }
}

static void retireReads(Warp &warp, const Wgmma &operation) {
  for (uint32_t offset : operation.reads)
    warp.block->shadow.addInFlightRead(offset, 16, -1);
}

//===----------------------------------------------------------------------===//
// What the last lane of a warp does
//===----------------------------------------------------------------------===//

namespace {
/// What a lane puts on the stage.
struct WgmmaOperands {
  varlen_sim_acc *source, *target;
  uint64_t descA, descB;
  uint32_t a[4];
  uint32_t n, flags;
  uint16_t scaleD, registersA;
  uint32_t pending; ///< of wait_group
};
} // namespace
static_assert(sizeof(WgmmaOperands) <= sizeof(Warp::stage[0]), "fits a stage");

static WgmmaOperands &operandsOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<WgmmaOperands *>(warp.stage[lane]);
}

/// The warps of a warpgroup must all issue the same products.
static void checkSequence(Warp &warp, const Wgmma &operation) {
  WgmmaSequence &sequence = warp.block->warpgroups[warp.id / 4];
  uint64_t &position = sequence.position[warp.id % 4];
  uint64_t index = position++ - sequence.first;
  if (index == sequence.issues.size()) {
    sequence.issues.push_back(
        {operation.descA, operation.descB, operation.site});
    return;
  }
  const WgmmaSequence::Issue &issue = sequence.issues[index];
  if (issue.descA != operation.descA || issue.descB != operation.descB ||
      issue.site != operation.site)
    report("collective", operation.site,
           "the warps of a warpgroup disagree: another has issued the wgmma at "
           "%s here, or with other descriptors",
           worker->launch->reports->siteName(issue.site));
  uint64_t slowest = position;
  for (uint64_t other : sequence.position)
    slowest = std::min(slowest, other);
  while (sequence.first < slowest) {
    sequence.issues.pop_front();
    ++sequence.first;
  }
}

void varlen::executor::issueWgmma(Warp &warp) {
  auto operation = std::make_unique<Wgmma>();
  const WgmmaOperands &first = operandsOf(warp, 0);
  uint32_t site = warp.threads[0]->site;
  operation->descA = first.descA;
  operation->descB = first.descB;
  operation->n = first.n;
  operation->flags = first.flags;
  operation->scaleD = first.scaleD;
  operation->registersA = first.registersA;
  operation->site = site;
  WgmmaQueue &queue = warp.wgmma;
  if (queue.uncommitted.operations.empty())
    queue.uncommitted.slot = newSlot(*warp.block->cluster);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const WgmmaOperands &operands = operandsOf(warp, lane);
    const Thread &thread = *warp.threads[lane];
    if (operands.descA != first.descA || operands.descB != first.descB)
      report("collective", site, "wgmma descriptors differ between lanes");
    if (operands.source->written > thread.fenceTime)
      report("wgmma", site,
             "accumulator registers were written since the last wgmma.fence");
    if (operands.source != operands.target && operands.source->pending &&
        operands.scaleD)
      report("wgmma", site,
             "an accumulator in flight would have to be copied: its value is "
             "used twice");
    operation->source[lane] = operands.source;
    operation->target[lane] = operands.target;
    memcpy(operation->a[lane], operands.a, sizeof(operands.a));
    ++operands.target->pending;
    operands.target->written = 0;
  }
  checkSequence(warp, *operation);
  issueReads(warp, *operation, queue.uncommitted.slot);
  if (Track *track = warp.track) {
    uint64_t begin = std::max(track->now, queue.busyUntil);
    uint64_t duration = operation->n * cost::wgmmaPerColumn;
    queue.busyUntil = begin + duration;
    track->add(Activity::Matrix, "wgmma", site, cost::issue);
    // The warps of a warpgroup do the same.
    if (warp.id % 4 == 0)
      warp.block->trace->products[warp.id / 4].addFrom(begin, Activity::Matrix,
                                                       "wgmma", site, duration);
  }
  queue.uncommitted.operations.push_back(std::move(operation));
  if (!doneAtIssue())
    return;
  for (WgmmaQueue::Batch &batch : queue.groups)
    for (auto &pending : batch.operations)
      computeWgmma(warp, *pending);
  for (auto &pending : queue.uncommitted.operations)
    computeWgmma(warp, *pending);
}

void varlen::executor::fenceWgmma(Warp &warp) {
  for (Thread *thread : warp.threads)
    thread->fenceTime = thread->registerTime++;
}

void varlen::executor::commitWgmma(Warp &warp) {
  WgmmaQueue &queue = warp.wgmma;
  queue.uncommitted.time = queue.busyUntil;
  queue.groups.push_back(std::move(queue.uncommitted));
  queue.uncommitted = WgmmaQueue::Batch();
}

void varlen::executor::waitWgmma(Warp &warp) {
  uint32_t pending = operandsOf(warp, 0).pending;
  WgmmaQueue &queue = warp.wgmma;
  while (queue.groups.size() > pending) {
    WgmmaQueue::Batch &batch = queue.groups.front();
    for (auto &operation : batch.operations) {
      computeWgmma(warp, *operation);
      retireReads(warp, *operation);
      for (varlen_sim_acc *acc : operation->target)
        --acc->pending;
    }
    if (!batch.operations.empty())
      for (Thread *thread : warp.threads)
        acquire(*thread, batch.slot);
    if (warp.track)
      warp.track->waitUntil(batch.time, "wgmma.wait_group",
                            worker->current->site);
    queue.groups.pop_front();
  }
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

static varlen_sim_acc *issue(varlen_sim_acc *acc, const uint32_t *registersA,
                             uint64_t descA, uint64_t descB, uint32_t n,
                             uint32_t scaleD, uint32_t flags, uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  if (n < 8 || n > 256 || n % 8 || acc->count != n / 2) {
    report("unsupported", site,
           "wgmma with n = %u and %u registers: wanted a multiple of 8 up to "
           "256, and n / 2 registers",
           n, acc->count);
    return acc;
  }
  if ((descA | descB) >> 49 & 7) {
    report("unsupported", site,
           "wgmma descriptor with a base offset: its operand must begin with a "
           "swizzle atom");
    return acc;
  }
  if (self.block->warps.size() < (self.warp->id / 4 + 1) * 4) {
    report("collective", site, "wgmma in a warpgroup of less than 4 warps");
    return acc;
  }
  WgmmaOperands &operands = operandsOf(*self.warp, self.lane);
  operands.source = acc;
  operands.target = flags & VARLEN_SIM_WGMMA_IN_PLACE
                        ? acc
                        : self.accumulators.allocate(acc->count);
  operands.descA = descA;
  operands.descB = descB;
  operands.n = n;
  operands.flags = flags;
  operands.scaleD = scaleD != 0;
  operands.registersA = registersA != nullptr;
  if (registersA)
    memcpy(operands.a, registersA, sizeof(operands.a));
  collective(Collective::Wgmma, ~0U, site);
  return operands.target;
}

varlen_sim_acc *varlen_sim_wgmma(varlen_sim_acc *acc, uint64_t descA,
                                 uint64_t descB, uint32_t n, uint32_t scaleD,
                                 uint32_t flags, uint32_t site) {
  return issue(acc, nullptr, descA, descB, n, scaleD, flags, site);
}

varlen_sim_acc *varlen_sim_wgmma_rs(varlen_sim_acc *acc, uint32_t a0,
                                    uint32_t a1, uint32_t a2, uint32_t a3,
                                    uint64_t descB, uint32_t n, uint32_t scaleD,
                                    uint32_t flags, uint32_t site) {
  uint32_t registersA[] = {a0, a1, a2, a3};
  return issue(acc, registersA, 0, descB, n, scaleD, flags, site);
}

void varlen_sim_wgmma_fence(uint32_t site) {
  collective(Collective::WgmmaFence, ~0U, site);
}
void varlen_sim_wgmma_commit(uint32_t site) {
  collective(Collective::WgmmaCommit, ~0U, site);
}
void varlen_sim_wgmma_wait_group(uint32_t pending, uint32_t site) {
  Thread &self = *worker->current;
  operandsOf(*self.warp, self.lane).pending = pending;
  collective(Collective::WgmmaWait, ~0U, site);
}

//===- Access.cpp - Checks of loads and stores ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include <cstdlib>
#include <cstring>

using namespace varlen::executor;

/// Where accesses go that are out of bounds.
static void *sink(uint64_t size) {
  static thread_local std::vector<char> memory;
  if (memory.size() < size + 64)
    memory.resize(size + 64);
  char *aligned =
      memory.data() + (-reinterpret_cast<uint64_t>(memory.data()) & 63);
  memset(aligned, 0xff, size);
  return aligned;
}

static uint64_t address(const void *p) { return reinterpret_cast<uint64_t>(p); }

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

static bool inArena(const void *p) {
  return address(p) - address(worker->arena) < worker->arenaBytes;
}

Block *varlen::executor::sharedOwner(const void *p) {
  Thread &self = *worker->current;
  for (Block &block : self.block->cluster->blocks)
    if (address(p) - address(block.window) < windowBytes)
      return &block;
  return nullptr;
}

bool varlen::executor::sharedOffset(Block &block, const void *p, uint64_t size,
                                    uint32_t site, uint32_t &offset) {
  uint64_t distance = address(p) - address(block.shared);
  if (distance > block.sharedBytes || size > block.sharedBytes - distance) {
    report("out-of-bounds", site,
           "access of %llu bytes at smem+0x%llx, of %u bytes of shared memory",
           static_cast<unsigned long long>(size),
           static_cast<unsigned long long>(distance), block.sharedBytes);
    return false;
  }
  if (block.alive == 0 && &block != worker->current->block) {
    report("exited-cta", site,
           "access to the shared memory of cta %u of the cluster, which has "
           "exited",
           block.rank);
    return false;
  }
  offset = static_cast<uint32_t>(distance);
  return true;
}

static std::string nameOf(const Block &block, Epoch epoch) {
  uint32_t component = block.shadow.component(epoch);
  uint32_t perBlock = worker->launch->threads;
  uint32_t threads =
      perBlock * static_cast<uint32_t>(block.cluster->blocks.size());
  if (component > threads)
    return "asynchronous work";
  uint32_t index = component - 1;
  if (block.cluster->blocks.size() == 1)
    return format("thread %u", index);
  return format("thread %u of cta %u of the cluster", index % perBlock,
                index / perBlock);
}

static std::string describe(const Block &block, const Conflict &conflict,
                            const char *verb, const Actor &actor) {
  std::string start =
      format("%s%s of smem+0x%x", actor.asyncProxy ? "async-proxy " : "", verb,
             conflict.offset);
  switch (conflict.hazard) {
  case Hazard::None:
    break;
  case Hazard::InFlightWrite:
    return start + " while an asynchronous copy into it is in flight";
  case Hazard::InFlightRead:
    return start + " while asynchronous work in flight still reads it";
  case Hazard::Uninitialised:
    return start + ", which has not been written";
  case Hazard::AfterWrite:
    return start + " not ordered after the write by " +
           nameOf(block, conflict.other);
  case Hazard::AfterRead:
    return start + " not ordered after the read by " +
           nameOf(block, conflict.other);
  case Hazard::Proxy:
    return start + " written through the generic proxy by " +
           nameOf(block, conflict.other) + " without fence.proxy.async";
  case Hazard::BarrierObject:
    return start + ", which is an mbarrier";
  }
  return start;
}

static const char *kindOf(Hazard hazard) {
  switch (hazard) {
  case Hazard::Uninitialised:
    return "uninitialised";
  case Hazard::Proxy:
    return "proxy";
  case Hazard::BarrierObject:
    return "mbarrier";
  default:
    return "race";
  }
}

void varlen::executor::reportConflict(const Block &block,
                                      const Conflict &conflict,
                                      const char *verb, const Actor &actor,
                                      uint32_t site) {
  report(kindOf(conflict.hazard), site, "%s",
         describe(block, conflict, verb, actor).c_str());
}

/// Whose shared memory the access is to, and where in it; null if it is to
/// none.
static Block *findShared(Thread &thread, const void *p, uint32_t size,
                         uint32_t site, uint32_t &offset) {
  Block *block = thread.block;
  uint64_t distance = address(p) - address(thread.shared);
  if (distance >= thread.sharedBytes) {
    block = sharedOwner(p);
    if (!block)
      block = thread.block;
  }
  if (!sharedOffset(*block, p, size, site, offset))
    return nullptr;
  ++worker->stats.accesses;
  return block;
}

bool varlen::executor::readShared(Thread &thread, const void *p, uint32_t size,
                                  uint32_t site) {
  uint32_t offset;
  Block *block = findShared(thread, p, size, site, offset);
  if (!block)
    return false;
  if (worker->detector) {
    Actor who = actor(thread);
    if (Conflict conflict = block->shadow.read(offset, size, who))
      reportConflict(*block, conflict, "read", who, site);
  }
  return true;
}

bool varlen::executor::writeShared(Thread &thread, void *p, uint32_t size,
                                   uint32_t site) {
  uint32_t offset;
  Block *block = findShared(thread, p, size, site, offset);
  if (!block)
    return false;
  if (worker->detector) {
    Actor who = actor(thread);
    if (Conflict conflict = block->shadow.checkWrite(offset, size, who))
      reportConflict(*block, conflict, "write", who, site);
    else
      block->shadow.write(offset, size, who);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Stores of what is there already
//===----------------------------------------------------------------------===//

static void deferConflict(Block &block, const Conflict &conflict,
                          const Actor &who, const void *p, uint32_t size,
                          uint32_t site) {
  Worker &w = *worker;
  w.conflict.memory = static_cast<const char *>(p);
  w.conflict.size = size;
  memcpy(w.conflict.before, p, size);
  w.conflict.kind = kindOf(conflict.hazard);
  w.conflict.site = site;
  w.conflict.text = describe(block, conflict, "write", who);
  w.deferred = true;
}

void varlen::executor::settleDeferred() {
  Worker &w = *worker;
  w.deferred = false;
  if (memcmp(w.conflict.memory, w.conflict.before, w.conflict.size) != 0)
    report(w.conflict.kind, w.conflict.site, "%s", w.conflict.text.c_str());
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

static uint64_t alignmentMask(uint32_t size) {
  if (size & (size - 1))
    return 0;
  return (size < 16 ? size : 16) - 1;
}

static bool misaligned(const void *p, uint32_t size, const char *verb,
                       uint32_t site) {
  if ((address(p) & alignmentMask(size)) == 0)
    return false;
  report("misaligned", site, "%s of %u bytes at an address that ends in 0x%x",
         verb, size, static_cast<uint32_t>(address(p) & 15));
  return true;
}

template <bool isStore>
static inline void *accessShared(void *p, uint32_t size, uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  self.site = site;
  if (__builtin_expect((address(p) & alignmentMask(size)) != 0, 0) &&
      misaligned(p, size, isStore ? "store" : "load", site))
    return sink(size);
  Block *block = self.block;
  uint64_t distance = address(p) - address(self.shared);
  uint32_t offset = static_cast<uint32_t>(distance);
  if (__builtin_expect(distance >= self.sharedBytes ||
                           size > self.sharedBytes - distance,
                       0)) {
    Block *owner = sharedOwner(p);
    if (!sharedOffset(owner ? *owner : *block, p, size, site, offset))
      return sink(size);
    block = owner;
  }
  ++w.stats.accesses;
  if (__builtin_expect(block->banks != nullptr, 0))
    block->banks->record(self.warp->id, self.lane, site, offset, size);
  if (!w.detector)
    return p;
  Actor who = actor(self);
  if (!isStore) {
    if (Conflict conflict = block->shadow.read(offset, size, who))
      reportConflict(*block, conflict, "read", who, site);
    return p;
  }
  w.idlePolls = 0;
  Conflict conflict = block->shadow.checkWrite(offset, size, who);
  if (__builtin_expect(!conflict, 1))
    block->shadow.write(offset, size, who);
  else if (conflict.hazard == Hazard::AfterWrite && size <= 64)
    deferConflict(*block, conflict, who, p, size, site);
  else
    reportConflict(*block, conflict, "write", who, site);
  return p;
}

bool varlen::executor::checkGlobal(const void *p, uint64_t size,
                                   const char *verb, uint32_t site) {
  Worker &w = *worker;
  if (__builtin_expect(!w.current->sawGrids, 0))
    report("grid", site,
           "%s of global memory before griddepcontrol.wait: kernels before "
           "this one may still write it or read it",
           verb);
  uint64_t at = address(p);
  for (const Range &range : w.globalCache.ranges)
    if (at - range.begin < range.end - range.begin && size <= range.end - at)
      return true;
  const MemoryMap &memory = w.launch->memory;
  if (const Range *range = memory.find(at, size)) {
    w.globalCache.ranges[w.globalCache.next++ % 4] = *range;
    return true;
  }
  const Range *near = memory.below(at);
  if (inArena(p))
    report("out-of-bounds", site,
           "%s of %llu bytes of global memory at an address in shared memory",
           verb, static_cast<unsigned long long>(size));
  else if (near)
    report("out-of-bounds", site,
           "%s of %llu bytes, %llu bytes after the start of a block of %llu "
           "bytes of global memory",
           verb, static_cast<unsigned long long>(size),
           static_cast<unsigned long long>(at - near->begin),
           static_cast<unsigned long long>(near->end - near->begin));
  else
    report("out-of-bounds", site,
           "%s of %llu bytes at %p, which is no registered memory", verb,
           static_cast<unsigned long long>(size), p);
  return false;
}

bool varlen::executor::checkGlobalNow(const void *p, uint64_t size,
                                      const char *verb, bool isStore,
                                      bool isAtomic, uint32_t site) {
  if (!checkGlobal(p, size, verb, site))
    return false;
  if (__builtin_expect(worker->ordersGlobal, 0))
    orderGlobal(p, size, isStore, isAtomic, site);
  return true;
}

template <bool isStore>
static inline void *accessGlobal(void *p, uint32_t size, uint32_t site,
                                 bool isAtomic = false) {
  Worker &w = *worker;
  w.current->site = site;
  const char *verb = isStore ? "store" : "load";
  if (__builtin_expect((address(p) & alignmentMask(size)) != 0, 0) &&
      misaligned(p, size, verb, site))
    return sink(size);
  ++w.stats.accesses;
  if (isStore)
    w.idlePolls = 0;
  return checkGlobalNow(p, size, verb, isStore, isAtomic, site) ? p
                                                                : sink(size);
}

/// Whether a generic pointer points into the thread's own stack, where its
/// local memory is.
static bool onStack(const Thread &thread, const void *p) {
  return address(p) - address(thread.stack) < worker->stackBytes;
}

void *varlen_sim_load_shared(void *p, uint32_t size, uint32_t site) {
  return accessShared<false>(p, size, site);
}
void *varlen_sim_store_shared(void *p, uint32_t size, uint32_t site) {
  return accessShared<true>(p, size, site);
}
void *varlen_sim_load_global(void *p, uint32_t size, uint32_t site) {
  return accessGlobal<false>(p, size, site);
}
void *varlen_sim_store_global(void *p, uint32_t size, uint32_t site) {
  return accessGlobal<true>(p, size, site);
}
void *varlen_sim_load_generic(void *p, uint32_t size, uint32_t site) {
  if (inArena(p))
    return accessShared<false>(p, size, site);
  return onStack(*worker->current, p) ? p : accessGlobal<false>(p, size, site);
}
void *varlen_sim_store_generic(void *p, uint32_t size, uint32_t site) {
  if (inArena(p))
    return accessShared<true>(p, size, site);
  return onStack(*worker->current, p) ? p : accessGlobal<true>(p, size, site);
}

template <bool isStore>
static void *accessFlag(void *p, uint32_t size, uint32_t site) {
  if (inArena(p))
    return accessShared<isStore>(p, size, site);
  if (onStack(*worker->current, p))
    return p;
  return accessGlobal<isStore>(p, size, site, /*isAtomic=*/true);
}

void *varlen_sim_load_flag(void *p, uint32_t size, uint32_t site) {
  return accessFlag<false>(p, size, site);
}
void *varlen_sim_store_flag(void *p, uint32_t size, uint32_t site) {
  return accessFlag<true>(p, size, site);
}

template <bool isStore>
static void *accessRange(void *p, uint64_t size, uint32_t site) {
  settle();
  Thread &self = *worker->current;
  self.site = site;
  if (size == 0 || onStack(self, p))
    return p;
  if (!inArena(p))
    return checkGlobalNow(p, size, isStore ? "store" : "load", isStore,
                          /*isAtomic=*/false, site)
               ? p
               : sink(size);
  if (size > windowBytes)
    return sink(size);
  auto bytes = static_cast<uint32_t>(size);
  bool valid = isStore ? writeShared(self, p, bytes, site)
                       : readShared(self, p, bytes, site);
  return valid ? p : sink(size);
}

void *varlen_sim_load_range(void *p, uint64_t size, uint32_t site) {
  return accessRange<false>(p, size, site);
}
void *varlen_sim_store_range(void *p, uint64_t size, uint32_t site) {
  return accessRange<true>(p, size, site);
}

void varlen_sim_poll(uint32_t site) {
  worker->current->site = site;
  poll();
}

void *varlen_sim_smem(uint32_t offset) {
  return worker->current->shared + offset;
}

void *varlen_sim_mapa(void *address, uint32_t rank, uint32_t site) {
  auto &blocks = worker->current->block->cluster->blocks;
  uint64_t offset = reinterpret_cast<uint64_t>(address) & (windowBytes - 1);
  if (rank >= blocks.size()) {
    report("cluster", site, "mapa to CTA %u of a cluster of %zu", rank,
           blocks.size());
    rank = 0;
  }
  return blocks[rank].window + offset;
}

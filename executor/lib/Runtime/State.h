//===- State.h - Threads, warps, CTAs and who runs them ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_STATE_H
#define VARLEN_LIB_EXECUTOR_STATE_H

#include "Async.h"
#include "Banks.h"
#include "Clock.h"
#include "Fiber.h"
#include "GlobalOrder.h"
#include "MBarrier.h"
#include "Memory.h"
#include "Report.h"
#include "Shadow.h"
#include "Trace.h"
#include "Wgmma.h"
#include "varlen/Executor/Executor.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace varlen::executor {

struct Warp;
struct Block;
struct Cluster;

/// What a thread waits for.
enum class Wait : uint8_t {
  Nothing,
  Collective,
  Barrier,
  MBarrier,
  Cluster,
  Registers,
  Polling,
  Exited,
};

/// What the lanes of a warp do together.
enum class Collective : uint8_t {
  None,
  Shfl,
  Vote,
  Match,
  Redux,
  Elect,
  SyncWarp,
  LdMatrix,
  StMatrix,
  MMA,
  WgmmaFence,
  WgmmaCommit,
  WgmmaWait,
  Wgmma,
  SetMaxNReg,
  PublishMap,
};

/// What every collective touches is in the first line of the cache: the lanes
/// of a warp run in turn, and just fit into it.
struct alignas(64) Thread {
  Context context;
  Warp *warp = nullptr;
  Block *block = nullptr;
  /// Of `block`, here because every access needs them.
  char *shared = nullptr;
  uint32_t sharedBytes = 0;
  uint32_t lane = 0;
  uint32_t tid = 0;
  uint32_t site = 0;
  /// What a waiting thread waits for, for those who look at a deadlock.
  uint32_t waitsFor = 0;
  Wait wait = Wait::Nothing;
  Collective collective = Collective::None;

  ThreadClock clock;
  uint32_t shflPredicate = 0;
  uint32_t waitsPhase = 0;
  /// Which products of its batch of mma follow which.
  const int32_t *mmaChain = nullptr;
  char *stack = nullptr;

  uint32_t clusterPhase = 0;
  bool clusterArrived = false;
  /// Whether what kernels before this one have written is there.
  bool sawGrids = true;

  /// What relaxed loads of flags have seen, which a fence acquires, and what
  /// the last fence publishes by relaxed stores.
  SharedKnowledge seen, fenced;

  CopyQueue copies;
  BulkQueue bulk;
  AccumulatorArena accumulators;
  /// Counts what wgmma must not overlap with: see Wgmma.cpp.
  uint64_t registerTime = 1, fenceTime = 0;
};

/// Lanes that have arrived at a collective and wait for the others.
struct Group {
  uint32_t mask = 0;
  uint32_t site = 0;
  uint32_t arrived = 0;
  Collective kind = Collective::None;
  /// Some lanes came from another operation: nothing is carried out.
  bool disagree = false;
};

struct Warp {
  Block *block = nullptr;
  uint32_t id = 0;
  uint32_t ready = 0;
  uint32_t alive = 0;
  uint32_t priority = 0;
  uint32_t registers = 0;
  Thread *threads[32] = {};
  /// At most one per lane; the first is the common one.
  Group groups[32];
  /// Operands in, results out: what lanes have on their own stacks would cost
  /// the lane that does the work a cache miss each.
  alignas(64) uint32_t stage[32][16];
  WgmmaQueue wgmma;
  Track *track = nullptr;
};

struct NamedBarrier {
  uint32_t expected = 0;
  uint32_t arrived = 0;
  uint32_t site = 0;
  int reduceOp = -1;
  uint32_t reduced = 0;
  uint64_t time = 0;
  Gather gather;
  std::vector<Thread *> waiters;
};

/// A CTA.
struct Block {
  Cluster *cluster = nullptr;
  uint32_t id[3] = {};
  uint32_t rank = 0;
  /// Which of the CTAs in flight together.
  uint32_t slot = 0;
  uint32_t alive = 0;
  /// 256 KiB of address space; shared memory begins somewhere in it, so that
  /// no code relies on address 0.
  char *window = nullptr;
  char *shared = nullptr;
  uint32_t sharedBytes = 0;
  /// Registers that no warp owns.
  uint32_t freeRegisters = 0;
  std::vector<Thread *> registerWaiters;
  std::vector<Warp> warps;
  NamedBarrier barriers[16];
  std::map<uint32_t, MBarrier> mbarriers;
  Shadow shadow;
  /// What release operations on atomics in shared memory published.
  std::unordered_map<uint32_t, std::unique_ptr<Gather>> atomics;
  std::vector<WgmmaSequence> warpgroups;
  BankRecorder *banks = nullptr;
  Trace *trace = nullptr;
};

/// Who has copied a tensor map to global memory, and who has passed a fence for
/// it since: components of the clocks, and when.
struct MapOrder {
  std::vector<Slot> makers, readers;
};

struct Cluster {
  std::vector<Block> blocks;
  /// Which of the launch.
  uint64_t index = 0;
  /// What its threads have acquired from others.
  std::vector<Acquisition> acquisitions;
  uint32_t alive = 0;
  NamedBarrier barrier;
  uint32_t barrierPhase = 0;
  /// What waiting for the last phase of the barrier gives.
  Clock *completed = nullptr;
  /// Ticks of the slots, and which is next.
  std::vector<Tick> slotTicks;
  uint32_t nextSlot = 0;
  /// Of tensor maps that kernels make, by number.
  std::unordered_map<uint64_t, MapOrder> maps;
};

/// Clock components for asynchronous work, per cluster.
constexpr uint32_t numSlots = 64;
/// The part of the address space that a descriptor's 18 bits can name.
constexpr uint32_t windowBytes = 256 * 1024;

/// A write that was not ordered after another one: harmless if it writes what
/// is there already, which shows only after the store that follows the check.
struct DeferredConflict {
  const char *memory = nullptr;
  uint32_t size = 0;
  char before[64];
  const char *kind = nullptr;
  uint32_t site = 0;
  std::string text;
};

/// All of a launch that host threads share.
struct Launch {
  const varlen_sim_kernel_info *kernel = nullptr;
  varlen_sim_launch_params params;
  varlen_sim_config config;
  Reports *reports = nullptr;
  Trace *trace = nullptr;
  BankRecorder *banks = nullptr;
  MemoryMap memory;
  GlobalOrder globalOrder;
  uint32_t threads = 0;       // per CTA
  uint32_t clusterBlocks = 1; // CTAs per cluster
  uint32_t sharedBytes = 0;
  uint64_t clusters = 0;
  /// The next clusters to run, and host threads that are still at it.
  std::atomic<uint64_t> nextBatch{0};
  std::atomic<uint32_t> working{0};
};

/// What is kept from launch to launch: mapping it anew takes longer than a
/// small kernel.
struct Resources {
  explicit Resources(size_t stackBytes) : stacks(stackBytes) {}
  ~Resources();
  Resources(const Resources &) = delete;
  Resources &operator=(const Resources &) = delete;
  /// Maps `count` windows of shared memory below 4 GiB, aligned to their
  /// size. Returns false if there is no such address space.
  bool mapWindows(size_t count);

  StackPool stacks;
  std::vector<std::unique_ptr<Thread>> threads;
  char *arena = nullptr;
  size_t windows = 0;

private:
  char *mapped = nullptr;
  size_t mappedBytes = 0;
};

/// One host thread and the fibers it runs.
struct Worker {
  // What every access needs, first.
  Thread *current = nullptr;
  bool detector = false;
  bool deferred = false;
  /// Whether the kernel has flags in global memory, so that accesses to it are
  /// looked at.
  bool ordersGlobal = false;
  uint32_t untilChoice = 0;
  uint32_t firstLane = 0;
  Warp *last = nullptr;

  Launch *launch = nullptr;
  varlen_sim_config config;
  varlen_sim_stats stats = {};
  uint64_t random = 1;
  uint64_t electSeed = 0;
  Context host;
  ClockSpace clocks;
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::vector<Warp *> warps;
  uint32_t nextWarp = 0;
  std::vector<std::shared_ptr<AsyncJob>> jobs;
  std::unique_ptr<Resources> resources;
  /// The arena of `resources`, here because every generic access needs it.
  char *arena = nullptr;
  size_t arenaBytes = 0;
  size_t stackBytes = 0;
  uint32_t alive = 0;
  /// Polls since anything else happened.
  uint64_t idlePolls = 0;
  bool stuck = false;
  bool clockOverflow = false;
  uint32_t tickBits = 20;
  uint32_t tickLimit = 0;
  /// CTAs in flight together.
  uint32_t residentBlocks = 1;
  DeferredConflict conflict;
  /// For the synchronisation of a warp, which ends where it begins.
  Gather warpGather;
  RangeCache globalCache;

  uint64_t next() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
  }
  uint32_t below(uint32_t limit) {
    return static_cast<uint32_t>((next() >> 11) % limit);
  }
};

/// The worker of this host thread. A fiber never changes its host thread. A
/// library that is loaded later has no place among what is found without a
/// call.
extern thread_local Worker *worker
#if defined(__linux__) && !defined(VARLEN_EXECUTOR_LOADED_LATER)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

//===----------------------------------------------------------------------===//
// Scheduler.cpp
//===----------------------------------------------------------------------===//

void makeReady(Thread &thread);
/// Lets others run; returns when another has made the current thread ready.
void switchAway();
/// Lets others run though the current thread could go on.
void giveWay();
/// The current thread polls for what others do.
void poll();
/// Something happened that a polling thread may be waiting for.
inline void progress() { worker->idlePolls = 0; }
/// Does one piece of asynchronous work.
bool progressAsync();
[[noreturn]] void finishThread();
void runThreads();
/// One collective of all lanes in `mask`, which the last to arrive carries out.
void collective(Collective kind, uint32_t mask, uint32_t site);
void runCollective(Warp &warp, Collective kind, uint32_t mask);
const char *name(Collective kind);

/// The asynchronous work of this policy is done at once?
inline bool doneAtIssue() {
  return worker->config.async == VARLEN_SIM_EARLY ||
         (worker->config.async == VARLEN_SIM_RANDOM_TIME &&
          (worker->next() & 1));
}

//===----------------------------------------------------------------------===//
// Access.cpp
//===----------------------------------------------------------------------===//

/// The CTA whose shared memory an address of this cluster is in, or null.
Block *sharedOwner(const void *p);
/// The offset in the CTA's shared memory; reports and returns false if
/// [p, p + size) is not in it.
bool sharedOffset(Block &block, const void *p, uint64_t size, uint32_t site,
                  uint32_t &offset);
/// Checked accesses that the executor makes on behalf of a thread.
bool readShared(Thread &thread, const void *p, uint32_t size, uint32_t site);
bool writeShared(Thread &thread, void *p, uint32_t size, uint32_t site);
/// Reports a conflict of an access at `site`; `verb` is "read", "write", ...
void reportConflict(const Block &block, const Conflict &conflict,
                    const char *verb, const Actor &actor, uint32_t site);
bool checkGlobal(const void *p, uint64_t size, const char *verb, uint32_t site);
/// The same of an access that happens now, which has its place in the order of
/// accesses to global memory.
bool checkGlobalNow(const void *p, uint64_t size, const char *verb,
                    bool isStore, bool isAtomic, uint32_t site);
void settleDeferred();
/// The store before this call has happened by now.
inline void settle() {
  if (__builtin_expect(worker->deferred, 0))
    settleDeferred();
}

//===----------------------------------------------------------------------===//
// Ordering
//===----------------------------------------------------------------------===//

inline Actor actor(Thread &thread, bool atomic = false) {
  return {thread.block->shadow.epoch(thread.clock.self, thread.clock.own),
          &thread.clock, false, atomic};
}
inline Actor asyncActor(Thread &thread, Slot slot) {
  return {thread.block->shadow.epoch(slot.component, slot.tick), &thread.clock,
          true, false};
}
void releaseTo(Thread &thread, Gather &gather);
void acquire(Thread &thread, Clock *clock);
void acquire(Thread &thread, Slot slot);
/// Acquires a clock to which the thread itself has released.
void acquireAll(Thread &thread, Clock *clock);
/// A proxy fence: what is ordered before here becomes visible to the async
/// proxy.
void publish(Thread &thread);
void replaceClock(Thread &thread, Clock *clock);
Slot newSlot(Cluster &cluster);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_STATE_H

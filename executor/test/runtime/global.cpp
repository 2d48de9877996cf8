//===- global.cpp - Tests of atomics, CTAs that wait for each other, timelines
//===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-global-test

#include "Harness.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <pthread.h>
#include <unistd.h>

static const Shape oneWarp;

static uint32_t bits(float value) {
  uint32_t result;
  memcpy(&result, &value, 4);
  return result;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static void testArithmetic() {
  struct Case {
    uint32_t op, type;
    uint64_t old, value, result;
  };
  const uint64_t minus = 0xffffffff;
  const Case cases[] = {
      {VARLEN_SIM_ADD, VARLEN_SIM_I32, minus, 2, 1},
      {VARLEN_SIM_SUB, VARLEN_SIM_I32, 1, 2, minus},
      {VARLEN_SIM_MIN, VARLEN_SIM_I32, 1, minus, minus},
      {VARLEN_SIM_MAX, VARLEN_SIM_I32, 1, minus, 1},
      {VARLEN_SIM_UMIN, VARLEN_SIM_I32, 1, minus, 1},
      {VARLEN_SIM_UMAX, VARLEN_SIM_I32, 1, minus, minus},
      {VARLEN_SIM_INC, VARLEN_SIM_I32, 3, 5, 4},
      {VARLEN_SIM_INC, VARLEN_SIM_I32, 5, 5, 0},
      {VARLEN_SIM_DEC, VARLEN_SIM_I32, 3, 5, 2},
      {VARLEN_SIM_DEC, VARLEN_SIM_I32, 0, 5, 5},
      {VARLEN_SIM_AND, VARLEN_SIM_I32, 12, 10, 8},
      {VARLEN_SIM_OR, VARLEN_SIM_I32, 12, 10, 14},
      {VARLEN_SIM_XOR, VARLEN_SIM_I32, 12, 10, 6},
      {VARLEN_SIM_EXCH, VARLEN_SIM_I32, 12, 10, 10},
      {VARLEN_SIM_ADD, VARLEN_SIM_I64, 0xffffffff, 1, 0x100000000},
      {VARLEN_SIM_ADD, VARLEN_SIM_F32, bits(1.5F), bits(2), bits(3.5F)},
      {VARLEN_SIM_ADD, VARLEN_SIM_F64, 0x3ff0000000000000, 0x4000000000000000,
       0x4008000000000000},
      // 1 + 2 and 3 + 1 in f16; 1 + 2 and 3 + 0.5 in bf16.
      {VARLEN_SIM_ADD, VARLEN_SIM_F16X2, 0x42003c00, 0x3c004000, 0x44004200},
      {VARLEN_SIM_ADD, VARLEN_SIM_BF16X2, 0x40403f80, 0x3f004000, 0x40604040},
      {VARLEN_SIM_ADD, VARLEN_SIM_BF16, 0x3f80, 0x4000, 0x4040},
      {VARLEN_SIM_EXCH, VARLEN_SIM_I16, 7, 9, 9},
  };
  auto *memory = static_cast<uint64_t *>(varlen_sim_malloc(8));
  for (const Case &test : cases)
    for (bool shared : {false, true}) {
      Outcome outcome = run(oneWarp, configOf(1, 0, 0), [&] {
        if (tid() != 0)
          return;
        void *p = memory;
        if (shared) {
          store<uint64_t>(0, test.old, AT);
          p = smem(0);
        } else {
          *memory = test.old;
        }
        uint64_t old = varlen_sim_atomic(p, test.op, test.type, test.value,
                                         VARLEN_SIM_RELAXED, AT);
        uint64_t result = shared ? load<uint64_t>(0, AT) : *memory;
        EXPECT(old == test.old, "op %u type %u: old %llx, got %llx", test.op,
               test.type, static_cast<unsigned long long>(test.old),
               static_cast<unsigned long long>(old));
        EXPECT(result == test.result, "op %u type %u: %llx, got %llx", test.op,
               test.type, static_cast<unsigned long long>(test.result),
               static_cast<unsigned long long>(result));
      });
      EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
    }
  varlen_sim_free(memory);
}

static void testAtomics() {
  auto *sum = static_cast<uint32_t *>(varlen_sim_malloc(4));
  Shape many = {64, 16, 1, 1024, 0};
  for (uint32_t hostThreads : {1, 2}) {
    *sum = 0;
    varlen_sim_config config = configOf(1, 1, 1);
    config.host_threads = hostThreads;
    Outcome outcome = run(many, config, [&] {
      varlen_sim_atomic(sum, VARLEN_SIM_ADD, VARLEN_SIM_I32, cta() + 1,
                        VARLEN_SIM_RELAXED, AT);
    });
    EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
    EXPECT(*sum == 64 * 136, "got %u", *sum);
  }
  // Threads of a CTA count in shared memory; the last one reads.
  expectClean("shared", oneWarp, [] {
    if (tid() == 0)
      store<uint32_t>(0, 0, AT);
    varlen_sim_syncwarp(~0U, AT);
    varlen_sim_atomic(smem(0), VARLEN_SIM_ADD, VARLEN_SIM_I32, 1,
                      VARLEN_SIM_RELAXED, AT);
    varlen_sim_syncwarp(~0U, AT);
    EXPECT(load<uint32_t>(0, AT) == 32, "sum");
  });
  // A lock hands over what it protects.
  expectClean("lock", {64, 1, 1, 1024, 0}, [] {
    if (tid() == 0) {
      store<uint32_t>(0, 0, AT);
      store<uint32_t>(4, 0, AT);
    }
    varlen_sim_barrier(0, 0, AT);
    while (varlen_sim_atomic_cas(smem(0), VARLEN_SIM_I32, 0, 1,
                                 VARLEN_SIM_ACQUIRE, AT))
      ;
    store<uint32_t>(4, load<uint32_t>(4, AT) + 1, AT);
    varlen_sim_atomic(smem(0), VARLEN_SIM_EXCH, VARLEN_SIM_I32, 0,
                      VARLEN_SIM_RELEASE, AT);
    varlen_sim_barrier(0, 0, AT);
    EXPECT(load<uint32_t>(4, AT) == 64, "count");
  });
  expectReport("a lock without order", "race", {64, 1, 1, 1024, 0}, [] {
    if (tid() == 0) {
      store<uint32_t>(0, 0, AT);
      store<uint32_t>(4, 0, AT);
    }
    varlen_sim_barrier(0, 0, AT);
    while (varlen_sim_atomic_cas(smem(0), VARLEN_SIM_I32, 0, 1,
                                 VARLEN_SIM_RELAXED, AT))
      ;
    store<uint32_t>(4, load<uint32_t>(4, AT) + 1, AT);
    varlen_sim_atomic(smem(0), VARLEN_SIM_EXCH, VARLEN_SIM_I32, 0,
                      VARLEN_SIM_RELAXED, AT);
  });
  expectReport("plain access", "race", oneWarp, [] {
    if (tid() == 0)
      store<uint32_t>(0, 0, AT);
    varlen_sim_syncwarp(~0U, AT);
    if (tid() & 1)
      varlen_sim_atomic(smem(0), VARLEN_SIM_ADD, VARLEN_SIM_I32, 1,
                        VARLEN_SIM_RELAXED, AT);
    else
      load<uint32_t>(0, AT);
  });
  expectReport("bounds", "atomic access of 4 bytes, 4 bytes after the start",
               oneWarp, [&] {
                 varlen_sim_atomic(sum + 1, VARLEN_SIM_ADD, VARLEN_SIM_I32, 1,
                                   VARLEN_SIM_RELAXED, AT);
               });
  expectReport("alignment", "misaligned", oneWarp, [&] {
    varlen_sim_atomic(reinterpret_cast<char *>(sum) + 2, VARLEN_SIM_ADD,
                      VARLEN_SIM_I32, 1, VARLEN_SIM_RELAXED, AT);
  });
  expectReport("unknown", "atomic operation 5 of type 4", oneWarp, [&] {
    varlen_sim_atomic(sum, VARLEN_SIM_AND, VARLEN_SIM_F32, 1,
                      VARLEN_SIM_RELAXED, AT);
  });
  varlen_sim_free(sum);
}

//===----------------------------------------------------------------------===//
// CTAs that wait for each other
//===----------------------------------------------------------------------===//

/// Each CTA waits for the one before it (or the last for the first), then adds
/// to a sum.
static void chain(uint32_t *memory, bool backwards, uint32_t site) {
  uint32_t turn =
      backwards ? varlen_sim_sreg(VARLEN_SIM_NCTAID_X) - 1 - cta() : cta();
  if (tid() == 0) {
    auto *flag = static_cast<volatile uint32_t *>(
        varlen_sim_load_global(memory, 4, site));
    for (;;) {
      varlen_sim_poll(site);
      if (*flag == turn)
        break;
    }
  }
  varlen_sim_barrier(0, 0, site);
  if (tid() == 0) {
    memory[1] = memory[1] * 3 + cta();
    varlen_sim_atomic(memory, VARLEN_SIM_ADD, VARLEN_SIM_I32, 1,
                      VARLEN_SIM_RELEASE, site);
  }
}

static void testChain() {
  auto *memory = static_cast<uint32_t *>(varlen_sim_malloc(8));
  Shape eight = {64, 8, 1, 1024, 0};
  for (bool backwards : {false, true})
    forAllConfigs([&](varlen_sim_config config) {
      memory[0] = memory[1] = 0;
      config.co_resident_ctas = 0;
      Outcome outcome =
          run(eight, config, [&] { chain(memory, backwards, AT); });
      EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
      EXPECT(memory[0] == 8, "got %u", memory[0]);
    });
  // One at a time cannot work when a CTA waits for a later one.
  varlen_sim_config config = configOf(1, VARLEN_SIM_ROUND_ROBIN, 0);
  memory[0] = 0;
  Outcome outcome = run(eight, config, [&] { chain(memory, true, AT); });
  EXPECT(outcome.deadlock && outcome.has("polls at line"), "got:%s",
         outcome.all().c_str());
  varlen_sim_free(memory);
}

//===----------------------------------------------------------------------===//
// What is ordered between CTAs
//===----------------------------------------------------------------------===//

/// What a counter passes on from CTA to CTA, in the order of their numbers.
struct Relay {
  uint32_t acquire = VARLEN_SIM_ACQUIRE, release = VARLEN_SIM_RELEASE;
  /// By fences beside relaxed accesses.
  bool fenceBehind = false, fenceBefore = false;
  bool barrierBehind = true, barrierBefore = true;
  /// The counter is added to, in place of a store.
  bool isUpdate = false;
  /// A relaxed store of another thread comes between.
  bool isOverwritten = false;
};

static uint32_t readGlobal(uint32_t *p, uint32_t site) {
  return *static_cast<uint32_t *>(varlen_sim_load_global(p, 4, site));
}
static void writeGlobal(void *p, uint32_t value, uint32_t bytes,
                        uint32_t site) {
  memcpy(varlen_sim_store_global(p, bytes, site), &value, bytes);
}

static void storeFlag(uint32_t *p, uint32_t value, uint32_t order,
                      uint32_t site) {
  void *to = varlen_sim_store_flag(p, 4, site);
  varlen_sim_release(to, order, site);
  *static_cast<volatile uint32_t *>(to) = value;
}

/// The last thread of each CTA adds to memory[1], when the first has seen in
/// memory[0] that it may.
static void relay(uint32_t *memory, const Relay &how, uint32_t site) {
  varlen_sim_order_global();
  uint32_t last = varlen_sim_sreg(VARLEN_SIM_NTID_X) - 1;
  if (tid() == 0 && cta() > 0) {
    auto *flag =
        static_cast<volatile uint32_t *>(varlen_sim_load_flag(memory, 4, site));
    for (;;) {
      varlen_sim_poll(site);
      uint32_t turn = *flag;
      varlen_sim_acquire(memory, how.acquire, site);
      if (turn == cta())
        break;
    }
    if (how.fenceBehind)
      varlen_sim_fence(0, site);
  }
  if (how.barrierBehind)
    varlen_sim_barrier(0, 0, site);
  if (tid() == last)
    writeGlobal(memory + 1, cta() == 0 ? 0 : readGlobal(memory + 1, site) + 1,
                4, site);
  if (how.barrierBefore)
    varlen_sim_barrier(0, 0, site);
  if (tid() == 0) {
    if (how.fenceBefore)
      varlen_sim_fence(0, site);
    if (how.isUpdate)
      varlen_sim_atomic(memory, VARLEN_SIM_ADD, VARLEN_SIM_I32, 1, how.release,
                        site);
    else
      storeFlag(memory, cta() + 1, how.release, site);
  }
  if (how.isOverwritten) {
    varlen_sim_barrier(0, 0, site);
    if (tid() == last)
      storeFlag(memory, cta() + 1, VARLEN_SIM_RELAXED, site);
  }
}

static void testOrder() {
  auto *memory = static_cast<uint32_t *>(varlen_sim_malloc(12));
  Shape four = {64, 4, 1, 1024, 0};
  auto isClean = [&](const char *what, const Relay &how) {
    forAllConfigs([&](varlen_sim_config config) {
      memory[0] = memory[1] = 0;
      config.co_resident_ctas = 0;
      Outcome outcome = run(four, config, [&] { relay(memory, how, AT); });
      EXPECT(outcome.reports.empty(), "%s, got:%s", what,
             outcome.all().c_str());
      EXPECT(memory[1] == 3, "%s: got %u", what, memory[1]);
    });
  };
  auto races = [&](const char *what, const Relay &how) {
    forAllConfigs([&](varlen_sim_config config) {
      memory[0] = memory[1] = 0;
      config.co_resident_ctas = 0;
      Outcome outcome = run(four, config, [&] { relay(memory, how, AT); });
      EXPECT(outcome.has("race") && outcome.has("of another CTA"), "%s, got:%s",
             what, outcome.all().c_str());
    });
  };
  isClean("acquire and release", {});
  Relay update;
  update.isUpdate = true;
  isClean("updates", update);
  Relay fenced;
  fenced.acquire = fenced.release = VARLEN_SIM_RELAXED;
  fenced.fenceBehind = fenced.fenceBefore = true;
  isClean("fences", fenced);

  Relay how;
  how.acquire = VARLEN_SIM_RELAXED;
  races("no acquire", how);
  how = {};
  how.release = VARLEN_SIM_RELAXED;
  races("no release", how);
  how.isUpdate = true;
  races("updates without release", how);
  how = fenced;
  how.fenceBehind = false;
  races("no fence behind", how);
  how = fenced;
  how.fenceBefore = false;
  races("no fence before", how);
  how = {};
  how.barrierBehind = false;
  races("no barrier behind", how);
  how = {};
  how.barrierBefore = false;
  races("no barrier before", how);
  how = {};
  how.isOverwritten = true;
  races("another store", how);

  // Kernels without flags are not looked at, nor are threads of one CTA.
  Outcome outcome = run(four, configOf(1, 0, 0),
                        [&] { writeGlobal(memory + 1, cta(), 4, AT); });
  EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
  outcome = run({64, 1, 1, 1024, 0}, configOf(1, 0, 0), [&] {
    varlen_sim_order_global();
    writeGlobal(memory + 1, tid(), 4, AT);
  });
  EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
  // Bytes beside each other are not the same.
  auto *bytes = reinterpret_cast<uint8_t *>(memory + 1);
  outcome = run({32, 4, 1, 1024, 0}, configOf(1, 0, 0), [&] {
    varlen_sim_order_global();
    if (tid() == 0)
      writeGlobal(bytes + cta(), cta(), 1, AT);
  });
  EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
  // A write behind reads that it is not ordered after, and two writes.
  for (bool isRead : {false, true}) {
    outcome = run({32, 2, 1, 1024, 0}, configOf(1, 0, 0), [&] {
      varlen_sim_order_global();
      if (tid() == 0 && isRead && cta() == 0)
        readGlobal(memory + 1, AT);
      else if (tid() == 0)
        writeGlobal(memory + 1, cta(), 4, AT);
    });
    EXPECT(outcome.has(isRead ? "write of global memory not ordered after the "
                                "read by thread 0 of another CTA"
                              : "write of global memory not ordered after the "
                                "write by thread 0 of another CTA"),
           "got:%s", outcome.all().c_str());
  }
  // Atomics race with plain accesses only.
  outcome = run({32, 2, 1, 1024, 0}, configOf(1, 0, 0), [&] {
    varlen_sim_order_global();
    varlen_sim_atomic(memory, VARLEN_SIM_ADD, VARLEN_SIM_I32, 1,
                      VARLEN_SIM_RELAXED, AT);
  });
  EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
  outcome = run({32, 2, 1, 1024, 0}, configOf(1, 0, 0), [&] {
    varlen_sim_order_global();
    if (cta() == 0)
      varlen_sim_atomic(memory, VARLEN_SIM_ADD, VARLEN_SIM_I32, 1,
                        VARLEN_SIM_RELAXED, AT);
    else
      varlen_sim_load_range(memory, 4, AT);
  });
  EXPECT(
      outcome.has("read of global memory not ordered after the atomic write"),
      "got:%s", outcome.all().c_str());
  varlen_sim_free(memory);
}

//===----------------------------------------------------------------------===//
// Kernels that start beside those before them
//===----------------------------------------------------------------------===//

static void testGridWait() {
  auto *memory = static_cast<uint32_t *>(varlen_sim_malloc(32 * 4));
  Shape beside = oneWarp;
  beside.waitsForGrids = true;
  auto store = [&] {
    varlen_sim_store_global(memory + tid(), 4, AT);
    memory[tid()] = tid();
  };
  auto wait = [] { varlen_sim_grid_wait(AT); };
  expectClean("waits", beside, [&] {
    ::store<uint32_t>(tid() * 4, 0, AT);
    wait();
    store();
  });
  // Each thread for itself.
  expectReport("one does not", "store of global memory before griddepcontrol",
               beside, [&] {
                 if (tid() != 7)
                   wait();
                 store();
                 wait();
               });
  expectReport("load", "load of global memory before griddepcontrol", beside,
               [&] {
                 varlen_sim_load_global(memory, 4, AT);
                 wait();
               });
  expectReport("atomic", "atomic access of global memory before", beside, [&] {
    varlen_sim_atomic(memory, VARLEN_SIM_ADD, VARLEN_SIM_I32, 1,
                      VARLEN_SIM_RELAXED, AT);
    wait();
  });
  expectReport("copy", "cp.async of global memory before", beside, [&] {
    varlen_sim_cp_async(smem(tid() * 4), memory + tid(), 4, 4, AT);
    wait();
    varlen_sim_cp_async_wait_all(AT);
  });
  expectReport("end", "ends without griddepcontrol.wait", beside, [] {});
  // A kernel whose module does not say so starts behind all others.
  expectClean("plain", oneWarp, store);
  varlen_sim_free(memory);
}

//===----------------------------------------------------------------------===//
// Host threads, replay
//===----------------------------------------------------------------------===//

static void testHostThreads() {
  auto *memory = static_cast<uint32_t *>(varlen_sim_malloc(64 * 32 * 4));
  Shape many = {32, 64, 1, 1024, 0};
  varlen_sim_config config = configOf(5, 1, 2);
  config.host_threads = 2;
  Outcome outcome = run(many, config, [&] {
    store<uint32_t>(tid() * 4, cta() * 32 + tid(), AT);
    varlen_sim_barrier(0, 0, AT);
    uint32_t *p = memory + cta() * 32 + tid();
    *static_cast<uint32_t *>(varlen_sim_store_global(p, 4, AT)) =
        load<uint32_t>((tid() ^ 1) * 4, AT);
  });
  EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
  for (uint32_t i = 0; i < 64 * 32; ++i)
    EXPECT(memory[i] == (i ^ 1), "element %u: got %u", i, memory[i]);
  // The same race is one report, whichever thread finds it.
  Outcome faulty = run(many, config, [] {
    store<uint32_t>(tid() * 4, tid(), AT);
    varlen_sim_barrier(0, 0, AT);
    uint32_t site = AT;
    load<uint32_t>((tid() ^ 1) * 4, site);
    store<uint32_t>(tid() * 4, tid() + 1, site);
  });
  EXPECT(faulty.reports.size() == 1, "got:%s", faulty.all().c_str());
  varlen_sim_free(memory);
}

static void testHostThreadsRefused() {
  // A stack that no address space has room for.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t(1) << 60);
  EXPECT(pthread_setattr_default_np(&attributes) == 0, "%s", "not set");
  varlen_sim_config config = configOf(1, 0, 0);
  config.host_threads = 3;
  Shape shape;
  shape.grid = 4;
  std::atomic<uint32_t> calls{0};
  Outcome outcome = run(shape, config, [&] { ++calls; });
  EXPECT(outcome.reports.size() == 1 &&
             outcome.has("launch: the system made 1 of 3 host threads: "),
         "%s", outcome.all().c_str());
  EXPECT(calls == 0, "%u threads of the kernel ran", calls.load());
  pthread_attr_setstacksize(&attributes, size_t(1) << 20);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  outcome = run(shape, config, [&] { ++calls; });
  EXPECT(outcome.reports.empty() && calls == 4 * 32, "%u threads ran:%s",
         calls.load(), outcome.all().c_str());
}

static void testOrderOfCTAs() {
  auto order = [](uint64_t seed) {
    std::vector<uint32_t> ids;
    run({32, 16, 1, 0, 0}, configOf(seed, 1, 1), [&] {
      if (tid() == 0)
        ids.push_back(cta());
    });
    return ids;
  };
  EXPECT(order(1) == order(1) && order(1) != order(2), "the seed's order");
}

//===----------------------------------------------------------------------===//
// Statistics and timelines
//===----------------------------------------------------------------------===//

static void testBankConflicts() {
  struct Case {
    uint32_t stride, size, phases, conflicts;
  };
  // Of one warp: consecutive words; words 8 and 128 bytes apart; consecutive
  // 16-byte pieces; those 32 bytes apart; all lanes at one word.
  const Case cases[] = {{4, 4, 1, 0},   {8, 4, 1, 1},   {128, 4, 1, 31},
                        {16, 16, 4, 0}, {32, 16, 4, 4}, {0, 4, 1, 0},
                        {8, 8, 2, 0}};
  for (const Case &test : cases) {
    Outcome outcome = run(oneWarp, configOf(1, 1, 1), [&] {
      if (tid() == 0)
        varlen_sim_store_range(smem(0), 4096, AT);
      varlen_sim_syncwarp(~0U, AT);
      for (int i = 0; i < 2; ++i)
        varlen_sim_load_shared(smem(tid() * test.stride), test.size, AT);
    });
    EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
    EXPECT(outcome.stats.shared_accesses == 2 &&
               outcome.stats.shared_phases == 2 * test.phases &&
               outcome.stats.shared_conflicts == 2 * test.conflicts,
           "stride %u size %u: %u phases and %u conflicts, got %d and %d of %d "
           "accesses",
           test.stride, test.size, 2 * test.phases, 2 * test.conflicts,
           static_cast<int>(outcome.stats.shared_phases),
           static_cast<int>(outcome.stats.shared_conflicts),
           static_cast<int>(outcome.stats.shared_accesses));
  }
}

/// The members of the events in a trace file, good enough for what the executor
/// writes: one event per line.
static std::vector<std::string> readEvents(const char *path) {
  std::vector<std::string> lines;
  FILE *file = fopen(path, "r");
  EXPECT(file, "%s", path);
  char line[1024];
  while (file && fgets(line, sizeof(line), file))
    lines.emplace_back(line);
  if (file)
    fclose(file);
  return lines;
}

static double member(const std::string &line, const char *name) {
  size_t at = line.find(std::string("\"") + name + "\":");
  return at == std::string::npos ? -1
                                 : atof(line.c_str() + at + strlen(name) + 3);
}

static void testTrace() {
  auto *memory = static_cast<char *>(varlen_sim_malloc(4096));
  memset(memory, 0, 4096);
  Shape shape = {64, 2, 1, 4096, 0};
  Launcher launcher(shape);
  varlen_sim_config config = configOf(1, 1, 1);
  Body body = [&] {
    uint32_t words[10] = {}, out[4];
    varlen_sim_cp_async(smem(tid() * 16), memory + tid() * 16, 16, 16, AT);
    varlen_sim_cp_async_commit(AT);
    for (int i = 0; i < 3; ++i)
      varlen_sim_mma(words, out, VARLEN_SIM_MMA_F16, 16, VARLEN_SIM_MMA_F32,
                     AT);
    varlen_sim_cp_async_wait_group(0, AT);
    varlen_sim_barrier(0, 0, AT);
    varlen_sim_ldmatrix(smem(tid() % 32 * 16), 4, 0, out, AT);
  };
  varlen_sim_result *result = launcher.launch(shape, config, body);
  EXPECT(varlen_sim_result_write_trace(result, "/dev/null") == -1,
         "nothing was recorded");
  varlen_sim_result_destroy(result);

  config.trace_cta = 1;
  result = launcher.launch(shape, config, body);
  char path[] = "/tmp/varlen-trace-XXXXXX";
  close(mkstemp(path));
  EXPECT(varlen_sim_result_write_trace(result, path) == 0, "written");
  EXPECT(varlen_sim_result_write_trace(result, "/nowhere/trace.json") == -1,
         "no such folder");
  varlen_sim_result_destroy(result);
  std::vector<std::string> events = readEvents(path);
  unlink(path);
  std::map<std::string, int> seen;
  std::map<int, double> ends;
  double mmaEnd = 0, waitBegin = 0;
  for (const std::string &event : events) {
    for (const char *name :
         {"\"CTA 1,0,0 of kernel\"", "\"warp 0\"", "\"warp 1\"", "\"copies 1\"",
          "\"mma x3\"", "\"wait: cp.async.wait_group\"", "\"ldmatrix\"",
          "\"cp.async group\""})
      seen[name] += event.find(name) != std::string::npos;
    if (event.find("\"ph\":\"X\"") == std::string::npos)
      continue;
    int track = static_cast<int>(member(event, "tid"));
    double begin = member(event, "ts"), length = member(event, "dur");
    EXPECT(begin >= ends[track] && length > 0, "no overlap in a row: %s",
           event.c_str());
    ends[track] = begin + length;
    if (track == 0 && event.find("\"mma") != std::string::npos)
      mmaEnd = begin + length;
    if (track == 0 && event.find("\"wait: cp") != std::string::npos)
      waitBegin = begin;
  }
  EXPECT(mmaEnd > 0 && waitBegin == mmaEnd,
         "the wait follows the products: %f, %f", mmaEnd, waitBegin);
  for (const auto &[name, count] : seen)
    EXPECT(count >= 1, "%s in the trace", name.c_str());
  varlen_sim_free(memory);
}

static void testSymbols() {
  uint32_t count = 0;
  const varlen_sim_symbol *symbols = varlen_sim_symbols(&count);
  bool found = false;
  for (uint32_t i = 0; i < count; ++i)
    found |= !strcmp(symbols[i].name, "varlen_sim_mma") &&
             symbols[i].address == reinterpret_cast<void *>(varlen_sim_mma);
  EXPECT(found, "varlen_sim_mma among %u symbols", count);
}

static void testNumbers() {
  EXPECT(varlen_sim_cvt_f16x2(1, -2) == 0x3c00c000, "f16");
  EXPECT(varlen_sim_cvt_f16x2(65519.996F, 65520) == 0x7bff7c00, "f16 overflow");
  EXPECT(varlen_sim_cvt_f16x2(5.9604645e-8F, 2.9802322e-8F) == 0x00010000,
         "f16 subnormal, tie to even");
  EXPECT(varlen_sim_cvt_bf16x2(1.00390625F, 1.01171875F) == 0x3f803f82,
         "bf16 ties to even");
  EXPECT(varlen_sim_cvt_tf32(1 + 0x1p-11F) == bits(1 + 0x1p-10F),
         "tf32 ties away");
  EXPECT(varlen_sim_prmt(0x33221100, 0x77665544, 0x7410) == 0x77441100, "prmt");
  EXPECT(varlen_sim_prmt(0x80, 0, 0x0008) == 0x808080ff, "prmt sign");
}

int main() {
  testArithmetic();
  testAtomics();
  testChain();
  testOrder();
  testGridWait();
  testHostThreads();
  testHostThreadsRefused();
  testOrderOfCTAs();
  testBankConflicts();
  testTrace();
  testSymbols();
  testNumbers();
  return summary();
}

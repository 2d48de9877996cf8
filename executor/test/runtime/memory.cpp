//===- memory.cpp - Tests of accesses, copies, barriers, races ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Locals of the kernels must be on their stacks.
// RUN: env ASAN_OPTIONS=detect_stack_use_after_return=0 \
// RUN: %varlen-build/bin/varlen-executor-memory-test

#include "Harness.h"

static const Shape oneWarp;
static const Shape fourWarps = {128, 1, 1, 4096, 0};

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

static void testBounds() {
  expectReport("shared", "access of 4 bytes at smem+0x1000, of 4096", oneWarp,
               [] { store<uint32_t>(4096, 1, AT); });
  expectReport("across the end", "access of 16 bytes at smem+0xffc", oneWarp,
               [] {
                 struct Wide {
                   uint32_t words[4];
                 };
                 // Misaligned in the first place, so ask for 12.
                 varlen_sim_load_range(smem(0xffc), 16, AT);
               });
  expectReport("alignment", "misaligned", oneWarp,
               [] { store<uint32_t>(2, 1, AT); });

  auto *device = static_cast<char *>(varlen_sim_malloc(1000));
  expectClean("global", oneWarp, [&] {
    varlen_sim_store_global(device + 996, 4, AT);
    varlen_sim_load_generic(device, 16, AT);
    varlen_sim_load_range(device, 1000, AT);
  });
  expectReport("past the end",
               "store of 4 bytes, 1000 bytes after the start of "
               "a block of 1000 bytes",
               oneWarp, [&] {
                 void *p = varlen_sim_store_global(device + 1000, 4, AT);
                 EXPECT(p != device + 1000, "the store goes elsewhere");
               });
  expectReport(
      "before the start", "which is no registered memory", oneWarp,
      [&] { varlen_sim_load_global(reinterpret_cast<void *>(64), 4, AT); });
  expectReport("shared as global", "at an address in shared memory", oneWarp,
               [&] { varlen_sim_load_global(smem(0), 4, AT); });
  expectReport("generic", "access of 4 bytes at smem+0x1ffc", oneWarp,
               [&] { varlen_sim_load_generic(smem(0x1ffc), 4, AT); });
  expectReport("freed", "load of 4 bytes", oneWarp, [&] {
    varlen_sim_load_global(device + (int64_t(1) << 40), 4, AT);
  });
  expectClean("own stack", oneWarp, [] {
    uint32_t local = 7;
    void *p = varlen_sim_load_generic(&local, 4, AT);
    EXPECT(p == &local, "the pointer itself");
  });
  varlen_sim_free(device);
  EXPECT(!varlen_sim_is_registered(device, 1), "freed");
}

static void testRaces() {
  expectReport("write and read", "not ordered after the write by thread",
               oneWarp, [] {
                 store<uint32_t>(tid() * 4, tid(), AT);
                 load<uint32_t>((tid() ^ 1) * 4, AT);
               });
  expectReport("read and write", "race", oneWarp, [] {
    store<uint32_t>(tid() * 4, tid(), AT);
    varlen_sim_syncwarp(~0U, AT);
    load<uint32_t>((tid() ^ 1) * 4, AT);
    store<uint32_t>(tid() * 4, tid() + 1, AT);
  });
  expectReport("has not been written", "which has not been written", oneWarp,
               [] { load<uint32_t>(64, AT); });
  expectClean("warp barrier", oneWarp, [] {
    store<uint32_t>(tid() * 4, tid(), AT);
    varlen_sim_syncwarp(~0U, AT);
    uint32_t value = load<uint32_t>((tid() ^ 1) * 4, AT);
    EXPECT(value == (tid() ^ 1), "got %u", value);
  });
  expectReport("shfl orders nothing", "race", oneWarp, [] {
    store<uint32_t>(tid() * 4, tid(), AT);
    varlen_sim_shfl(~0U, 0, 1, 0x1f, 0, AT);
    load<uint32_t>((tid() ^ 1) * 4, AT);
  });
  expectReport("a warp barrier is not a CTA's", "race", fourWarps, [] {
    store<uint32_t>(tid() * 4, tid(), AT);
    varlen_sim_syncwarp(~0U, AT);
    load<uint32_t>((tid() ^ 32) * 4, AT);
  });
  // Neighbours in one word, and in one 16-byte row, do not conflict.
  for (uint32_t size : {1, 2, 4, 8}) {
    expectClean("neighbours", oneWarp, [&] {
      varlen_sim_store_shared(smem(tid() * size), size, AT);
      varlen_sim_load_shared(smem(tid() * size), size, AT);
    });
    expectReport("overlap", "race", oneWarp, [&] {
      void *p = varlen_sim_store_shared(smem(tid() / 2 * size), size, AT);
      memset(p, static_cast<int>(tid()), size);
      varlen_sim_syncwarp(~0U, AT);
    });
  }
  // Fine accesses and then a whole row, and the reverse.
  expectClean("coarse after fine", oneWarp, [] {
    for (int i = 0; i < 3; ++i) {
      store<uint8_t>(tid(), 1, AT);
      varlen_sim_syncwarp(~0U, AT);
      if (tid() < 2)
        varlen_sim_load_shared(smem(tid() * 16), 16, AT);
      varlen_sim_syncwarp(~0U, AT);
      if (tid() < 2)
        varlen_sim_store_shared(smem(tid() * 16), 16, AT);
      varlen_sim_syncwarp(~0U, AT);
      if (tid() < 8)
        load<uint32_t>(tid() * 4, AT);
      varlen_sim_syncwarp(~0U, AT);
    }
  });
  // More readers than a cell holds.
  expectReport("one of many readers", "not ordered after the read", oneWarp,
               [] {
                 if (tid() == 0)
                   store<uint32_t>(0, 5, AT);
                 varlen_sim_syncwarp(~0U, AT);
                 load<uint32_t>(0, AT);
                 varlen_sim_syncwarp(~1U, AT);
                 if (tid() == 31)
                   store<uint32_t>(0, 6, AT);
               });
}

static void testSameValue() {
  expectClean("same value", oneWarp, [] {
    store<uint32_t>(0, 42, AT);
    varlen_sim_syncwarp(~0U, AT);
    EXPECT(load<uint32_t>(0, AT) == 42, "42");
  });
  expectReport("other value", "write of smem+0x0 not ordered after the write",
               oneWarp, [] {
                 store<uint32_t>(0, tid(), AT);
                 varlen_sim_syncwarp(~0U, AT);
               });
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

static void testBarriers() {
  expectClean("CTA", fourWarps, [] {
    for (uint32_t i = 0; i < 4; ++i) {
      store<uint32_t>(tid() * 4, tid() + i, AT);
      varlen_sim_barrier(0, 0, AT);
      uint32_t other = (tid() + 37) % 128;
      EXPECT(load<uint32_t>(other * 4, AT) == other + i, "exchange");
      varlen_sim_barrier(0, 0, AT);
    }
  });
  // A producer warp that does not wait.
  expectClean("arrive and sync", {64, 1, 1, 4096, 0}, [] {
    if (tid() < 32) {
      store<uint32_t>(tid() * 4, tid(), AT);
      varlen_sim_barrier_arrive(3, 64, AT);
    } else {
      varlen_sim_barrier(3, 64, AT);
      EXPECT(load<uint32_t>((tid() - 32) * 4, AT) == tid() - 32, "exchange");
    }
  });
  expectReport("the producer may not read on", "race", {64, 1, 1, 4096, 0}, [] {
    if (tid() < 32)
      store<uint32_t>(tid() * 4, 0, AT);
    varlen_sim_barrier(0, 0, AT);
    if (tid() < 32) {
      varlen_sim_barrier_arrive(3, 64, AT);
      for (int i = 0; i < 4; ++i)
        varlen_sim_syncwarp(~0U, AT);
      load<uint32_t>(tid() * 4, AT);
    } else {
      store<uint32_t>((tid() - 32) * 4, 1, AT);
      varlen_sim_barrier(3, 64, AT);
    }
  });
  uint32_t count = 0, all = 0, any = 0;
  expectClean("reduce", fourWarps, [&] {
    count = varlen_sim_barrier_reduce(0, 0, 0, tid() % 4 == 0, AT);
    all = varlen_sim_barrier_reduce(0, 0, 1, tid() != 5, AT);
    any = varlen_sim_barrier_reduce(0, 0, 2, tid() == 5, AT);
  });
  EXPECT(count == 32 && all == 0 && any == 1, "got %u %u %u", count, all, any);
  // Exited threads are not waited for.
  expectClean("exits", fourWarps, [] {
    if (tid() >= 64)
      varlen_sim_exit(AT);
    varlen_sim_barrier(0, 0, AT);
  });
  expectReport("deadlock", "barrier 2: 32 of 64 threads arrived", fourWarps,
               [] {
                 if (tid() < 32)
                   varlen_sim_barrier(2, 64, AT);
               });
  expectReport("counts", "of 96 threads", fourWarps,
               [] { varlen_sim_barrier(1, tid() < 64 ? 64 : 96, AT); });
  expectReport("number", "barrier 16: there are 16", oneWarp,
               [] { varlen_sim_barrier(16, 0, AT); });
  expectReport("multiple of 32", "wanted a multiple of 32", oneWarp,
               [] { varlen_sim_barrier(1, 17, AT); });
}

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

static float *source() {
  static auto *memory = static_cast<float *>(varlen_sim_malloc(4096));
  for (int i = 0; i < 1024; ++i)
    memory[i] = static_cast<float>(i);
  return memory;
}

static void copy(uint32_t stage, uint32_t site) {
  varlen_sim_cp_async(smem(stage * 512 + tid() * 16),
                      source() + stage * 128 + tid() * 4, 16, 16, site);
}

static void checkStage(uint32_t stage, uint32_t site) {
  uint32_t other = tid() ^ 5;
  float value = load<float>(stage * 512 + other * 16, site);
  EXPECT(value == static_cast<float>(stage * 128 + other * 4), "stage %u: %f",
         stage, static_cast<double>(value));
}

static void testCopies() {
  source();
  // Three stages, one or two in flight.
  expectClean("pipeline", oneWarp, [] {
    for (uint32_t stage = 0; stage < 2; ++stage) {
      copy(stage, AT);
      varlen_sim_cp_async_commit(AT);
    }
    for (uint32_t i = 0; i < 8; ++i) {
      varlen_sim_cp_async_wait_group(1, AT);
      varlen_sim_barrier(0, 0, AT);
      checkStage(i % 3, AT);
      if (i + 2 < 8)
        copy((i + 2) % 3, AT);
      varlen_sim_cp_async_commit(AT);
    }
    varlen_sim_cp_async_wait_all(AT);
  });
  expectClean("zero fill", oneWarp, [] {
    varlen_sim_cp_async(smem(tid() * 16), source() + tid(), 4, 0, AT);
    varlen_sim_cp_async(smem(tid() * 16 + 8), source() + tid() * 2, 8, 4, AT);
    // What is not read need not be memory.
    varlen_sim_cp_async(smem(tid() * 16 + 4), nullptr, 4, 0, AT);
    varlen_sim_cp_async_wait_all(AT);
    EXPECT(load<float>(tid() * 16, AT) == 0, "zero");
    EXPECT(load<float>(tid() * 16 + 4, AT) == 0, "zero");
    EXPECT(load<float>(tid() * 16 + 8, AT) == static_cast<float>(tid() * 2),
           "four bytes are read");
    EXPECT(load<float>(tid() * 16 + 12, AT) == 0, "and four are not");
  });
  expectReport("no wait", "read of smem+0x", oneWarp, [] {
    copy(0, AT);
    varlen_sim_cp_async_commit(AT);
    varlen_sim_barrier(0, 0, AT);
    load<float>(tid() * 16, AT);
    varlen_sim_cp_async_wait_all(AT);
  });
  expectReport("no commit", "while an asynchronous copy into it is in flight",
               oneWarp, [] {
                 copy(0, AT);
                 varlen_sim_cp_async_wait_group(0, AT);
                 varlen_sim_barrier(0, 0, AT);
                 load<float>(tid() * 16, AT);
                 varlen_sim_cp_async_wait_all(AT);
               });
  expectReport("no barrier", "not ordered after the write by thread", oneWarp,
               [] {
                 copy(0, AT);
                 varlen_sim_cp_async_wait_all(AT);
                 load<float>((tid() ^ 5) * 16, AT);
               });
  expectReport("one group too few", "in flight", oneWarp, [] {
    for (uint32_t stage = 0; stage < 2; ++stage) {
      copy(stage, AT);
      varlen_sim_cp_async_commit(AT);
    }
    varlen_sim_cp_async_wait_group(1, AT);
    varlen_sim_barrier(0, 0, AT);
    load<float>(512 + tid() * 16, AT);
    varlen_sim_cp_async_wait_all(AT);
  });
  expectReport("copy over what is read", "not ordered after the read", oneWarp,
               [] {
                 store<float>(tid() * 16, 1, AT);
                 varlen_sim_barrier(0, 0, AT);
                 load<float>((tid() ^ 5) * 16, AT);
                 copy(0, AT);
                 varlen_sim_cp_async_wait_all(AT);
               });
  expectReport("exit", "exits without waiting for this cp.async", oneWarp, [] {
    copy(0, AT);
    varlen_sim_cp_async_commit(AT);
  });
  expectReport("source outside", "cp.async of 16 bytes", oneWarp, [] {
    varlen_sim_cp_async(smem(tid() * 16), source() + 1024 + tid() * 4, 16, 16,
                        AT);
    varlen_sim_cp_async_wait_all(AT);
  });
  expectReport("source size", "cp.async reads 20 bytes of 16", oneWarp, [] {
    varlen_sim_cp_async(smem(tid() * 16), source(), 16, 20, AT);
    varlen_sim_cp_async_wait_all(AT);
  });
  expectReport("alignment", "misaligned", oneWarp, [] {
    varlen_sim_cp_async(smem(tid() * 16), source() + 1, 16, 16, AT);
  });
}

//===----------------------------------------------------------------------===//
// Numbers without the detector
//===----------------------------------------------------------------------===//

static void testPoison() {
  bool seen = false;
  for (uint64_t seed = 1; seed < 20 && !seen; ++seed)
    run(oneWarp, configOf(seed, VARLEN_SIM_RANDOM, VARLEN_SIM_LATE, false),
        [&] {
          copy(0, AT);
          varlen_sim_cp_async_commit(AT);
          varlen_sim_barrier(0, 0, AT);
          float value = load<float>(tid() * 16, AT);
          seen |= value != value;
          varlen_sim_cp_async_wait_all(AT);
        });
  EXPECT(seen, "NaN where no thread has waited");
}

static void testReplay() {
  // The order of the threads is the seed's.
  auto order = [](uint64_t seed) {
    std::vector<uint32_t> ids;
    run(fourWarps, configOf(seed, VARLEN_SIM_RANDOM, VARLEN_SIM_RANDOM_TIME),
        [&] {
          for (int i = 0; i < 5; ++i) {
            ids.push_back(tid());
            varlen_sim_syncwarp(~0U, AT);
          }
        });
    return ids;
  };
  EXPECT(order(7) == order(7), "the same order again");
  EXPECT(order(7) != order(8), "another order with another seed");
}

static void testLaunchErrors() {
  expectReport("threads", "2000 threads per CTA, at most 1024",
               {2000, 1, 1, 0, 0}, [] {});
  expectReport("shared memory", "240000 bytes of shared memory",
               {32, 1, 1, 240000, 0}, [] {});
  expectReport("cluster", "wanted a multiple of the cluster's 2",
               {32, 3, 2, 0, 0}, [] {});
  expectReport("registers", "98304 registers", {512, 1, 1, 0, 192}, [] {});
}

int main() {
  testBounds();
  testRaces();
  testSameValue();
  testBarriers();
  testCopies();
  testPoison();
  testReplay();
  testLaunchErrors();
  return summary();
}

//===- async.cpp - Tests of mbarriers -------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-async-test

#include "Copies.h"

static const Shape oneWarp;
static const Shape twoWarps = {64, 1, 1, 8192, 0};

static void testMBarriers() {
  // A ring of two stages between a producer warp and a consumer warp.
  expectClean("ring", twoWarps, [] {
    if (tid() == 0) {
      for (uint32_t stage = 0; stage < 2; ++stage) {
        varlen_sim_mbarrier_init(smem(8 * stage), 32, AT);
        varlen_sim_mbarrier_init(smem(16 + 8 * stage), 32, AT);
      }
      varlen_sim_fence_mbarrier_init(AT);
    }
    varlen_sim_barrier(0, 0, AT);
    bool producer = tid() < 32;
    for (uint32_t i = 0; i < 7; ++i) {
      uint32_t stage = i % 2, phase = i / 2 % 2;
      void *full = smem(8 * stage), *empty = smem(16 + 8 * stage);
      uint32_t slot = 1024 + 128 * stage;
      if (producer) {
        varlen_sim_mbarrier_wait_parity(empty, phase ^ 1, AT);
        store<uint32_t>(slot + tid() * 4, i * 100 + tid(), AT);
        varlen_sim_mbarrier_arrive(full, 1, AT);
      } else {
        while (!varlen_sim_mbarrier_try_wait_parity(full, phase, AT))
          ;
        uint32_t other = 31 - (tid() - 32);
        uint32_t value = load<uint32_t>(slot + other * 4, AT);
        EXPECT(value == i * 100 + other, "got %u", value);
        varlen_sim_mbarrier_arrive(empty, 1, AT);
      }
    }
  });
  expectClean("state tokens", oneWarp, [] {
    init(0, 32, AT);
    for (uint32_t i = 0; i < 3; ++i) {
      store<uint32_t>(64 + tid() * 4, i, AT);
      uint64_t state = varlen_sim_mbarrier_arrive(smem(0), 1, AT);
      while (!varlen_sim_mbarrier_test_wait(smem(0), state, AT))
        ;
      EXPECT(load<uint32_t>(64 + (tid() ^ 1) * 4, AT) == i, "exchange");
      varlen_sim_syncwarp(~0U, AT);
    }
  });
  expectClean("drop", oneWarp, [] {
    init(0, 32, AT);
    if (tid() >= 16) {
      varlen_sim_mbarrier_arrive_drop(smem(0), 1, AT);
      varlen_sim_exit(AT);
    }
    for (uint32_t phase = 0; phase < 3; ++phase) {
      varlen_sim_mbarrier_arrive(smem(0), 1, AT);
      varlen_sim_mbarrier_wait_parity(smem(0), phase & 1, AT);
    }
  });
  expectClean("arrivals of several at once", oneWarp, [] {
    init(0, 5, AT);
    if (tid() == 1)
      varlen_sim_mbarrier_arrive_nocomplete(smem(0), 3, AT);
    varlen_sim_syncwarp(~0U, AT);
    if (tid() == 2)
      varlen_sim_mbarrier_arrive(smem(0), 2, AT);
    varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
  });
}

static void testMBarrierFaults() {
  expectReport("too many arrivals", "which waits for 0 of 2",
               {32, 1, 1, 4096, 0}, [] {
                 init(0, 2, AT);
                 // The third would complete nothing: expected bytes keep the
                 // phase open.
                 if (tid() == 0) {
                   varlen_sim_mbarrier_expect_tx(smem(0), 16, AT);
                   varlen_sim_mbarrier_arrive(smem(0), 2, AT);
                   varlen_sim_mbarrier_arrive(smem(0), 1, AT);
                 }
               });
  expectReport("not initialised", "smem+0x8 is no initialised mbarrier",
               oneWarp, [] { varlen_sim_mbarrier_arrive(smem(8), 1, AT); });
  expectReport("no barrier after init", "not ordered after its initialisation",
               twoWarps, [] {
                 if (tid() == 0)
                   varlen_sim_mbarrier_init(smem(0), 64, AT);
                 // Orders the calls, but not for the detector.
                 varlen_sim_barrier_arrive(1, 96, AT);
                 varlen_sim_shfl(~0U, 0, 1, 0x1f, 0, AT);
                 if (tid() < 32)
                   varlen_sim_mbarrier_arrive(smem(0), 1, AT);
               });
  expectReport("deadlock",
               "phase 0, 31 of 32 arrivals missing, 0 bytes missing", oneWarp,
               [] {
                 init(0, 32, AT);
                 if (tid() == 0)
                   varlen_sim_mbarrier_arrive(smem(0), 1, AT);
                 varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
               });
  expectReport("who waits", "waits for parity 0 of the mbarrier at smem+0x0",
               oneWarp, [] {
                 init(0, 32, AT);
                 varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
               });
  expectReport("spins", "every thread left polls", oneWarp, [] {
    init(0, 32, AT);
    while (!varlen_sim_mbarrier_test_wait_parity(smem(0), 0, AT))
      ;
  });
  expectReport("as memory", "which is an mbarrier", oneWarp, [] {
    init(0, 32, AT);
    load<uint64_t>(0, AT);
  });
  expectReport("no order without waiting", "race", twoWarps, [] {
    init(0, 32, AT);
    if (tid() < 32) {
      store<uint32_t>(64 + tid() * 4, 1, AT);
      varlen_sim_mbarrier_arrive(smem(0), 1, AT);
    }
    varlen_sim_barrier_arrive(2, 96, AT);
    if (tid() >= 32) {
      if (tid() < 48)
        varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
      // The upper lanes have not waited.
      varlen_sim_shfl(~0U, 0, 1, 0x1f, 0, AT);
      load<uint32_t>(64 + (tid() - 32) * 4, AT);
    }
  });
}

static void testCopyArrive() {
  for (uint32_t noinc : {0, 1})
    expectClean("cp.async.mbarrier.arrive", oneWarp, [&] {
      for (uint32_t i = 0; i < 32; ++i)
        if (tid() == 0)
          device()[i] = static_cast<char>(i);
      init(0, noinc ? 32 : 64, AT);
      varlen_sim_cp_async(smem(64 + tid() * 4), device() + tid() * 4, 4, 4, AT);
      varlen_sim_cp_async_mbarrier_arrive(smem(0), noinc, AT);
      // Without .noinc the arrival that the count is for comes from elsewhere.
      if (!noinc)
        varlen_sim_mbarrier_arrive(smem(0), 2, AT);
      varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
      uint32_t other = tid() ^ 1;
      uint32_t wanted;
      memcpy(&wanted, device() + other * 4, 4);
      uint32_t got = load<uint32_t>(64 + other * 4, AT);
      EXPECT(got == wanted, "wanted %x, got %x", wanted, got);
    });
  // A later arrival may be the first to come: each copy is there with the one
  // that follows it all the same.
  auto twice = [](uint32_t waitedFor) {
    for (uint32_t offset : {0, 8})
      init(offset, 32, AT);
    for (uint32_t i : {0, 1}) {
      varlen_sim_cp_async(smem(64 + i * 128 + tid() * 4), device() + tid() * 4,
                          4, 4, AT);
      varlen_sim_cp_async_mbarrier_arrive(smem(i * 8), 1, AT);
    }
    for (uint32_t i : {0, 1}) {
      if (i <= waitedFor)
        varlen_sim_mbarrier_wait_parity(smem(i * 8), 0, AT);
      load<uint32_t>(64 + i * 128 + (tid() ^ 1) * 4, AT);
    }
  };
  expectClean("two arrivals", oneWarp, [&] { twice(1); });
  expectReport("only the first of two", "of smem+0x", oneWarp,
               [&] { twice(0); });
  // cp.async writes through the generic proxy, whichever thread waits for it.
  auto readByProxy = [](bool fenced) {
    init(0, 32, AT);
    varlen_sim_cp_async(smem(64 + tid() * 4), device() + tid() * 4, 4, 4, AT);
    varlen_sim_cp_async_mbarrier_arrive(smem(0), 1, AT);
    varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
    if (fenced)
      varlen_sim_fence_proxy(1, AT);
    if (tid() == 0) {
      varlen_sim_bulk_store(device() + 1024, smem(64), 128, AT);
      varlen_sim_bulk_commit(AT);
      varlen_sim_bulk_wait_group(0, 0, AT);
    }
  };
  expectClean("fence of the async proxy", oneWarp, [&] { readByProxy(true); });
  expectReport("no fence of the async proxy", "without fence.proxy.async",
               oneWarp, [&] { readByProxy(false); });
  expectReport("no wait", "while an asynchronous copy into it is in flight",
               oneWarp, [] {
                 init(0, 32, AT);
                 varlen_sim_cp_async(smem(64 + tid() * 4), device() + tid() * 4,
                                     4, 4, AT);
                 load<uint32_t>(64 + tid() * 4, AT);
                 varlen_sim_cp_async_mbarrier_arrive(smem(0), 1, AT);
                 varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
               });
}

int main() {
  // Memory must be there before a launch that uses it.
  device();
  testMBarriers();
  testMBarrierFaults();
  testCopyArrive();
  return summary();
}

//===- warp.cpp - Tests of warp collectives -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-warp-test

#include "Harness.h"

static const uint32_t full = ~0U;

/// Every shfl of all lanes against PTX's pseudo code, written as a table of the
/// lane that is read and whether it is in range.
static void testShfl() {
  struct Case {
    uint32_t kind, offset, maskAndClamp;
    int (*source)(int lane);
    bool (*inRange)(int lane);
  };
  const Case cases[] = {
      // bfly over the warp, and over segments of 8.
      {0, 5, 0x1f, [](int l) { return l ^ 5; }, [](int) { return true; }},
      {0, 4, 0x181f, [](int l) { return l ^ 4; }, [](int) { return true; }},
      // 16 leaves its segment of 8: out of range where that is upwards.
      {0, 16, 0x181f, [](int l) { return l < 16 ? l : l - 16; },
       [](int l) { return l >= 16; }},
      // up by 3, over the warp and over segments of 16.
      {1, 3, 0, [](int l) { return l < 3 ? l : l - 3; },
       [](int l) { return l >= 3; }},
      {1, 3, 0x1000, [](int l) { return l % 16 < 3 ? l : l - 3; },
       [](int l) { return l % 16 >= 3; }},
      // down by 2.
      {2, 2, 0x1f, [](int l) { return l > 29 ? l : l + 2; },
       [](int l) { return l <= 29; }},
      {2, 2, 0x1c1f, [](int l) { return l % 4 > 1 ? l : l + 2; },
       [](int l) { return l % 4 <= 1; }},
      // idx of lane 7, and of lane 1 in segments of 4.
      {3, 7, 0x1f, [](int) { return 7; }, [](int) { return true; }},
      {3, 1, 0x1c1f, [](int l) { return l / 4 * 4 + 1; },
       [](int) { return true; }},
  };
  for (const Case &test : cases) {
    uint32_t values[32], valid[32];
    expectClean("shfl", {}, [&] {
      uint32_t lane = tid();
      values[lane] = varlen_sim_shfl(full, 100 + lane, test.offset,
                                     test.maskAndClamp, test.kind, AT);
      valid[lane] = varlen_sim_shfl_pred();
    });
    for (int lane = 0; lane < 32; ++lane) {
      EXPECT(values[lane] == 100U + static_cast<uint32_t>(test.source(lane)),
             "kind %u offset %u clamp %x lane %d: %d, got %d", test.kind,
             test.offset, test.maskAndClamp, lane, test.source(lane),
             static_cast<int>(values[lane]) - 100);
      EXPECT(valid[lane] == test.inRange(lane),
             "kind %u offset %u clamp %x lane %d: predicate %d", test.kind,
             test.offset, test.maskAndClamp, lane, test.inRange(lane));
    }
  }
}

static void testVoteMatch() {
  uint32_t any = 0, all = 0, ballot = 0, uni = 0, same[32], everyone = 0;
  expectClean("vote", {}, [&] {
    uint32_t lane = tid();
    any = varlen_sim_vote(full, lane == 9, 0, AT);
    all = varlen_sim_vote(full, lane != 9, 1, AT);
    ballot = varlen_sim_vote(full, lane % 3 == 0, 2, AT);
    uni = varlen_sim_vote(full, 1, 3, AT);
    same[lane] = varlen_sim_match(full, lane / 8, 0, AT);
    everyone = varlen_sim_match(full, 7, 1, AT);
  });
  EXPECT(any == 1 && all == 0 && uni == 1, "got %u %u %u", any, all, uni);
  EXPECT(ballot == 0x49249249, "got %x", ballot);
  EXPECT(everyone == full, "got %x", everyone);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT(same[lane] == 0xffU << (lane / 8 * 8), "lane %u: got %x", lane,
           same[lane]);
}

static void testRedux() {
  // Over the values lane - 3, lanes 4 to 11 only.
  const uint32_t mask = 0xff0;
  const uint32_t expected[] = {0, 36, 0, 8, 1, 15, 8, 1, 8};
  for (uint32_t kind = 1; kind <= 8; ++kind) {
    uint32_t result = 0;
    expectClean("redux", {}, [&] {
      uint32_t lane = tid();
      if (mask >> lane & 1)
        result = varlen_sim_redux(mask, lane - 3, kind, AT);
    });
    EXPECT(result == expected[kind], "kind %u: %u, got %u", kind,
           expected[kind], result);
  }
  // Signed and unsigned differ, and so do floats.
  uint32_t smallest = 0, largest = 0, least = 0;
  run({}, configOf(1, 1, 1), [&] {
    uint32_t lane = tid();
    smallest = varlen_sim_redux(full, lane - 3, 4, AT);
    largest = varlen_sim_redux(full, lane - 3, 6, AT);
    float value = 2.0F - static_cast<float>(lane);
    uint32_t bits;
    memcpy(&bits, &value, 4);
    least = varlen_sim_redux(full, bits, 9, AT);
  });
  float leastFloat;
  memcpy(&leastFloat, &least, 4);
  EXPECT(smallest == static_cast<uint32_t>(-3), "got %x", smallest);
  EXPECT(largest == static_cast<uint32_t>(-1), "got %x", largest);
  EXPECT(leastFloat == -29.0F, "got %f", static_cast<double>(leastFloat));
}

static void testElect() {
  uint32_t chosen = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    uint32_t first = 0, second = 0, part = 0;
    Outcome outcome = run({}, configOf(seed, 1, 1), [&] {
      uint32_t bit = 1U << tid();
      if (varlen_sim_elect(full, AT))
        first |= bit;
      if (varlen_sim_elect(full, AT))
        second |= bit;
      if (bit & 0xf0 && varlen_sim_elect(0xf0, AT))
        part |= bit;
    });
    EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
    EXPECT(__builtin_popcount(first) == 1, "got %x", first);
    EXPECT(first == second, "got %x then %x", first, second);
    EXPECT(__builtin_popcount(part) == 1 && (part & 0xf0), "got %x", part);
    chosen |= first;
  }
  EXPECT(__builtin_popcount(chosen) > 3, "several leaders, got %x", chosen);
}

static void testFaults() {
  expectReport("divergent shfl", "lanes of one warp disagree: shfl.sync here",
               {}, [] {
                 if (tid() < 16)
                   varlen_sim_shfl(full, 1, 1, 0x1f, 0, AT);
                 else
                   varlen_sim_shfl(full, 1, 1, 0x1f, 0, AT);
               });
  expectReport("not in the mask", "is not in its member mask 0000ffff", {}, [] {
    varlen_sim_syncwarp(tid() == 20 ? 0xffff : 0xffffffff, AT);
  });
  expectReportSometimes("exited lane", "names lanes that have exited", {}, [] {
    if (tid() == 31)
      return;
    varlen_sim_syncwarp(full ^ 1U << 31, AT);
    varlen_sim_shfl(full, 0, 1, 0x1f, 0, AT);
  });
  expectReport("a lane exits", "lane 3 exits though lanes wait for it", {}, [] {
    if (tid() == 3)
      varlen_sim_nanosleep(1, AT);
    if (tid() != 3)
      varlen_sim_syncwarp(full, AT);
  });
  expectReport("reads a lane outside", "which is not in mask 0000ffff", {}, [] {
    if (tid() < 16)
      varlen_sim_shfl(0xffff, 1, 16, 0x1f, 0, AT);
  });
  // Halves of a warp in different collectives are no fault.
  expectClean("halves", {}, [] {
    uint32_t mask = tid() < 16 ? 0xffff : 0xffff0000;
    uint32_t sum = 0;
    if (tid() < 16)
      sum = varlen_sim_redux(mask, 1, 1, AT);
    else
      sum = varlen_sim_redux(mask, 1, 1, AT);
    EXPECT(sum == 16, "got %u", sum);
  });
}

static void testRegisters() {
  uint32_t lane5[] = {0, 0, 0, 0, 0}, nctaid = 0;
  Shape shape;
  shape.threads = 96;
  shape.grid = 3;
  run(shape, configOf(1, 0, 0), [&] {
    if (tid() == 69 && cta() == 2) {
      lane5[0] = varlen_sim_sreg(VARLEN_SIM_LANEID);
      lane5[1] = varlen_sim_sreg(VARLEN_SIM_WARPID);
      lane5[2] = varlen_sim_sreg(VARLEN_SIM_LANEMASK_LT);
      lane5[3] = varlen_sim_sreg(VARLEN_SIM_LANEMASK_GE);
      lane5[4] = varlen_sim_sreg(VARLEN_SIM_NTID_X);
      nctaid = varlen_sim_sreg(VARLEN_SIM_NCTAID_X);
    }
  });
  EXPECT(lane5[0] == 5 && lane5[1] == 2 && lane5[2] == 0x1f &&
             lane5[3] == 0xffffffe0 && lane5[4] == 96 && nctaid == 3,
         "got %u %u %x %x %u %u", lane5[0], lane5[1], lane5[2], lane5[3],
         lane5[4], nctaid);
}

int main() {
  testShfl();
  testVoteMatch();
  testRedux();
  testElect();
  testFaults();
  testRegisters();
  return summary();
}

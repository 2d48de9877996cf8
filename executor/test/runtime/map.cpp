//===- map.cpp - Tests of tensor maps that kernels make -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-map-test

#include "Copies.h"

#include <optional>

/// Behind the source's 64 rows of 64 numbers of 16 bits.
static char *mapMemory() { return device() + 32768; }

namespace {
/// What a kernel does, and what it leaves out.
struct Steps {
  bool zero = true, sync = true, syncBehind = true, publish = true,
       acquire = true, barrier = true;
  /// Fields that are not set.
  std::optional<uint32_t> without;
  /// In place of the value that is right.
  std::optional<uint32_t> wrong;
  uint64_t value = 0;
  /// The warp that makes the map, and the one that copies through it.
  uint32_t maker = 0, user = 0;
  /// By which of them the fence is passed.
  bool makerAcquires = false;
};
} // namespace

static void setFields(const Steps &steps) {
  auto set = [&](uint32_t field, uint32_t dimension, uint64_t value) {
    if (steps.without == field)
      return;
    if (steps.wrong == field && dimension == 0)
      value = steps.value;
    varlen_sim_tensormap_replace(smem(1024), field, dimension, value, AT);
  };
  set(VARLEN_SIM_MAP_GLOBAL_ADDRESS, 0, reinterpret_cast<uint64_t>(device()));
  set(VARLEN_SIM_MAP_RANK, 0, 1);
  // Rows of 16 numbers, of which a box has 4.
  set(VARLEN_SIM_MAP_BOX_DIM, 0, 16);
  set(VARLEN_SIM_MAP_BOX_DIM, 1, 4);
  set(VARLEN_SIM_MAP_GLOBAL_DIM, 0, 16);
  set(VARLEN_SIM_MAP_GLOBAL_DIM, 1, 64);
  set(VARLEN_SIM_MAP_GLOBAL_STRIDE, 0, 32);
  set(VARLEN_SIM_MAP_ELEMENT_STRIDE, 0, 1);
  set(VARLEN_SIM_MAP_ELEMENT_STRIDE, 1, 1);
  set(VARLEN_SIM_MAP_ELEMTYPE, 0, 10); // bf16
  set(VARLEN_SIM_MAP_INTERLEAVE_LAYOUT, 0, 0);
  set(VARLEN_SIM_MAP_SWIZZLE_MODE, 0, 0);
  set(VARLEN_SIM_MAP_FILL_MODE, 0, 0);
}

/// All lanes of the warp.
static void make(const Steps &steps) {
  uint32_t lane = tid() % 32;
  store<uint32_t>(1024 + lane * 4, steps.zero ? 0 : 7, AT);
  if (steps.sync)
    varlen_sim_syncwarp(~0U, AT);
  if (lane == 0)
    setFields(steps);
  if (steps.syncBehind)
    varlen_sim_syncwarp(~0U, AT);
  if (steps.publish) {
    varlen_sim_tensormap_cp_fenceproxy(mapMemory(), smem(1024), AT);
  } else {
    void *to = varlen_sim_store_range(mapMemory(), 128, AT);
    memcpy(to, varlen_sim_load_range(smem(1024), 128, AT), 128);
  }
  if (steps.acquire && steps.makerAcquires)
    varlen_sim_tensormap_acquire(mapMemory(), AT);
}

static void runSteps(const Steps &steps) {
  init(0, 1, AT);
  if (tid() / 32 == steps.maker)
    make(steps);
  if (steps.barrier)
    varlen_sim_barrier(0, 0, AT);
  if (tid() / 32 != steps.user)
    return;
  if (steps.acquire && !steps.makerAcquires)
    varlen_sim_tensormap_acquire(mapMemory(), AT);
  if (tid() % 32 == 0) {
    int32_t coordinates[] = {0, 8};
    varlen_sim_mbarrier_expect_tx(smem(0), 128, AT);
    varlen_sim_tma_load(smem(2048), mapMemory(), smem(0), 2, coordinates, 0,
                        AT);
    varlen_sim_mbarrier_arrive(smem(0), 1, AT);
  }
  varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
  for (uint32_t i = tid() % 32; i < 64; i += 32) {
    auto got = load<uint16_t>(2048 + 2 * i, AT);
    EXPECT(got == 128 + i, "element %u: %u, got %u", i, 128 + i, got);
  }
}

static void expectStepsReport(const char *what, const std::string &part,
                              const Shape &shape, const Steps &steps) {
  expectReport(what, part, shape, [=] { runSteps(steps); });
}

int main() {
  auto *numbers = reinterpret_cast<uint16_t *>(device());
  for (uint32_t i = 0; i < 1024; ++i)
    numbers[i] = static_cast<uint16_t>(i);
  const Shape oneWarp, twoWarps = {64};

  expectClean("one warp", oneWarp, [] { runSteps({}); });
  Steps other;
  other.user = 1;
  expectClean("made by another warp", twoWarps, [=] { runSteps(other); });
  other.makerAcquires = true;
  expectClean("fence of another warp", twoWarps, [=] { runSteps(other); });
  expectClean("made again", oneWarp, [] {
    make({});
    varlen_sim_tensormap_acquire(mapMemory(), AT);
    varlen_sim_syncwarp(~0U, AT);
    runSteps({});
  });

  Steps steps;
  steps.acquire = false;
  expectStepsReport("acquire",
                    "use of a tensor map that a kernel has made not ordered "
                    "after fence.proxy.tensormap::generic.acquire of it",
                    oneWarp, steps);
  expectReport("acquire of the one before", "not ordered after fence.proxy",
               oneWarp, [] {
                 make({});
                 varlen_sim_tensormap_acquire(mapMemory(), AT);
                 varlen_sim_syncwarp(~0U, AT);
                 Steps again;
                 again.acquire = false;
                 runSteps(again);
               });
  steps = {};
  steps.publish = false;
  expectStepsReport("release",
                    "use of a tensor map that tensormap.replace has made and "
                    "tensormap.cp_fenceproxy has not copied",
                    oneWarp, steps);
  // The map that another warp may not have made yet.
  other = {};
  other.user = 1;
  other.barrier = false;
  memset(mapMemory(), 0, 128);
  expectReportSometimes("no barrier", "fence of a tensor map not ordered after",
                        twoWarps, [=] { runSteps(other); });
  steps = {};
  steps.sync = false;
  expectStepsReport("fields before zeros", "race", oneWarp, steps);
  steps = {};
  steps.syncBehind = false;
  expectStepsReport("copy before fields", "race", oneWarp, steps);
  steps = {};
  steps.zero = false;
  expectStepsReport("no zeros",
                    "tensormap.replace of memory that is neither zero nor a "
                    "map that began as zeros",
                    oneWarp, steps);

  const char *names[] = {"global_address is not set",
                         "rank is not set",
                         "box_dim of dimension 0 is not set",
                         "global_dim of dimension 0 is not set",
                         "global_stride of dimension 0 is not set",
                         "element_stride of dimension 0 is not set",
                         "elemtype is not set",
                         "interleave_layout is not set",
                         "swizzle_mode is not set",
                         "fill_mode is not set"};
  for (uint32_t field = 0; field < 10; ++field) {
    steps = {};
    steps.without = field;
    expectStepsReport(names[field], names[field], oneWarp, steps);
  }
  struct Wrong {
    uint32_t field;
    uint64_t value;
    const char *report;
  };
  for (const Wrong &wrong : {
           Wrong{VARLEN_SIM_MAP_GLOBAL_ADDRESS, 8, "global address 0x8"},
           Wrong{VARLEN_SIM_MAP_RANK, 5, "rank 6: wanted 1 to 5"},
           Wrong{VARLEN_SIM_MAP_RANK, 256, "rank 256: wanted 1 to 5"},
           Wrong{VARLEN_SIM_MAP_RANK, 0, "2 coordinates for a tensor map"},
           Wrong{VARLEN_SIM_MAP_BOX_DIM, 1 << 16, "box dimension 0 is 65535"},
           Wrong{VARLEN_SIM_MAP_GLOBAL_DIM, 0, "dimension 0 is 0"},
           Wrong{VARLEN_SIM_MAP_GLOBAL_STRIDE, 40, "is 40 bytes"},
           Wrong{VARLEN_SIM_MAP_ELEMENT_STRIDE, 2, "element stride 0 is 2"},
           Wrong{VARLEN_SIM_MAP_ELEMTYPE, 13, "elemtype 13"},
           Wrong{VARLEN_SIM_MAP_INTERLEAVE_LAYOUT, 1, "interleave 1"},
           Wrong{VARLEN_SIM_MAP_SWIZZLE_MODE, 4, "swizzle 4"},
           Wrong{VARLEN_SIM_MAP_FILL_MODE, 1, "fill 1"},
       }) {
    steps = {};
    steps.wrong = wrong.field;
    steps.value = wrong.value;
    expectStepsReport(wrong.report, wrong.report, oneWarp, steps);
  }
  expectReport("dimension", "tensormap.replace of box_dim of dimension 5",
               oneWarp, [] {
                 store<uint32_t>(1024 + tid() * 4, 0, AT);
                 varlen_sim_syncwarp(~0U, AT);
                 if (tid() == 0)
                   varlen_sim_tensormap_replace(
                       smem(1024), VARLEN_SIM_MAP_BOX_DIM, 5, 1, AT);
               });
  expectReport("place", "ends in 0x40: wanted a multiple of 128", oneWarp, [] {
    if (tid() == 0)
      varlen_sim_tensormap_replace(smem(1024 + 64), VARLEN_SIM_MAP_RANK, 0, 1,
                                   AT);
  });
  expectReport("lanes", "disagree about the addresses", oneWarp, [] {
    store<uint32_t>(1024 + tid() * 4, 0, AT);
    varlen_sim_syncwarp(~0U, AT);
    varlen_sim_tensormap_cp_fenceproxy(mapMemory() + tid() % 2 * 128,
                                       smem(1024), AT);
  });
  expectReport("no map", "of what tensormap.replace has not made", oneWarp, [] {
    store<uint32_t>(1024 + tid() * 4, 0, AT);
    varlen_sim_syncwarp(~0U, AT);
    varlen_sim_tensormap_cp_fenceproxy(mapMemory(), smem(1024), AT);
  });
  // A launch leaves a map for the next one, which has a fence of its own.
  auto useOnly = [](bool acquire) {
    Steps use;
    use.maker = 1;
    use.acquire = acquire;
    runSteps(use);
  };
  expectClean("launch before", oneWarp, [] { make({}); });
  expectClean("map of the launch before", oneWarp, [&] { useOnly(true); });
  expectReport("no fence in this launch", "not ordered after fence.proxy",
               oneWarp, [&] { useOnly(false); });
  return summary();
}

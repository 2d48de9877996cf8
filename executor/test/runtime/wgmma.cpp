//===- wgmma.cpp - Tests of wgmma and its registers -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-wgmma-test

#include "Harness.h"

static const Shape warpgroup = {128, 1, 1, 32768, 0};

/// Where A and B begin in shared memory.
static const uint32_t placeA = 0, placeB = 16384;

namespace {
/// How a matrix of `rows` (M or N) by `depth` (K) lies in shared memory, in the
/// canonical layouts of the PTX ISA. Swizzle as in a descriptor: 0 none, 1 128
/// bytes, 2 64, 3 32.
struct Layout {
  uint32_t swizzle;
  bool majorMN;
  uint32_t elementBytes;

  uint32_t span() const {
    static const uint32_t spans[] = {16, 128, 64, 32};
    return spans[swizzle];
  }
  uint32_t perRow() const { return span() / elementBytes; }
  /// Byte offsets that the descriptor names. One atom is 8 rows of `span`
  /// bytes.
  uint32_t atom() const { return 8 * span(); }

  /// The offset before swizzling, from first principles: K-major atoms are 8
  /// rows (M or N) of `span` bytes along K; MN-major ones 8 rows (K) of `span`
  /// bytes along MN. Atoms along MN first, then along K.
  uint32_t offset(uint32_t mn, uint32_t k, uint32_t rows) const {
    uint32_t unit = perRow();
    if (!majorMN) {
      uint32_t along = rows / 8;
      return k / unit * along * atom() + mn / 8 * atom() + mn % 8 * span() +
             k % unit * elementBytes;
    }
    uint32_t along = rows / unit;
    return k / 8 * along * atom() + mn / unit * atom() + k % 8 * span() +
           mn % unit * elementBytes;
  }
  uint32_t place(uint32_t start, uint32_t mn, uint32_t k, uint32_t rows) const {
    uint32_t at = start + offset(mn, k, rows);
    static const uint32_t masks[] = {0, 7, 3, 1};
    return at ^ (at >> 7 & masks[swizzle]) << 4;
  }
  /// The descriptor for the product's k steps from `k` on.
  uint64_t descriptor(uint32_t start, uint32_t k, uint32_t rows) const {
    uint32_t leading, stride;
    if (!majorMN) {
      // Leading: the next 16 bytes along K, which only the layout without
      // swizzle needs. Stride: the next 8 rows.
      leading = rows / 8 * atom();
      stride = atom();
    } else if (swizzle == 0) {
      // Leading: the next 8 along K. Stride: the next 16 bytes along MN.
      leading = rows / perRow() * atom();
      stride = atom();
    } else {
      // Leading: the next atom along MN. Stride: the next 8 along K.
      leading = atom();
      stride = rows / perRow() * atom();
    }
    auto address = static_cast<uint32_t>(
                       reinterpret_cast<uint64_t>(smem(start)) & 0x3ffff) +
                   offset(0, k, rows);
    return uint64_t(address >> 4) | uint64_t(leading >> 4) << 16 |
           uint64_t(stride >> 4) << 32 | uint64_t(swizzle) << 62;
  }
};
} // namespace

static float valueA(uint32_t m, uint32_t k) {
  return static_cast<float>(static_cast<int>((m * 7 + k * 3) % 11) - 5);
}
static float valueB(uint32_t n, uint32_t k) {
  return static_cast<float>(static_cast<int>((n * 5 + k * 2) % 13) - 6);
}

/// Stores a matrix element by element, whatever its type.
static void fill(const Layout &layout, uint32_t start, uint32_t rows,
                 uint32_t depth, float (*value)(uint32_t, uint32_t), bool bf16,
                 uint32_t site) {
  for (uint32_t i = tid(); i < rows * depth; i += 128) {
    uint32_t mn = i % rows, k = i / rows;
    uint32_t at = layout.place(start, mn, k, rows);
    float number = value(mn, k);
    if (layout.elementBytes == 4)
      store<float>(at, number, site);
    else
      store<uint16_t>(
          at,
          static_cast<uint16_t>(bf16 ? varlen_sim_cvt_bf16x2(0, number)
                                     : varlen_sim_cvt_f16x2(0, number)),
          site);
  }
}

static uint32_t flagsOf(uint32_t elementBytes, bool bf16, const Layout &a,
                        const Layout &b) {
  return (elementBytes == 4 ? VARLEN_SIM_WGMMA_TF32 : 0) |
         (bf16 ? VARLEN_SIM_WGMMA_BF16 : 0) |
         (a.majorMN ? VARLEN_SIM_WGMMA_A_MN : 0) |
         (b.majorMN ? VARLEN_SIM_WGMMA_B_MN : 0) | VARLEN_SIM_WGMMA_IN_PLACE;
}

/// D fragment of m64nN: register i of thread t is row 16 (t / 32) + t % 32 / 4
/// + 8 (i / 2 % 2), column 8 (i / 4) + 2 (t % 4) + i % 2. As a table, for the
/// threads 0, 5, 33 and 127 and the registers 0 to 5.
static const int accTable[4][1 + 6][2] = {
    {{0, 0}, {0, 0}, {0, 1}, {8, 0}, {8, 1}, {0, 8}, {0, 9}},
    {{5, 0}, {1, 2}, {1, 3}, {9, 2}, {9, 3}, {1, 10}, {1, 11}},
    {{33, 0}, {16, 2}, {16, 3}, {24, 2}, {24, 3}, {16, 10}, {16, 11}},
    {{127, 0}, {55, 6}, {55, 7}, {63, 6}, {63, 7}, {55, 14}, {55, 15}},
};
static uint32_t accRow(uint32_t thread, uint32_t i) {
  return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}
static uint32_t accColumn(uint32_t thread, uint32_t i) {
  return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

static void checkAccTable() {
  for (const auto &line : accTable)
    for (uint32_t i = 0; i < 6; ++i) {
      auto thread = static_cast<uint32_t>(line[0][0]);
      EXPECT(accRow(thread, i) == static_cast<uint32_t>(line[1 + i][0]) &&
                 accColumn(thread, i) == static_cast<uint32_t>(line[1 + i][1]),
             "thread %u register %u", thread, i);
    }
}

static void checkProduct(varlen_sim_acc *acc, uint32_t n, uint32_t depth,
                         float sign, const char *what, uint32_t site) {
  for (uint32_t i = 0; i < n / 2; ++i) {
    uint32_t row = accRow(tid(), i), column = accColumn(tid(), i);
    float wanted = 0;
    for (uint32_t k = 0; k < depth; ++k)
      wanted += valueA(row, k) * valueB(column, k);
    float got = varlen_sim_acc_get(acc, i, site);
    EXPECT(got == sign * wanted, "%s thread %u register %u: %f, got %f", what,
           tid(), i, static_cast<double>(sign * wanted),
           static_cast<double>(got));
  }
}

/// Two k steps of one layout each for A and B.
static void testLayouts(uint32_t elementBytes, bool bf16, const Layout &a,
                        const Layout &b, uint32_t n) {
  uint32_t step = elementBytes == 4 ? 8 : 16, depth = 2 * step;
  char what[80];
  snprintf(what, sizeof(what), "%u bytes, A %u%s, B %u%s, n %u", elementBytes,
           a.swizzle, a.majorMN ? " MN" : " K", b.swizzle,
           b.majorMN ? " MN" : " K", n);
  for (int async : {VARLEN_SIM_EARLY, VARLEN_SIM_LATE}) {
    Outcome outcome =
        run(warpgroup, configOf(3, VARLEN_SIM_RANDOM, async), [&] {
          fill(a, placeA, 64, depth, valueA, bf16, AT);
          fill(b, placeB, n, depth, valueB, bf16, AT);
          varlen_sim_fence_proxy(3, AT);
          varlen_sim_barrier(0, 0, AT);
          varlen_sim_acc *acc = varlen_sim_acc_new(n / 2, AT);
          varlen_sim_wgmma_fence(AT);
          uint32_t flags = flagsOf(elementBytes, bf16, a, b);
          acc = varlen_sim_wgmma(acc, a.descriptor(placeA, 0, 64),
                                 b.descriptor(placeB, 0, n), n, 0, flags, AT);
          acc =
              varlen_sim_wgmma(acc, a.descriptor(placeA, step, 64),
                               b.descriptor(placeB, step, n), n, 1, flags, AT);
          varlen_sim_wgmma_commit(AT);
          varlen_sim_wgmma_wait_group(0, AT);
          checkProduct(acc, n, depth, 1, what, AT);
        });
    EXPECT(outcome.reports.empty(), "%s: got:%s", what, outcome.all().c_str());
  }
}

/// A in registers: the fragment of mma.m16n8k16, 16 rows per warp.
static void testRegistersA() {
  Layout b = {1, true, 2};
  const uint32_t n = 64;
  expectClean("registers", warpgroup, [&] {
    fill(b, placeB, n, 16, valueB, true, AT);
    varlen_sim_fence_proxy(3, AT);
    varlen_sim_barrier(0, 0, AT);
    uint32_t lane = tid() % 32, words[4];
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t row = tid() / 32 * 16 + lane / 4 + i % 2 * 8;
      uint32_t column = lane % 4 * 2 + i / 2 * 8;
      words[i] =
          varlen_sim_cvt_bf16x2(valueA(row, column + 1), valueA(row, column));
    }
    varlen_sim_acc *acc = varlen_sim_acc_new(n / 2, AT);
    varlen_sim_wgmma_fence(AT);
    acc = varlen_sim_wgmma_rs(
        acc, words[0], words[1], words[2], words[3], b.descriptor(placeB, 0, n),
        n, 1, flagsOf(2, true, {}, b) | VARLEN_SIM_WGMMA_NEG_B, AT);
    varlen_sim_wgmma_commit(AT);
    varlen_sim_wgmma_wait_group(0, AT);
    checkProduct(acc, n, 16, -1, "registers", AT);
  });
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

namespace {
/// Which of the steps around a wgmma are left out.
struct Fault {
  bool proxyFence = true, barrier = true, registerFence = true, wait = true;
};
} // namespace

static void product(const Fault &fault, uint32_t site) {
  Layout k128 = {1, false, 2};
  fill(k128, placeA, 64, 16, valueA, true, site);
  fill(k128, placeB, 64, 16, valueB, true, site);
  if (fault.proxyFence)
    varlen_sim_fence_proxy(3, AT);
  if (fault.barrier)
    varlen_sim_barrier(0, 0, AT);
  varlen_sim_acc *acc = varlen_sim_acc_new(32, AT);
  if (fault.registerFence)
    varlen_sim_wgmma_fence(AT);
  acc = varlen_sim_wgmma(acc, k128.descriptor(placeA, 0, 64),
                         k128.descriptor(placeB, 0, 64), 64, 1,
                         flagsOf(2, true, k128, k128), AT);
  varlen_sim_wgmma_commit(AT);
  if (fault.wait)
    varlen_sim_wgmma_wait_group(0, AT);
  varlen_sim_acc_get(acc, 3, AT);
  varlen_sim_wgmma_wait_group(0, AT);
}

static void testFaults() {
  Fault fault;
  expectClean("none", warpgroup, [&] { product(fault, AT); });
  fault = Fault();
  fault.proxyFence = false;
  expectReport("proxy fence", "without fence.proxy.async", warpgroup,
               [&] { product(fault, AT); });
  fault = Fault();
  fault.barrier = false;
  expectReport("barrier", "async-proxy wgmma read", warpgroup,
               [&] { product(fault, AT); });
  fault = Fault();
  fault.registerFence = false;
  expectReport("wgmma.fence", "written since the last wgmma.fence", warpgroup,
               [&] { product(fault, AT); });
  fault = Fault();
  fault.wait = false;
  expectReport("wgmma.wait_group",
               "accumulator register 3 is read before wgmma.wait_group",
               warpgroup, [&] { product(fault, AT); });
  Layout k128 = {1, false, 2};
  expectReport("overwritten in flight", "race", warpgroup, [&] {
    fill(k128, placeA, 64, 16, valueA, true, AT);
    fill(k128, placeB, 64, 16, valueB, true, AT);
    varlen_sim_fence_proxy(3, AT);
    varlen_sim_barrier(0, 0, AT);
    varlen_sim_acc *acc = varlen_sim_acc_new(32, AT);
    varlen_sim_wgmma_fence(AT);
    varlen_sim_wgmma(acc, k128.descriptor(placeA, 0, 64),
                     k128.descriptor(placeB, 0, 64), 64, 1,
                     flagsOf(2, true, k128, k128), AT);
    varlen_sim_wgmma_commit(AT);
    store<uint16_t>(k128.place(placeB, tid() % 64, 0, 64), 0, AT);
    varlen_sim_wgmma_wait_group(0, AT);
  });
  expectReport("exit", "exits without waiting for its wgmma", warpgroup, [&] {
    fill(k128, placeA, 64, 16, valueA, true, AT);
    fill(k128, placeB, 64, 16, valueB, true, AT);
    varlen_sim_fence_proxy(3, AT);
    varlen_sim_barrier(0, 0, AT);
    varlen_sim_acc *acc = varlen_sim_acc_new(32, AT);
    varlen_sim_wgmma_fence(AT);
    varlen_sim_wgmma(acc, k128.descriptor(placeA, 0, 64),
                     k128.descriptor(placeB, 0, 64), 64, 1,
                     flagsOf(2, true, k128, k128), AT);
    varlen_sim_wgmma_commit(AT);
  });
  expectReport(
      "warps disagree", "the warps of a warpgroup disagree", warpgroup, [&] {
        varlen_sim_acc *acc = varlen_sim_acc_new(32, AT);
        varlen_sim_wgmma_fence(AT);
        varlen_sim_wgmma(acc,
                         k128.descriptor(placeA + tid() / 64 * 1024, 0, 64),
                         k128.descriptor(placeB, 0, 64), 64, 1,
                         flagsOf(2, true, k128, k128), AT);
        varlen_sim_wgmma_commit(AT);
        varlen_sim_wgmma_wait_group(0, AT);
      });
  expectReport("outside", "wgmma operand at address", warpgroup, [&] {
    varlen_sim_acc *acc = varlen_sim_acc_new(32, AT);
    varlen_sim_wgmma_fence(AT);
    varlen_sim_wgmma(acc, k128.descriptor(placeA, 0, 64),
                     k128.descriptor(32768, 0, 64), 64, 1,
                     flagsOf(2, true, k128, k128), AT);
    varlen_sim_wgmma_commit(AT);
    varlen_sim_wgmma_wait_group(0, AT);
  });
  expectReport("less than a warpgroup", "in a warpgroup of less than 4 warps",
               {96, 1, 1, 32768, 0}, [&] {
                 varlen_sim_acc *acc = varlen_sim_acc_new(32, AT);
                 varlen_sim_wgmma_fence(AT);
                 varlen_sim_wgmma(acc, 0, 0, 64, 1, 0, AT);
               });
}

//===----------------------------------------------------------------------===//
// setmaxnreg
//===----------------------------------------------------------------------===//

static void testRegisters() {
  // A producer warpgroup gives to two consumers: 24 and 240 of 168 each.
  Shape three = {384, 1, 1, 1024, 168};
  expectClean("FA3's counts", three, [] {
    if (tid() < 128)
      varlen_sim_setmaxnreg(24, 0, AT);
    else
      varlen_sim_setmaxnreg(240, 1, AT);
  });
  expectReport("too many", "waits for 248 registers per thread", three, [] {
    if (tid() < 128)
      varlen_sim_setmaxnreg(24, 0, AT);
    else
      varlen_sim_setmaxnreg(248, 1, AT);
  });
  expectReport("not a multiple of 8", "100 registers: wanted a multiple of 8",
               three, [] { varlen_sim_setmaxnreg(100, 0, AT); });
  expectReport("direction", "setmaxnreg.inc to 40 registers of a warp that has",
               three, [] { varlen_sim_setmaxnreg(40, 1, AT); });
}

int main() {
  checkAccTable();
  for (uint32_t a = 0; a < 4; ++a)
    for (bool majorA : {false, true})
      for (uint32_t b = 0; b < 4; ++b)
        for (bool majorB : {false, true})
          testLayouts(2, (a + b) % 2, {a, majorA, 2}, {b, majorB, 2}, 64);
  for (uint32_t n : {8, 24, 128, 256})
    testLayouts(2, true, {1, false, 2}, {0, false, 2}, n);
  // tf32 is K-major only.
  for (uint32_t swizzle = 0; swizzle < 4; ++swizzle)
    testLayouts(4, false, {swizzle, false, 4}, {swizzle, false, 4}, 64);
  testRegistersA();
  testFaults();
  testRegisters();
  return summary();
}

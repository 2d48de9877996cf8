//===- matrix.cpp - Tests of ldmatrix, stmatrix, mma.sync -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-matrix-test

#include "Harness.h"

#include <cmath>

//===----------------------------------------------------------------------===//
// The fragments as PTX documents them: (row, column) of every element of lanes
// 0 to 4 and 31; all others follow from lane / 4 and lane % 4
//===----------------------------------------------------------------------===//

namespace {
struct Element {
  int row, column;
};
struct Fragment {
  int lane;
  std::vector<Element> elements;
};
} // namespace

/// A of m16n8k16 with 16-bit elements: a0..a7.
static const Fragment a16x16[] = {
    {0, {{0, 0}, {0, 1}, {8, 0}, {8, 1}, {0, 8}, {0, 9}, {8, 8}, {8, 9}}},
    {1, {{0, 2}, {0, 3}, {8, 2}, {8, 3}, {0, 10}, {0, 11}, {8, 10}, {8, 11}}},
    {3, {{0, 6}, {0, 7}, {8, 6}, {8, 7}, {0, 14}, {0, 15}, {8, 14}, {8, 15}}},
    {4, {{1, 0}, {1, 1}, {9, 0}, {9, 1}, {1, 8}, {1, 9}, {9, 8}, {9, 9}}},
    {31,
     {{7, 6}, {7, 7}, {15, 6}, {15, 7}, {7, 14}, {7, 15}, {15, 14}, {15, 15}}},
};
/// B of m16n8k16 (row is k): b0..b3.
static const Fragment b16x8[] = {
    {0, {{0, 0}, {1, 0}, {8, 0}, {9, 0}}},
    {1, {{2, 0}, {3, 0}, {10, 0}, {11, 0}}},
    {3, {{6, 0}, {7, 0}, {14, 0}, {15, 0}}},
    {4, {{0, 1}, {1, 1}, {8, 1}, {9, 1}}},
    {31, {{6, 7}, {7, 7}, {14, 7}, {15, 7}}},
};
/// C and D of m16n8: c0..c3.
static const Fragment c16x8[] = {
    {0, {{0, 0}, {0, 1}, {8, 0}, {8, 1}}},
    {1, {{0, 2}, {0, 3}, {8, 2}, {8, 3}}},
    {3, {{0, 6}, {0, 7}, {8, 6}, {8, 7}}},
    {4, {{1, 0}, {1, 1}, {9, 0}, {9, 1}}},
    {31, {{7, 6}, {7, 7}, {15, 6}, {15, 7}}},
};
/// A of m16n8k8 with 16-bit elements: a0..a3.
static const Fragment a16x8[] = {
    {0, {{0, 0}, {0, 1}, {8, 0}, {8, 1}}},
    {3, {{0, 6}, {0, 7}, {8, 6}, {8, 7}}},
    {31, {{7, 6}, {7, 7}, {15, 6}, {15, 7}}},
};
/// B of m16n8k8 with 16-bit elements: b0, b1.
static const Fragment b8x8[] = {
    {0, {{0, 0}, {1, 0}}}, {3, {{6, 0}, {7, 0}}}, {31, {{6, 7}, {7, 7}}}};
/// A of m16n8k8 with tf32: a0..a3.
static const Fragment tf32A[] = {
    {0, {{0, 0}, {8, 0}, {0, 4}, {8, 4}}},
    {1, {{0, 1}, {8, 1}, {0, 5}, {8, 5}}},
    {4, {{1, 0}, {9, 0}, {1, 4}, {9, 4}}},
    {31, {{7, 3}, {15, 3}, {7, 7}, {15, 7}}},
};
/// B of m16n8k8 with tf32: b0, b1.
static const Fragment tf32B[] = {
    {0, {{0, 0}, {4, 0}}},
    {1, {{1, 0}, {5, 0}}},
    {4, {{0, 1}, {4, 1}}},
    {31, {{3, 7}, {7, 7}}},
};

//===----------------------------------------------------------------------===//
// mma.sync against a product over those tables
//===----------------------------------------------------------------------===//

namespace {
/// One operand: where element i of a lane is.
struct Layout {
  uint32_t perLane;
  Element (*at)(uint32_t lane, uint32_t i);
};
} // namespace

/// The formulas that the tables above are samples of.
static const Layout layoutA16 = {8, [](uint32_t lane, uint32_t i) -> Element {
                                   int g = static_cast<int>(lane / 4);
                                   int t = static_cast<int>(lane % 4);
                                   bool low = i < 2 || (i >= 4 && i < 6);
                                   return {low ? g : g + 8,
                                           2 * t + static_cast<int>(i & 1) +
                                               (i >= 4 ? 8 : 0)};
                                 }};
static const Layout layoutB16 = {
    4, [](uint32_t lane, uint32_t i) -> Element {
      return {static_cast<int>(lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0)),
              static_cast<int>(lane / 4)};
    }};
static const Layout layoutC = {
    4, [](uint32_t lane, uint32_t i) -> Element {
      return {static_cast<int>(lane / 4 + (i >= 2 ? 8 : 0)),
              static_cast<int>(lane % 4 * 2 + (i & 1))};
    }};
static const Layout layoutA8 = {4, layoutC.at};
static const Layout layoutB8 = {2, layoutB16.at};
static const Layout layoutTF32A = {
    4, [](uint32_t lane, uint32_t i) -> Element {
      return {static_cast<int>(lane / 4 + (i % 2 ? 8 : 0)),
              static_cast<int>(lane % 4 + (i >= 2 ? 4 : 0))};
    }};
static const Layout layoutTF32B = {
    2, [](uint32_t lane, uint32_t i) -> Element {
      return {static_cast<int>(lane % 4 + (i ? 4 : 0)),
              static_cast<int>(lane / 4)};
    }};

template <size_t size>
static void checkTable(const char *what, const Layout &layout,
                       const Fragment (&table)[size]) {
  for (const Fragment &fragment : table) {
    EXPECT(fragment.elements.size() == layout.perLane, "%s", what);
    for (uint32_t i = 0; i < layout.perLane; ++i) {
      Element at = layout.at(static_cast<uint32_t>(fragment.lane), i);
      Element wanted = fragment.elements[i];
      EXPECT(at.row == wanted.row && at.column == wanted.column,
             "%s lane %d element %u: (%d, %d), got (%d, %d)", what,
             fragment.lane, i, wanted.row, wanted.column, at.row, at.column);
    }
  }
}

/// Small integers, which every type holds exactly.
static float valueA(int row, int k) {
  return static_cast<float>((row * 7 + k * 3) % 11 - 5);
}
static float valueB(int k, int column) {
  return static_cast<float>((k * 5 + column * 2) % 13 - 6);
}
static float valueC(int row, int column) {
  return static_cast<float>(row - 2 * column);
}

static uint16_t narrow(float value, bool bf16) {
  return static_cast<uint16_t>(bf16 ? varlen_sim_cvt_bf16x2(0, value)
                                    : varlen_sim_cvt_f16x2(0, value));
}
static float widenF16(uint16_t bits) {
  float value = std::ldexp(static_cast<float>(bits & 0x3ff) / 1024 + 1,
                           (bits >> 10 & 31) - 15);
  if ((bits & 0x7fff) == 0)
    value = 0;
  return bits & 0x8000 ? -value : value;
}

static void testMma(uint32_t type, uint32_t k, uint32_t accumulator,
                    const Layout &a, const Layout &b) {
  bool tf32 = type == VARLEN_SIM_MMA_TF32;
  bool bf16 = type == VARLEN_SIM_MMA_BF16;
  bool narrowC = accumulator == VARLEN_SIM_MMA_F16;
  float result[32][4];
  expectClean("mma", {}, [&] {
    uint32_t lane = tid();
    uint32_t words[10] = {}, next = 0;
    auto put = [&](const Layout &layout, float (*value)(int, int)) {
      for (uint32_t i = 0; i < layout.perLane; ++i) {
        Element at = layout.at(lane, i);
        float number = value(at.row, at.column);
        if (tf32) {
          memcpy(&words[next++], &number, 4);
        } else {
          words[next + i / 2] |= static_cast<uint32_t>(narrow(number, bf16))
                                 << (16 * (i & 1));
        }
      }
      if (!tf32)
        next += layout.perLane / 2;
    };
    put(a, valueA);
    put(b, valueB);
    for (uint32_t i = 0; i < 4; ++i) {
      Element at = layoutC.at(lane, i);
      float number = valueC(at.row, at.column);
      if (narrowC)
        words[next + i / 2] |= static_cast<uint32_t>(narrow(number, false))
                               << (16 * (i & 1));
      else
        memcpy(&words[next + i], &number, 4);
    }
    uint32_t out[4];
    varlen_sim_mma(words, out, type, k, accumulator, AT);
    for (uint32_t i = 0; i < 4; ++i)
      if (narrowC)
        result[lane][i] =
            widenF16(static_cast<uint16_t>(out[i / 2] >> (16 * (i & 1))));
      else
        memcpy(&result[lane][i], &out[i], 4);
  });
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      Element at = layoutC.at(lane, i);
      float wanted = valueC(at.row, at.column);
      for (int j = 0; j < static_cast<int>(k); ++j)
        wanted += valueA(at.row, j) * valueB(j, at.column);
      EXPECT(result[lane][i] == wanted,
             "type %u k %u lane %u element %u: %f, got %f", type, k, lane, i,
             static_cast<double>(wanted), static_cast<double>(result[lane][i]));
    }
}

/// A batch gives what its products give one by one.
static void testBatch(uint32_t type, uint32_t k, uint32_t accumulator) {
  const uint32_t count = 6;
  uint32_t numAB = k == 16 || (k == 8 && type == VARLEN_SIM_MMA_TF32) ? 6 : 3;
  uint32_t numC = accumulator == VARLEN_SIM_MMA_F32 ? 4 : 2;
  static const int32_t chain[count] = {-1, -1, 0, 1, 2, -1};
  expectClean("batch", {}, [&] {
    uint32_t operands[count * 10], batch[count * 4], single[count * 4];
    for (uint32_t i = 0; i < count * (numAB + numC); ++i) {
      // Ones and twos of either width, different in each lane.
      bool wide = type == VARLEN_SIM_MMA_TF32 ||
                  (i % (numAB + numC) >= numAB && numC == 4);
      uint32_t one = wide                         ? 0x3f800000
                     : type == VARLEN_SIM_MMA_F16 ? 0x3c003c00
                                                  : 0x3f803f80;
      uint32_t two = wide ? 0x40000000 : 0x40004000;
      operands[i] = (i * 7 + tid() * 3) % 5 < 2 ? one : two;
    }
    varlen_sim_mma_batch(operands, batch, chain, count, type, k, accumulator,
                         AT);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t *words = operands + i * (numAB + numC);
      if (chain[i] >= 0)
        memcpy(words + numAB, single + static_cast<uint32_t>(chain[i]) * numC,
               numC * 4);
      varlen_sim_mma(words, single + i * numC, type, k, accumulator, AT);
    }
    EXPECT(!memcmp(batch, single, count * numC * 4), "type %u k %u", type, k);
  });
}

//===----------------------------------------------------------------------===//
// ldmatrix and stmatrix
//===----------------------------------------------------------------------===//

/// Each lane writes one row of four tiles, element i of them all being i.
static void writeRow(uint32_t lane) {
  for (uint32_t i = 0; i < 8; ++i)
    store<uint16_t>(lane * 16 + i * 2, static_cast<uint16_t>(lane * 8 + i), AT);
  varlen_sim_syncwarp(~0U, AT);
}

/// Element (row, column) of tile t in shared memory is t * 64 + row * 8 +
/// column. Register t of a lane holds the elements (lane / 4, 2 (lane % 4)) and
/// the next, or with trans those of the transposed tile.
static void testLdMatrix(uint32_t num, bool transposed) {
  uint32_t registers[32][4];
  expectClean("ldmatrix", {}, [&] {
    uint32_t lane = tid();
    writeRow(lane);
    varlen_sim_ldmatrix(smem(lane % (8 * num) * 16), num, transposed,
                        registers[lane], AT);
  });
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t tile = 0; tile < num; ++tile)
      for (uint32_t half = 0; half < 2; ++half) {
        uint32_t row = lane / 4, column = 2 * (lane % 4) + half;
        uint32_t wanted =
            tile * 64 + (transposed ? column * 8 + row : row * 8 + column);
        uint32_t got = registers[lane][tile] >> (16 * half) & 0xffff;
        EXPECT(got == wanted,
               "x%u trans %d lane %u tile %u half %u: %u, got %u", num,
               transposed, lane, tile, half, wanted, got);
      }
}

/// A batch gives what its loads give one by one.
static void testLoadBatch() {
  expectClean("ldmatrix batch", {}, [&] {
    uint32_t lane = tid();
    writeRow(lane);
    const uint32_t count = 4;
    varlen_sim_matrix_load loads[count] = {
        {4, 0, AT}, {4, 1, AT}, {1, 1, AT}, {2, 0, AT}};
    void *rows[count];
    uint32_t batch[count][4] = {}, single[count][4] = {};
    for (uint32_t i = 0; i < count; ++i)
      rows[i] = smem((lane + 5 * i) % 32 * 16);
    varlen_sim_ldmatrix_batch(rows, batch, loads, count);
    for (uint32_t i = 0; i < count; ++i)
      varlen_sim_ldmatrix(rows[i], loads[i].num, loads[i].transposed, single[i],
                          AT);
    EXPECT(!memcmp(batch, single, sizeof(batch)), "lane %u", lane);
  });
  // What is wrong is about the load, not about the batch.
  expectReport("row of a batch outside", "line 1234: ", {}, [] {
    varlen_sim_matrix_load loads[] = {{1, 0, AT}, {1, 0, 1234}};
    uint32_t registers[2][4];
    store<uint64_t>(tid() * 8, 0, AT);
    varlen_sim_syncwarp(~0U, AT);
    void *rows[] = {smem(0), smem(tid() % 8 * 16 + 4096)};
    varlen_sim_ldmatrix_batch(rows, registers, loads, 2);
  });
}

/// stmatrix is the inverse of ldmatrix.
static void testStMatrix(uint32_t num, bool transposed) {
  uint16_t memory[4][64];
  expectClean("stmatrix", {}, [&] {
    uint32_t lane = tid();
    uint32_t registers[4] = {};
    for (uint32_t tile = 0; tile < num; ++tile)
      for (uint32_t half = 0; half < 2; ++half) {
        uint32_t row = lane / 4, column = 2 * (lane % 4) + half;
        uint32_t value =
            tile * 64 + (transposed ? column * 8 + row : row * 8 + column);
        registers[tile] |= value << (16 * half);
      }
    varlen_sim_stmatrix(smem(lane % (8 * num) * 16), num, transposed, registers,
                        AT);
    varlen_sim_syncwarp(~0U, AT);
    if (lane == 0)
      for (uint32_t i = 0; i < num * 64; ++i)
        memory[i / 64][i % 64] = load<uint16_t>(i * 2, AT);
  });
  for (uint32_t i = 0; i < num * 64; ++i)
    EXPECT(memory[i / 64][i % 64] == i, "x%u trans %d element %u: got %u", num,
           transposed, i, memory[i / 64][i % 64]);
}

static void testConflicts() {
  // Rows of 128 bytes one below the other are all in one bank; the swizzle
  // spreads them.
  for (bool swizzle : {false, true}) {
    Shape shape;
    shape.shared = 8 * 128;
    Outcome outcome = run(shape, configOf(1, 0, 0), [&] {
      uint32_t lane = tid();
      for (uint32_t i = 0; i < 8; ++i)
        store<uint32_t>(lane * 32 + i * 4, i, AT);
      varlen_sim_syncwarp(~0U, AT);
      uint32_t row = lane % 8, registers[4];
      uint32_t column = swizzle ? row : 0;
      varlen_sim_ldmatrix(smem(row * 128 + column * 16), 4, 0, registers, AT);
    });
    EXPECT(outcome.reports.empty(), "got:%s", outcome.all().c_str());
    EXPECT(outcome.stats.matrix_phases == 4, "got %d phases",
           static_cast<int>(outcome.stats.matrix_phases));
    EXPECT(outcome.stats.matrix_conflicts == (swizzle ? 0 : 28),
           "swizzle %d: got %d conflicts", swizzle,
           static_cast<int>(outcome.stats.matrix_conflicts));
  }
}

static void testFaults() {
  expectReport(
      "row not aligned", "ldmatrix row at an address that ends in 0x8", {}, [] {
        store<uint64_t>(tid() * 8, 0, AT);
        varlen_sim_syncwarp(~0U, AT);
        uint32_t registers[4];
        varlen_sim_ldmatrix(smem(tid() % 8 * 16 + 8), 1, 0, registers, AT);
      });
  expectReport("row outside", "out-of-bounds", {}, [] {
    uint32_t registers[4];
    varlen_sim_ldmatrix(smem(tid() % 8 * 16 + 4096), 1, 0, registers, AT);
  });
  expectReport("has not been written", "which has not been written", {}, [] {
    uint32_t registers[4];
    varlen_sim_ldmatrix(smem(tid() % 8 * 16), 1, 0, registers, AT);
  });
  expectReport("stores without order", "race", {}, [] {
    uint32_t registers[4] = {tid(), 0, 0, 0};
    store<uint32_t>(tid() * 4, tid() + 1, AT);
    varlen_sim_stmatrix(smem(tid() % 8 * 16), 1, 0, registers, AT);
  });
  expectReport("unknown shape", "unsupported", {}, [] {
    uint32_t words[10] = {}, out[4];
    varlen_sim_mma(words, out, VARLEN_SIM_MMA_TF32, 16, VARLEN_SIM_MMA_F32, AT);
  });
}

int main() {
  checkTable("A m16n8k16", layoutA16, a16x16);
  checkTable("B m16n8k16", layoutB16, b16x8);
  checkTable("C m16n8", layoutC, c16x8);
  checkTable("A m16n8k8", layoutA8, a16x8);
  checkTable("B m16n8k8", layoutB8, b8x8);
  checkTable("A tf32", layoutTF32A, tf32A);
  checkTable("B tf32", layoutTF32B, tf32B);
  for (uint32_t type : {VARLEN_SIM_MMA_F16, VARLEN_SIM_MMA_BF16}) {
    testMma(type, 16, VARLEN_SIM_MMA_F32, layoutA16, layoutB16);
    testMma(type, 8, VARLEN_SIM_MMA_F32, layoutA8, layoutB8);
  }
  testMma(VARLEN_SIM_MMA_F16, 16, VARLEN_SIM_MMA_F16, layoutA16, layoutB16);
  testMma(VARLEN_SIM_MMA_TF32, 8, VARLEN_SIM_MMA_F32, layoutTF32A, layoutTF32B);
  testMma(VARLEN_SIM_MMA_TF32, 4, VARLEN_SIM_MMA_F32, {2, layoutTF32A.at},
          {1, layoutTF32B.at});
  testBatch(VARLEN_SIM_MMA_BF16, 16, VARLEN_SIM_MMA_F32);
  testBatch(VARLEN_SIM_MMA_F16, 8, VARLEN_SIM_MMA_F16);
  testBatch(VARLEN_SIM_MMA_TF32, 8, VARLEN_SIM_MMA_F32);
  for (uint32_t num : {1, 2, 4})
    for (bool transposed : {false, true}) {
      testLdMatrix(num, transposed);
      testStMatrix(num, transposed);
    }
  testLoadBatch();
  testConflicts();
  testFaults();
  return summary();
}

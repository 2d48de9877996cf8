//===- Matrix.cpp - ldmatrix, stmatrix, mma.sync --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numbers.h"
#include "State.h"
#include "Warp.h"

#include <cstring>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// ldmatrix and stmatrix
//===----------------------------------------------------------------------===//

/// What a lane puts on the stage. Rows of tile i are those of lanes 8 i to
/// 8 i + 7; its elements (row, 2 column and 2 column + 1) are in register i of
/// lane 4 row + column, with rows and columns exchanged if it is transposed.
namespace {
struct MatrixOperands {
  uint32_t registers[4];
  void *row;
  uint32_t num;
  uint32_t transposed;
};
} // namespace
static_assert(sizeof(MatrixOperands) <= sizeof(Warp::stage[0]), "fits a stage");

static MatrixOperands &operandsOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<MatrixOperands *>(warp.stage[lane]);
}

/// Rows in the same bank of 16 bytes take a cycle each, unless they are the
/// same row.
static void countConflicts(Warp &warp, uint32_t tile) {
  uint32_t rows[8] = {}, worst = 1;
  for (uint32_t row = 0; row < 8; ++row) {
    auto address =
        reinterpret_cast<uint64_t>(operandsOf(warp, tile * 8 + row).row);
    bool seen = false;
    for (uint32_t earlier = 0; earlier < row; ++earlier)
      seen |= reinterpret_cast<uint64_t>(
                  operandsOf(warp, tile * 8 + earlier).row) == address;
    if (!seen)
      worst = std::max(worst, ++rows[address >> 4 & 7]);
  }
  ++worker->stats.matrix_phases;
  worker->stats.matrix_conflicts += worst - 1;
  if (BankRecorder *banks = warp.block->banks)
    banks->addMatrix(warp.threads[0]->site, worst - 1);
}

/// Whether the row that a lane names can be accessed; reports if not.
static bool checkRow(Warp &warp, uint32_t lane, bool store) {
  Thread &thread = *warp.threads[lane];
  void *row = operandsOf(warp, lane).row;
  // Reports are about the lane that gave the address.
  Thread *current = worker->current;
  worker->current = &thread;
  bool valid = false;
  if (reinterpret_cast<uint64_t>(row) & 15)
    report("misaligned", thread.site,
           "%s row at an address that ends in 0x%x, wanted 16 bytes",
           store ? "stmatrix" : "ldmatrix",
           static_cast<uint32_t>(reinterpret_cast<uint64_t>(row) & 15));
  else
    valid = store ? writeShared(thread, row, 16, thread.site)
                  : readShared(thread, row, 16, thread.site);
  worker->current = current;
  return valid;
}

void varlen::executor::loadMatrix(Warp &warp) {
  uint32_t num = operandsOf(warp, 0).num;
  bool transposed = operandsOf(warp, 0).transposed;
  for (uint32_t tile = 0; tile < num; ++tile) {
    countConflicts(warp, tile);
    alignas(16) uint16_t rows[8][8];
    for (uint32_t row = 0; row < 8; ++row) {
      uint32_t lane = tile * 8 + row;
      if (checkRow(warp, lane, /*store=*/false))
        memcpy(rows[row], operandsOf(warp, lane).row, 16);
      else
        memset(rows[row], 0xff, 16);
    }
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t row = lane / 4, column = 2 * (lane % 4);
      uint32_t low = transposed ? rows[column][row] : rows[row][column];
      uint32_t high =
          transposed ? rows[column + 1][row] : rows[row][column + 1];
      operandsOf(warp, lane).registers[tile] = high << 16 | low;
    }
  }
  if (warp.track)
    warp.track->add(Activity::Shared, "ldmatrix", warp.threads[0]->site,
                    num * cost::matrixTile);
}

void varlen::executor::storeMatrix(Warp &warp) {
  uint32_t num = operandsOf(warp, 0).num;
  bool transposed = operandsOf(warp, 0).transposed;
  for (uint32_t tile = 0; tile < num; ++tile) {
    countConflicts(warp, tile);
    uint16_t rows[8][8];
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t row = lane / 4, column = 2 * (lane % 4);
      uint32_t value = operandsOf(warp, lane).registers[tile];
      (transposed ? rows[column][row] : rows[row][column]) =
          static_cast<uint16_t>(value);
      (transposed ? rows[column + 1][row] : rows[row][column + 1]) =
          static_cast<uint16_t>(value >> 16);
    }
    for (uint32_t row = 0; row < 8; ++row) {
      uint32_t lane = tile * 8 + row;
      if (checkRow(warp, lane, /*store=*/true))
        memcpy(operandsOf(warp, lane).row, rows[row], 16);
    }
  }
  if (warp.track)
    warp.track->add(Activity::Shared, "stmatrix", warp.threads[0]->site,
                    num * cost::matrixTile);
}

static bool checkNum(uint32_t num, uint32_t site) {
  if (num == 1 || num == 2 || num == 4)
    return true;
  report("unsupported", site, "%u matrices: wanted 1, 2 or 4", num);
  return false;
}

void varlen_sim_ldmatrix(void *row, uint32_t num, uint32_t transposed,
                         void *registers, uint32_t site) {
  Thread &self = *worker->current;
  if (!checkNum(num, site))
    return;
  MatrixOperands &operands = operandsOf(*self.warp, self.lane);
  operands.row = row;
  operands.num = num;
  operands.transposed = transposed;
  collective(Collective::LdMatrix, ~0U, site);
  if (num == 4)
    memcpy(registers, operands.registers, 16);
  else
    memcpy(registers, operands.registers, num * 4);
}

void varlen_sim_stmatrix(void *row, uint32_t num, uint32_t transposed,
                         const void *registers, uint32_t site) {
  Thread &self = *worker->current;
  if (!checkNum(num, site))
    return;
  MatrixOperands &operands = operandsOf(*self.warp, self.lane);
  operands.row = row;
  operands.num = num;
  operands.transposed = transposed;
  memcpy(operands.registers, registers, num * 4);
  collective(Collective::StMatrix, ~0U, site);
}

//===----------------------------------------------------------------------===//
// mma.sync.m16n8k{4,8,16}
//===----------------------------------------------------------------------===//

namespace {
/// What a lane puts on the stage. With g = lane / 4 and t = lane % 4, and
/// elements of 16 bits two to a register at columns c, c + 1:
/// A register i: row g + 8 (i % 2), column t + 4 (i / 2) of 32-bit columns;
/// B register i: row t + 4 i of 32-bit rows, column g;
/// C and D element i: row g + 8 (i / 2), column 2 t + i % 2.
struct MmaOperands {
  /// A, B, C; D takes the place of C.
  uint32_t words[10];
  uint32_t type, k, accumulator;
};
} // namespace
static_assert(sizeof(MmaOperands) <= sizeof(Warp::stage[0]), "fits a stage");

template <uint32_t depth, typename Convert>
[[gnu::always_inline]] static inline void
convertRow(const uint32_t *words, float *values, Convert convert) {
  for (uint32_t i = 0; i < depth / 2; ++i) {
    values[2 * i] = convert(static_cast<uint16_t>(words[i]));
    values[2 * i + 1] = convert(static_cast<uint16_t>(words[i] >> 16));
  }
}

/// One product of `wordsPerRow` 32-bit columns of A.
template <uint32_t wordsPerRow, bool pairs, typename Convert>
[[gnu::always_inline]] static inline void multiply(Warp &warp,
                                                   Convert convert) {
  constexpr uint32_t depth = pairs ? 2 * wordsPerRow : wordsPerRow;
  constexpr uint32_t numA = wordsPerRow / 2, numB = wordsPerRow / 4;
  constexpr uint32_t firstC = numA + numB;
  alignas(32) uint32_t wordsA[16][wordsPerRow], wordsB[8][wordsPerRow];
  alignas(32) float a[16][depth], b[depth][8], d[16][8];
  bool narrow = reinterpret_cast<MmaOperands *>(warp.stage[0])->accumulator ==
                VARLEN_SIM_MMA_F16;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t *words = warp.stage[lane];
    uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t i = 0; i < numA; ++i)
      wordsA[g + 8 * (i % 2)][t + 4 * (i / 2)] = words[i];
    for (uint32_t i = 0; i < numB; ++i)
      wordsB[g][t + 4 * i] = words[numA + i];
    for (uint32_t half = 0; half < 2; ++half)
      if (narrow) {
        uint32_t pair = words[firstC + half];
        d[g + 8 * half][2 * t] = fromF16(static_cast<uint16_t>(pair));
        d[g + 8 * half][2 * t + 1] = fromF16(static_cast<uint16_t>(pair >> 16));
      } else {
        memcpy(&d[g + 8 * half][2 * t], &words[firstC + 2 * half], 8);
      }
  }
  for (uint32_t row = 0; row < 16; ++row)
    if constexpr (pairs)
      convertRow<depth>(wordsA[row], a[row], convert);
    else
      for (uint32_t k = 0; k < depth; ++k)
        a[row][k] = convert(wordsA[row][k]);
  for (uint32_t column = 0; column < 8; ++column) {
    float values[depth];
    if constexpr (pairs)
      convertRow<depth>(wordsB[column], values, convert);
    else
      for (uint32_t k = 0; k < depth; ++k)
        values[k] = convert(wordsB[column][k]);
    for (uint32_t k = 0; k < depth; ++k)
      b[k][column] = values[k];
  }
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t column = 0; column < 8; ++column)
        d[row][column] += a[row][k] * b[k][column];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t *words = warp.stage[lane];
    uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t half = 0; half < 2; ++half)
      if (narrow)
        words[firstC + half] =
            static_cast<uint32_t>(toF16(d[g + 8 * half][2 * t + 1])) << 16 |
            toF16(d[g + 8 * half][2 * t]);
      else
        memcpy(&words[firstC + 2 * half], &d[g + 8 * half][2 * t], 8);
  }
}

[[gnu::always_inline]] static inline void multiplyAny(Warp &warp) {
  const auto &operands = *reinterpret_cast<MmaOperands *>(warp.stage[0]);
  switch (operands.type << 8 | operands.k) {
  case VARLEN_SIM_MMA_F16 << 8 | 8:
    return multiply<4, true>(warp, fromF16);
  case VARLEN_SIM_MMA_F16 << 8 | 16:
    return multiply<8, true>(warp, fromF16);
  case VARLEN_SIM_MMA_BF16 << 8 | 8:
    return multiply<4, true>(warp, fromBF16);
  case VARLEN_SIM_MMA_BF16 << 8 | 16:
    return multiply<8, true>(warp, fromBF16);
  case VARLEN_SIM_MMA_TF32 << 8 | 4:
    return multiply<4, false>(warp, fromTF32);
  default:
    return multiply<8, false>(warp, fromTF32);
  }
}

#if defined(__x86_64__)
// The same operations in the same order with wider registers (no fused
// multiply-add): the same results.
[[gnu::target("avx2")]] static void multiplyAVX2(Warp &warp) {
  multiplyAny(warp);
}
#endif
static void multiplyBaseline(Warp &warp) { multiplyAny(warp); }

void varlen::executor::multiplyMatrix(Warp &warp) {
#if defined(__x86_64__)
  static const auto function =
      __builtin_cpu_supports("avx2") ? multiplyAVX2 : multiplyBaseline;
  function(warp);
#else
  multiplyBaseline(warp);
#endif
  ++worker->stats.mma;
  if (warp.track)
    warp.track->add(Activity::Matrix, "mma", warp.threads[0]->site, cost::mma);
}

void varlen_sim_mma(const void *operands, void *result, uint32_t type,
                    uint32_t k, uint32_t accumulator, uint32_t site) {
  Thread &self = *worker->current;
  uint32_t numAB = 0;
  switch (type << 8 | k) {
  case VARLEN_SIM_MMA_F16 << 8 | 16:
  case VARLEN_SIM_MMA_BF16 << 8 | 16:
  case VARLEN_SIM_MMA_TF32 << 8 | 8:
    numAB = 6;
    break;
  case VARLEN_SIM_MMA_F16 << 8 | 8:
  case VARLEN_SIM_MMA_BF16 << 8 | 8:
  case VARLEN_SIM_MMA_TF32 << 8 | 4:
    numAB = 3;
    break;
  }
  bool wide = accumulator == VARLEN_SIM_MMA_F32;
  if (!numAB || !(wide || (accumulator == VARLEN_SIM_MMA_F16 &&
                           type == VARLEN_SIM_MMA_F16))) {
    report("unsupported", site,
           "mma.m16n8k%u of type %u with accumulator type %u", k, type,
           accumulator);
    return;
  }
  auto &stage = *reinterpret_cast<MmaOperands *>(self.warp->stage[self.lane]);
  stage.type = type;
  stage.k = k;
  stage.accumulator = accumulator;
  if (wide && numAB == 6) {
    memcpy(stage.words, operands, 40);
    collective(Collective::MMA, ~0U, site);
    memcpy(result, stage.words + 6, 16);
    return;
  }
  uint32_t numC = wide ? 4 : 2;
  memcpy(stage.words, operands, (numAB + numC) * 4);
  collective(Collective::MMA, ~0U, site);
  memcpy(result, stage.words + numAB, numC * 4);
}

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

#include <algorithm>
#include <cstring>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// ldmatrix and stmatrix
//===----------------------------------------------------------------------===//

// Rows of tile i are those that lanes 8 i to 8 i + 7 name; its elements (row,
// 2 column and 2 column + 1) are in register i of lane 4 row + column, with
// rows and columns exchanged if it is transposed.

/// What a lane puts on the stage for varlen_sim_ldmatrix_batch.
namespace {
struct LoadOperands {
  void *const *rows;
  uint32_t *registers;
  const varlen_sim_matrix_load *loads;
  uint32_t count;
};
/// The same for stmatrix.
struct StoreOperands {
  uint32_t registers[4];
  void *row;
  uint32_t num;
  uint32_t transposed;
};
} // namespace
static_assert(sizeof(LoadOperands) <= sizeof(Warp::stage[0]), "fits a stage");
static_assert(sizeof(StoreOperands) <= sizeof(Warp::stage[0]), "fits a stage");

static LoadOperands &loadOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<LoadOperands *>(warp.stage[lane]);
}
static StoreOperands &storeOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<StoreOperands *>(warp.stage[lane]);
}

/// Rows in the same bank of 16 bytes take a cycle each, unless they are the
/// same row.
static void countConflicts(Warp &warp, void *const (&rows)[8], uint32_t site) {
  uint32_t inBank[8] = {}, worst = 1;
  for (uint32_t row = 0; row < 8; ++row)
    if (std::find(rows, rows + row, rows[row]) == rows + row)
      worst = std::max(
          worst, ++inBank[reinterpret_cast<uint64_t>(rows[row]) >> 4 & 7]);
  ++worker->stats.matrix_phases;
  worker->stats.matrix_conflicts += worst - 1;
  if (BankRecorder *banks = warp.block->banks)
    banks->addMatrix(site, worst - 1);
}

/// Whether the row that a lane names can be accessed; reports if not.
static bool checkRow(Warp &warp, uint32_t lane, void *row, uint32_t site,
                     bool store) {
  Thread &thread = *warp.threads[lane];
  // Reports are about the lane that gave the address.
  Thread *current = worker->current;
  worker->current = &thread;
  bool valid = false;
  if (reinterpret_cast<uint64_t>(row) & 15)
    report("misaligned", site,
           "%s row at an address that ends in 0x%x, wanted 16 bytes",
           store ? "stmatrix" : "ldmatrix",
           static_cast<uint32_t>(reinterpret_cast<uint64_t>(row) & 15));
  else
    valid = store ? writeShared(thread, row, 16, site)
                  : readShared(thread, row, 16, site);
  worker->current = current;
  return valid;
}

/// The words of a tile by lane.
static void fromRows(const uint16_t (&rows)[8][8], bool transposed,
                     uint32_t (&words)[32]) {
  if (!transposed) {
    memcpy(words, rows, sizeof(words));
    return;
  }
  for (uint32_t row = 0; row < 8; ++row)
    for (uint32_t pair = 0; pair < 4; ++pair)
      words[4 * row + pair] = static_cast<uint32_t>(rows[2 * pair + 1][row])
                                  << 16 |
                              rows[2 * pair][row];
}

static void loadTiles(Warp &warp, uint32_t index,
                      const varlen_sim_matrix_load &load) {
  uint32_t words[4][32];
  for (uint32_t tile = 0; tile < load.num; ++tile) {
    void *rows[8];
    for (uint32_t row = 0; row < 8; ++row)
      rows[row] = loadOf(warp, tile * 8 + row).rows[index];
    countConflicts(warp, rows, load.site);
    uint16_t elements[8][8];
    for (uint32_t row = 0; row < 8; ++row)
      if (checkRow(warp, tile * 8 + row, rows[row], load.site, /*store=*/false))
        memcpy(elements[row], rows[row], 16);
      else
        memset(elements[row], 0xff, 16);
    fromRows(elements, load.transposed, words[tile]);
  }
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t tile = 0; tile < load.num; ++tile)
      loadOf(warp, lane).registers[4 * index + tile] = words[tile][lane];
  if (warp.track)
    warp.track->add(Activity::Shared, "ldmatrix", load.site,
                    load.num * cost::matrixTile);
}

void varlen::executor::loadMatrix(Warp &warp) {
  const LoadOperands &first = loadOf(warp, 0);
  for (uint32_t i = 0; i < first.count; ++i)
    loadTiles(warp, i, first.loads[i]);
}

void varlen::executor::storeMatrix(Warp &warp) {
  uint32_t num = storeOf(warp, 0).num, site = warp.threads[0]->site;
  bool transposed = storeOf(warp, 0).transposed;
  for (uint32_t tile = 0; tile < num; ++tile) {
    void *rows[8];
    for (uint32_t row = 0; row < 8; ++row)
      rows[row] = storeOf(warp, tile * 8 + row).row;
    countConflicts(warp, rows, site);
    uint16_t elements[8][8];
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t row = lane / 4, column = 2 * (lane % 4);
      uint32_t value = storeOf(warp, lane).registers[tile];
      (transposed ? elements[column][row] : elements[row][column]) =
          static_cast<uint16_t>(value);
      (transposed ? elements[column + 1][row] : elements[row][column + 1]) =
          static_cast<uint16_t>(value >> 16);
    }
    for (uint32_t row = 0; row < 8; ++row)
      if (checkRow(warp, tile * 8 + row, rows[row], site, /*store=*/true))
        memcpy(rows[row], elements[row], 16);
  }
  if (warp.track)
    warp.track->add(Activity::Shared, "stmatrix", site, num * cost::matrixTile);
}

static bool checkNum(uint32_t num, uint32_t site) {
  if (num == 1 || num == 2 || num == 4)
    return true;
  report("unsupported", site, "%u matrices: wanted 1, 2 or 4", num);
  return false;
}

void varlen_sim_ldmatrix_batch(void *const *rows, void *registers,
                               const varlen_sim_matrix_load *loads,
                               uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (!checkNum(loads[i].num, loads[i].site))
      return;
  Thread &self = *worker->current;
  loadOf(*self.warp, self.lane) = {rows, static_cast<uint32_t *>(registers),
                                   loads, count};
  collective(Collective::LdMatrix, ~0U, loads[0].site);
}

void varlen_sim_ldmatrix(void *row, uint32_t num, uint32_t transposed,
                         void *registers, uint32_t site) {
  varlen_sim_matrix_load load = {num, transposed, site};
  varlen_sim_ldmatrix_batch(&row, registers, &load, 1);
}

void varlen_sim_stmatrix(void *row, uint32_t num, uint32_t transposed,
                         const void *registers, uint32_t site) {
  Thread &self = *worker->current;
  if (!checkNum(num, site))
    return;
  StoreOperands &operands = storeOf(*self.warp, self.lane);
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
  /// A, B, C; D takes the place of C. Unused by a batch.
  uint32_t words[10];
  uint8_t type, k, accumulator, count;
  // Of a batch.
  const uint32_t *operands;
  uint32_t *results;
};
} // namespace
static_assert(sizeof(MmaOperands) <= sizeof(Warp::stage[0]), "fits a stage");

static MmaOperands &mmaOf(Warp &warp, uint32_t lane) {
  return *reinterpret_cast<MmaOperands *>(warp.stage[lane]);
}

/// Registers of A and B together, 0 if there is no such instruction.
static uint32_t registersAB(uint32_t type, uint32_t k) {
  switch (type << 8 | k) {
  case VARLEN_SIM_MMA_F16 << 8 | 16:
  case VARLEN_SIM_MMA_BF16 << 8 | 16:
  case VARLEN_SIM_MMA_TF32 << 8 | 8:
    return 6;
  case VARLEN_SIM_MMA_F16 << 8 | 8:
  case VARLEN_SIM_MMA_BF16 << 8 | 8:
  case VARLEN_SIM_MMA_TF32 << 8 | 4:
    return 3;
  default:
    return 0;
  }
}

namespace {
/// Where the lanes have the registers of one product.
struct OnStage {
  Warp &warp;
  uint32_t numAB;
  const uint32_t *ab(uint32_t lane) const { return mmaOf(warp, lane).words; }
  const uint32_t *c(uint32_t lane) const { return ab(lane) + numAB; }
  uint32_t *d(uint32_t lane) const { return mmaOf(warp, lane).words + numAB; }
};
struct InBatch {
  Warp &warp;
  uint32_t numAB, numC, index;
  int32_t chain;
  const uint32_t *ab(uint32_t lane) const {
    return mmaOf(warp, lane).operands + index * (numAB + numC);
  }
  const uint32_t *c(uint32_t lane) const {
    return chain < 0 ? ab(lane) + numAB
                     : mmaOf(warp, lane).results +
                           static_cast<uint32_t>(chain) * numC;
  }
  uint32_t *d(uint32_t lane) const {
    return mmaOf(warp, lane).results + index * numC;
  }
};
} // namespace

template <uint32_t depth, typename Convert>
[[gnu::always_inline]] static inline void
convertRow(const uint32_t *words, float *values, Convert convert) {
  for (uint32_t i = 0; i < depth / 2; ++i) {
    values[2 * i] = convert(static_cast<uint16_t>(words[i]));
    values[2 * i + 1] = convert(static_cast<uint16_t>(words[i] >> 16));
  }
}

/// One product of `wordsPerRow` 32-bit columns of A.
template <uint32_t wordsPerRow, bool pairs, typename Place, typename Convert>
[[gnu::always_inline]] static inline void
multiply(const Place &place, bool narrow, Convert convert) {
  constexpr uint32_t depth = pairs ? 2 * wordsPerRow : wordsPerRow;
  constexpr uint32_t numA = wordsPerRow / 2, numB = wordsPerRow / 4;
  alignas(32) uint32_t wordsA[16][wordsPerRow], wordsB[8][wordsPerRow];
  alignas(32) float a[16][depth], b[depth][8], d[16][8];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t *ab = place.ab(lane), *c = place.c(lane);
    uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t i = 0; i < numA; ++i)
      wordsA[g + 8 * (i % 2)][t + 4 * (i / 2)] = ab[i];
    for (uint32_t i = 0; i < numB; ++i)
      wordsB[g][t + 4 * i] = ab[numA + i];
    for (uint32_t half = 0; half < 2; ++half)
      if (narrow) {
        d[g + 8 * half][2 * t] = fromF16(static_cast<uint16_t>(c[half]));
        d[g + 8 * half][2 * t + 1] =
            fromF16(static_cast<uint16_t>(c[half] >> 16));
      } else {
        memcpy(&d[g + 8 * half][2 * t], &c[2 * half], 8);
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
    uint32_t *out = place.d(lane);
    uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t half = 0; half < 2; ++half)
      if (narrow)
        out[half] = static_cast<uint32_t>(toF16(d[g + 8 * half][2 * t + 1]))
                        << 16 |
                    toF16(d[g + 8 * half][2 * t]);
      else
        memcpy(&out[2 * half], &d[g + 8 * half][2 * t], 8);
  }
}

template <typename Place>
[[gnu::always_inline]] static inline void multiplyAs(const MmaOperands &shape,
                                                     const Place &place) {
  bool narrow = shape.accumulator == VARLEN_SIM_MMA_F16;
  switch (shape.type << 8 | shape.k) {
  case VARLEN_SIM_MMA_F16 << 8 | 8:
    return multiply<4, true>(place, narrow, fromF16);
  case VARLEN_SIM_MMA_F16 << 8 | 16:
    return multiply<8, true>(place, narrow, fromF16);
  case VARLEN_SIM_MMA_BF16 << 8 | 8:
    return multiply<4, true>(place, narrow, fromBF16);
  case VARLEN_SIM_MMA_BF16 << 8 | 16:
    return multiply<8, true>(place, narrow, fromBF16);
  case VARLEN_SIM_MMA_TF32 << 8 | 4:
    return multiply<4, false>(place, narrow, fromTF32);
  default:
    return multiply<8, false>(place, narrow, fromTF32);
  }
}

[[gnu::always_inline]] static inline void multiplyAny(Warp &warp,
                                                      const int32_t *chain) {
  const MmaOperands &shape = mmaOf(warp, 0);
  uint32_t numAB = registersAB(shape.type, shape.k);
  if (!shape.count)
    return multiplyAs(shape, OnStage{warp, numAB});
  uint32_t numC = shape.accumulator == VARLEN_SIM_MMA_F32 ? 4 : 2;
  for (uint32_t i = 0; i < shape.count; ++i)
    multiplyAs(shape, InBatch{warp, numAB, numC, i, chain[i]});
}

#if defined(__x86_64__)
// The same operations in the same order with wider registers (no fused
// multiply-add): the same results.
[[gnu::target("avx2")]] static void multiplyAVX2(Warp &warp,
                                                 const int32_t *chain) {
  multiplyAny(warp, chain);
}
#endif
static void multiplyBaseline(Warp &warp, const int32_t *chain) {
  multiplyAny(warp, chain);
}

void varlen::executor::multiplyMatrix(Warp &warp) {
  const int32_t *chain = worker->current->mmaChain;
#if defined(__x86_64__)
  static const auto function =
      __builtin_cpu_supports("avx2") ? multiplyAVX2 : multiplyBaseline;
  function(warp, chain);
#else
  multiplyBaseline(warp, chain);
#endif
  uint32_t count = std::max<uint32_t>(mmaOf(warp, 0).count, 1);
  worker->stats.mma += count;
  if (warp.track)
    for (uint32_t i = 0; i < count; ++i)
      warp.track->add(Activity::Matrix, "mma", warp.threads[0]->site,
                      cost::mma);
}

/// Registers of A and B of a valid instruction; reports and returns 0 if it is
/// not.
static uint32_t checkMma(uint32_t type, uint32_t k, uint32_t accumulator,
                         uint32_t site) {
  uint32_t numAB = registersAB(type, k);
  if (numAB &&
      (accumulator == VARLEN_SIM_MMA_F32 ||
       (accumulator == VARLEN_SIM_MMA_F16 && type == VARLEN_SIM_MMA_F16)))
    return numAB;
  report("unsupported", site,
         "mma.m16n8k%u of type %u with accumulator type %u", k, type,
         accumulator);
  return 0;
}

static MmaOperands &putShape(Thread &self, uint32_t type, uint32_t k,
                             uint32_t accumulator, uint32_t count) {
  MmaOperands &stage = mmaOf(*self.warp, self.lane);
  stage.type = static_cast<uint8_t>(type);
  stage.k = static_cast<uint8_t>(k);
  stage.accumulator = static_cast<uint8_t>(accumulator);
  stage.count = static_cast<uint8_t>(count);
  return stage;
}

void varlen_sim_mma(const void *operands, void *result, uint32_t type,
                    uint32_t k, uint32_t accumulator, uint32_t site) {
  Thread &self = *worker->current;
  uint32_t numAB = checkMma(type, k, accumulator, site);
  if (!numAB)
    return;
  MmaOperands &stage = putShape(self, type, k, accumulator, 0);
  // The common sizes as constants.
  if (accumulator == VARLEN_SIM_MMA_F32 && numAB == 6) {
    memcpy(stage.words, operands, 40);
    collective(Collective::MMA, ~0U, site);
    memcpy(result, stage.words + 6, 16);
    return;
  }
  uint32_t numC = accumulator == VARLEN_SIM_MMA_F32 ? 4 : 2;
  memcpy(stage.words, operands, (numAB + numC) * 4);
  collective(Collective::MMA, ~0U, site);
  memcpy(result, stage.words + numAB, numC * 4);
}

void varlen_sim_mma_batch(const void *operands, void *results,
                          const int32_t *chain, uint32_t count, uint32_t type,
                          uint32_t k, uint32_t accumulator, uint32_t site) {
  Thread &self = *worker->current;
  if (!checkMma(type, k, accumulator, site))
    return;
  if (count < 1 || count > 255) {
    report("unsupported", site, "a batch of %u mma: wanted 1 to 255", count);
    return;
  }
  MmaOperands &stage = putShape(self, type, k, accumulator, count);
  stage.operands = static_cast<const uint32_t *>(operands);
  stage.results = static_cast<uint32_t *>(results);
  self.mmaChain = chain;
  collective(Collective::MMA, ~0U, site);
}

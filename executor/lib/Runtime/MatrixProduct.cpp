//===- MatrixProduct.cpp - mma.sync ---------------------------------------===//
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

// mma.sync.m16n8k{4,8,16}

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
  // The operands of a batch.
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

// Vectors go over the 16 rows of A, C and D, of which a lane g, t has rows g
// and g + 8: four words of eight lanes with the same t are what two columns
// need.

namespace {
using Quad = uint32_t __attribute__((vector_size(16)));
using Eight = uint32_t __attribute__((vector_size(32)));
using Words = uint32_t __attribute__((vector_size(64)));
using Rows = float __attribute__((vector_size(64)));

/// Four words of each lane of the same t, of lanes g < 4 and of the others.
struct Column {
  Words low, high;
};

/// Where the lanes have the registers of their products.
struct Registers {
  const uint32_t *operands[32];
  uint32_t *results[32];
};

/// One product in these, by word.
struct Place {
  uint32_t operands;
  const uint32_t *const *fromC;
  uint32_t c, d;
};
} // namespace

/// The first `count` words of lane 4 g + t.
template <uint32_t count>
[[gnu::always_inline]] static inline void loadQuad(const uint32_t *const *from,
                                                   uint32_t offset,
                                                   uint32_t lane, Quad &quad) {
  quad = Quad{};
  memcpy(&quad, from[lane] + offset, 4 * count);
}

template <uint32_t count>
[[gnu::always_inline]] static inline void
loadHalf(const uint32_t *const *from, uint32_t offset, uint32_t lane,
         Words &words) {
  Quad quads[4];
  for (uint32_t g = 0; g < 4; ++g)
    loadQuad<count>(from, offset, lane + 4 * g, quads[g]);
  Eight first =
      __builtin_shufflevector(quads[0], quads[1], 0, 1, 2, 3, 4, 5, 6, 7);
  Eight second =
      __builtin_shufflevector(quads[2], quads[3], 0, 1, 2, 3, 4, 5, 6, 7);
  words = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                                  10, 11, 12, 13, 14, 15);
}

template <uint32_t count = 4>
[[gnu::always_inline]] static inline void
loadColumn(const uint32_t *const *from, uint32_t offset, uint32_t t,
           Column &column) {
  loadHalf<count>(from, offset, t, column.low);
  loadHalf<count>(from, offset, t + 16, column.high);
}

/// Word i of the eight lanes, then their word j.
template <int i, int j>
[[gnu::always_inline]] static inline void wordsOf(const Column &column,
                                                  Words &words) {
  words = __builtin_shufflevector(
      column.low, column.high, i, i + 4, i + 8, i + 12, i + 16, i + 20, i + 24,
      i + 28, j, j + 4, j + 8, j + 12, j + 16, j + 20, j + 24, j + 28);
}

/// Puts the rows of columns 2 t and 2 t + 1 where the lanes want them.
[[gnu::always_inline]] static inline void
storeColumns(uint32_t *const (&to)[32], uint32_t offset, uint32_t t,
             const Rows &even, const Rows &odd) {
  Rows low = __builtin_shufflevector(even, odd, 0, 16, 8, 24, 1, 17, 9, 25, 2,
                                     18, 10, 26, 3, 19, 11, 27);
  Rows high = __builtin_shufflevector(even, odd, 4, 20, 12, 28, 5, 21, 13, 29,
                                      6, 22, 14, 30, 7, 23, 15, 31);
  for (uint32_t g = 0; g < 4; ++g) {
    memcpy(to[4 * g + t] + offset,
           reinterpret_cast<const char *>(&low) + 16 * g, 16);
    memcpy(to[4 * g + t + 16] + offset,
           reinterpret_cast<const char *>(&high) + 16 * g, 16);
  }
}

// How a word of an operand becomes numbers: `convert` calls function(index of
// the number in the word, numbers).

namespace {
struct BF16 {
  static constexpr uint32_t perWord = 2;
  template <typename Function>
  [[gnu::always_inline]] static void convert(const Words &words,
                                             Function function) {
    function(0, reinterpret_cast<Rows>(words << 16));
    function(1, reinterpret_cast<Rows>(words & 0xffff0000U));
  }
};
struct F16 {
  static constexpr uint32_t perWord = 2;
  /// As fromF16.
  [[gnu::always_inline]] static void number(const Words &bits, Rows &rows) {
    Words magnitude = (bits & 0x7fffU) << 13;
    Rows rebased = reinterpret_cast<Rows>(magnitude) * 0x1p112F;
    auto special = reinterpret_cast<Words>(magnitude >= 0x0f800000U);
    rows = reinterpret_cast<Rows>(reinterpret_cast<Words>(rebased) |
                                  (special & 0x7f800000U) |
                                  (bits & 0x8000U) << 16);
  }
  template <typename Function>
  [[gnu::always_inline]] static void convert(const Words &words,
                                             Function function) {
    Rows rows;
    number(words, rows);
    function(0, rows);
    number(words >> 16, rows);
    function(1, rows);
  }
};
struct TF32 {
  static constexpr uint32_t perWord = 1;
  template <typename Function>
  [[gnu::always_inline]] static void convert(const Words &words,
                                             Function function) {
    function(0, reinterpret_cast<Rows>(words & 0xffffe000U));
  }
};
} // namespace

/// C of f16: each word has the numbers of two columns.
[[gnu::always_inline]] static inline void loadNarrow(const Place &place,
                                                     uint32_t t, Rows (&d)[8]) {
  Column column;
  Words words;
  loadColumn<2>(place.fromC, place.c, t, column);
  wordsOf<0, 1>(column, words);
  F16::convert(words,
               [&](uint32_t i, const Rows &rows) { d[2 * t + i] = rows; });
}

static void storeNarrow(const Registers &registers, const Place &place,
                        const float (&d)[8][16]) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t *out = registers.results[lane] + place.d;
    uint32_t g = lane / 4, t = lane % 4;
    for (uint32_t half = 0; half < 2; ++half)
      out[half] = static_cast<uint32_t>(toF16(d[2 * t + 1][g + 8 * half]))
                      << 16 |
                  toF16(d[2 * t][g + 8 * half]);
  }
}

/// One product of `wordsPerRow` 32-bit columns of A.
template <typename Type, uint32_t wordsPerRow>
[[gnu::always_inline]] static inline void
multiply(const Registers &registers, const Place &place, bool narrow) {
  constexpr uint32_t perWord = Type::perWord, depth = perWord * wordsPerRow;
  constexpr uint32_t numA = wordsPerRow / 2, numB = wordsPerRow / 4;
  // Four words with those of B among them, and none behind the operands.
  constexpr uint32_t aroundB = numB == 2 ? numA : numA - 1;
  Rows a[depth], d[8];
  alignas(64) float b[depth][8];
  for (uint32_t t = 0; t < 4; ++t) {
    Column column;
    Words words;
    loadColumn(registers.operands, place.operands, t, column);
    wordsOf<0, 1>(column, words);
    Type::convert(words, [&](uint32_t i, const Rows &rows) {
      a[perWord * t + i] = rows;
    });
    if constexpr (numA == 4) {
      wordsOf<2, 3>(column, words);
      Type::convert(words, [&](uint32_t i, const Rows &rows) {
        a[perWord * (t + 4) + i] = rows;
      });
    }
    loadColumn(registers.operands, place.operands + aroundB, t, column);
    wordsOf<numA - aroundB, numA - aroundB + numB - 1>(column, words);
    Type::convert(words, [&](uint32_t i, const Rows &rows) {
      for (uint32_t word = 0; word < numB; ++word)
        memcpy(b[perWord * (t + 4 * word) + i],
               reinterpret_cast<const char *>(&rows) + 32 * word, 32);
    });
    if (narrow) {
      loadNarrow(place, t, d);
    } else {
      loadColumn(place.fromC, place.c, t, column);
      wordsOf<0, 2>(column, words);
      d[2 * t] = reinterpret_cast<Rows>(words);
      wordsOf<1, 3>(column, words);
      d[2 * t + 1] = reinterpret_cast<Rows>(words);
    }
  }
  for (uint32_t column = 0; column < 8; ++column)
    for (uint32_t k = 0; k < depth; ++k)
      d[column] += a[k] * b[k][column];
  if (narrow) {
    float columns[8][16];
    memcpy(columns, d, sizeof(columns));
    return storeNarrow(registers, place, columns);
  }
  for (uint32_t t = 0; t < 4; ++t)
    storeColumns(registers.results, place.d, t, d[2 * t], d[2 * t + 1]);
}

template <typename Type, uint32_t wordsPerRow>
[[gnu::always_inline]] static inline void multiplyBatch(Warp &warp,
                                                        const int32_t *chain) {
  const MmaOperands &shape = mmaOf(warp, 0);
  bool narrow = shape.accumulator == VARLEN_SIM_MMA_F16;
  constexpr uint32_t numAB = wordsPerRow / 2 + wordsPerRow / 4;
  uint32_t numC = narrow ? 2 : 4;
  Registers registers;
  if (!shape.count) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      registers.operands[lane] = mmaOf(warp, lane).words;
      registers.results[lane] = mmaOf(warp, lane).words;
    }
    return multiply<Type, wordsPerRow>(
        registers, {0, registers.operands, numAB, numAB}, narrow);
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    registers.operands[lane] = mmaOf(warp, lane).operands;
    registers.results[lane] = mmaOf(warp, lane).results;
  }
  for (uint32_t i = 0; i < shape.count; ++i) {
    Place place = {i * (numAB + numC), registers.operands,
                   i * (numAB + numC) + numAB, i * numC};
    if (chain[i] >= 0) {
      place.fromC = registers.results;
      place.c = static_cast<uint32_t>(chain[i]) * numC;
    }
    multiply<Type, wordsPerRow>(registers, place, narrow);
  }
}

[[gnu::always_inline]] static inline void multiplyAny(Warp &warp,
                                                      const int32_t *chain) {
  const MmaOperands &shape = mmaOf(warp, 0);
  switch (shape.type << 8 | shape.k) {
  case VARLEN_SIM_MMA_F16 << 8 | 8:
    return multiplyBatch<F16, 4>(warp, chain);
  case VARLEN_SIM_MMA_F16 << 8 | 16:
    return multiplyBatch<F16, 8>(warp, chain);
  case VARLEN_SIM_MMA_BF16 << 8 | 8:
    return multiplyBatch<BF16, 4>(warp, chain);
  case VARLEN_SIM_MMA_BF16 << 8 | 16:
    return multiplyBatch<BF16, 8>(warp, chain);
  case VARLEN_SIM_MMA_TF32 << 8 | 4:
    return multiplyBatch<TF32, 4>(warp, chain);
  default:
    return multiplyBatch<TF32, 8>(warp, chain);
  }
}

#if defined(__x86_64__)
// The same operations in the same order with wider registers (the library is
// compiled without fused multiply-adds): the same results.
[[gnu::target("avx512f")]] static void multiplyAVX512(Warp &warp,
                                                      const int32_t *chain) {
  multiplyAny(warp, chain);
}
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
      __builtin_cpu_supports("avx512f") ? multiplyAVX512
      : __builtin_cpu_supports("avx2")  ? multiplyAVX2
                                        : multiplyBaseline;
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

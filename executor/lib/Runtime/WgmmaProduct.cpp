//===- WgmmaProduct.cpp - What a wgmma reads and computes -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numbers.h"
#include "State.h"
#include "Swizzle.h"
#include "Wgmma.h"

#include <cstring>

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// Operands in shared memory
//===----------------------------------------------------------------------===//

namespace {
/// A matrix that a descriptor describes: element (row, k) with `row` the index
/// along M or N.
class Operand {
public:
  Operand(uint64_t descriptor, bool majorMN, uint32_t elementBytes,
          const Block &block)
      : start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4),
        swizzle(static_cast<uint32_t>(descriptor >> 62)), majorMN(majorMN),
        element(elementBytes), window(block.window),
        base(static_cast<uint32_t>(block.shared - block.window)),
        bytes(block.sharedBytes) {
    // Elements in a row of the swizzle atom: 16 bytes without swizzle.
    static const uint32_t rowBytes[] = {16, 128, 64, 32};
    row = rowBytes[swizzle] / element;
  }

  /// The address in the CTA's window.
  uint32_t address(uint32_t mn, uint32_t k) const {
    uint32_t linear;
    uint32_t core = 16 / element;
    if (!majorMN)
      linear = swizzle ? start + mn / 8 * stride + mn % 8 * row * element +
                             k * element
                       : start + mn / 8 * stride + mn % 8 * 16 +
                             k / core * leading + k % core * element;
    else
      linear = swizzle ? start + mn % row * element + mn / row * leading +
                             k % 8 * row * element + k / 8 * stride
                       : start + mn % core * element + mn / core * stride +
                             k % 8 * 16 + k / 8 * leading;
    return swizzled(linear & (windowBytes - 1), swizzle);
  }
  /// The 16 bytes at an address, or null if they are not in shared memory.
  const char *chunk(uint32_t address) const {
    uint32_t offset = address - base;
    bool inside = address >= base && offset < bytes && bytes - offset >= 16;
    return inside ? window + address : nullptr;
  }
  bool isMajorMN() const { return majorMN; }
  /// Calls function(address, row, k) for each 16 bytes of `rows` rows from
  /// `first` and all of `depth`: they hold what follows along MN or K.
  template <typename Function>
  void forChunks(uint32_t first, uint32_t rows, uint32_t depth,
                 Function function) const {
    uint32_t core = 16 / element;
    uint32_t stepMN = majorMN ? core : 1, stepK = majorMN ? 1 : core;
    for (uint32_t mn = first; mn < first + rows; mn += stepMN)
      for (uint32_t k = 0; k < depth; k += stepK)
        function(address(mn, k), mn, k);
  }

private:
  uint32_t start, leading, stride, swizzle;
  bool majorMN;
  uint32_t element, row;
  const char *window;
  uint32_t base, bytes;
};
} // namespace

static uint32_t depthOf(const Wgmma &operation) {
  return operation.flags & VARLEN_SIM_WGMMA_TF32 ? 8 : 16;
}
static uint32_t elementBytes(const Wgmma &operation) {
  return operation.flags & VARLEN_SIM_WGMMA_TF32 ? 4 : 2;
}
static Operand operandA(const Wgmma &operation, const Block &block) {
  return {operation.descA, (operation.flags & VARLEN_SIM_WGMMA_A_MN) != 0,
          elementBytes(operation), block};
}
static Operand operandB(const Wgmma &operation, const Block &block) {
  return {operation.descB, (operation.flags & VARLEN_SIM_WGMMA_B_MN) != 0,
          elementBytes(operation), block};
}
static uint32_t firstRow(const Warp &warp) { return warp.id % 4 * 16; }

const std::vector<uint32_t> &
varlen::executor::wgmmaReads(const Warp &warp, const Wgmma &operation) {
  static thread_local std::vector<uint32_t> addresses;
  addresses.clear();
  auto add = [](uint32_t address, uint32_t, uint32_t) {
    addresses.push_back(address);
  };
  const Block &block = *warp.block;
  uint32_t depth = depthOf(operation);
  if (!operation.registersA)
    operandA(operation, block).forChunks(firstRow(warp), 16, depth, add);
  operandB(operation, block).forChunks(0, operation.n, depth, add);
  return addresses;
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

/// The elements in 16 bytes: 8, or 4 of tf32. NaN where there is no memory.
static void convertChunk(const char *chunk, uint32_t flags, float *values) {
  if (!chunk) {
    for (int i = 0; i < 8; ++i)
      values[i] = __builtin_nanf("");
    return;
  }
  uint32_t words[4];
  uint16_t halves[8];
  memcpy(words, chunk, 16);
  memcpy(halves, chunk, 16);
  if (flags & VARLEN_SIM_WGMMA_TF32)
    for (int i = 0; i < 4; ++i)
      values[i] = fromTF32(words[i]);
  else if (flags & VARLEN_SIM_WGMMA_BF16)
    for (int i = 0; i < 8; ++i)
      values[i] = fromBF16(halves[i]);
  else
    for (int i = 0; i < 8; ++i)
      values[i] = fromF16(halves[i]);
}

namespace {
/// Rows are longer than needed, so that the elements of a column are not all in
/// the same lines of the cache.
struct Product {
  float a[16][16 + 8], b[16][256 + 8], d[16][256 + 8];
};
} // namespace

/// The element of register i of a lane, for accumulators.
static uint32_t accRow(uint32_t lane, uint32_t i) {
  return lane / 4 + 8 * (i / 2 % 2);
}
static uint32_t accColumn(uint32_t lane, uint32_t i) {
  return 2 * (lane % 4) + i % 2 + 8 * (i / 4);
}

/// A in registers has the layout of mma.m16n8k16 (or k8 for tf32).
static void loadRegistersA(const Wgmma &operation, Product &product) {
  bool tf32 = operation.flags & VARLEN_SIM_WGMMA_TF32;
  bool bf16 = operation.flags & VARLEN_SIM_WGMMA_BF16;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t word = operation.a[lane][i];
      float *row = product.a[lane / 4 + 8 * (i % 2)];
      uint32_t column = lane % 4 + 4 * (i / 2);
      if (tf32) {
        row[column] = fromTF32(word);
        continue;
      }
      for (uint32_t half = 0; half < 2; ++half) {
        auto bits = static_cast<uint16_t>(word >> (16 * half));
        row[2 * column + half] = bf16 ? fromBF16(bits) : fromF16(bits);
      }
    }
}

static void loadOperands(const Warp &warp, const Wgmma &operation,
                         Product &product) {
  const Block &block = *warp.block;
  uint32_t depth = depthOf(operation);
  uint32_t count = 16 / elementBytes(operation);
  float values[8];
  if (!operation.registersA) {
    Operand a = operandA(operation, block);
    uint32_t first = firstRow(warp);
    a.forChunks(
        first, 16, depth, [&](uint32_t address, uint32_t row, uint32_t k) {
          convertChunk(a.chunk(address), operation.flags, values);
          uint32_t m = row - first;
          for (uint32_t i = 0; i < count; ++i)
            (a.isMajorMN() ? product.a[m + i][k] : product.a[m][k + i]) =
                values[i];
        });
  }
  Operand b = operandB(operation, block);
  b.forChunks(0, operation.n, depth,
              [&](uint32_t address, uint32_t n, uint32_t k) {
                convertChunk(b.chunk(address), operation.flags, values);
                for (uint32_t i = 0; i < count; ++i)
                  (b.isMajorMN() ? product.b[k][n + i] : product.b[k + i][n]) =
                      values[i];
              });
}

[[gnu::always_inline]] static inline void
multiplyAll(Product &product, uint32_t n, uint32_t depth) {
  for (uint32_t m = 0; m < 16; ++m)
    for (uint32_t first = 0; first < n; first += 8) {
      // Eight sums stay in registers over all of k.
      float sums[8];
      memcpy(sums, &product.d[m][first], sizeof(sums));
      for (uint32_t k = 0; k < depth; ++k)
        for (uint32_t i = 0; i < 8; ++i)
          sums[i] += product.a[m][k] * product.b[k][first + i];
      memcpy(&product.d[m][first], sums, sizeof(sums));
    }
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] static void multiplyAVX2(Product &product, uint32_t n,
                                                 uint32_t depth) {
  multiplyAll(product, n, depth);
}
#endif
static void multiplyBaseline(Product &product, uint32_t n, uint32_t depth) {
  multiplyAll(product, n, depth);
}

void varlen::executor::computeWgmma(const Warp &warp, Wgmma &operation) {
  if (operation.done)
    return;
  operation.done = true;
  ++worker->stats.wgmma;
  static thread_local Product product;
  if (operation.registersA)
    loadRegistersA(operation, product);
  loadOperands(warp, operation, product);
  // One sign for the product of both.
  if (!(operation.flags & VARLEN_SIM_WGMMA_NEG_A) !=
      !(operation.flags & VARLEN_SIM_WGMMA_NEG_B))
    for (auto &row : product.a)
      for (float &value : row)
        value = -value;
  uint32_t n = operation.n;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < n / 2; ++i)
      product.d[accRow(lane, i)][accColumn(lane, i)] =
          operation.scaleD ? operation.source[lane]->values()[i] : 0.0F;
#if defined(__x86_64__)
  static const auto multiply =
      __builtin_cpu_supports("avx2") ? multiplyAVX2 : multiplyBaseline;
  multiply(product, n, depthOf(operation));
#else
  multiplyBaseline(product, n, depthOf(operation));
#endif
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < n / 2; ++i)
      operation.target[lane]->values()[i] =
          product.d[accRow(lane, i)][accColumn(lane, i)];
}

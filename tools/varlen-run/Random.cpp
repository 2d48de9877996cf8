//===- Random.cpp - Reproducible normal random numbers --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Random.h"

#include "varlen/Runtime/Runtime.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// A fused multiply-add would round once where Python rounds twice.
#pragma clang fp contract(off)

using namespace varlen_run;
using llvm::StringRef;

/// The finaliser of splitmix64.
static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// FNV-1a of the name, mixed with the seed.
static uint64_t makeStream(uint64_t seed, StringRef name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name)
    hash = (hash ^ c) * 0x100000001b3;
  return mix(hash + mix(seed + 0x9e3779b97f4a7c15));
}

/// Uniform in (0, 1).
static double uniform(uint64_t stream, uint64_t counter) {
  uint64_t bits = mix(stream + (counter + 1) * 0x9e3779b97f4a7c15);
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

/// Natural logarithm of a normal x, to some 1e-15.
static double logarithm(double x) {
  int exponent;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0x1.6a09e667f3bcdp-1) { // sqrt(1/2)
    mantissa *= 2;
    exponent -= 1;
  }
  double s = (mantissa - 1) / (mantissa + 1), y = s * s;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2)
    series = series * y + 1.0 / k;
  return 2 * s * series + exponent * 0x1.62e42fefa39efp-1; // log(2)
}

/// cos(2 pi t) for t in [-1/2, 1], to some 1e-13.
static double cosineOfTurns(double t) {
  t = std::fabs(t);
  if (t > 0.5)
    t = 1 - t;
  bool mirrored = t > 0.25;
  if (mirrored)
    t = 0.5 - t;
  double x = t * 0x1.921fb54442d18p+2, y = x * x; // 2 pi
  double series = 1;
  for (int k = 18; k >= 2; k -= 2)
    series = 1 - series * y * (1.0 / (k * (k - 1)));
  return mirrored ? -series : series;
}

namespace {
struct Pair {
  float even, odd;
};
} // namespace

/// Box and Muller: elements 2p and 2p + 1.
static Pair normalPair(uint64_t stream, uint64_t pair) {
  double radius = std::sqrt(-2 * logarithm(uniform(stream, 2 * pair)));
  double turns = uniform(stream, 2 * pair + 1);
  // sin(2 pi t) = cos(2 pi (t - 1/4))
  return {static_cast<float>(radius * cosineOfTurns(turns)),
          static_cast<float>(radius * cosineOfTurns(turns - 0.25))};
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

static uint16_t toBF16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// For |value| below the largest f16; N(0, 1) in f64 stays below 9.
static uint16_t toF16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude < 0x38800000) { // below 2^-14: subnormal
    // Adding 1/2 leaves a multiple of 2^-24 in the low bits of the mantissa.
    float shifted = llvm::bit_cast<float>(magnitude) + 0.5f;
    return sign | (llvm::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  magnitude += 0xfff + ((magnitude >> 13) & 1) - 0x38000000;
  return sign | (magnitude >> 13);
}

/// The same for f8E4M3FN, to nearest, ties to even.
static uint8_t toF8(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 24) & 0x80, magnitude = bits & 0x7fffffff;
  if (magnitude < 0x3c800000) { // below 2^-6: subnormal
    // Adding 2^14 leaves a multiple of 2^-9 in the low bits of the mantissa.
    float shifted = llvm::bit_cast<float>(magnitude) + 0x1p14f;
    return sign | (llvm::bit_cast<uint32_t>(shifted) - 0x46800000);
  }
  magnitude += 0x7ffff + ((magnitude >> 20) & 1) - 0x3c000000;
  return sign | (magnitude >> 20);
}

/// 32 times the value: a scale of 1/32 makes a normal row of it.
static int8_t toI8(float value) {
  return static_cast<int8_t>(
      std::nearbyint(std::clamp(value * 32, -127.0f, 127.0f)));
}

static void storeRounded(DType dtype, char *data, int64_t i, float value) {
  auto put = [&](auto rounded) {
    memcpy(data + i * sizeof(rounded), &rounded, sizeof(rounded));
  };
  switch (dtype) {
  case DType::F64:
    return put(static_cast<double>(value));
  case DType::F32:
    return put(value);
  case DType::BF16:
    return put(toBF16(value));
  case DType::F16:
    return put(toF16(value));
  case DType::F8E4M3:
    return put(toF8(value));
  case DType::I8:
    return put(toI8(value));
  default:
    llvm_unreachable("no type of random numbers");
  }
}

namespace {
struct Fill {
  Tensor &tensor;
  uint64_t stream;
  int64_t size;
  /// Elements of one item; even.
  static constexpr int64_t chunk = 1 << 16;
};
} // namespace

static void fillChunks(void *context, int64_t lo, int64_t hi, void *) {
  auto &fill = *static_cast<Fill *>(context);
  DType dtype = fill.tensor.dtype;
  char *data = fill.tensor.data.get();
  int64_t end = std::min(hi * Fill::chunk, fill.size);
  for (int64_t i = lo * Fill::chunk; i < end; i += 2) {
    Pair pair = normalPair(fill.stream, i / 2);
    storeRounded(dtype, data, i, pair.even);
    if (i + 1 < end)
      storeRounded(dtype, data, i + 1, pair.odd);
  }
}

void varlen_run::fillNormal(Tensor &tensor, uint64_t seed, StringRef name) {
  Fill fill = {tensor, makeStream(seed, name), tensor.getNumElements()};
  varlen_parallel_for((fill.size + Fill::chunk - 1) / Fill::chunk, 0,
                      fillChunks, &fill);
}

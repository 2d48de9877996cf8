//===- Numbers.cpp - Narrow floats, and arithmetic that LLVM does not have ===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numbers.h"

#include "varlen/Executor/Device.h"

#include <cmath>

using namespace varlen::executor;

uint16_t varlen::executor::toF16(float value) {
  uint32_t bits = bitsOf(value);
  auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return 0x7fff;
  // 65520 is half way between the largest f16 and what would follow it.
  if (magnitude >= 0x477ff000)
    return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 aligns the significand as f16 has it, and rounds.
    uint32_t aligned = bitsOf(floatOf(magnitude) + 0.5F);
    return sign | static_cast<uint16_t>(aligned - 0x3f000000);
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

float varlen_sim_ex2(float x) { return exp2f(x); }
float varlen_sim_lg2(float x) { return log2f(x); }
float varlen_sim_rcp(float x) { return 1.0F / x; }
float varlen_sim_rsqrt(float x) { return 1.0F / sqrtf(x); }
float varlen_sim_tanh(float x) { return tanhf(x); }

uint32_t varlen_sim_cvt_bf16x2(float high, float low) {
  return static_cast<uint32_t>(toBF16(high)) << 16 | toBF16(low);
}

uint32_t varlen_sim_cvt_f16x2(float high, float low) {
  return static_cast<uint32_t>(toF16(high)) << 16 | toF16(low);
}

uint32_t varlen_sim_cvt_tf32(float x) {
  uint32_t bits = bitsOf(x);
  if ((bits & 0x7fffffff) >= 0x7f800000)
    return bits;
  // To nearest, ties away from zero.
  return (bits + 0x1000) & 0xffffe000;
}

uint32_t varlen_sim_prmt(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t choice = selector >> (4 * i);
    auto byte = static_cast<uint32_t>(bytes >> (8 * (choice & 7)) & 0xff);
    if (choice & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

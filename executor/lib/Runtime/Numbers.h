//===- Numbers.h - Narrow floats --------------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_NUMBERS_H
#define VARLEN_LIB_EXECUTOR_NUMBERS_H

#include <cstdint>
#include <cstring>

namespace varlen::executor {

inline float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float fromBF16(uint16_t bits) {
  return floatOf(static_cast<uint32_t>(bits) << 16);
}

/// Without branches, so that loops over it become vector code: the exponent is
/// rebased by a multiplication, which also makes subnormals right.
inline float fromF16(uint16_t bits) {
  uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  uint32_t rebased = bitsOf(floatOf(magnitude) * 0x1p112F);
  uint32_t special = magnitude >= 0x0f800000U ? 0x7f800000U : 0;
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  return floatOf(rebased | special | sign);
}

/// To nearest, ties to even; NaN is the canonical NaN of the GPU.
inline uint16_t toBF16(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t toF16(float value);

/// What a tensor core reads of a tf32 operand: the low 13 bits do not count.
inline float fromTF32(uint32_t bits) { return floatOf(bits & 0xffffe000); }

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_NUMBERS_H

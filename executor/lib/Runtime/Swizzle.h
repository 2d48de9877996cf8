//===- Swizzle.h - Where swizzled data lies ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_SWIZZLE_H
#define VARLEN_LIB_EXECUTOR_SWIZZLE_H

#include <cstdint>

namespace varlen::executor {

/// 16-byte columns change places by the number of the 128-byte row: bits 7 to 9
/// of the address are added without carry to bits 4 to 6, of which 64- and
/// 32-byte swizzles take two and one. `mode` is a matrix descriptor's: none 0,
/// 128 bytes 1, 64 bytes 2, 32 bytes 3.
inline uint32_t swizzled(uint32_t address, uint32_t mode) {
  static const uint32_t bits[] = {0, 7, 3, 1};
  return address ^ (address >> 7 & bits[mode]) << 4;
}

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_SWIZZLE_H

//===- TensorMap.h - What a tensor map holds --------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_TENSORMAP_H
#define VARLEN_LIB_EXECUTOR_TENSORMAP_H

#include <cstdint>

namespace varlen::executor {

/// The executor's contents of a varlen_sim_tensor_map.
struct TensorMap {
  uint64_t magic;
  uint64_t base;
  uint64_t strides[4]; ///< in bytes, of dimensions 1 and up
  uint64_t dims[5];    ///< in elements, the innermost first
  uint16_t box[5];
  uint8_t rank;
  uint8_t dataType;
  uint8_t swizzle; ///< as a matrix descriptor has it
  uint8_t elementBytes;

  uint32_t rowBytes() const { return uint32_t(box[0]) * elementBytes; }
  uint32_t rows() const {
    uint32_t count = 1;
    for (uint32_t i = 1; i < rank; ++i)
      count *= box[i];
    return count;
  }
  uint32_t bytes() const { return rowBytes() * rows(); }
};

constexpr uint64_t tensorMapMagic = 0x706d746e656c7276;

/// The VARLEN_SIM_* type that a reduction through a map adds in, and whether
/// its minimum and maximum are unsigned.
uint32_t reductionType(uint8_t dataType, bool &isUnsigned);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_TENSORMAP_H

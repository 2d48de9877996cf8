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
#include <string>

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

/// The contents of one that a kernel makes, field by field. Values that do not
/// fit are the largest that does, which is never valid.
struct DeviceMap {
  uint64_t magic;
  uint64_t base;
  uint64_t strides[4];
  /// Which copy in global memory this is, of all ever made; 0: none.
  uint64_t number;
  uint32_t dims[5];
  uint16_t box[5];
  uint8_t elementStrides[5];
  uint8_t lastDimension; ///< the rank less 1
  uint8_t elementType;
  uint8_t interleave;
  uint8_t swizzle;
  uint8_t fill;
  /// A bit for each number above that is there, in the order of DeviceMap.cpp.
  uint32_t set;
};

constexpr uint64_t deviceMapMagic = 0x6d6463696c72617e;

/// What the map of a kernel says; an error if it is not all there, or not
/// valid.
std::string decodeDeviceMap(const DeviceMap &from, TensorMap &map);
/// Whether the current thread may use it; reports if not.
bool checkDeviceMap(const DeviceMap &map, uint32_t site);
/// Why cuTensorMapEncodeTiled would refuse; empty if it would not. Fills the
/// map.
std::string encodeTensorMap(TensorMap &map, int32_t dataType, uint32_t rank,
                            uint64_t address, const uint64_t *dims,
                            const uint64_t *strides, const uint32_t *box,
                            const uint32_t *elementStrides, int32_t interleave,
                            int32_t swizzle, int32_t fill);

/// The VARLEN_SIM_* type that a reduction through a map adds in, and whether
/// its minimum and maximum are unsigned.
uint32_t reductionType(uint8_t dataType, bool &isUnsigned);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_TENSORMAP_H

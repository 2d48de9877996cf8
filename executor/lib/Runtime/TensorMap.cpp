//===- TensorMap.cpp - Tensor maps ----------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMap.h"

#include "Report.h"
#include "varlen/Executor/Executor.h"

#include <cinttypes>
#include <cstring>

using namespace varlen::executor;

static_assert(sizeof(TensorMap) <= sizeof(varlen_sim_tensor_map), "fits");

namespace {
/// CUtensorMapDataType, in order.
struct DataType {
  uint8_t bytes;
  uint8_t type;
  bool isUnsigned;
};
} // namespace

static constexpr uint8_t noReduction = 0xff;
static const DataType dataTypes[] = {
    {1, noReduction, true},      // UINT8
    {2, noReduction, true},      // UINT16
    {4, VARLEN_SIM_I32, true},   // UINT32
    {4, VARLEN_SIM_I32, false},  // INT32
    {8, VARLEN_SIM_I64, true},   // UINT64
    {8, VARLEN_SIM_I64, false},  // INT64
    {2, VARLEN_SIM_F16, false},  // FLOAT16
    {4, VARLEN_SIM_F32, false},  // FLOAT32
    {8, VARLEN_SIM_F64, false},  // FLOAT64
    {2, VARLEN_SIM_BF16, false}, // BFLOAT16
    {4, VARLEN_SIM_F32, false},  // FLOAT32_FTZ
    {4, noReduction, false},     // TFLOAT32
    {4, noReduction, false},     // TFLOAT32_FTZ
};

uint32_t varlen::executor::reductionType(uint8_t dataType, bool &isUnsigned) {
  isUnsigned = dataTypes[dataType].isUnsigned;
  return dataTypes[dataType].type;
}

static std::string &lastError() {
  static thread_local std::string error;
  return error;
}

const char *varlen_sim_tensor_map_error(void) { return lastError().c_str(); }

std::string varlen::executor::encodeTensorMap(
    TensorMap &map, int32_t dataType, uint32_t rank, uint64_t address,
    const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
    const uint32_t *elementStrides, int32_t interleave, int32_t swizzle,
    int32_t fill) {
  if (dataType < 0 || dataType > 12)
    return format("data type %d: wanted 0 to 12", dataType);
  if (rank < 1 || rank > 5)
    return format("rank %u: wanted 1 to 5", rank);
  if (interleave != 0 || fill != 0)
    return format("interleave %d and out-of-bounds fill %d: the executor has "
                  "only 0 and 0",
                  interleave, fill);
  if (swizzle < 0 || swizzle > 3)
    return format("swizzle %d: wanted 0 to 3", swizzle);
  if (address & 15)
    return format("global address %#" PRIx64 ": wanted a multiple of 16",
                  address);
  map.elementBytes = dataTypes[dataType].bytes;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 1 || dims[i] > uint64_t(1) << 32)
      return format("dimension %u is %" PRIu64 ": wanted 1 to 2^32", i,
                    dims[i]);
    if (box[i] < 1 || box[i] > 256)
      return format("box dimension %u is %u: wanted 1 to 256", i, box[i]);
    if (elementStrides[i] != 1)
      return format("element stride %u is %u: the executor has only 1", i,
                    elementStrides[i]);
    map.dims[i] = dims[i];
    map.box[i] = static_cast<uint16_t>(box[i]);
  }
  for (uint32_t i = 0; i + 1 < rank; ++i) {
    if (strides[i] % 16 || strides[i] >= uint64_t(1) << 40)
      return format("stride of dimension %u is %" PRIu64
                    " bytes: wanted a multiple of 16 below 2^40",
                    i + 1, strides[i]);
    map.strides[i] = strides[i];
  }
  uint32_t inner = box[0] * map.elementBytes;
  if (inner % 16)
    return format("inner box dimension of %u bytes: wanted a multiple of 16",
                  inner);
  if (swizzle && inner > 16U << swizzle)
    return format("inner box dimension of %u bytes: wanted at most %u, the "
                  "span of the swizzle",
                  inner, 16U << swizzle);
  map.base = address;
  map.rank = static_cast<uint8_t>(rank);
  map.dataType = static_cast<uint8_t>(dataType);
  map.swizzle = static_cast<uint8_t>(swizzle ? 4 - swizzle : 0);
  map.magic = tensorMapMagic;
  return "";
}

int32_t varlen_sim_tensor_map_encode_tiled(
    varlen_sim_tensor_map *map, int32_t dataType, uint32_t rank,
    void *globalAddress, const uint64_t *globalDim,
    const uint64_t *globalStrides, const uint32_t *boxDim,
    const uint32_t *elementStrides, int32_t interleave, int32_t swizzle,
    int32_t l2Promotion, int32_t oobFill) {
  TensorMap encoded = {};
  std::string &error = lastError();
  if (reinterpret_cast<uint64_t>(map) & 63)
    error = "tensor map: wanted a multiple of 64 as its address";
  else
    error = encodeTensorMap(encoded, dataType, rank,
                            reinterpret_cast<uint64_t>(globalAddress),
                            globalDim, globalStrides, boxDim, elementStrides,
                            interleave, swizzle, oobFill);
  if (!error.empty())
    return 1;
  memset(map, 0, sizeof(*map));
  memcpy(map, &encoded, sizeof(encoded));
  return 0;
}

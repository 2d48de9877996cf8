//===- DeviceMap.cpp - Tensor maps that kernels make ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel sets the fields of a map in shared memory, copies it to global
// memory with a release, and passes an acquire before it copies through it.
//
//===----------------------------------------------------------------------===//

#include "State.h"
#include "TensorMap.h"
#include "Warp.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

using namespace varlen::executor;

static constexpr uint32_t mapBytes = sizeof(varlen_sim_tensor_map);
static_assert(sizeof(DeviceMap) <= mapBytes, "fits");

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

namespace {
struct Field {
  const char *name;
  /// Of `DeviceMap::set`.
  uint8_t firstBit;
  /// How many dimensions have one; 0: it is of the map.
  uint8_t dimensions;
};
} // namespace

/// As VARLEN_SIM_MAP_* counts them.
static constexpr Field fields[] = {
    {"global_address", 0, 0}, {"rank", 1, 0},
    {"box_dim", 2, 5},        {"global_dim", 7, 5},
    {"global_stride", 12, 4}, {"element_stride", 16, 5},
    {"elemtype", 21, 0},      {"interleave_layout", 22, 0},
    {"swizzle_mode", 23, 0},  {"fill_mode", 24, 0},
};

/// CUtensorMapDataType of the element types of PTX.
static constexpr int32_t dataTypes[] = {0, 1,  2, 3, 4,  5, 6,
                                        7, 10, 8, 9, 11, 12};

template <typename T> static void assign(T &to, uint64_t value) {
  to = static_cast<T>(std::min<uint64_t>(value, static_cast<T>(-1)));
}

static void set(DeviceMap &map, uint32_t field, uint32_t dimension,
                uint64_t value) {
  map.set |= 1U << (fields[field].firstBit + dimension);
  switch (field) {
  case VARLEN_SIM_MAP_GLOBAL_ADDRESS:
    map.base = value;
    break;
  case VARLEN_SIM_MAP_RANK:
    assign(map.lastDimension, value);
    break;
  case VARLEN_SIM_MAP_BOX_DIM:
    assign(map.box[dimension], value);
    break;
  case VARLEN_SIM_MAP_GLOBAL_DIM:
    assign(map.dims[dimension], value);
    break;
  case VARLEN_SIM_MAP_GLOBAL_STRIDE:
    map.strides[dimension] = value;
    break;
  case VARLEN_SIM_MAP_ELEMENT_STRIDE:
    assign(map.elementStrides[dimension], value);
    break;
  case VARLEN_SIM_MAP_ELEMTYPE:
    assign(map.elementType, value);
    break;
  case VARLEN_SIM_MAP_INTERLEAVE_LAYOUT:
    assign(map.interleave, value);
    break;
  case VARLEN_SIM_MAP_SWIZZLE_MODE:
    assign(map.swizzle, value);
    break;
  default:
    assign(map.fill, value);
    break;
  }
}

std::string varlen::executor::decodeDeviceMap(const DeviceMap &from,
                                              TensorMap &map) {
  uint32_t rank = from.lastDimension + 1U;
  if (!(from.set >> fields[VARLEN_SIM_MAP_RANK].firstBit & 1))
    return "rank is not set";
  if (rank > 5)
    return format("rank %u: wanted 1 to 5", rank);
  for (const Field &field : fields) {
    uint32_t count = std::max<uint32_t>(field.dimensions ? rank : 1, 1);
    if (field.dimensions == 4)
      count = rank - 1;
    for (uint32_t i = 0; i < count; ++i)
      if (!(from.set >> (field.firstBit + i) & 1))
        return field.dimensions
                   ? format("%s of dimension %u is not set", field.name, i)
                   : format("%s is not set", field.name);
  }
  if (from.elementType >= std::size(dataTypes))
    return format("elemtype %u: the executor has 0 to 12", from.elementType);
  uint64_t dims[5];
  uint32_t box[5], elementStrides[5];
  std::copy(from.dims, from.dims + 5, dims);
  std::copy(from.box, from.box + 5, box);
  std::copy(from.elementStrides, from.elementStrides + 5, elementStrides);
  map = {};
  return encodeTensorMap(map, dataTypes[from.elementType], rank, from.base,
                         dims, from.strides, box, elementStrides,
                         from.interleave, from.swizzle, from.fill);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Whether one of these events comes before what the thread does now.
static bool isOrdered(const Thread &thread, const std::vector<Slot> &events) {
  return std::any_of(events.begin(), events.end(), [&](const Slot &event) {
    return event.component == thread.clock.self ||
           thread.clock.base->values[event.component] >= event.tick;
  });
}

bool varlen::executor::checkDeviceMap(const DeviceMap &map, uint32_t site) {
  if (map.number == 0) {
    report("proxy", site,
           "use of a tensor map that tensormap.replace has made and "
           "tensormap.cp_fenceproxy has not copied");
    return false;
  }
  Thread &self = *worker->current;
  if (worker->detector &&
      !isOrdered(self, self.block->cluster->maps[map.number].readers))
    report("proxy", site,
           "use of a tensor map that a kernel has made not ordered after "
           "fence.proxy.tensormap::generic.acquire of it");
  return true;
}

/// Reports and returns false if it is not.
static bool isAligned(const void *map, uint32_t site) {
  auto low = static_cast<uint32_t>(reinterpret_cast<uint64_t>(map) & 127);
  if (low)
    report("misaligned", site,
           "tensor map at an address that ends in 0x%02x: wanted a multiple "
           "of 128",
           low);
  return low == 0;
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

static void begin(uint32_t site) {
  settle();
  worker->current->site = site;
  progress();
}

void varlen_sim_tensormap_replace(void *p, uint32_t field, uint32_t dimension,
                                  uint64_t value, uint32_t site) {
  begin(site);
  if (!isAligned(p, site) || !writeShared(*worker->current, p, mapBytes, site))
    return;
  if (dimension >= std::max<uint32_t>(fields[field].dimensions, 1)) {
    report("tensor-map", site, "tensormap.replace of %s of dimension %u",
           fields[field].name, dimension);
    return;
  }
  static constexpr char zeros[mapBytes] = {};
  DeviceMap map;
  memcpy(&map, p, sizeof(map));
  if (map.magic != deviceMapMagic && memcmp(p, zeros, mapBytes) != 0) {
    report("tensor-map", site,
           "tensormap.replace of memory that is neither zero nor a map that "
           "began as zeros");
    return;
  }
  map.magic = deviceMapMagic;
  set(map, field, dimension, value);
  memcpy(p, &map, sizeof(map));
}

namespace {
/// What a lane puts on the stage.
struct PublishOperands {
  char *dst;
  const char *src;
  uint32_t isValid;
};
} // namespace

void varlen::executor::publishMap(Warp &warp) {
  static std::atomic<uint64_t> last{0};
  Thread &self = *worker->current;
  PublishOperands first;
  memcpy(&first, warp.stage[0], sizeof(first));
  for (const auto &stage : warp.stage) {
    PublishOperands other;
    memcpy(&other, stage, sizeof(other));
    if (!other.isValid)
      return;
    if (other.dst == first.dst && other.src == first.src)
      continue;
    report("collective", self.site,
           "lanes of one warp disagree about the addresses of "
           "tensormap.cp_fenceproxy");
    return;
  }
  DeviceMap map;
  memcpy(&map, first.src, sizeof(map));
  if (map.magic != deviceMapMagic) {
    report("tensor-map", self.site,
           "tensormap.cp_fenceproxy of what tensormap.replace has not made");
    return;
  }
  map.number = ++last;
  memset(first.dst, 0, mapBytes);
  memcpy(first.dst, &map, sizeof(map));
  MapOrder &order = self.block->cluster->maps[map.number];
  for (const Thread *thread : warp.threads)
    order.makers.push_back({thread->clock.self, thread->clock.own});
}

void varlen_sim_tensormap_cp_fenceproxy(void *dst, const void *src,
                                        uint32_t site) {
  begin(site);
  Thread &self = *worker->current;
  PublishOperands operands = {static_cast<char *>(dst),
                              static_cast<const char *>(src), 0};
  operands.isValid =
      isAligned(dst, site) && isAligned(src, site) &&
      checkGlobal(dst, mapBytes, "tensormap.cp_fenceproxy", site) &&
      readShared(self, src, mapBytes, site);
  static_assert(sizeof(operands) <= sizeof(self.warp->stage[0]), "fits");
  memcpy(self.warp->stage[self.lane], &operands, sizeof(operands));
  collective(Collective::PublishMap, ~0U, site);
}

void varlen_sim_tensormap_acquire(const void *p, uint32_t site) {
  begin(site);
  if (!isAligned(p, site) ||
      !checkGlobal(p, mapBytes, "fence of a tensor map", site))
    return;
  DeviceMap map;
  memcpy(&map, p, sizeof(map));
  // Of other memory the fence has nothing to order.
  if (!worker->detector || map.magic != deviceMapMagic || map.number == 0)
    return;
  Thread &self = *worker->current;
  MapOrder &order = self.block->cluster->maps[map.number];
  // One of another cluster, or of a launch before, has no order here.
  if (!order.makers.empty() && !isOrdered(self, order.makers))
    report("race", site,
           "fence of a tensor map not ordered after its "
           "tensormap.cp_fenceproxy");
  order.readers.push_back({self.clock.self, self.clock.own});
}

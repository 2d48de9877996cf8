//===- TMA.cpp - Bulk copies through tensor maps --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Atomics.h"
#include "Bulk.h"
#include "Swizzle.h"
#include "TensorMap.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace varlen::executor;

namespace {
/// One row of a box: bytes that lie together in global memory.
struct Row {
  uint64_t address = 0; ///< of the part that is inside the tensor
  uint32_t skipped = 0; ///< bytes of the box before that part
  uint32_t bytes = 0;   ///< of that part
};

struct Box {
  TensorMap map;
  int32_t coordinates[5] = {};
  SharedSpan span;

  Row row(uint32_t index) const {
    Row result;
    uint64_t address = map.base;
    for (uint32_t i = 1; i < map.rank; ++i) {
      int64_t x = int64_t(coordinates[i]) + index % map.box[i];
      index /= map.box[i];
      if (x < 0 || static_cast<uint64_t>(x) >= map.dims[i])
        return result;
      address += static_cast<uint64_t>(x) * map.strides[i - 1];
    }
    int64_t first = coordinates[0];
    int64_t last = std::min<int64_t>(first + map.box[0],
                                     static_cast<int64_t>(map.dims[0]));
    int64_t inside = std::max<int64_t>(first, 0);
    if (inside >= last)
      return result;
    result.address = address + static_cast<uint64_t>(inside) * map.elementBytes;
    result.skipped = static_cast<uint32_t>(inside - first) * map.elementBytes;
    result.bytes = static_cast<uint32_t>(last - inside) * map.elementBytes;
    return result;
  }

  /// Calls function(offset in the row, bytes, memory) for the 16-byte pieces of
  /// a row where the swizzle puts them. It works on addresses, not offsets.
  template <typename Function>
  void forPieces(uint32_t index, Function function) const {
    uint32_t rowBytes = map.rowBytes();
    auto base = static_cast<uint32_t>(span.block->shared - span.block->window);
    for (uint32_t at = 0; at < rowBytes; at += 16) {
      uint32_t address = base + span.offset + index * rowBytes + at;
      function(at, span.block->window + swizzled(address, map.swizzle));
    }
  }
};

struct TensorLoad final : AsyncJob {
  Box box;
  uint32_t barrier = 0, site = 0;
  uint64_t time = 0;

private:
  void perform() override {
    alignas(16) char row[256 * 8];
    for (uint32_t i = 0; i < box.map.rows(); ++i) {
      Row part = box.row(i);
      memset(row, 0, box.map.rowBytes());
      if (part.bytes)
        memcpy(row + part.skipped, reinterpret_cast<char *>(part.address),
               part.bytes);
      box.forPieces(
          i, [&](uint32_t at, char *memory) { memcpy(memory, row + at, 16); });
    }
    endSharedWrite(box.span);
    completeTransaction(*box.span.block, barrier, box.span.bytes,
                        slot.component, slot.tick, time, site);
  }
};

struct TensorStore final : AsyncJob {
  Box box;
  bool reduce = false;
  uint32_t op = 0, type = 0;

private:
  void perform() override {
    alignas(16) char row[256 * 8];
    for (uint32_t i = 0; i < box.map.rows(); ++i) {
      Row part = box.row(i);
      box.forPieces(
          i, [&](uint32_t at, char *memory) { memcpy(row + at, memory, 16); });
      auto *to = reinterpret_cast<char *>(part.address);
      if (!reduce) {
        if (part.bytes)
          memcpy(to, row + part.skipped, part.bytes);
        continue;
      }
      for (uint32_t at = 0; at < part.bytes; at += box.map.elementBytes) {
        uint64_t value = 0;
        memcpy(&value, row + part.skipped + at, box.map.elementBytes);
        atomicApply(to + at, op, type, value);
      }
    }
    endSharedRead(box.span);
  }
};
} // namespace

/// Whether a pointer is a tensor map; reports if not.
static bool readMap(const void *p, TensorMap &map, uint32_t site) {
  settle();
  worker->current->site = site;
  progress();
  auto address = reinterpret_cast<uint64_t>(p);
  if (address & 63) {
    report("tensor-map", site,
           "tensor map at an address that ends in 0x%02x: wanted a multiple "
           "of 64",
           static_cast<uint32_t>(address & 0xff));
    return false;
  }
  memcpy(&map, p, sizeof(map));
  if (map.magic == tensorMapMagic)
    return true;
  if (map.magic == deviceMapMagic) {
    DeviceMap made;
    memcpy(&made, p, sizeof(made));
    if (!checkDeviceMap(made, site))
      return false;
    std::string error = decodeDeviceMap(made, map);
    if (!error.empty())
      report("tensor-map", site, "tensor map of a kernel: %s", error.c_str());
    return error.empty();
  }
  report("tensor-map", site, "the pointer is not that of a tensor map");
  return false;
}

/// Fills a box for the current thread; reports and returns false if it cannot
/// be copied.
static bool makeBox(Box &box, const TensorMap &map, Block &block,
                    const void *shared, uint32_t rank, const void *coordinates,
                    const char *verb, uint32_t site) {
  ++worker->stats.tma;
  box.map = map;
  if (rank != map.rank) {
    report("tensor-map", site, "%u coordinates for a tensor map of rank %u",
           rank, map.rank);
    return false;
  }
  memcpy(box.coordinates, coordinates, rank * sizeof(int32_t));
  box.span.block = &block;
  box.span.bytes = map.bytes();
  if (!sharedOffset(block, shared, box.span.bytes, site, box.span.offset))
    return false;
  auto address = reinterpret_cast<uint64_t>(shared);
  if (address & 127) {
    report("misaligned", site,
           "tile at an address that ends in 0x%02x: wanted a multiple of 128",
           static_cast<uint32_t>(address & 127));
    return false;
  }
  for (uint32_t i = 0; i < map.rows(); ++i) {
    Row row = box.row(i);
    if (row.bytes && !checkGlobal(reinterpret_cast<void *>(row.address),
                                  row.bytes, verb, site))
      return false;
  }
  return true;
}

void varlen_sim_tma_load(void *dst, const void *map, void *mbarrier,
                         uint32_t rank, const void *coordinates,
                         uint32_t multicast, uint32_t site) {
  TensorMap contents;
  if (!readMap(map, contents, site))
    return;
  forDestinations(
      dst, mbarrier, multicast, [&](Block &block, char *to, char *barrier) {
        auto job = std::make_shared<TensorLoad>();
        job->site = site;
        if (!makeBox(job->box, contents, block, to, rank, coordinates,
                     "TMA load", site) ||
            !checkAsyncMBarrier(block, barrier, job->barrier, site))
          return;
        job->slot = job->box.span.slot = newSlot(*block.cluster);
        beginSharedWrite(job->box.span, site);
        job->time = traceCopy("TMA load", job->box.span.bytes, site);
        submit(std::move(job));
      });
}

static void store(const void *map, const void *src, uint32_t rank,
                  const void *coordinates, bool reduce, uint32_t op,
                  uint32_t site) {
  TensorMap contents;
  if (!readMap(map, contents, site))
    return;
  Block &block = *worker->current->block;
  auto job = std::make_shared<TensorStore>();
  if (reduce) {
    bool isUnsigned;
    job->type = reductionType(contents.dataType, isUnsigned);
    job->op = op;
    if (op > VARLEN_SIM_XOR || !atomicSupported(op, job->type)) {
      report("unsupported", site, "TMA reduction %u of data type %u", op,
             contents.dataType);
      return;
    }
    if (isUnsigned && op == VARLEN_SIM_MIN)
      job->op = VARLEN_SIM_UMIN;
    if (isUnsigned && op == VARLEN_SIM_MAX)
      job->op = VARLEN_SIM_UMAX;
  }
  job->reduce = reduce;
  if (!makeBox(job->box, contents, block, src, rank, coordinates, "TMA store",
               site))
    return;
  job->slot = job->box.span.slot = newSlot(*block.cluster);
  beginSharedRead(job->box.span, site);
  traceCopy(reduce ? "TMA reduce" : "TMA store", job->box.span.bytes, site);
  submitStore(std::move(job));
}

void varlen_sim_tma_store(const void *map, const void *src, uint32_t rank,
                          const void *coordinates, uint32_t site) {
  store(map, src, rank, coordinates, false, 0, site);
}

void varlen_sim_tma_reduce(const void *map, const void *src, uint32_t rank,
                           const void *coordinates, uint32_t op,
                           uint32_t site) {
  store(map, src, rank, coordinates, true, op, site);
}

void varlen_sim_tma_prefetch(const void *map, uint32_t site) {
  TensorMap contents;
  readMap(map, contents, site);
}

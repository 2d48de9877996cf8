//===- Memory.cpp - The blocks of global memory ---------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "varlen/Executor/Executor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace varlen::executor;

const Range *MemoryMap::below(uint64_t address) const {
  auto after = std::upper_bound(
      ranges.begin(), ranges.end(), address,
      [](uint64_t value, const Range &range) { return value < range.begin; });
  return after == ranges.begin() ? nullptr : &after[-1];
}

const Range *MemoryMap::find(uint64_t address, uint64_t size) const {
  const Range *range = below(address);
  return range && address < range->end && size <= range->end - address
             ? range
             : nullptr;
}

void MemoryMap::insert(Range range) {
  auto at = std::upper_bound(
      ranges.begin(), ranges.end(), range.begin,
      [](uint64_t value, const Range &other) { return value < other.begin; });
  ranges.insert(at, range);
}

bool MemoryMap::erase(uint64_t begin) {
  for (auto at = ranges.begin(); at != ranges.end(); ++at)
    if (at->begin == begin) {
      ranges.erase(at);
      return true;
    }
  return false;
}

namespace {
struct Registry {
  std::mutex mutex;
  MemoryMap map;
};
} // namespace

static Registry &registry() {
  static Registry instance;
  return instance;
}

MemoryMap varlen::executor::currentMemory() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  return registry().map;
}

void *varlen_sim_malloc(size_t bytes) {
  size_t rounded = (bytes + 255) / 256 * 256;
  if (rounded < bytes)
    return nullptr;
  void *memory = aligned_alloc(256, std::max<size_t>(rounded, 256));
  if (!memory)
    return nullptr;
  memset(memory, 0xff, rounded);
  varlen_sim_register(memory, bytes);
  return memory;
}

void varlen_sim_free(void *memory) {
  if (!memory)
    return;
  varlen_sim_unregister(memory);
  free(memory);
}

void varlen_sim_register(const void *memory, size_t bytes) {
  auto begin = reinterpret_cast<uint64_t>(memory);
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().map.insert({begin, begin + bytes});
}

void varlen_sim_unregister(const void *memory) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().map.erase(reinterpret_cast<uint64_t>(memory));
}

int32_t varlen_sim_is_registered(const void *memory, size_t bytes) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  return registry().map.find(reinterpret_cast<uint64_t>(memory), bytes) !=
         nullptr;
}

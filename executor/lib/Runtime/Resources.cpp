//===- Resources.cpp - What is kept from launch to launch -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Resources.h"

#include "State.h"

#include <mutex>
#include <sys/mman.h>

using namespace varlen::executor;

/// Address space whose addresses fit into 32 bits.
static char *mapLow(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#ifdef MAP_32BIT
  void *memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_32BIT, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char *>(memory);
#else
  // The kernel takes an address as a hint: ask on until it follows one.
  constexpr uint64_t step = 64 << 20, end = uint64_t(1) << 32;
  for (uint64_t at = 4 * step; at + bytes <= end; at += step) {
    void *memory = mmap(reinterpret_cast<void *>(at), bytes,
                        PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
      continue;
    if (reinterpret_cast<uint64_t>(memory) + bytes <= end)
      return static_cast<char *>(memory);
    munmap(memory, bytes);
  }
  return nullptr;
#endif
}

bool Resources::mapWindows(size_t count) {
  if (count <= windows)
    return true;
  if (mapped)
    munmap(mapped, mappedBytes);
  windows = 0;
  mappedBytes = (count + 1) * windowBytes;
  mapped = mapLow(mappedBytes);
  if (!mapped)
    return false;
  arena = mapped + (-reinterpret_cast<uint64_t>(mapped) & (windowBytes - 1));
  windows = count;
  return true;
}

Resources::~Resources() {
  if (mapped)
    munmap(mapped, mappedBytes);
}

namespace {
struct Kept {
  std::mutex mutex;
  std::vector<std::unique_ptr<Resources>> list;
};
} // namespace

static Kept &kept() {
  static Kept instance;
  return instance;
}

std::unique_ptr<Resources> varlen::executor::takeResources(size_t stackBytes) {
  std::lock_guard<std::mutex> lock(kept().mutex);
  for (auto &resources : kept().list)
    if (resources->stacks.bytes() == stackBytes) {
      std::swap(resources, kept().list.back());
      std::unique_ptr<Resources> taken = std::move(kept().list.back());
      kept().list.pop_back();
      return taken;
    }
  return std::make_unique<Resources>(stackBytes);
}

void varlen::executor::giveResources(std::unique_ptr<Resources> resources) {
  std::lock_guard<std::mutex> lock(kept().mutex);
  kept().list.push_back(std::move(resources));
}

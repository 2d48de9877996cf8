//===- Workspace.cpp - Memory of the caller for one call ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workspace.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdint>
#include <functional>

using namespace varlen_capi;

Workspace::Workspace(void *given, size_t bytes)
    : memory(static_cast<char *>(given)), size(bytes) {
  if (!memory)
    return;
  size_t padding = -reinterpret_cast<uintptr_t>(memory) % alignment;
  padding = std::min(padding, size);
  memory += padding;
  size -= padding;
}

void Workspace::setUnlimited() {
  // Above all that the process has.
  memory = reinterpret_cast<char *>(tooManyBytes);
  size = tooManyBytes;
}

bool Workspace::has(const void *pointer) const {
  auto *bytes = static_cast<const char *>(pointer);
  return memory && std::less_equal<const char *>()(memory, bytes) &&
         std::less<const char *>()(bytes, memory + size);
}

void *Workspace::take(size_t bytes) {
  if (!memory || bytes > tooManyBytes)
    return nullptr;
  // Nothing still has an address of its own.
  size_t wanted = std::max(roundUp(bytes), alignment), begin = 0;
  Block *next = blocks.end();
  if (!lists.empty())
    begin = blocks.empty() ? 0 : blocks.back().end;
  else
    for (next = blocks.begin(); next != blocks.end(); ++next) {
      if (next->begin - begin >= wanted)
        break;
      begin = next->end;
    }
  if (begin > size || wanted > size - begin)
    return nullptr;
  blocks.insert(next, {begin, begin + wanted});
  most = std::max(most, begin + wanted);
  return memory + begin;
}

void Workspace::giveBack(void *pointer) {
  size_t begin = static_cast<char *>(pointer) - memory;
  auto *block =
      llvm::lower_bound(blocks, begin, [](const Block &block, size_t at) {
        return block.begin < at;
      });
  if (block == blocks.end() || block->begin != begin)
    return;
  blocks.erase(block);
  llvm::erase(lists, pointer);
}

//===- Workspace.h - Memory of the caller for one call ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block goes into the first gap that is large enough, so that a function with
// many layers needs what is alive at once. That a call gets by with what was
// measured follows from its blocks being those of the measurement: the same
// ones, of the same sizes, in the same order. An attention's blocks are not.
// How long its list of work is, and what follows from that, depends on
// cu_seqlens; it is at most what was measured. So while there is a list, blocks
// go on top of all others, and all are gone before the next one of the function
// itself.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_WORKSPACE_H
#define VARLEN_LIB_CAPI_WORKSPACE_H

#include "llvm/ADT/SmallVector.h"

#include <cstddef>

namespace varlen_capi {

class Workspace {
public:
  /// Of blocks, and of the buffers and the scratch of compiled code.
  static constexpr size_t alignment = 64;
  /// More than any machine has, and sums of two do not overflow.
  static constexpr size_t tooManyBytes = size_t(1) << 62;

  static constexpr size_t roundUp(size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  /// `given` may be null: then there is no room.
  Workspace(void *given, size_t bytes);
  /// From here on, returns fresh addresses, without a limit.
  void setUnlimited();

  explicit operator bool() const { return memory; }
  bool has(const void *pointer) const;
  /// Null if there is no room.
  void *take(size_t bytes);
  void giveBack(void *pointer);
  /// Begins an attention, whose list of work is taken next.
  void beginList() { lists.push_back(nullptr); }
  /// Says which block it is: until it is given back, the attention goes on.
  /// Null if there is none.
  void setList(void *pointer) {
    if (pointer)
      lists.back() = pointer;
    else
      lists.pop_back();
  }
  /// Takes the last list out; null if there is none.
  void *popList() { return lists.empty() ? nullptr : lists.pop_back_val(); }
  /// How much is enough for all that was taken, at any address.
  size_t getMost() const { return most ? most + alignment - 1 : 0; }

private:
  /// From the beginning of the memory.
  struct Block {
    size_t begin, end;
  };

  char *memory;
  size_t size;
  size_t most = 0;
  /// In the order of their addresses.
  llvm::SmallVector<Block, 32> blocks;
  llvm::SmallVector<void *, 4> lists;
};

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_WORKSPACE_H

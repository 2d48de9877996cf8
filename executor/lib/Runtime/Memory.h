//===- Memory.h - The blocks of global memory -------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_MEMORY_H
#define VARLEN_LIB_EXECUTOR_MEMORY_H

#include <cstdint>
#include <vector>

namespace varlen::executor {

struct Range {
  uint64_t begin = 0, end = 0;
};

/// The blocks that were last found.
struct RangeCache {
  Range ranges[4];
  uint32_t next = 0;
};

/// The registered blocks at one moment, sorted.
class MemoryMap {
public:
  /// The block that [address, address + size) lies in, or null.
  const Range *find(uint64_t address, uint64_t size) const;
  /// The last block that starts at or below the address, or null.
  const Range *below(uint64_t address) const;
  void insert(Range range);
  /// Returns false if no block starts there.
  bool erase(uint64_t begin);

private:
  std::vector<Range> ranges;
};

/// A copy of what is registered now.
MemoryMap currentMemory();

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_MEMORY_H

//===- Wgmma.h - Accumulators and matrix products in flight -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_WGMMA_H
#define VARLEN_LIB_EXECUTOR_WGMMA_H

#include "Async.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

/// A thread's registers of one accumulator.
struct varlen_sim_acc {
  uint32_t count;
  /// wgmma in flight that write it.
  uint32_t pending;
  /// When the thread last wrote a register itself, in its registerTime.
  uint64_t written;
  float *values() { return reinterpret_cast<float *>(this + 1); }
};

namespace varlen::executor {

struct Warp;

/// One warp's quarter of a wgmma.
struct Wgmma {
  uint64_t descA = 0, descB = 0;
  uint32_t n = 0, flags = 0, site = 0;
  bool scaleD = true;
  bool registersA = false;
  bool done = false;
  varlen_sim_acc *source[32], *target[32];
  uint32_t a[32][4];
  /// Offsets of the 16-byte pieces that are read, for the race detector.
  std::vector<uint32_t> reads;
};

/// The addresses in the CTA's window of the 16-byte pieces that a wgmma reads.
const std::vector<uint32_t> &wgmmaReads(const Warp &warp,
                                        const Wgmma &operation);
/// Does the work, once.
void computeWgmma(const Warp &warp, Wgmma &operation);

/// A warp's wgmma. A slot per group: a wait is for whole groups.
struct WgmmaQueue {
  struct Batch {
    Slot slot;
    std::vector<std::unique_ptr<Wgmma>> operations;
    uint64_t time = 0; ///< when it is done, on the timeline
  };
  Batch uncommitted;
  std::deque<Batch> groups;
  uint64_t busyUntil = 0;
};

/// What the warps of a warpgroup have issued: they must agree.
struct WgmmaSequence {
  struct Issue {
    uint64_t descA, descB;
    uint32_t site;
  };
  std::deque<Issue> issues;
  uint64_t first = 0;
  uint64_t position[4] = {};
};

/// Memory for the accumulators of one thread, all freed together.
class AccumulatorArena {
public:
  varlen_sim_acc *allocate(uint32_t count);
  void clear() { chunk = used = 0; }

private:
  static constexpr size_t chunkBytes = 64 * 1024;
  std::vector<std::unique_ptr<char[]>> chunks;
  size_t chunk = 0, used = 0;
};

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_WGMMA_H

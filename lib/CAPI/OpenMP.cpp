//===- OpenMP.cpp - Calls on threads of an OpenMP runtime -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen-c/Varlen.h"

#include <algorithm>
#include <atomic>

namespace {
/// What the threads of a team share.
struct Loop {
  std::atomic<int64_t> next{0};
  int64_t items;
  VarlenItemsFn run;
  void *work;
};
} // namespace

/// Items are of different lengths: each thread takes one after the other.
static void takeItems(void *data) {
  auto &loop = *static_cast<Loop *>(data);
  for (int64_t i;
       (i = loop.next.fetch_add(1, std::memory_order_relaxed)) < loop.items;)
    loop.run(loop.work, i, i + 1);
}

void varlenParallelForOpenMP(void *context, int64_t items, VarlenItemsFn run,
                             void *work) {
  const auto &openMP = *static_cast<const VarlenOpenMP *>(context);
  Loop loop{{}, items, run, work};
  // 0 is the runtime's own number.
  int64_t threads = std::clamp<int64_t>(openMP.numThreads, 0, items);
  openMP.parallel(takeItems, &loop, static_cast<unsigned>(threads), 0);
}

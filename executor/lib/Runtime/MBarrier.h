//===- MBarrier.h - What an mbarrier holds ----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_MBARRIER_H
#define VARLEN_LIB_EXECUTOR_MBARRIER_H

#include "Clock.h"

#include <cstdint>
#include <vector>

namespace varlen::executor {

struct Block;
struct Thread;

struct MBarrier {
  uint32_t expected = 0;
  uint32_t pending = 0;
  int64_t transactions = 0; ///< bytes expected and not yet there
  uint64_t phase = 0;
  /// Whether a fence has made its initialisation known to the async proxy.
  bool fenced = false;
  /// Who initialised it: other threads must be ordered after that.
  uint32_t initialiser = 0;
  Tick initialised = 0;
  Gather gather;
  /// What waiting for the last phase that completed gives.
  Clock *completed = nullptr;
  uint64_t gatherTime = 0, completedTime = 0;
  std::vector<Thread *> waiters;
};

/// The mbarrier at an offset; reports and returns null if there is none.
MBarrier *findMBarrier(Block &block, uint32_t offset, uint32_t site);
/// Ends the phase if nothing is missing.
void completeMBarrier(MBarrier &barrier);
/// `bytes` of the transactions are there, published by `slot`.
void completeTransaction(Block &block, uint32_t offset, uint32_t bytes,
                         uint32_t slotComponent, Tick tick, uint64_t time,
                         uint32_t site);
/// Takes `count` arrivals; reports if there are too many.
void arriveMBarrier(MBarrier &barrier, uint32_t offset, uint32_t count,
                    uint32_t site);
/// The thread must be ordered after the initialisation.
void checkInitialised(Thread &thread, const MBarrier &barrier, uint32_t offset,
                      uint32_t site);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_MBARRIER_H

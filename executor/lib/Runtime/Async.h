//===- Async.h - Asynchronous work that has been issued ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_ASYNC_H
#define VARLEN_LIB_EXECUTOR_ASYNC_H

#include "Clock.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace varlen::executor {

struct Block;
struct Thread;

/// Stands for asynchronous work in the clocks.
struct Slot {
  uint32_t component = 0;
  Tick tick = 0;
};

/// One cp.async.
struct Copy {
  char *dst;
  const char *src;
  uint32_t offset;
  uint32_t site;
  uint8_t size;
  uint8_t sourceSize;
  bool done;
};

/// An arrival on an mbarrier that follows copies.
struct PendingArrival {
  /// The index of the first copy behind it.
  uint64_t end;
  Slot slot;
  bool done = false;
};

/// The cp.async of one thread, in order.
struct CopyQueue {
  std::deque<Copy> copies;
  /// Sizes of the committed groups; what is left of `copies` is uncommitted.
  std::deque<uint32_t> groups;
  uint32_t uncommitted = 0;
  /// Index of the front since the thread started.
  uint64_t first = 0;
  /// Copies before this index complete on an mbarrier.
  uint64_t handedOver = 0;
  /// Those that are to come, and what has overtaken them.
  std::deque<PendingArrival> arrivals;
  /// A thread has waited for all before this index.
  uint64_t retired = 0;
  /// When the groups are there, on the timeline.
  std::deque<uint64_t> times;
};

/// A piece of work that no thread does: it completes some time after its issue.
struct AsyncJob {
  virtual ~AsyncJob() = default;
  /// Does the work, once.
  void run() {
    if (!done)
      perform();
    done = true;
  }
  bool done = false;
  Slot slot;

private:
  virtual void perform() = 0;
};

/// Bulk stores of one thread.
struct BulkQueue {
  std::vector<std::shared_ptr<AsyncJob>> uncommitted;
  std::deque<std::vector<std::shared_ptr<AsyncJob>>> groups;
};

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_ASYNC_H

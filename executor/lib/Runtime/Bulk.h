//===- Bulk.h - What bulk copies with and without tensor maps share -*- C++
//-*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_BULK_H
#define VARLEN_LIB_EXECUTOR_BULK_H

#include "State.h"

namespace varlen::executor {

/// What a bulk copy reads or writes in shared memory.
struct SharedSpan {
  Block *block = nullptr;
  uint32_t offset = 0;
  uint32_t bytes = 0;
  Slot slot;
};

/// Checks of the current thread's copy when it is issued, and the marks that it
/// is in flight until it is done.
void beginSharedWrite(const SharedSpan &span, uint32_t site);
void endSharedWrite(const SharedSpan &span);
void beginSharedRead(const SharedSpan &span, uint32_t site);
void endSharedRead(const SharedSpan &span);

/// The mbarrier that a copy completes on must be known to the async proxy;
/// reports and returns false if there is none.
bool checkAsyncMBarrier(Block &block, const void *p, uint32_t &offset,
                        uint32_t site);

void submit(std::shared_ptr<AsyncJob> job);
/// Adds a store to the thread's bulk group.
void submitStore(std::shared_ptr<AsyncJob> job);
/// Draws a copy; returns when it is there.
uint64_t traceCopy(const char *what, uint32_t bytes, uint32_t site);

/// Calls function(block, destination, mbarrier) for the CTAs of a multicast, or
/// without one for the CTA that the destination is in.
template <typename Function>
void forDestinations(void *dst, void *mbarrier, uint32_t multicast,
                     Function function) {
  Block &self = *worker->current->block;
  auto *to = static_cast<char *>(dst);
  auto *barrier = static_cast<char *>(mbarrier);
  if (!multicast) {
    Block *owner = sharedOwner(dst);
    function(owner ? *owner : self, to, barrier);
    return;
  }
  auto offset = [](char *p) {
    return reinterpret_cast<uint64_t>(p) & (windowBytes - 1);
  };
  for (Block &block : self.cluster->blocks)
    if (multicast >> block.rank & 1)
      function(block, block.window + offset(to),
               block.window + offset(barrier));
}

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_BULK_H

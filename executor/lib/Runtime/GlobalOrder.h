//===- GlobalOrder.h - What is ordered between CTAs -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Happens-before between the clusters of a launch, of accesses to global
// memory: what one cluster releases and another acquires there. Within a
// cluster order is that of its clocks (Clock.h): who has acquired something is
// known, and others of the cluster have it too if that is ordered before them.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_GLOBALORDER_H
#define VARLEN_LIB_EXECUTOR_GLOBALORDER_H

#include "Clock.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace varlen::executor {

/// For each cluster, up to which tick of each of its threads all is ordered
/// before.
using Knowledge = std::map<uint64_t, std::vector<Tick>>;
using SharedKnowledge = std::shared_ptr<const Knowledge>;

/// A thread of a cluster, at some tick, has acquired that.
struct Acquisition {
  uint32_t component = 0;
  Tick tick = 0;
  SharedKnowledge knowledge;
};

/// Who touched some words of global memory last, and what flags in it publish,
/// for all host threads of a launch.
class GlobalOrder {
public:
  std::mutex mutex;

  /// Who has accessed some bytes of a word.
  struct Access {
    uint64_t cluster = 0;
    uint32_t component = 0;
    Tick tick = 0;
    /// Of its four bytes.
    uint8_t bytes = 0;
    bool isAtomic = false;
  };
  struct Word {
    Access write;
    std::vector<Access> reads;
  };
  std::unordered_map<uint64_t, Word> words;
  /// What an acquiring load of these addresses gives.
  std::unordered_map<uint64_t, SharedKnowledge> published;
};

/// An access of the current thread to global memory; reports a race with
/// another cluster.
void orderGlobal(const void *p, uint64_t size, bool isStore, bool isAtomic,
                 uint32_t site);
/// What comes before a store to, or with `isUpdate` an atomic update of, a flag
/// in global memory, and behind a load of one.
void releaseGlobal(const void *p, uint32_t order, bool isUpdate);
void acquireGlobal(const void *p, uint32_t order);
/// A fence between relaxed accesses to flags.
void fenceGlobal();

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_GLOBALORDER_H

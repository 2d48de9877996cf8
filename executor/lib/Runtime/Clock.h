//===- Clock.h - Vector clocks ----------------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Happens-before between the threads of one cluster. A thread's clock is a base
// that it shares with the threads it last synchronised with, and a component of
// its own. So the common cases (a barrier, a phase of an mbarrier that a whole
// warp waits for) cost one join of arrays, not one per thread.
//
// A base has two arrays: what is ordered before (`ordered`), and what of that a
// fence.proxy.async on the path has also made visible to the async proxy
// (`published`).
//
// Besides threads there are slots: each stands for some asynchronous work,
// ordered before a thread that has waited for it.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_CLOCK_H
#define VARLEN_LIB_EXECUTOR_CLOCK_H

#include <array>
#include <cstdint>
#include <vector>

namespace varlen::executor {

/// Signed, because SSE2 has the maximum of signed words only.
using Tick = int32_t;

struct Clock {
  uint32_t references;
  /// The result of a proxy fence on this clock, once it was needed.
  Clock *fenced;
  Tick values[1];
};

/// Makes, joins and frees clocks of one size.
class ClockSpace {
public:
  ClockSpace() = default;
  ~ClockSpace();
  ClockSpace(const ClockSpace &) = delete;
  ClockSpace &operator=(const ClockSpace &) = delete;

  /// Drops all clocks; those that follow have `size` components (threads and
  /// slots).
  void reset(uint32_t size);
  uint32_t size() const { return n; }

  Tick *ordered(Clock *clock) const { return clock->values; }
  Tick *published(Clock *clock) const { return clock->values + n; }

  /// A clock of zeros.
  Clock *zero();
  Clock *copy(const Tick *values);
  /// The results below carry a reference of their own.
  Clock *join(Clock *a, Clock *b);
  Clock *fence(Clock *clock);
  Clock *withSlot(Clock *clock, uint32_t component, Tick tick);

  static void retain(Clock *clock) { ++clock->references; }
  void release(Clock *clock) {
    if (--clock->references == 0)
      recycle(clock);
  }

private:
  struct Memo {
    Clock *a = nullptr, *b = nullptr, *result = nullptr;
    uint32_t component = 0;
    Tick tick = 0;
  };
  Clock *allocate();
  void recycle(Clock *clock);
  void remember(Memo &memo, Clock *a, Clock *b, uint32_t component, Tick tick,
                Clock *result);
  void forget(Memo &memo);

  uint32_t n = 0;
  std::vector<Clock *> all;
  std::vector<Clock *> freed;
  // All lanes of a warp ask the same thing one after the other.
  std::array<Memo, 8> joins;
  std::array<Memo, 8> slots;
  uint32_t nextJoin = 0, nextSlot = 0;
};

/// A thread's clock.
struct ThreadClock {
  Clock *base = nullptr;
  uint32_t self = 0;
  Tick own = 0;
  /// The own component of `published`.
  Tick ownPublished = 0;
};

/// Collects the clocks of those that arrive somewhere.
class Gather {
public:
  void init(ClockSpace &space);
  void add(ClockSpace &space, const ThreadClock &thread);
  void addClock(ClockSpace &space, Clock *clock);
  /// As ordered: cp.async writes through the generic proxy.
  void addCopy(uint32_t component, Tick tick);
  /// Both as ordered and as published: async work needs no proxy fence.
  void addSlot(ClockSpace &space, uint32_t component, Tick tick);
  /// What was collected; the caller owns the reference.
  Clock *freeze(ClockSpace &space);
  void clear(ClockSpace &space);

private:
  std::vector<Tick> values;
  Clock *last = nullptr;
};

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_CLOCK_H

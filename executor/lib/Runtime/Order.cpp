//===- Order.cpp - What is ordered before what ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

using namespace varlen::executor;

/// What follows in the thread is not part of what it has just published.
static void advance(Thread &thread) {
  ++thread.clock.own;
  // An epoch that wraps around would pass for an old one.
  if (__builtin_expect(
          static_cast<uint32_t>(thread.clock.own) >= worker->tickLimit, 0)) {
    if (!worker->clockOverflow)
      report("limit", thread.site,
             "more than %u synchronisations by one thread: the race detector "
             "is off from here on",
             worker->tickLimit);
    worker->clockOverflow = true;
    worker->detector = false;
  }
}

void varlen::executor::releaseTo(Thread &thread, Gather &gather) {
  if (!worker->detector)
    return;
  gather.add(worker->clocks, thread.clock);
  advance(thread);
}

void varlen::executor::replaceClock(Thread &thread, Clock *clock) {
  worker->clocks.release(thread.clock.base);
  thread.clock.base = clock;
}

void varlen::executor::acquire(Thread &thread, Clock *clock) {
  if (!worker->detector || !clock)
    return;
  replaceClock(thread, worker->clocks.join(thread.clock.base, clock));
}

void varlen::executor::acquire(Thread &thread, Slot slot) {
  if (!worker->detector)
    return;
  replaceClock(thread, worker->clocks.withSlot(thread.clock.base,
                                               slot.component, slot.tick));
}

void varlen::executor::acquireAll(Thread &thread, Clock *clock) {
  ClockSpace::retain(clock);
  replaceClock(thread, clock);
}

void varlen::executor::publish(Thread &thread) {
  if (!worker->detector)
    return;
  replaceClock(thread, worker->clocks.fence(thread.clock.base));
  thread.clock.ownPublished = thread.clock.own;
  advance(thread);
}

Slot varlen::executor::newSlot(Cluster &cluster) {
  uint32_t index = cluster.nextSlot++ % numSlots;
  return {worker->clocks.size() - numSlots + index, ++cluster.slotTicks[index]};
}

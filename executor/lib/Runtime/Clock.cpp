//===- Clock.cpp - Vector clocks ------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Clock.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace varlen::executor;

static void joinInto(Tick *into, const Tick *from, size_t size) {
  for (size_t i = 0; i < size; ++i)
    into[i] = into[i] > from[i] ? into[i] : from[i];
}

//===----------------------------------------------------------------------===//
// ClockSpace
//===----------------------------------------------------------------------===//

ClockSpace::~ClockSpace() { reset(0); }

void ClockSpace::reset(uint32_t size) {
  for (Clock *clock : all)
    free(clock);
  all.clear();
  freed.clear();
  joins.fill(Memo());
  slots.fill(Memo());
  n = size;
}

Clock *ClockSpace::allocate() {
  Clock *clock;
  if (!freed.empty()) {
    clock = freed.back();
    freed.pop_back();
  } else {
    clock = static_cast<Clock *>(
        malloc(sizeof(Clock) + 2 * size_t(n) * sizeof(Tick)));
    if (!clock)
      abort();
    all.push_back(clock);
  }
  clock->references = 1;
  clock->fenced = nullptr;
  return clock;
}

void ClockSpace::recycle(Clock *clock) {
  if (clock->fenced)
    release(clock->fenced);
  freed.push_back(clock);
}

Clock *ClockSpace::zero() {
  Clock *clock = allocate();
  memset(clock->values, 0, 2 * size_t(n) * sizeof(Tick));
  return clock;
}

Clock *ClockSpace::copy(const Tick *values) {
  Clock *clock = allocate();
  memcpy(clock->values, values, 2 * size_t(n) * sizeof(Tick));
  return clock;
}

void ClockSpace::forget(Memo &memo) {
  for (Clock *clock : {memo.a, memo.b, memo.result})
    if (clock)
      release(clock);
  memo = Memo();
}

void ClockSpace::remember(Memo &memo, Clock *a, Clock *b, uint32_t component,
                          Tick tick, Clock *result) {
  for (Clock *clock : {a, b, result})
    if (clock)
      retain(clock);
  forget(memo);
  memo = {a, b, result, component, tick};
}

Clock *ClockSpace::join(Clock *a, Clock *b) {
  if (a == b) {
    retain(a);
    return a;
  }
  for (Memo &memo : joins)
    if (memo.a == a && memo.b == b) {
      retain(memo.result);
      return memo.result;
    }
  Clock *result = copy(a->values);
  joinInto(result->values, b->values, 2 * size_t(n));
  remember(joins[nextJoin++ % joins.size()], a, b, 0, 0, result);
  return result;
}

Clock *ClockSpace::fence(Clock *clock) {
  if (!clock->fenced) {
    Clock *result = copy(clock->values);
    joinInto(published(result), ordered(result), n);
    clock->fenced = result;
  }
  retain(clock->fenced);
  return clock->fenced;
}

Clock *ClockSpace::withSlot(Clock *clock, uint32_t component, Tick tick) {
  for (Memo &memo : slots)
    if (memo.a == clock && memo.component == component && memo.tick == tick) {
      retain(memo.result);
      return memo.result;
    }
  Clock *result = copy(clock->values);
  ordered(result)[component] = std::max(ordered(result)[component], tick);
  published(result)[component] = std::max(published(result)[component], tick);
  remember(slots[nextSlot++ % slots.size()], clock, nullptr, component, tick,
           result);
  return result;
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

void Gather::init(ClockSpace &space) {
  values.assign(2 * size_t(space.size()), 0);
  last = nullptr;
}

void Gather::addClock(ClockSpace &space, Clock *clock) {
  if (clock == last)
    return;
  joinInto(values.data(), clock->values, values.size());
  ClockSpace::retain(clock);
  if (last)
    space.release(last);
  last = clock;
}

void Gather::add(ClockSpace &space, const ThreadClock &thread) {
  addClock(space, thread.base);
  Tick &own = values[thread.self];
  own = std::max(own, thread.own);
  Tick &published = values[space.size() + thread.self];
  published = std::max(published, thread.ownPublished);
}

void Gather::addCopy(uint32_t component, Tick tick) {
  values[component] = std::max(values[component], tick);
}

void Gather::addSlot(ClockSpace &space, uint32_t component, Tick tick) {
  for (Tick *value : {&values[component], &values[space.size() + component]})
    *value = std::max(*value, tick);
}

Clock *Gather::freeze(ClockSpace &space) { return space.copy(values.data()); }

void Gather::clear(ClockSpace &space) {
  std::fill(values.begin(), values.end(), 0);
  if (last)
    space.release(last);
  last = nullptr;
}

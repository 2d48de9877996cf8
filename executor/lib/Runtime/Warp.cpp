//===- Warp.cpp - Collectives of the lanes of a warp ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Warp.h"

#include "Numbers.h"
#include "State.h"

using namespace varlen::executor;

/// Calls function(lane) for each lane of the mask.
template <typename Function>
static inline void forLanes(uint32_t mask, Function function) {
  for (; mask; mask &= mask - 1)
    function(static_cast<uint32_t>(__builtin_ctz(mask)));
}

//===----------------------------------------------------------------------===//
// What the last lane to arrive does
//===----------------------------------------------------------------------===//

/// stage: value, offset, mask and clamp, kind; then value, predicate.
static void shfl(Warp &warp, uint32_t mask) {
  uint32_t results[32], valid[32];
  forLanes(mask, [&](uint32_t lane) {
    const uint32_t *in = warp.stage[lane];
    uint32_t offset = in[1] & 31, clamp = in[2] & 31;
    uint32_t segments = in[2] >> 8 & 31;
    auto signedLane = static_cast<int32_t>(lane);
    auto last = static_cast<int32_t>((lane & segments) | (clamp & ~segments));
    int32_t source = 0;
    bool inRange = false;
    switch (in[3]) {
    case 0:
      source = static_cast<int32_t>(lane ^ offset);
      inRange = source <= last;
      break;
    case 1:
      source = signedLane - static_cast<int32_t>(offset);
      inRange = source >= last;
      break;
    case 2:
      source = signedLane + static_cast<int32_t>(offset);
      inRange = source <= last;
      break;
    default:
      source = static_cast<int32_t>((lane & segments) | (offset & ~segments));
      inRange = source <= last;
      break;
    }
    if (!inRange)
      source = signedLane;
    if (!(mask >> source & 1))
      report("collective", warp.threads[lane]->site,
             "shfl.sync of lane %u reads lane %d, which is not in mask %08x",
             lane, source, mask);
    results[lane] = warp.stage[source][0];
    valid[lane] = inRange;
  });
  forLanes(mask, [&](uint32_t lane) {
    warp.stage[lane][0] = results[lane];
    warp.stage[lane][1] = valid[lane];
  });
}

/// stage: predicate, kind; then the result.
static void vote(Warp &warp, uint32_t mask) {
  uint32_t ballot = 0;
  forLanes(mask, [&](uint32_t lane) {
    if (warp.stage[lane][0])
      ballot |= 1U << lane;
  });
  forLanes(mask, [&](uint32_t lane) {
    uint32_t result = 0;
    switch (warp.stage[lane][1]) {
    case 0:
      result = ballot != 0;
      break;
    case 1:
      result = ballot == mask;
      break;
    case 2:
      result = ballot;
      break;
    default:
      result = ballot == 0 || ballot == mask;
      break;
    }
    warp.stage[lane][0] = result;
  });
}

/// stage: value (2 words), kind; then the lanes.
static void match(Warp &warp, uint32_t mask) {
  uint32_t results[32];
  forLanes(mask, [&](uint32_t lane) {
    const uint32_t *in = warp.stage[lane];
    uint32_t same = 0;
    forLanes(mask, [&](uint32_t other) {
      if (warp.stage[other][0] == in[0] && warp.stage[other][1] == in[1])
        same |= 1U << other;
    });
    results[lane] = in[2] == 0 || same == mask ? same : 0;
  });
  forLanes(mask, [&](uint32_t lane) { warp.stage[lane][0] = results[lane]; });
}

static uint32_t reduce(uint32_t kind, uint32_t a, uint32_t b) {
  auto x = static_cast<int32_t>(a), y = static_cast<int32_t>(b);
  float f = floatOf(a), g = floatOf(b);
  switch (kind) {
  case 1:
    return a + b;
  case 2:
    return a & b;
  case 3:
    return static_cast<uint32_t>(x > y ? x : y);
  case 4:
    return static_cast<uint32_t>(x < y ? x : y);
  case 5:
    return a | b;
  case 6:
    return a > b ? a : b;
  case 7:
    return a < b ? a : b;
  case 8:
    return a ^ b;
  case 9:
    return bitsOf(__builtin_fminf(f, g));
  default:
    return bitsOf(__builtin_fmaxf(f, g));
  }
}

/// stage: value, kind; then the result.
static void redux(Warp &warp, uint32_t mask) {
  auto first = static_cast<uint32_t>(__builtin_ctz(mask));
  uint32_t kind = warp.stage[first][1], result = warp.stage[first][0];
  if (kind < 1 || kind > 10)
    report("unsupported", warp.threads[first]->site, "redux.sync of kind %u",
           kind);
  forLanes(mask & (mask - 1), [&](uint32_t lane) {
    result = reduce(kind, result, warp.stage[lane][0]);
  });
  forLanes(mask, [&](uint32_t lane) { warp.stage[lane][0] = result; });
}

static void elect(Warp &warp, uint32_t mask) {
  // PTX promises no particular lane, only the same one for the same mask.
  uint64_t hash = (worker->electSeed ^ mask) * 0x9e3779b97f4a7c15;
  uint32_t chosen = static_cast<uint32_t>(hash >> 33) %
                    static_cast<uint32_t>(__builtin_popcount(mask));
  forLanes(mask, [&](uint32_t lane) { warp.stage[lane][0] = chosen-- == 0; });
}

static void syncWarp(Warp &warp, uint32_t mask) {
  Worker &w = *worker;
  if (!w.detector)
    return;
  Gather &gather = w.warpGather;
  forLanes(mask,
           [&](uint32_t lane) { releaseTo(*warp.threads[lane], gather); });
  Clock *clock = gather.freeze(w.clocks);
  forLanes(mask,
           [&](uint32_t lane) { acquireAll(*warp.threads[lane], clock); });
  w.clocks.release(clock);
  gather.clear(w.clocks);
}

void varlen::executor::runCollective(Warp &warp, Collective kind,
                                     uint32_t mask) {
  Track *track = warp.track;
  switch (kind) {
  case Collective::None:
  case Collective::SetMaxNReg:
    return;
  case Collective::Shfl:
    shfl(warp, mask);
    break;
  case Collective::Vote:
    vote(warp, mask);
    break;
  case Collective::Match:
    match(warp, mask);
    break;
  case Collective::Redux:
    redux(warp, mask);
    break;
  case Collective::Elect:
    return elect(warp, mask);
  case Collective::SyncWarp:
    return syncWarp(warp, mask);
  case Collective::LdMatrix:
    return loadMatrix(warp);
  case Collective::StMatrix:
    return storeMatrix(warp);
  case Collective::MMA:
    return multiplyMatrix(warp);
  case Collective::WgmmaFence:
    return fenceWgmma(warp);
  case Collective::WgmmaCommit:
    return commitWgmma(warp);
  case Collective::WgmmaWait:
    return waitWgmma(warp);
  case Collective::Wgmma:
    return issueWgmma(warp);
  case Collective::PublishMap:
    return publishMap(warp);
  }
  if (track)
    track->add(Activity::Exchange, name(kind), worker->current->site,
               cost::exchange);
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

static uint32_t *stageOf(Thread &thread) {
  return thread.warp->stage[thread.lane];
}

uint32_t varlen_sim_shfl(uint32_t mask, uint32_t value, uint32_t offset,
                         uint32_t maskAndClamp, uint32_t kind, uint32_t site) {
  Thread &self = *worker->current;
  uint32_t *stage = stageOf(self);
  stage[0] = value;
  stage[1] = offset;
  stage[2] = maskAndClamp;
  stage[3] = kind;
  collective(Collective::Shfl, mask, site);
  self.shflPredicate = stage[1] & 1;
  return stage[0];
}

uint32_t varlen_sim_shfl_pred(void) { return worker->current->shflPredicate; }

uint32_t varlen_sim_vote(uint32_t mask, uint32_t pred, uint32_t kind,
                         uint32_t site) {
  uint32_t *stage = stageOf(*worker->current);
  stage[0] = pred;
  stage[1] = kind;
  collective(Collective::Vote, mask, site);
  return stage[0];
}

uint32_t varlen_sim_match(uint32_t mask, uint64_t value, uint32_t kind,
                          uint32_t site) {
  uint32_t *stage = stageOf(*worker->current);
  stage[0] = static_cast<uint32_t>(value);
  stage[1] = static_cast<uint32_t>(value >> 32);
  stage[2] = kind;
  collective(Collective::Match, mask, site);
  return stage[0];
}

uint32_t varlen_sim_redux(uint32_t mask, uint32_t value, uint32_t kind,
                          uint32_t site) {
  uint32_t *stage = stageOf(*worker->current);
  stage[0] = value;
  stage[1] = kind;
  collective(Collective::Redux, mask, site);
  return stage[0];
}

uint32_t varlen_sim_elect(uint32_t mask, uint32_t site) {
  uint32_t *stage = stageOf(*worker->current);
  collective(Collective::Elect, mask, site);
  return stage[0];
}

void varlen_sim_syncwarp(uint32_t mask, uint32_t site) {
  collective(Collective::SyncWarp, mask, site);
}

//===- Trace.h - The timeline of one CTA ------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each warp has a clock that advances by a nominal cost per operation; who
// waits goes on no earlier than what it waited for was done. So the timeline
// shows the order and the overlap that the program allows, whatever the
// scheduler did.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_TRACE_H
#define VARLEN_LIB_EXECUTOR_TRACE_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace varlen::executor {

/// What a stretch of a timeline is about.
enum class Activity : uint8_t {
  Matrix, ///< mma, wgmma
  Shared, ///< ldmatrix, stmatrix
  Exchange,
  Copy,
  Wait,
};

struct TraceEvent {
  Activity activity;
  const char *name;
  uint32_t site;
  uint64_t begin;
  uint64_t end;
  uint32_t count;
};

/// One row of the timeline.
struct Track {
  std::string name;
  uint64_t now = 0;
  std::vector<TraceEvent> events;

  /// Operations of one kind that follow each other make one event.
  void add(Activity activity, const char *what, uint32_t site, uint64_t cost) {
    if (!events.empty()) {
      TraceEvent &last = events.back();
      if (last.activity == activity && last.name == what && last.end == now) {
        last.end = now += cost;
        ++last.count;
        return;
      }
    }
    events.push_back({activity, what, site, now, now + cost, 1});
    now += cost;
  }
  void waitUntil(uint64_t time, const char *what, uint32_t site) {
    if (time <= now)
      return;
    events.push_back({Activity::Wait, what, site, now, time, 1});
    now = time;
  }
  /// As `add`, no earlier than a time; returns when it is done.
  uint64_t addFrom(uint64_t time, Activity activity, const char *what,
                   uint32_t site, uint64_t cost) {
    now = std::max(now, time);
    add(activity, what, site, cost);
    return now;
  }
  void addSpan(Activity activity, const char *what, uint32_t site,
               uint64_t begin, uint64_t end) {
    events.push_back({activity, what, site, begin, end, 1});
  }
};

/// Nominal costs, in cycles that are not a real clock's.
namespace cost {
constexpr uint64_t mma = 16;
constexpr uint64_t matrixTile = 4;     // of ldmatrix and stmatrix
constexpr uint64_t wgmmaPerColumn = 1; // of N, for one k step
constexpr uint64_t exchange = 8;
constexpr uint64_t issue = 2;
constexpr uint64_t copyLatency = 400;
constexpr uint64_t copyBytesPerCycle = 32;
} // namespace cost

struct Trace {
  std::vector<Track> warps;
  /// What tensor cores do while warps go on: wgmma, of each warpgroup.
  std::vector<Track> products;
  Track copies;
  std::string name;

  bool empty() const { return warps.empty(); }
  void write(FILE *file, const std::vector<std::string> &sites) const;
};

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_TRACE_H

//===- Banks.h - Bank conflicts of loads and stores -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTOR_BANKS_H
#define VARLEN_LIB_EXECUTOR_BANKS_H

#include "varlen/Executor/Executor.h"

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace varlen::executor {

/// Records the accesses of one CTA. Its lanes run one after the other, so what
/// a warp does at once is known only afterwards: the k-th access of each lane
/// at one site.
class BankRecorder {
public:
  void record(uint32_t warp, uint32_t lane, uint32_t site, uint32_t address,
              uint32_t size) {
    if (numAccesses == limit)
      return;
    ++numAccesses;
    Accesses &accesses = recorded[static_cast<uint64_t>(warp) << 32 | site];
    accesses.size = size;
    accesses.addresses[lane].push_back(address);
  }
  /// The phases and conflicts of the 8 rows of an ldmatrix or stmatrix.
  void addMatrix(uint32_t site, uint32_t conflicts);

  struct Count {
    uint64_t phases = 0, conflicts = 0;
  };
  /// Adds up what was recorded.
  void finish(varlen_sim_stats &stats);
  const std::map<uint32_t, Count> &sites() const { return counts; }

private:
  static constexpr size_t limit = size_t(1) << 22;
  /// The accesses of a warp at a site, by lane.
  struct Accesses {
    uint32_t size = 0;
    std::vector<uint32_t> addresses[32];
  };
  size_t numAccesses = 0;
  std::unordered_map<uint64_t, Accesses> recorded;
  std::map<uint32_t, Count> counts;
};

/// The cycles that 32 banks of 4 bytes need for the accesses of `lanes` lanes
/// of the same size, and the least that so many bytes need.
void bankCycles(const uint32_t *addresses, uint32_t lanes, uint32_t size,
                uint32_t &cycles, uint32_t &least);

} // namespace varlen::executor

#endif // VARLEN_LIB_EXECUTOR_BANKS_H

//===- Banks.cpp - Bank conflicts of loads and stores ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Banks.h"

#include <algorithm>

using namespace varlen::executor;

void varlen::executor::bankCycles(const uint32_t *addresses, uint32_t lanes,
                                  uint32_t size, uint32_t &cycles,
                                  uint32_t &least) {
  // Accesses of 8 and 16 bytes go by halves and quarters of a warp.
  uint32_t together = size <= 4 ? 32 : size <= 8 ? 16 : 8;
  uint32_t words = (size + 3) / 4;
  cycles = least = 0;
  for (uint32_t first = 0; first < lanes; first += together) {
    std::vector<uint32_t> banks[32];
    size_t worst = 1;
    for (uint32_t lane = first; lane < std::min(first + together, lanes);
         ++lane)
      for (uint32_t i = 0; i < words; ++i) {
        uint32_t word = addresses[lane] / 4 + i;
        std::vector<uint32_t> &bank = banks[word % 32];
        if (std::find(bank.begin(), bank.end(), word) == bank.end())
          bank.push_back(word);
        worst = std::max(worst, bank.size());
      }
    cycles += static_cast<uint32_t>(worst);
    ++least;
  }
}

void BankRecorder::addMatrix(uint32_t site, uint32_t conflicts) {
  Count &count = counts[site];
  ++count.phases;
  count.conflicts += conflicts;
}

void BankRecorder::finish(varlen_sim_stats &stats) {
  // In the order of recording within one lane, so that the k-th accesses of all
  // lanes can be read side by side.
  std::sort(accesses.begin(), accesses.end(),
            [](const Access &a, const Access &b) {
              return a.warp != b.warp   ? a.warp < b.warp
                     : a.site != b.site ? a.site < b.site
                     : a.lane != b.lane ? a.lane < b.lane
                                        : a.order < b.order;
            });
  for (size_t begin = 0, end; begin < accesses.size(); begin = end) {
    const Access &first = accesses[begin];
    size_t lanes[33];
    uint32_t numLanes = 0;
    for (end = begin; end < accesses.size(); ++end) {
      const Access &access = accesses[end];
      if (access.warp != first.warp || access.site != first.site)
        break;
      if (end == begin || access.lane != accesses[end - 1].lane)
        lanes[numLanes++] = end;
    }
    lanes[numLanes] = end;
    Count &count = counts[first.site];
    for (size_t k = 0;; ++k) {
      uint32_t addresses[32], together = 0;
      for (uint32_t lane = 0; lane < numLanes; ++lane)
        if (lanes[lane] + k < lanes[lane + 1])
          addresses[together++] = accesses[lanes[lane] + k].address;
      if (!together)
        break;
      uint32_t cycles, least;
      bankCycles(addresses, together, first.size, cycles, least);
      ++stats.shared_accesses;
      stats.shared_phases += least;
      stats.shared_conflicts += cycles - least;
      count.phases += least;
      count.conflicts += cycles - least;
    }
  }
  accesses.clear();
}

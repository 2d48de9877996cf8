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
  // The same word for several lanes is one access.
  std::vector<uint32_t> distinct;
  for (uint32_t first = 0; first < lanes; first += together) {
    uint32_t inBank[32] = {}, worst = 1;
    distinct.clear();
    for (uint32_t lane = first; lane < std::min(first + together, lanes);
         ++lane)
      for (uint32_t i = 0; i < words; ++i) {
        uint32_t word = addresses[lane] / 4 + i;
        if (std::find(distinct.rbegin(), distinct.rend(), word) !=
            distinct.rend())
          continue;
        distinct.push_back(word);
        worst = std::max(worst, ++inBank[word % 32]);
      }
    cycles += worst;
    ++least;
  }
}

void BankRecorder::addMatrix(uint32_t site, uint32_t conflicts) {
  Count &count = counts[site];
  ++count.phases;
  count.conflicts += conflicts;
}

void BankRecorder::finish(varlen_sim_stats &stats) {
  for (auto &[key, accesses] : recorded) {
    Count &count = counts[static_cast<uint32_t>(key)];
    for (size_t k = 0;; ++k) {
      uint32_t addresses[32], together = 0;
      for (const std::vector<uint32_t> &ofLane : accesses.addresses)
        if (k < ofLane.size())
          addresses[together++] = ofLane[k];
      if (!together)
        break;
      uint32_t cycles, least;
      bankCycles(addresses, together, accesses.size, cycles, least);
      ++stats.shared_accesses;
      stats.shared_phases += least;
      stats.shared_conflicts += cycles - least;
      count.phases += least;
      count.conflicts += cycles - least;
    }
  }
  recorded.clear();
}

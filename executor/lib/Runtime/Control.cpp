//===- Control.cpp - Special registers, fences, the end of a thread -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include <cstdlib>

using namespace varlen::executor;

static uint32_t blockIndex(const Thread &self, uint32_t dimension) {
  return self.block->id[dimension];
}

uint32_t varlen_sim_sreg(uint32_t which) {
  const Thread &self = *worker->current;
  const varlen_sim_launch_params &params = worker->launch->params;
  const uint32_t *block = params.block, *grid = params.grid;
  const uint32_t *cluster = params.cluster;
  uint32_t bit = 1U << self.lane;
  switch (which) {
  case VARLEN_SIM_TID_X:
    return self.tid % block[0];
  case VARLEN_SIM_TID_X + 1:
    return self.tid / block[0] % block[1];
  case VARLEN_SIM_TID_X + 2:
    return self.tid / (block[0] * block[1]);
  case VARLEN_SIM_CLUSTER_CTARANK:
    return self.block->rank;
  case VARLEN_SIM_CLUSTER_NCTARANK:
    return worker->launch->clusterBlocks;
  case VARLEN_SIM_LANEID:
    return self.lane;
  case VARLEN_SIM_WARPID:
    return self.warp->id;
  case VARLEN_SIM_NWARPID:
    return static_cast<uint32_t>(self.block->warps.size());
  case VARLEN_SIM_WARPSIZE:
    return 32;
  case VARLEN_SIM_LANEMASK_EQ:
    return bit;
  case VARLEN_SIM_LANEMASK_LE:
    return bit | (bit - 1);
  case VARLEN_SIM_LANEMASK_LT:
    return bit - 1;
  case VARLEN_SIM_LANEMASK_GE:
    return ~(bit - 1);
  case VARLEN_SIM_LANEMASK_GT:
    return ~(bit | (bit - 1));
  case VARLEN_SIM_SMID:
    return self.block->slot;
  case VARLEN_SIM_NSMID:
    return worker->residentBlocks;
  case VARLEN_SIM_TOTAL_SMEM_SIZE:
    return self.sharedBytes;
  case VARLEN_SIM_DYNAMIC_SMEM_SIZE:
    return params.dynamic_shared_bytes;
  case VARLEN_SIM_CLOCK:
    return static_cast<uint32_t>(worker->stats.switches +
                                 worker->stats.accesses);
  default:
    break;
  }
  uint32_t dimension = which % 3;
  switch (which - dimension) {
  case VARLEN_SIM_NTID_X:
    return block[dimension];
  case VARLEN_SIM_CTAID_X:
    return blockIndex(self, dimension);
  case VARLEN_SIM_NCTAID_X:
    return grid[dimension];
  case VARLEN_SIM_CLUSTERID_X:
    return blockIndex(self, dimension) / cluster[dimension];
  case VARLEN_SIM_NCLUSTERID_X:
    return grid[dimension] / cluster[dimension];
  case VARLEN_SIM_CLUSTER_CTAID_X:
    return blockIndex(self, dimension) % cluster[dimension];
  case VARLEN_SIM_CLUSTER_NCTAID_X:
    return cluster[dimension];
  default:
    report("unsupported", noSite, "special register %u", which);
    return 0;
  }
}

static void fenceMBarriers(Thread &self) {
  for (auto &[offset, barrier] : self.block->mbarriers)
    if (barrier.initialiser == self.clock.self)
      barrier.fenced = true;
}

void varlen_sim_fence_proxy(uint32_t kind, uint32_t site) {
  Thread &self = *worker->current;
  self.site = site;
  // Only the async proxy is modelled.
  if (kind < 1 || kind > 3)
    return;
  publish(self);
  fenceMBarriers(self);
}

void varlen_sim_fence_mbarrier_init(uint32_t site) {
  worker->current->site = site;
  fenceMBarriers(*worker->current);
}

void varlen_sim_fence(uint32_t scope, uint32_t site) {
  // A fence alone orders nothing in shared memory.
  worker->current->site = site;
  fenceGlobal();
}

void varlen_sim_grid_wait(uint32_t site) {
  worker->current->site = site;
  worker->current->sawGrids = true;
}

void varlen_sim_exit(uint32_t site) {
  worker->current->site = site;
  finishThread();
}

void varlen_sim_trap(uint32_t site) {
  worker->current->site = site;
  report("trap", site, "the kernel has trapped");
  finishThread();
}

void varlen_sim_assertfail(const char *message, uint32_t site) {
  worker->current->site = site;
  report("assertion", site, "%s", message);
  finishThread();
}

void varlen_sim_nanosleep(uint32_t nanoseconds, uint32_t site) {
  worker->current->site = site;
  poll();
}

//===- cluster.cpp - Tests of clusters ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-executor-cluster-test

#include "Copies.h"

static void testClusters() {
  Shape pairs;
  pairs.grid = 4;
  pairs.cluster = 2;
  expectClean("exchange", pairs, [] {
    uint32_t rank = varlen_sim_sreg(VARLEN_SIM_CLUSTER_CTARANK);
    void *remote = varlen_sim_mapa(smem(tid() * 4), rank ^ 1, AT);
    uint32_t value = cta() * 100 + tid();
    memcpy(varlen_sim_store_shared(remote, 4, AT), &value, 4);
    varlen_sim_cluster_arrive(0, AT);
    varlen_sim_cluster_wait(AT);
    uint32_t got = load<uint32_t>((31 - tid()) * 4, AT);
    uint32_t wanted = (cta() ^ 1) * 100 + 31 - tid();
    EXPECT(got == wanted, "wanted %u, got %u", wanted, got);
  });
  expectReport("no barrier", "of cta", pairs, [] {
    uint32_t rank = varlen_sim_sreg(VARLEN_SIM_CLUSTER_CTARANK);
    store<uint32_t>(tid() * 4, 1, AT);
    varlen_sim_cluster_arrive(1, AT);
    varlen_sim_cluster_wait(AT);
    void *remote = varlen_sim_mapa(smem(tid() * 4), rank ^ 1, AT);
    varlen_sim_load_shared(remote, 4, AT);
    varlen_sim_cluster_arrive(0, AT);
    varlen_sim_cluster_wait(AT);
  });
  expectReport("exited", "which has exited", pairs, [] {
    uint32_t rank = varlen_sim_sreg(VARLEN_SIM_CLUSTER_CTARANK);
    store<uint32_t>(tid() * 4, 1, AT);
    varlen_sim_cluster_arrive(0, AT);
    varlen_sim_cluster_wait(AT);
    if (rank == 1)
      varlen_sim_exit(AT);
    for (int i = 0; i < 100; ++i)
      varlen_sim_nanosleep(1, AT);
    varlen_sim_load_shared(varlen_sim_mapa(smem(tid() * 4), 1, AT), 4, AT);
  });
  expectReport("no such rank", "mapa to CTA 2 of a cluster of 2", pairs,
               [] { varlen_sim_mapa(smem(0), 2, AT); });
  // One CTA of each pair loads for both.
  static Map map = encode(Float32, {32, 8}, {128}, {32, 4}, 0);
  for (int i = 0; i < 256; ++i)
    reinterpret_cast<float *>(device())[i] = static_cast<float>(i);
  expectClean("multicast", pairs, [] {
    uint32_t rank = varlen_sim_sreg(VARLEN_SIM_CLUSTER_CTARANK);
    if (tid() == 0) {
      varlen_sim_mbarrier_init(smem(0), 1, AT);
      varlen_sim_fence_mbarrier_init(AT);
      varlen_sim_mbarrier_arrive_expect_tx(smem(0), 512, AT);
    }
    varlen_sim_cluster_arrive(0, AT);
    varlen_sim_cluster_wait(AT);
    if (tid() == 0 && rank == 1) {
      int32_t coordinates[] = {0, 4};
      varlen_sim_tma_load(smem(1024), &map.map, smem(0), 2, coordinates, 3, AT);
    }
    varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
    float got = load<float>(1024 + tid() * 4, AT);
    EXPECT(got == static_cast<float>(128 + tid()), "got %f",
           static_cast<double>(got));
    varlen_sim_cluster_arrive(0, AT);
    varlen_sim_cluster_wait(AT);
  });
  // The arrival on another CTA's mbarrier publishes what was stored there.
  expectClean("remote arrival", pairs, [] {
    uint32_t rank = varlen_sim_sreg(VARLEN_SIM_CLUSTER_CTARANK);
    if (tid() == 0)
      varlen_sim_mbarrier_init(smem(0), 32, AT);
    varlen_sim_cluster_arrive(0, AT);
    varlen_sim_cluster_wait(AT);
    uint32_t value = tid();
    memcpy(varlen_sim_store_shared(
               varlen_sim_mapa(smem(1024 + tid() * 4), rank ^ 1, AT), 4, AT),
           &value, 4);
    varlen_sim_mbarrier_arrive(varlen_sim_mapa(smem(0), rank ^ 1, AT), 1, AT);
    varlen_sim_mbarrier_wait_parity(smem(0), 0, AT);
    EXPECT(load<uint32_t>(1024 + (tid() ^ 7) * 4, AT) == (tid() ^ 7), "stored");
    varlen_sim_cluster_arrive(0, AT);
    varlen_sim_cluster_wait(AT);
  });
  expectReport("deadlock", "waits for the cluster", pairs, [] {
    varlen_sim_cluster_arrive(0, AT);
    if (varlen_sim_sreg(VARLEN_SIM_CLUSTER_CTARANK) == 0) {
      varlen_sim_cluster_wait(AT);
      varlen_sim_cluster_arrive(0, AT);
      varlen_sim_cluster_wait(AT);
    } else {
      varlen_sim_barrier(1, 64, AT);
    }
  });
}

int main() {
  // Memory must be there before a launch that uses it.
  device();
  testClusters();
  return summary();
}

//===- Barrier.cpp - Barriers of a CTA and of a cluster, registers --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Barrier.h"

#include "State.h"

using namespace varlen::executor;

//===----------------------------------------------------------------------===//
// Barriers of the CTA
//===----------------------------------------------------------------------===//

/// Everybody who waits goes on, ordered after all that arrived.
static void releaseWaiters(NamedBarrier &barrier) {
  Worker &w = *worker;
  Clock *clock = nullptr;
  if (w.detector)
    clock = barrier.gather.freeze(w.clocks);
  for (Thread *thread : barrier.waiters) {
    if (clock)
      acquireAll(*thread, clock);
    if (Track *track = thread->warp->track)
      track->waitUntil(barrier.time, "barrier", thread->site);
    thread->shflPredicate = barrier.reduced;
    makeReady(*thread);
  }
  if (clock) {
    w.clocks.release(clock);
    barrier.gather.clear(w.clocks);
  }
  barrier.waiters.clear();
  barrier.arrived = 0;
  barrier.time = 0;
}

static void arrive(uint32_t id, uint32_t threads, int op, uint32_t pred,
                   bool wait, uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  Block &block = *self.block;
  self.site = site;
  ++w.stats.barriers;
  progress();
  if (id > 15) {
    report("barrier", site, "barrier %u: there are 16, 0 to 15", id);
    return;
  }
  if (threads % 32) {
    report("barrier", site, "barrier %u of %u threads: wanted a multiple of 32",
           id, threads);
    threads = (threads + 31) / 32 * 32;
  }
  NamedBarrier &barrier = block.barriers[id];
  if (barrier.arrived == 0) {
    barrier.expected = threads;
    barrier.site = site;
    barrier.reduceOp = op;
    barrier.reduced = op == 1;
  } else if (barrier.expected != threads) {
    report("barrier", site,
           "barrier %u of %u threads here, of %u threads at %s (0: all)", id,
           threads, barrier.expected,
           w.launch->reports->siteName(barrier.site));
  } else if (barrier.reduceOp != op) {
    report("barrier", site, "barrier %u reduces in another way than at %s", id,
           w.launch->reports->siteName(barrier.site));
  }
  if (op == 0)
    barrier.reduced += pred != 0;
  else if (op == 1)
    barrier.reduced &= pred != 0;
  else if (op == 2)
    barrier.reduced |= pred != 0;
  uint32_t needed = threads ? threads : block.alive;
  if (threads > (w.launch->threads + 31) / 32 * 32)
    report("barrier", site, "barrier %u of %u threads: the CTA has %u", id,
           threads, w.launch->threads);
  releaseTo(self, barrier.gather);
  if (Track *track = self.warp->track)
    barrier.time = std::max(barrier.time, track->now);
  ++barrier.arrived;
  if (wait) {
    barrier.waiters.push_back(&self);
    self.wait = Wait::Barrier;
    self.waitsFor = id;
  }
  if (barrier.arrived >= needed)
    releaseWaiters(barrier);
  if (wait)
    switchAway();
}

static void completeCluster(Cluster &cluster) {
  Worker &w = *worker;
  NamedBarrier &barrier = cluster.barrier;
  ++cluster.barrierPhase;
  // Those that come to wait later must find what was published.
  if (w.detector) {
    if (cluster.completed)
      w.clocks.release(cluster.completed);
    cluster.completed = barrier.gather.freeze(w.clocks);
    barrier.gather.clear(w.clocks);
  }
  barrier.arrived = 0;
  for (Thread *thread : barrier.waiters)
    makeReady(*thread);
  barrier.waiters.clear();
}

void varlen::executor::barrierMemberExits(Block &block) {
  for (NamedBarrier &barrier : block.barriers)
    if (barrier.arrived && barrier.expected == 0 &&
        barrier.arrived >= block.alive)
      releaseWaiters(barrier);
  Cluster &cluster = *block.cluster;
  if (cluster.barrier.arrived && cluster.barrier.arrived >= cluster.alive)
    completeCluster(cluster);
}

void varlen_sim_barrier(uint32_t id, uint32_t threads, uint32_t site) {
  arrive(id, threads, -1, 0, /*wait=*/true, site);
}

uint32_t varlen_sim_barrier_reduce(uint32_t id, uint32_t threads, uint32_t op,
                                   uint32_t pred, uint32_t site) {
  arrive(id, threads, static_cast<int>(op), pred, /*wait=*/true, site);
  return worker->current->shflPredicate;
}

void varlen_sim_barrier_arrive(uint32_t id, uint32_t threads, uint32_t site) {
  if (threads == 0) {
    report("barrier", site,
           "barrier.arrive needs a number of threads, a multiple of 32");
    return;
  }
  arrive(id, threads, -1, 0, /*wait=*/false, site);
}

//===----------------------------------------------------------------------===//
// The barrier of the cluster
//===----------------------------------------------------------------------===//

void varlen_sim_cluster_arrive(uint32_t relaxed, uint32_t site) {
  settle();
  Worker &w = *worker;
  Thread &self = *w.current;
  Cluster &cluster = *self.block->cluster;
  self.site = site;
  ++w.stats.barriers;
  progress();
  if (self.clusterArrived)
    report("barrier", site,
           "barrier.cluster.arrive twice without barrier.cluster.wait");
  self.clusterArrived = true;
  self.clusterPhase = cluster.barrierPhase;
  if (!relaxed)
    releaseTo(self, cluster.barrier.gather);
  if (++cluster.barrier.arrived >= cluster.alive)
    completeCluster(cluster);
}

void varlen_sim_cluster_wait(uint32_t site) {
  settle();
  Thread &self = *worker->current;
  Cluster &cluster = *self.block->cluster;
  self.site = site;
  if (!self.clusterArrived) {
    report("barrier", site,
           "barrier.cluster.wait without barrier.cluster.arrive");
    return;
  }
  if (self.clusterPhase == cluster.barrierPhase) {
    self.wait = Wait::Cluster;
    cluster.barrier.waiters.push_back(&self);
    switchAway();
  }
  self.clusterArrived = false;
  acquire(self, cluster.completed);
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

void varlen_sim_setmaxnreg(uint32_t count, uint32_t increase, uint32_t site) {
  collective(Collective::SetMaxNReg, ~0U, site);
  Thread &self = *worker->current;
  Warp &warp = *self.warp;
  Block &block = *self.block;
  if (count < 24 || count > 256 || count % 8) {
    report("setmaxnreg", site,
           "%u registers: wanted a multiple of 8 from 24 to 256", count);
    return;
  }
  // The first lane to get here acts for its warp; the others find it done.
  if (warp.registers == count)
    return;
  if (increase ? count < warp.registers : count > warp.registers) {
    report("setmaxnreg", site,
           "setmaxnreg.%s to %u registers of a warp that has %u",
           increase ? "inc" : "dec", count, warp.registers);
    return;
  }
  if (!increase) {
    block.freeRegisters += (warp.registers - count) * 32;
    warp.registers = count;
    for (Thread *thread : block.registerWaiters)
      makeReady(*thread);
    block.registerWaiters.clear();
    progress();
    return;
  }
  while (warp.registers < count) {
    uint32_t more = (count - warp.registers) * 32;
    if (more <= block.freeRegisters) {
      block.freeRegisters -= more;
      warp.registers = count;
      return;
    }
    self.wait = Wait::Registers;
    self.waitsFor = count;
    block.registerWaiters.push_back(&self);
    switchAway();
  }
}

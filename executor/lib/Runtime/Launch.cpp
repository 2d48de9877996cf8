//===- Launch.cpp - Launches ----------------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"
#include "Resources.h"
#include "State.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <pthread.h>

using namespace varlen::executor;

struct varlen_sim_result {
  std::vector<Report> reports;
  varlen_sim_stats stats = {};
  bool deadlock = false;
  Trace trace;
  std::vector<std::string> sites;
  struct SiteConflicts {
    uint32_t site;
    BankRecorder::Count count;
  };
  std::vector<SiteConflicts> conflicts;
};

/// What a GPU of compute capability 9.0 allows.
static constexpr uint32_t maxThreads = 1024;
static constexpr uint32_t maxShared = 232448;
static constexpr uint32_t maxCluster = 16;
static constexpr uint32_t registersPerCTA = 65536;

//===----------------------------------------------------------------------===//
// A batch of clusters on one host thread
//===----------------------------------------------------------------------===//

[[noreturn]] static void threadMain() {
  Worker &w = *worker;
  enteredContext(w.host);
  const Launch &launch = *w.launch;
  launch.kernel->entry(launch.params.arguments);
  finishThread();
}

static void initThread(Worker &w, Block &block, Warp &warp, uint32_t tid,
                       uint32_t index, size_t stack) {
  auto threadsPerBlock = w.launch->threads;
  Resources &resources = *w.resources;
  while (resources.threads.size() <= stack)
    resources.threads.push_back(std::make_unique<Thread>());
  Thread &thread = *resources.threads[stack];
  AccumulatorArena arena = std::move(thread.accumulators);
  thread = Thread();
  thread.accumulators = std::move(arena);
  thread.accumulators.clear();
  thread.warp = &warp;
  thread.block = &block;
  thread.shared = block.shared;
  thread.sharedBytes = block.sharedBytes;
  thread.tid = tid;
  thread.lane = tid % 32;
  thread.site = noSite;
  thread.sawGrids = !w.launch->kernel->waits_for_grids;
  thread.stack = resources.stacks.get(stack);
  if (!thread.stack) {
    fprintf(stderr, "varlen executor: no memory for %zu stacks\n", stack + 1);
    abort();
  }
  // Component 0 of the clocks belongs to no thread.
  thread.clock.self = 1 + index * threadsPerBlock + tid;
  thread.clock.own = 1;
  if (w.detector)
    thread.clock.base = w.clocks.zero();
  // Stacks are a power of 2 apart: unless their tops are moved about, what all
  // of them use most competes for the same few lines of the cache.
  size_t colour = stack * 320 % 4096;
  prepareContext(thread.context, thread.stack, w.stackBytes - colour,
                 threadMain);
  warp.threads[thread.lane] = &thread;
  warp.ready |= 1U << thread.lane;
  warp.alive |= 1U << thread.lane;
}

static void initBlock(Worker &w, Cluster &cluster, uint32_t rank,
                      uint64_t clusterIndex, uint32_t slot, uint32_t base) {
  const Launch &launch = *w.launch;
  const varlen_sim_launch_params &params = launch.params;
  Block &block = cluster.blocks[rank];
  block.cluster = &cluster;
  block.rank = rank;
  block.slot = slot;
  uint32_t local[3] = {rank % params.cluster[0],
                       rank / params.cluster[0] % params.cluster[1],
                       rank / (params.cluster[0] * params.cluster[1])};
  uint64_t rest = clusterIndex;
  for (uint32_t i = 0; i < 3; ++i) {
    uint64_t count = params.grid[i] / params.cluster[i];
    block.id[i] =
        static_cast<uint32_t>(rest % count) * params.cluster[i] + local[i];
    rest /= count;
  }
  block.window = w.arena + size_t(slot) * windowBytes;
  block.shared = block.window + base;
  block.sharedBytes = launch.sharedBytes;
  memset(block.shared, 0xff, launch.sharedBytes);
  block.alive = launch.threads;
  uint32_t numWarps = (launch.threads + 31) / 32;
  uint32_t registers = launch.kernel->registers;
  if (!registers)
    registers = std::min(registersPerCTA / (numWarps * 32) / 8 * 8, 248U);
  if (w.detector) {
    block.shadow.reset(launch.sharedBytes, w.tickBits, w.clocks.size());
    for (NamedBarrier &barrier : block.barriers)
      barrier.gather.init(w.clocks);
  }
  uint64_t linear =
      block.id[0] + uint64_t(params.grid[0]) *
                        (block.id[1] + uint64_t(params.grid[1]) * block.id[2]);
  if (linear == 0)
    block.banks = launch.banks;
  if (w.config.trace_cta >= 0 &&
      linear == static_cast<uint64_t>(w.config.trace_cta)) {
    block.trace = launch.trace;
    block.trace->name = format("CTA %u,%u,%u of %s", block.id[0], block.id[1],
                               block.id[2], launch.kernel->name);
    block.trace->warps.resize(numWarps);
    block.trace->products.resize((numWarps + 3) / 4);
    for (size_t i = 0; i < block.trace->products.size(); ++i)
      block.trace->products[i].name = format("wgmma of warpgroup %zu", i);
  }
  block.warpgroups = std::vector<WgmmaSequence>((numWarps + 3) / 4);
  block.warps = std::vector<Warp>(numWarps);
  for (uint32_t i = 0; i < numWarps; ++i) {
    Warp &warp = block.warps[i];
    warp.block = &block;
    warp.id = i;
    warp.priority = static_cast<uint32_t>(w.next());
    warp.registers = registers;
    if (block.trace) {
      warp.track = &block.trace->warps[i];
      warp.track->name = format("warp %u", i);
    }
    w.warps.push_back(&warp);
  }
  for (uint32_t tid = 0; tid < launch.threads; ++tid)
    initThread(w, block, block.warps[tid / 32], tid, rank,
               size_t(slot) * launch.threads + tid);
}

/// Runs the clusters `order[first..first + count)` together. Returns false if
/// they got stuck.
static bool runBatch(Worker &w, const std::vector<uint64_t> &order,
                     uint64_t first, uint64_t count) {
  const Launch &launch = *w.launch;
  uint32_t perCluster = launch.clusterBlocks;
  uint32_t components = 1 + perCluster * launch.threads + numSlots;
  w.detector = w.config.detector && !w.clockOverflow;
  w.warps.clear();
  w.clusters.clear();
  w.tickBits = 32 - (32 - static_cast<uint32_t>(__builtin_clz(components)));
  w.tickLimit = (1U << w.tickBits) - 1;
  if (w.detector) {
    w.clocks.reset(components);
    w.warpGather.init(w.clocks);
  }
  // From the seed and the place alone: which host thread runs it is chance.
  w.random =
      (w.config.seed * 0x9e3779b97f4a7c15) ^ ((first + 1) * 0xd1b54a32d192ed03);
  w.random |= 1;
  for (int i = 0; i < 8; ++i)
    w.next();
  w.electSeed = w.config.scheduler == VARLEN_SIM_ROUND_ROBIN ? 0 : w.next();
  uint32_t room = (windowBytes - launch.sharedBytes) / 1024;
  uint32_t base = w.config.scheduler == VARLEN_SIM_ROUND_ROBIN
                      ? 0
                      : 1024 * w.below(std::min(room, 8U) + 1);
  w.alive = 0;
  uint32_t slot = 0;
  for (uint64_t i = 0; i < count; ++i) {
    auto cluster = std::make_unique<Cluster>();
    cluster->index = order[first + i];
    cluster->blocks = std::vector<Block>(perCluster);
    cluster->alive = perCluster * launch.threads;
    cluster->slotTicks.assign(numSlots, 0);
    if (w.detector)
      cluster->barrier.gather.init(w.clocks);
    w.alive += cluster->alive;
    for (uint32_t rank = 0; rank < perCluster; ++rank)
      initBlock(w, *cluster, rank, order[first + i], slot++, base);
    w.clusters.push_back(std::move(cluster));
  }
  runThreads();
  while (!w.stuck && progressAsync())
    ;
  w.jobs.clear();
  return !w.stuck;
}

static void addStats(varlen_sim_stats &to, const varlen_sim_stats &from) {
  static_assert(sizeof(varlen_sim_stats) % sizeof(uint64_t) == 0,
                "all members are uint64_t");
  uint64_t sums[sizeof(to) / sizeof(uint64_t)];
  uint64_t more[sizeof(to) / sizeof(uint64_t)];
  memcpy(sums, &to, sizeof(to));
  memcpy(more, &from, sizeof(from));
  for (size_t i = 0; i < sizeof(to) / sizeof(uint64_t); ++i)
    sums[i] += more[i];
  memcpy(&to, sums, sizeof(to));
}

namespace {
/// The clusters in the order they are run in, so many at a time.
struct Plan {
  std::vector<uint64_t> order;
  uint64_t batch;
};

/// What the host threads of a launch share.
struct Work {
  Launch &launch;
  const Plan &plan;
  varlen_sim_result &result;
  std::mutex mutex;
};
} // namespace

static void runWorker(Work &work) {
  Launch &launch = work.launch;
  const Plan &plan = work.plan;
  Worker w;
  w.launch = &launch;
  w.config = launch.config;
  w.stackBytes = launch.config.stack_bytes;
  w.resources = takeResources(w.stackBytes);
  w.residentBlocks = static_cast<uint32_t>(plan.batch * launch.clusterBlocks);
  worker = &w;
  if (w.resources->mapWindows(w.residentBlocks)) {
    w.arena = w.resources->arena;
    w.arenaBytes = size_t(w.residentBlocks) * windowBytes;
    for (;;) {
      uint64_t first = launch.nextBatch.fetch_add(plan.batch);
      if (first >= launch.clusters ||
          !runBatch(w, plan.order, first,
                    std::min(plan.batch, launch.clusters - first)))
        break;
    }
  } else {
    report("launch", noSite,
           "no address space below 4 GiB for the shared memory of %u CTAs",
           w.residentBlocks);
  }
  giveResources(std::move(w.resources));
  --launch.working;
  worker = nullptr;
  std::lock_guard<std::mutex> lock(work.mutex);
  addStats(work.result.stats, w.stats);
  work.result.deadlock |= w.stuck;
}

static void *runThread(void *argument) {
  Work &work = *static_cast<Work *>(argument);
  // The thread that starts the others holds the mutex until all are there.
  work.mutex.lock();
  work.mutex.unlock();
  runWorker(work);
  return nullptr;
}

/// Runs the clusters on so many host threads, the calling one among them; none
/// if the system does not allow so many.
static void runWork(Work &work, uint32_t hostThreads) {
  Launch &launch = work.launch;
  launch.working = hostThreads;
  std::vector<pthread_t> others(hostThreads - 1);
  int error = 0;
  {
    std::lock_guard<std::mutex> lock(work.mutex);
    for (pthread_t &other : others) {
      error = pthread_create(&other, nullptr, runThread, &work);
      if (!error)
        continue;
      size_t started = &other - others.data();
      launch.reports->add("launch", noSite,
                          format("the system made %zu of %u host threads: %s",
                                 started + 1, hostThreads, strerror(error)),
                          "");
      launch.nextBatch = launch.clusters;
      others.resize(started);
      break;
    }
  }
  if (!error)
    runWorker(work);
  for (pthread_t other : others)
    pthread_join(other, nullptr);
}

//===----------------------------------------------------------------------===//
// The whole launch
//===----------------------------------------------------------------------===//

static Plan makePlan(const Launch &launch) {
  Plan plan;
  uint32_t resident = launch.config.co_resident_ctas;
  plan.batch = resident ? std::max<uint64_t>(resident / launch.clusterBlocks, 1)
                        : launch.clusters;
  plan.batch = std::min(plan.batch, launch.clusters);
  plan.order.resize(launch.clusters);
  for (uint64_t i = 0; i < launch.clusters; ++i)
    plan.order[i] = i;
  // No GPU promises an order.
  if (launch.config.scheduler != VARLEN_SIM_ROUND_ROBIN) {
    Worker shuffler;
    shuffler.random = (launch.config.seed * 0x9e3779b97f4a7c15) | 1;
    for (uint64_t i = launch.clusters; i > 1; --i)
      std::swap(plan.order[i - 1], plan.order[shuffler.next() % i]);
  }
  return plan;
}

/// Why this kernel cannot be launched like that; empty if it can.
static std::string checkLaunch(const Launch &launch) {
  const varlen_sim_kernel_info &kernel = *launch.kernel;
  const varlen_sim_launch_params &params = launch.params;
  for (int i = 0; i < 3; ++i) {
    if (!params.grid[i] || !params.block[i])
      return format(
          "grid %u x %u x %u of blocks %u x %u x %u: no size may be 0",
          params.grid[0], params.grid[1], params.grid[2], params.block[0],
          params.block[1], params.block[2]);
    if (params.grid[i] % params.cluster[i])
      return format("grid dimension %d is %u, wanted a multiple of the "
                    "cluster's %u",
                    i, params.grid[i], params.cluster[i]);
    if (kernel.required_block[i] && kernel.required_block[i] != params.block[i])
      return format("block dimension %d is %u, the kernel requires %u", i,
                    params.block[i], kernel.required_block[i]);
    if (kernel.required_cluster[i] &&
        kernel.required_cluster[i] != params.cluster[i])
      return format("cluster dimension %d is %u, the kernel requires %u", i,
                    params.cluster[i], kernel.required_cluster[i]);
  }
  uint32_t limit = kernel.max_threads ? kernel.max_threads : maxThreads;
  uint64_t threads =
      uint64_t(params.block[0]) * params.block[1] * params.block[2];
  if (threads > limit)
    return format("%llu threads per CTA, at most %u are allowed",
                  static_cast<unsigned long long>(threads), limit);
  uint64_t cluster =
      uint64_t(params.cluster[0]) * params.cluster[1] * params.cluster[2];
  if (cluster > maxCluster)
    return format("%llu CTAs per cluster, at most %u are allowed",
                  static_cast<unsigned long long>(cluster), maxCluster);
  uint64_t shared =
      uint64_t(kernel.static_shared_bytes) + params.dynamic_shared_bytes;
  if (shared > launch.config.max_shared_bytes)
    return format("%llu bytes of shared memory (%u static, %u dynamic), the "
                  "device has %u",
                  static_cast<unsigned long long>(shared),
                  kernel.static_shared_bytes, params.dynamic_shared_bytes,
                  launch.config.max_shared_bytes);
  uint64_t registers = uint64_t(kernel.registers) * ((threads + 31) / 32 * 32);
  if (registers > registersPerCTA)
    return format("%llu registers (%u for each of %llu threads), the device "
                  "has %u",
                  static_cast<unsigned long long>(registers), kernel.registers,
                  static_cast<unsigned long long>(threads), registersPerCTA);
  return "";
}

void varlen_sim_config_init(varlen_sim_config *config) {
  *config = {};
  config->seed = 1;
  config->scheduler = VARLEN_SIM_RANDOM;
  config->async = VARLEN_SIM_LATE;
  config->detector = 1;
  config->host_threads = 1;
  config->co_resident_ctas = 1;
  config->max_reports = 20;
  config->trace_cta = -1;
}

varlen_sim_result *varlen_sim_launch(const varlen_sim_kernel *kernel,
                                     const varlen_sim_launch_params *params,
                                     const varlen_sim_config *config) {
  auto result = std::make_unique<varlen_sim_result>();
  const std::vector<std::string> &sites = kernel->module->sites;
  Reports reports(sites, config->max_reports);
  BankRecorder banks;
  Launch launch;
  launch.kernel = &kernel->info;
  launch.params = *params;
  launch.config = *config;
  launch.reports = &reports;
  launch.trace = &result->trace;
  launch.banks = &banks;
  for (uint32_t &size : launch.params.cluster)
    size = std::max(size, 1U);
  if (!launch.config.max_shared_bytes)
    launch.config.max_shared_bytes = maxShared;
  if (!launch.config.stack_bytes)
    launch.config.stack_bytes = VARLEN_SIM_STACK_BYTES;
  std::string problem = checkLaunch(launch);
  if (!problem.empty()) {
    reports.add("launch", noSite, kernel->name + ": " + problem, "");
    result->reports = reports.take();
    return result.release();
  }
  const varlen_sim_launch_params &size = launch.params;
  launch.threads = size.block[0] * size.block[1] * size.block[2];
  launch.clusterBlocks = size.cluster[0] * size.cluster[1] * size.cluster[2];
  launch.sharedBytes =
      kernel->info.static_shared_bytes + size.dynamic_shared_bytes;
  launch.clusters = uint64_t(size.grid[0]) * size.grid[1] * size.grid[2] /
                    launch.clusterBlocks;
  launch.memory = currentMemory();

  Plan plan = makePlan(launch);
  uint32_t hostThreads =
      config->co_resident_ctas ? std::max(config->host_threads, 1U) : 1;
  // A thread without a cluster to run would only cost its stack.
  hostThreads = static_cast<uint32_t>(
      std::min<uint64_t>(hostThreads, std::max<uint64_t>(launch.clusters, 1)));
  Work work{launch, plan, *result, {}};
  runWork(work, hostThreads);

  banks.finish(result->stats);
  for (const auto &[site, count] : banks.sites())
    if (count.conflicts)
      result->conflicts.push_back({site, count});
  std::sort(result->conflicts.begin(), result->conflicts.end(),
            [](const auto &a, const auto &b) {
              return a.count.conflicts != b.count.conflicts
                         ? a.count.conflicts > b.count.conflicts
                         : a.site < b.site;
            });
  result->reports = reports.take();
  result->sites = sites;
  return result.release();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void varlen_sim_result_destroy(varlen_sim_result *result) { delete result; }

uint32_t varlen_sim_result_num_reports(const varlen_sim_result *result) {
  return static_cast<uint32_t>(result->reports.size());
}

varlen_sim_report varlen_sim_result_report(const varlen_sim_result *result,
                                           uint32_t index) {
  const Report &report = result->reports[index];
  return {report.kind.c_str(), report.site.c_str(), report.text.c_str()};
}

int32_t varlen_sim_result_deadlock(const varlen_sim_result *result) {
  return result->deadlock;
}

const varlen_sim_stats *
varlen_sim_result_stats(const varlen_sim_result *result) {
  return &result->stats;
}

uint32_t varlen_sim_result_num_conflicts(const varlen_sim_result *result) {
  return static_cast<uint32_t>(result->conflicts.size());
}

varlen_sim_conflict varlen_sim_result_conflict(const varlen_sim_result *result,
                                               uint32_t index) {
  const auto &conflict = result->conflicts[index];
  const char *site = conflict.site < result->sites.size()
                         ? result->sites[conflict.site].c_str()
                         : "?";
  return {site, conflict.count.phases, conflict.count.conflicts};
}

int32_t varlen_sim_result_write_trace(const varlen_sim_result *result,
                                      const char *path) {
  if (result->trace.empty()) {
    errno = EINVAL;
    return -1;
  }
  FILE *file = fopen(path, "w");
  if (!file)
    return -1;
  result->trace.write(file, result->sites);
  bool failed = ferror(file) != 0;
  return fclose(file) != 0 || failed ? -1 : 0;
}

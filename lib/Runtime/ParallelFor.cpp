//===- ParallelFor.cpp - Threads that share a list of work ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Worker threads are started when first needed and stay. A job is a counter
// that every thread takes items from, the caller too, so items of unequal cost
// (a list that is longest first) fill the threads evenly. Workers that wake up
// late find the counter at its end and go back to sleep; no thread waits for
// them.
//
// pthreads and GCC atomics rather than <thread>: C programs link this, and they
// need not have libstdc++.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Internal.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>

namespace {

struct Job {
  std::atomic<int64_t> next{0};
  int64_t size = 0;
  int64_t workspaceBytes = 0;
  varlen_range_fn fn = nullptr;
  void *context = nullptr;
};

/// Everything but the atomics is guarded by `mutex`.
struct Pool {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
  pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
  Job job;
  /// Which job is open to workers; 0 between jobs. Also read without the mutex
  /// by threads that spin, who then look again with it.
  std::atomic<uint64_t> open{0};
  /// Workers inside the open job.
  std::atomic<int64_t> inside{0};
  uint64_t jobs = 0;
  /// Workers there are, and how many of them may join the open job.
  int64_t workers = 0;
  int64_t wanted = 0;
};

} // namespace

static constexpr int64_t maxThreads = 1024;
/// Turns of the loop before a thread that waits goes to sleep: some 20 us, less
/// than a sleep and a wake-up cost.
static constexpr int spinTurns = 500;

static Pool pool;
/// One job at a time has the workers.
static pthread_mutex_t poolOwner = PTHREAD_MUTEX_INITIALIZER;
static std::atomic<int64_t> requestedThreads{0};
static std::atomic<varlen_parallel_for_fn> hostParallelFor{nullptr};
/// Whether this thread is inside an item.
static thread_local bool insideItem;

static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

namespace {
struct Workspace {
  void *data;
  int64_t size;
};
} // namespace

static thread_local Workspace cached;
static pthread_once_t cleanupOnce = PTHREAD_ONCE_INIT;
/// Frees a thread's workspace when it ends; its value is only a mark.
static pthread_key_t cleanupKey;

static void freeWorkspace(void *) {
  free(cached.data);
  cached = {};
}

/// Memory aligned for vectors and cache lines, or null.
static void *allocateAligned(int64_t bytes) {
  constexpr int64_t alignment = 64;
  int64_t rounded;
  if (bytes < 0 || __builtin_add_overflow(bytes, alignment - 1, &rounded))
    return nullptr;
  rounded = std::max(rounded / alignment, int64_t(1)) * alignment;
  return aligned_alloc(alignment, static_cast<size_t>(rounded));
}

/// This thread's workspace of at least `bytes` bytes, or null.
static void *getWorkspace(int64_t bytes) {
  if (cached.data && cached.size >= bytes)
    return cached.data;
  pthread_once(&cleanupOnce,
               [] { pthread_key_create(&cleanupKey, freeWorkspace); });
  freeWorkspace(nullptr);
  cached.data = allocateAligned(bytes);
  if (!cached.data)
    return nullptr;
  cached.size = bytes;
  pthread_setspecific(cleanupKey, &cached);
  return cached.data;
}

//===----------------------------------------------------------------------===//
// Workers
//===----------------------------------------------------------------------===//

static void takeItems(Job &job, void *workspace) {
  insideItem = true;
  for (int64_t i;
       (i = job.next.fetch_add(1, std::memory_order_relaxed)) < job.size;)
    job.fn(job.context, i, i + 1, workspace);
  insideItem = false;
}

static void *work(void *argument) {
  int64_t index = reinterpret_cast<intptr_t>(argument);
  uint64_t done = 0; // the last job this worker has been in
  pthread_mutex_lock(&pool.mutex);
  for (;;) {
    uint64_t open = pool.open.load();
    if (open == 0 || open == done || index >= pool.wanted) {
      // Often the next job follows at once.
      pthread_mutex_unlock(&pool.mutex);
      for (int turn = 0; turn < spinTurns && pool.open.load() == open; ++turn)
        relax();
      pthread_mutex_lock(&pool.mutex);
      if (pool.open.load() == open)
        pthread_cond_wait(&pool.wake, &pool.mutex);
      continue;
    }
    done = open;
    pool.inside.fetch_add(1);
    int64_t bytes = pool.job.workspaceBytes;
    pthread_mutex_unlock(&pool.mutex);
    // A worker that gets no memory leaves its items to the others.
    if (void *workspace = getWorkspace(bytes))
      takeItems(pool.job, workspace);
    pthread_mutex_lock(&pool.mutex);
    if (pool.inside.fetch_sub(1) == 1)
      pthread_cond_signal(&pool.idle);
  }
}

/// Makes `wanted` workers, or as many as the system allows. Called with the
/// mutex.
static void startWorkers(int64_t wanted) {
  pthread_attr_t attributes;
  if (pool.workers >= wanted || pthread_attr_init(&attributes))
    return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  while (pool.workers < wanted &&
         !pthread_create(
             &thread, &attributes, work,
             reinterpret_cast<void *>(static_cast<intptr_t>(pool.workers))))
    ++pool.workers;
  pthread_attr_destroy(&attributes);
}

/// A forked process has the calling thread only.
static void forgetWorkers() {
  pool.mutex = PTHREAD_MUTEX_INITIALIZER;
  pool.wake = PTHREAD_COND_INITIALIZER;
  pool.idle = PTHREAD_COND_INITIALIZER;
  pool.open = 0;
  pool.inside = 0;
  pool.workers = 0;
  poolOwner = PTHREAD_MUTEX_INITIALIZER;
}

static pthread_once_t forkOnce = PTHREAD_ONCE_INIT;

/// Runs the job on the workers and this thread. Called by the pool's owner.
static void runOnPool(int64_t n, int64_t workspaceBytes, varlen_range_fn fn,
                      void *context, void *workspace, int64_t threads) {
  pthread_once(&forkOnce,
               [] { pthread_atfork(nullptr, nullptr, forgetWorkers); });
  pthread_mutex_lock(&pool.mutex);
  pool.job.next.store(0, std::memory_order_relaxed);
  pool.job.size = n;
  pool.job.workspaceBytes = workspaceBytes;
  pool.job.fn = fn;
  pool.job.context = context;
  pool.wanted = threads - 1;
  startWorkers(pool.wanted);
  pool.open.store(++pool.jobs);
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.mutex);

  takeItems(pool.job, workspace);

  pthread_mutex_lock(&pool.mutex);
  pool.open.store(0);
  pthread_mutex_unlock(&pool.mutex);
  // No thread joins any more; threads inside are at their last item.
  for (int turn = 0; turn < spinTurns && pool.inside.load(); ++turn)
    relax();
  pthread_mutex_lock(&pool.mutex);
  while (pool.inside.load())
    pthread_cond_wait(&pool.idle, &pool.mutex);
  pthread_mutex_unlock(&pool.mutex);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

bool varlen_runtime::runOnThisThread(int64_t lo, int64_t hi,
                                     int64_t workspaceBytes, varlen_range_fn fn,
                                     void *context) {
  // An outer item is using this thread's workspace.
  bool nested = insideItem;
  void *workspace =
      nested ? allocateAligned(workspaceBytes) : getWorkspace(workspaceBytes);
  if (!workspace) {
    setError("not enough memory for a workspace of %" PRId64 " bytes",
             workspaceBytes);
    return false;
  }
  insideItem = true;
  fn(context, lo, hi, workspace);
  insideItem = nested;
  if (nested)
    free(workspace);
  return true;
}

void varlen_runtime::parallelFor(int64_t threads, int64_t n,
                                 int64_t workspaceBytes, varlen_range_fn fn,
                                 void *context) {
  if (n <= 0)
    return;
  threads = std::min({threads, n, maxThreads});
  if (!insideItem && threads > 1) {
    void *workspace = getWorkspace(workspaceBytes);
    if (!workspace) {
      setError("not enough memory for a workspace of %" PRId64 " bytes",
               workspaceBytes);
      return;
    }
    if (pthread_mutex_trylock(&poolOwner) == 0) {
      runOnPool(n, workspaceBytes, fn, context, workspace, threads);
      pthread_mutex_unlock(&poolOwner);
      return;
    }
  }
  // Also where another thread of the host has the workers: no waiting for it.
  runOnThisThread(0, n, workspaceBytes, fn, context);
}

void varlen_parallel_for(int64_t n, int64_t workspace_bytes, varlen_range_fn fn,
                         void *context) {
  if (n <= 0)
    return;
  if (varlen_parallel_for_fn host = hostParallelFor.load()) {
    host(n, workspace_bytes, fn, context);
    return;
  }
  varlen_runtime::parallelFor(varlen_get_num_threads(), n, workspace_bytes, fn,
                              context);
}

void *varlen_allocate(int64_t bytes) { return allocateAligned(bytes); }

void varlen_free(void *memory) { free(memory); }

void varlen_set_num_threads(int64_t threads) {
  requestedThreads.store(std::clamp(threads, int64_t(0), maxThreads));
}

int64_t varlen_get_num_threads() {
  if (int64_t threads = requestedThreads.load())
    return threads;
  static std::atomic<int64_t> available{0};
  if (int64_t threads = available.load())
    return threads;
  cpu_set_t set;
  int64_t threads =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  threads = std::clamp(threads, int64_t(1), maxThreads);
  available.store(threads);
  return threads;
}

void varlen_set_parallel_for(varlen_parallel_for_fn parallel_for) {
  hostParallelFor.store(parallel_for);
}

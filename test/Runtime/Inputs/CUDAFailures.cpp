//===- CUDAFailures.cpp - Every call of the driver fails once -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A part of varlen-cuda-test. A scenario is run as often as it makes calls of
// the driver, and each time another one fails: there must be an error that says
// so, or the right result; and nothing may be left.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Runtime/GPU/CUDADriver.h"
#include "CUDATest.h"

#include <algorithm>
#include <cstring>

namespace {

/// The call that fails: the n-th of an entry, of those of one run.
struct Failure {
  const char *entry;
  int base; // calls before the run
  int n;

  bool hasHappened() const { return fake->calls(entry) >= base + n; }
};

/// What a run has found.
struct Outcome {
  bool isRight = false;
  bool isFreeing = false; // the failure was that of giving something back
};

} // namespace

/// Runs `give`, which gives something back.
template <typename Give>
static void giveBack(const Failure &failure, Outcome &outcome, Give give) {
  bool before = failure.hasHappened();
  give();
  if (!before && failure.hasHappened())
    outcome.isFreeing = true;
}

static char hostMemory[64];

/// What hosts do, and code that upstream's lowering makes.
static void run(const Kernels &kernels, void *stream, const Failure &failure,
                Outcome &outcome) {
  if (stream)
    varlen_gpu_set_stream(stream);
  varlen_gpu_set_device(0);
  varlen_gpu_prepare();
  int32_t *memory = makeRows();
  bool isFreeing = false;
  {
    bool before = failure.hasHappened();
    kernels.layer(memory, rows);
    isFreeing = !before && failure.hasHappened();
  }
  // More than a kernel has without asking.
  int32_t *size = makeRows();
  kernels.shared(size, 64 << 10);
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, nullptr);
  mgpuStreamWaitEvent(nullptr, event);
  mgpuEventSynchronize(event);
  giveBack(failure, outcome, [&] { mgpuEventDestroy(event); });
  // There may be no memory.
  mgpuMemset16(size ? size + 4 : nullptr, 1, 2, nullptr);
  mgpuMemHostRegister(hostMemory, sizeof hostMemory);
  if (fake->count().registrations > 0)
    giveBack(failure, outcome, [&] { mgpuMemHostUnregister(hostMemory); });
  void *shared = mgpuMemAlloc(64, nullptr, 1);
  giveBack(failure, outcome, [&] { mgpuMemFree(shared, nullptr); });
  uint64_t extents[] = {32};
  uint32_t box[] = {16}, steps[] = {1};
  varlen_gpu_tensor_map what = {7,     1, memory, extents, nullptr, box,
                                steps, 0, 0,      0,       0};
  alignas(64) char map[128];
  varlen_gpu_encode_tensor_map(map, &what);
  varlen_gpu_multiprocessors();
  kernels.report(varlen_gpu_status_buffer(),
                 VARLEN_STATUS_START + VARLEN_STATUS_CU_Q, 5);
  bool isGoing = !varlen_last_error();
  bool isReported = varlen_gpu_check(nullptr) != 0;
  std::string error = varlen_last_error() ? varlen_last_error() : "";
  if (isGoing && error.find("cu_seqlens_q[0] = 5") != std::string::npos) {
    varlen_clear_error();
    outcome.isRight = isReported && isAll(load(memory), 3) &&
                      load(size)[0] == 64 << 10 && load(size)[4] == 0x10001;
  }
  giveBack(failure, outcome, [&] {
    varlen_gpu_free(memory);
    varlen_gpu_free(size);
    varlen_gpu_synchronize();
  });
  // What a layer could not free is lost, too.
  outcome.isFreeing |= isFreeing && !outcome.isRight;
}

/// Gives everything back, so that the next run is the first again.
static void release(void *stream) {
  varlen_gpu_release();
  if (stream)
    varlen_gpu_unset_stream();
}

static bool isEqual(const FakeCudaCounts &a, const FakeCudaCounts &b) {
  return a.primaries == b.primaries && a.modules == b.modules &&
         a.streams == b.streams && a.events == b.events && a.pools == b.pools &&
         a.blocks == b.blocks && a.registrations == b.registrations;
}

/// Every call of one entry fails once.
static int testEntry(const Kernels &kernels, void *stream, const char *entry,
                     bool mayBeSilent) {
  int number = 0;
  for (bool isDone = false; !isDone;) {
    ++number;
    FakeCudaCounts before = fake->count();
    Failure failure = {entry, fake->calls(entry), number};
    Outcome outcome;
    fake->fail(entry, number, /*CUDA_ERROR_OUT_OF_MEMORY=*/2);
    run(kernels, stream, failure, outcome);
    giveBack(failure, outcome, [&] { release(stream); });
    isDone = !failure.hasHappened();
    fake->fail(entry, 0, 0);
    std::string error = takeError();
    if (isDone) {
      EXPECT(outcome.isRight && error.empty(), "%s: %s", entry, error.c_str());
      break;
    }
    if (error.empty())
      EXPECT(outcome.isRight && mayBeSilent, "%s %d: no error", entry, number);
    else
      EXPECT(error.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos ||
                 strcmp(entry, "cuGetErrorName") == 0,
             "%s %d: '%s'", entry, number, error.c_str());
    // The next release has what this one could not give back.
    if (stream)
      varlen_gpu_set_stream(stream);
    varlen_gpu_synchronize();
    takeError();
    if (fake->count().registrations > 0)
      mgpuMemHostUnregister(hostMemory);
    release(stream);
    takeError();
    // What could not be given back is not to be found by the next run.
    if (outcome.isFreeing && fake->count().primaries > before.primaries)
      HOST(cuDevicePrimaryCtxRelease_v2(0));
    if (!outcome.isFreeing)
      EXPECT(isEqual(fake->count(), before),
             "%s %d: %d blocks, %d modules, %d "
             "streams, %d pools, %d primaries",
             entry, number, fake->count().blocks - before.blocks,
             fake->count().modules - before.modules,
             fake->count().streams - before.streams,
             fake->count().pools - before.pools,
             fake->count().primaries - before.primaries);
  }
  return number - 1;
}

void testFailures() {
  // Where a call that fails does no harm.
  static const char *const silent[] = {"cuThreadExchangeStreamCaptureMode",
                                       "cuDevicePrimaryCtxGetState",
                                       "cuGetErrorName", "cuGetErrorString"};
  static const char *const entries[] = {
#define NAME(name, arguments) #name,
      VARLEN_CUDA_FUNCTIONS(NAME) VARLEN_CUDA_NEWER_FUNCTIONS(NAME)
#undef NAME
  };
  Kernels kernels;
  void *stream = nullptr;
  Handle context = nullptr;
  HOST(cuCtxCreate_v2(&context, 0, 0));
  HOST(cuStreamCreate(&stream, 1));
  HOST(cuCtxSetCurrent(nullptr));
  int sum = 0;
  for (void *used : {static_cast<void *>(nullptr), stream})
    for (const char *entry : entries) {
      bool mayBeSilent =
          std::any_of(std::begin(silent), std::end(silent),
                      [&](const char *other) { return !strcmp(entry, other); });
      sum += testEntry(kernels, used, entry, mayBeSilent);
    }
  printf("%d failures of %zu entries\n", sum, std::size(entries));
  HOST(cuStreamDestroy_v2(stream));
  HOST(cuCtxDestroy_v2(context));
}

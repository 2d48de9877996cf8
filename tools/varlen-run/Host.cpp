//===- Host.cpp - What compiled code finds in its host --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Host.h"

#include "varlen/ExecutionEngine/ExecutionEngine.h"
#include "varlen/Runtime/GPUExecutor.h"
#include "varlen/Runtime/MGPU.h"
#include "varlen/Runtime/Runtime.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unistd.h>

using namespace varlen_run;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
/// The buffers of compiled code.
struct Heap {
  std::mutex mutex;
  llvm::DenseMap<void *, int64_t> buffers;
  int64_t live = 0;
  int64_t peak = 0;

  void *add(void *pointer, int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    if (pointer) {
      buffers[pointer] = bytes;
      grow(bytes);
    }
    return pointer;
  }
  bool remove(void *pointer) {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = buffers.find(pointer);
    if (it == buffers.end())
      return false;
    live -= it->second;
    buffers.erase(it);
    return true;
  }
  /// With the mutex.
  void grow(int64_t bytes) {
    live += bytes;
    peak = std::max(peak, live);
  }
  void addTemporary(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    grow(bytes);
    live -= bytes;
  }
};
} // namespace

static Heap &getHeap() {
  static Heap heap;
  return heap;
}

static void *countedMalloc(size_t bytes) {
  return getHeap().add(malloc(bytes), static_cast<int64_t>(bytes));
}

static void *countedAlignedAlloc(size_t alignment, size_t bytes) {
  return getHeap().add(aligned_alloc(alignment, bytes),
                       static_cast<int64_t>(bytes));
}

static void countedFree(void *pointer) {
  getHeap().remove(pointer);
  free(pointer);
}

void varlen_run::releaseBuffer(void *pointer) {
  if (getHeap().remove(pointer))
    free(pointer);
}

int64_t varlen_run::getPeakBytes() {
  std::lock_guard<std::mutex> lock(getHeap().mutex);
  return getHeap().peak;
}

void varlen_run::restartPeakBytes() {
  std::lock_guard<std::mutex> lock(getHeap().mutex);
  getHeap().peak = getHeap().live;
}

int64_t varlen_run::getLiveBytes() {
  std::lock_guard<std::mutex> lock(getHeap().mutex);
  return getHeap().live;
}

static int64_t countedWorkTiles(const void *cuQ, int64_t cuQSize,
                                const void *cuK, int64_t cuKSize,
                                const void *usedQ, int64_t usedQSize,
                                const void *usedK, int64_t usedKSize,
                                const void *offset, int64_t offsetSize,
                                int32_t indexBytes, int64_t tq, int64_t tk,
                                int64_t kvHeads, int64_t group, int64_t blockM,
                                varlen_mask_fn mask, varlen_work_tile **tiles) {
  int64_t count = varlen_work_tiles(
      cuQ, cuQSize, cuK, cuKSize, usedQ, usedQSize, usedK, usedKSize, offset,
      offsetSize, indexBytes, tq, tk, kvHeads, group, blockM, mask, tiles);
  if (count >= 0)
    getHeap().add(*tiles, count * sizeof(varlen_work_tile));
  return count;
}

static int64_t countedSplitTiles(const varlen_work_tile *tiles, int64_t count,
                                 int64_t group, int64_t kvBlock, int64_t maxFew,
                                 int64_t partBlocks, int64_t fewPartBlocks,
                                 varlen_work_items *items) {
  count = varlen_split_tiles(tiles, count, group, kvBlock, maxFew, partBlocks,
                             fewPartBlocks, items);
  if (count >= 0)
    getHeap().add(items->items, count * sizeof(varlen_work_item));
  return count;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

static ItemProgress itemProgress;

const ItemProgress &varlen_run::getItemProgress() { return itemProgress; }

static void countedParallelFor(int64_t n, int64_t workspaceBytes,
                               varlen_range_fn fn, void *context) {
  int64_t threads = std::min(varlen_get_num_threads(), n);
  if (n > 0 && workspaceBytes > 0)
    getHeap().addTemporary(threads * workspaceBytes);
  struct Call {
    varlen_range_fn fn;
    void *context;
  } call = {fn, context};
  itemProgress.done = 0;
  itemProgress.all = n;
  varlen_parallel_for(
      n, workspaceBytes,
      [](void *context, int64_t lo, int64_t hi, void *workspace) {
        auto *call = static_cast<Call *>(context);
        call->fn(call->context, lo, hi, workspace);
        itemProgress.done.fetch_add(hi - lo, std::memory_order_relaxed);
      },
      &call);
  itemProgress.all = 0;
}

//===----------------------------------------------------------------------===//
// Failed checks
//===----------------------------------------------------------------------===//

/// What a check in compiled code prints before it aborts.
static thread_local const char *lastLine = nullptr;

static int keepLine(const char *line) {
  lastLine = line;
  return 0;
}

/// A failed check is an error of the input: say so, and end without a core. No
/// result has been written yet.
[[noreturn]] static void failCheck() {
  llvm::StringRef text =
      lastLine ? lastLine : "the compiled function has aborted";
  // The checks of generate-runtime-verification have three lines: a heading,
  // ^ what is wrong, and Location: loc("FILE":LINE:COLUMN).
  auto [first, rest] = text.split("\n^ ");
  if (!rest.empty()) {
    auto [what, location] = rest.split("\nLocation: loc(");
    location.consume_back(")");
    std::string place = location.str();
    llvm::erase(place, '"');
    llvm::errs() << place << (place.empty() ? "" : ": ") << "error: " << what
                 << "\n";
  } else {
    llvm::errs() << "error: " << text << "\n";
  }
  _exit(1);
}

/// What host code of a GPU calls.
template <typename Add> static void addGPUSymbols(Add add) {
  add("varlen_gpu_executor_register", varlen_gpu_executor_register);
  add("varlen_gpu_status_buffer", varlen_gpu_status_buffer);
  add("varlen_gpu_allocate", varlen_gpu_allocate);
  add("varlen_gpu_free", varlen_gpu_free);
  add("varlen_gpu_multiprocessors", varlen_gpu_multiprocessors);
  add("mgpuModuleLoad", mgpuModuleLoad);
  add("mgpuModuleLoadJIT", mgpuModuleLoadJIT);
  add("mgpuModuleUnload", mgpuModuleUnload);
  add("mgpuModuleGetFunction", mgpuModuleGetFunction);
  add("mgpuLaunchKernel", mgpuLaunchKernel);
  add("mgpuLaunchClusterKernel", mgpuLaunchClusterKernel);
  add("mgpuStreamCreate", mgpuStreamCreate);
  add("mgpuStreamDestroy", mgpuStreamDestroy);
  add("mgpuStreamSynchronize", mgpuStreamSynchronize);
  add("mgpuStreamWaitEvent", mgpuStreamWaitEvent);
  add("mgpuEventCreate", mgpuEventCreate);
  add("mgpuEventDestroy", mgpuEventDestroy);
  add("mgpuEventSynchronize", mgpuEventSynchronize);
  add("mgpuEventRecord", mgpuEventRecord);
  add("mgpuMemAlloc", mgpuMemAlloc);
  add("mgpuMemFree", mgpuMemFree);
  add("mgpuMemcpy", mgpuMemcpy);
  add("mgpuMemset32", mgpuMemset32);
  add("mgpuMemset16", mgpuMemset16);
  add("mgpuMemHostRegister", mgpuMemHostRegister);
  add("mgpuMemHostUnregister", mgpuMemHostUnregister);
  add("mgpuMemHostRegisterMemRef", mgpuMemHostRegisterMemRef);
  add("mgpuMemHostUnregisterMemRef", mgpuMemHostUnregisterMemRef);
  add("mgpuSetDefaultDevice", mgpuSetDefaultDevice);
  add("mgpuTensorMapEncodeTiled", mgpuTensorMapEncodeTiled);
  add("mgpuTensorMapEncodeTiledMemref", mgpuTensorMapEncodeTiledMemref);
}

void varlen_run::forEachHostSymbol(
    llvm::function_ref<void(llvm::StringRef, void *)> visit) {
  auto add = [&](llvm::StringRef name, auto *function) {
    visit(name, reinterpret_cast<void *>(function));
  };
  mlir::varlen::forEachRuntimeSymbol(visit);
  // Those that are counted take the place of the runtime's.
  add("malloc", countedMalloc);
  add("aligned_alloc", countedAlignedAlloc);
  add("free", countedFree);
  add("puts", keepLine);
  add("abort", failCheck);
  add("varlen_work_tiles", countedWorkTiles);
  add("varlen_free_tiles", countedFree);
  add("varlen_split_tiles", countedSplitTiles);
  add("varlen_parallel_for", countedParallelFor);
  addGPUSymbols(add);
  uint32_t count = 0;
  const varlen_sim_symbol *symbols = varlen_sim_symbols(&count);
  for (uint32_t i = 0; i < count; ++i)
    visit(symbols[i].name, symbols[i].address);
}

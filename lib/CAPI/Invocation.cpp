//===- Invocation.cpp - A run of compiled code ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Errors leave compiled code by longjmp: between the setjmp and the functions
// here there are frames of compiled code only, which have nothing to destroy.
// Its buffers are known and released.
//
//===----------------------------------------------------------------------===//

#include "Invocation.h"

#include "../Runtime/Internal.h"
#include "Status.h"
#include "varlen/ExecutionEngine/ExecutionEngine.h"

#include <array>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace varlen_capi;

/// Where the thread is. The last line is what a check prints before it aborts.
static thread_local Invocation *current;
static thread_local jmp_buf *wayOut;
static thread_local char lastLine[512];
/// Whether it does items of a varlen_parallel_for.
static thread_local bool insideItems;

//===----------------------------------------------------------------------===//
// Invocation
//===----------------------------------------------------------------------===//

Invocation::Invocation(const VarlenCallOptions &options)
    : parallelFor(options.parallelFor),
      parallelForContext(options.parallelForContext),
      threads(options.numThreads > 0 ? options.numThreads
                                     : varlenGetNumThreads()),
      workspace(options.workspace, options.workspaceSize) {}

VarlenStatus Invocation::run(Entry entry, void **arguments) {
  Invocation *outer = current;
  jmp_buf *outerWayOut = wayOut;
  jmp_buf here;
  varlen_clear_error();
  current = this;
  wayOut = &here;
  if (!_setjmp(here))
    entry(arguments);
  current = outer;
  wayOut = outerWayOut;
  releaseAll();
  if (VarlenStatus failure = status.load())
    return fail(failure, "%s", message);
  if (const char *error = varlen_last_error())
    return fail(lacksMemory ? VARLEN_OUT_OF_MEMORY : VARLEN_BAD_DATA, "%s",
                error);
  return VARLEN_OK;
}

void Invocation::startMeasuring() {
  isMeasuring = true;
  workspace.setUnlimited();
}

void Invocation::setFailed(VarlenStatus newStatus, const char *format, ...) {
  std::lock_guard<std::mutex> lock(mutex);
  if (status.load())
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  status.store(newStatus);
}

void Invocation::leave(VarlenStatus newStatus, const char *format, ...) {
  char text[sizeof message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  setFailed(newStatus, "%s", text);
  longjmp(*wayOut, 1);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void *Invocation::takeFromWorkspace(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  return workspace.take(bytes);
}

void *Invocation::allocate(size_t bytes) {
  if (workspace)
    if (void *memory = takeFromWorkspace(bytes))
      return memory;
  if (isMeasuring || bytes > Workspace::tooManyBytes)
    return nullptr;
  auto *block = static_cast<HeapBlock *>(aligned_alloc(
      Workspace::alignment, sizeof(HeapBlock) + Workspace::roundUp(bytes)));
  if (!block)
    return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  block->previous = nullptr;
  block->next = blocks;
  if (blocks)
    blocks->previous = block;
  blocks = block;
  return block + 1;
}

void Invocation::release(void *pointer) {
  if (!pointer)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  // The one tile of a list that is only measured is elsewhere.
  if (isMeasuring && !workspace.has(pointer))
    pointer = workspace.popList();
  if (workspace.has(pointer))
    return workspace.giveBack(pointer);
  if (isMeasuring)
    return;
  HeapBlock *block = static_cast<HeapBlock *>(pointer) - 1;
  (block->previous ? block->previous->next : blocks) = block->next;
  if (block->next)
    block->next->previous = block->previous;
  free(block);
}

void Invocation::releaseAll() {
  while (HeapBlock *block = blocks) {
    blocks = block->next;
    free(block);
  }
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

namespace varlen_capi {

/// The work of one varlen_parallel_for.
struct Items {
  Invocation &invocation;
  varlen_range_fn fn;
  void *context;
  int64_t size;
  int64_t workspaceBytes;
  /// Workspaces of threads within the caller's workspace, or null.
  char *scratch = nullptr;
  /// A bit for each of these that no thread uses.
  std::array<std::atomic<uint64_t>, 16> freeSlots = {};
  std::atomic<int64_t> done{0};

  int64_t getSlotBytes() const {
    return static_cast<int64_t>(
        Workspace::roundUp(static_cast<size_t>(workspaceBytes)));
  }
  int64_t getMaxSlots() const { return 64 * freeSlots.size(); }
  void addScratch();
  int takeSlot();
  void returnSlot(int slot) {
    freeSlots[slot / 64].fetch_or(uint64_t(1) << slot % 64);
  }
  void runAll();
  void runHere(int64_t lo, int64_t hi, void *workspace);
  static void run(void *context, int64_t lo, int64_t hi, void *workspace);
  static void runOnCallersThread(void *context, int64_t begin, int64_t end);
};

} // namespace varlen_capi

void Items::addScratch() {
  int64_t slots = std::min({invocation.threads, size, getMaxSlots()}), bytes;
  if (__builtin_mul_overflow(getSlotBytes(), slots, &bytes))
    bytes = INT64_MAX;
  // Without room, each thread has memory of its own.
  scratch = static_cast<char *>(invocation.takeFromWorkspace(bytes));
  for (int64_t slot = 0; scratch && slot < slots; ++slot)
    returnSlot(static_cast<int>(slot));
}

/// A slot that no other thread has, or -1.
int Items::takeSlot() {
  for (size_t word = 0; word < freeSlots.size(); ++word)
    for (uint64_t bits = freeSlots[word].load(); bits;) {
      int bit = __builtin_ctzll(bits);
      if (freeSlots[word].compare_exchange_weak(bits, bits & (bits - 1)))
        return static_cast<int>(64 * word) + bit;
    }
  return -1;
}

void Items::runHere(int64_t lo, int64_t hi, void *workspace) {
  Invocation *outer = current;
  jmp_buf *outerWayOut = wayOut;
  bool wasInside = insideItems;
  jmp_buf here;
  current = &invocation;
  wayOut = &here;
  insideItems = true;
  if (!_setjmp(here))
    fn(context, lo, hi, workspace);
  current = outer;
  wayOut = outerWayOut;
  insideItems = wasInside;
}

/// A varlen_range_fn.
void Items::run(void *context, int64_t lo, int64_t hi, void *workspace) {
  auto &items = *static_cast<Items *>(context);
  Invocation &invocation = items.invocation;
  if (invocation.status.load(std::memory_order_relaxed))
    return;
  if (!items.scratch)
    return items.runHere(lo, hi, workspace);
  if (int slot = items.takeSlot(); slot >= 0) {
    items.runHere(lo, hi, items.scratch + slot * items.getSlotBytes());
    return items.returnSlot(slot);
  }
  // The caller has more threads at work than the call was to have.
  workspace = invocation.allocate(items.workspaceBytes);
  if (!workspace)
    return invocation.setFailed(
        VARLEN_OUT_OF_MEMORY, "not enough memory for a workspace of %lld bytes",
        static_cast<long long>(items.workspaceBytes));
  items.runHere(lo, hi, workspace);
  invocation.release(workspace);
}

/// A VarlenItemsFn.
void Items::runOnCallersThread(void *context, int64_t begin, int64_t end) {
  auto &items = *static_cast<Items *>(context);
  if (begin < 0 || begin > end || end > items.size)
    return items.invocation.setFailed(
        VARLEN_INVALID_ARGUMENT,
        "parallelFor of the caller wants items %lld to %lld of %lld",
        static_cast<long long>(begin), static_cast<long long>(end),
        static_cast<long long>(items.size));
  items.done.fetch_add(end - begin);
  if (begin != end &&
      !varlen_runtime::runOnThisThread(
          begin, end, items.scratch ? 0 : items.workspaceBytes, run, &items))
    items.invocation.setFailed(VARLEN_OUT_OF_MEMORY, "%s", varlen_last_error());
}

void Items::runAll() {
  if (invocation.parallelFor && size > 1 && !insideItems) {
    invocation.parallelFor(invocation.parallelForContext, size,
                           runOnCallersThread, this);
    if (done.load() != size)
      invocation.setFailed(VARLEN_INVALID_ARGUMENT,
                           "parallelFor of the caller did %lld of %lld items",
                           static_cast<long long>(done.load()),
                           static_cast<long long>(size));
    return;
  }
  bool hadError = varlen_last_error();
  varlen_runtime::parallelFor(invocation.threads, size,
                              scratch ? 0 : workspaceBytes, run, this);
  if (!hadError && varlen_last_error())
    invocation.lacksMemory = true;
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

namespace varlen_capi {

/// Compiled code runs within an invocation only: it has no constructors.
struct Entries {
  static void *allocate(size_t bytes) {
    void *memory = current->allocate(bytes);
    if (!memory)
      current->leave(VARLEN_OUT_OF_MEMORY,
                     "not enough memory for a buffer of %zu bytes", bytes);
    return memory;
  }
  static void *alignedAllocate(size_t, size_t bytes) { return allocate(bytes); }
  static void release(void *pointer) { current->release(pointer); }
  static bool isMeasuring() { return current->isMeasuring; }

  static int keepLine(const char *line) {
    snprintf(lastLine, sizeof lastLine, "%s", line);
    return 0;
  }
  [[noreturn]] static void failCheck();

  static int64_t makeWorkTiles(const void *cuQ, int64_t cuQSize,
                               const void *cuK, int64_t cuKSize,
                               const void *usedQ, int64_t usedQSize,
                               const void *usedK, int64_t usedKSize,
                               const void *offset, int64_t offsetSize,
                               int32_t indexBytes, int64_t tq, int64_t tk,
                               int64_t kvHeads, int64_t group, int64_t blockM,
                               varlen_mask_fn mask, varlen_work_tile **tiles);
  static int64_t splitTiles(const varlen_work_tile *tiles, int64_t count,
                            int64_t group, int64_t kvBlock, int64_t maxFew,
                            int64_t partBlocks, int64_t fewPartBlocks,
                            varlen_work_items *items);
  /// Nothing can be said of entries where what is measured has none.
  static int32_t checkBlockTable(const int32_t *table, int64_t rows,
                                 int64_t columns, int64_t rowStride,
                                 int64_t numPages, int64_t pageRows,
                                 const void *usedK, int64_t usedKSize,
                                 int32_t indexBytes) {
    return current->isMeasuring ||
           varlen_check_block_table(table, rows, columns, rowStride, numPages,
                                    pageRows, usedK, usedKSize, indexBytes);
  }
  static int64_t
  makeAppendRuns(const void *cu, int64_t cuSize, const void *used,
                 int64_t usedSize, int32_t indexBytes, const int32_t *table,
                 int64_t tableRows, int64_t columns, int64_t tableStride,
                 int64_t kRows, int64_t vRows, int64_t kPages, int64_t vPages,
                 int64_t kPageRows, int64_t vPageRows, int64_t kScalePages,
                 int64_t kScalePageRows, int64_t vScalePages,
                 int64_t vScalePageRows, int64_t cosRows, int64_t sinRows,
                 varlen_append_run **runs);
  static void runParallel(int64_t n, int64_t workspaceBytes, varlen_range_fn fn,
                          void *context);
};

} // namespace varlen_capi

void Entries::failCheck() {
  // generate-runtime-verification prints three lines: a heading, ^ what is
  // wrong, and where.
  llvm::StringRef text(lastLine);
  size_t what = text.find("\n^ ");
  if (what != llvm::StringRef::npos)
    text = text.drop_front(what + 3);
  char message[sizeof lastLine];
  snprintf(message, sizeof message, "%.*s", static_cast<int>(text.size()),
           text.data());
  for (char *end = message; (end = strchr(end, '\n'));)
    *end = ' ';
  lastLine[0] = 0;
  current->leave(VARLEN_CHECK_FAILED, "%s",
                 message[0] ? message : "the compiled function has aborted");
}

/// What a list that is counted has in place of its tiles.
static thread_local struct {
  varlen_work_tile tile; // with all rows
  int64_t maxTiles, kvHeads;
} measuredList;

/// The longest list with these extents: counted, not made. What threads would
/// have of a tile is that of the one tile it gets, which has all rows.
static int64_t measureWorkTiles(const varlen_runtime::WorkTilesRequest &request,
                                varlen_work_tile **tiles, void *&list,
                                const varlen_runtime::Allocator &allocator) {
  varlen_work_tile &all = measuredList.tile;
  int64_t blocks = varlen_runtime::getMaxBlocks(request), pairs, bytes, rest;
  *tiles = nullptr;
  if (__builtin_mul_overflow(blocks, request.kvHeads, &bytes) ||
      __builtin_mul_overflow(bytes, int64_t(sizeof all), &bytes) ||
      __builtin_mul_overflow(blocks, varlen_runtime::getBlockBytes(), &rest))
    bytes = rest = INT64_MAX;
  list = allocator.allocate(bytes);
  void *restMemory = allocator.allocate(rest);
  if (!list || !restMemory)
    return -1;
  allocator.release(restMemory);
  if (__builtin_mul_overflow(request.tq, request.group, &pairs))
    pairs = INT64_MAX;
  all = {};
  all.rows = std::min(pairs, request.blockM);
  all.k_rows = request.tk;
  all.queries = request.tq;
  // Some keys, so that its rows count.
  all.k_end = std::max<int64_t>(request.tk, 1);
  *tiles = &all;
  // As they fit into memory, they can be counted.
  measuredList.maxTiles = blocks * request.kvHeads;
  measuredList.kvHeads = request.kvHeads;
  return blocks > 0;
}

int64_t Entries::makeWorkTiles(const void *cuQ, int64_t cuQSize,
                               const void *cuK, int64_t cuKSize,
                               const void *usedQ, int64_t usedQSize,
                               const void *usedK, int64_t usedKSize,
                               const void *offset, int64_t offsetSize,
                               int32_t indexBytes, int64_t tq, int64_t tk,
                               int64_t kvHeads, int64_t group, int64_t blockM,
                               varlen_mask_fn mask, varlen_work_tile **tiles) {
  varlen_runtime::WorkTilesRequest request = {
      cuQ,   cuQSize,   cuK,    cuKSize,    usedQ,      usedQSize,
      usedK, usedKSize, offset, offsetSize, indexBytes, tq,
      tk,    kvHeads,   group,  blockM,     mask};
  varlen_runtime::Allocator allocator = {
      [](size_t bytes) { return current->allocate(bytes); }, release};
  int64_t count;
  // Within work there are other threads, and the workspace is not measured.
  bool measured = !insideItems;
  if (measured)
    current->workspace.beginList();
  if (current->isMeasuring) {
    void *list;
    count = measureWorkTiles(request, tiles, list, allocator);
    if (count >= 0)
      current->workspace.setList(list);
    else
      current->leave(VARLEN_OUT_OF_MEMORY,
                     "the list of work for %lld rows is too large",
                     static_cast<long long>(tq));
    return count;
  }
  bool hadError = varlen_last_error();
  count = varlen_runtime::makeWorkTiles(request, tiles, allocator);
  if (measured)
    current->workspace.setList(*tiles);
  llvm::StringRef error = count < 0 && !hadError ? varlen_last_error() : "";
  if (error.starts_with("not enough memory"))
    current->lacksMemory = true;
  return count;
}

int64_t Entries::splitTiles(const varlen_work_tile *tiles, int64_t count,
                            int64_t group, int64_t kvBlock, int64_t maxFew,
                            int64_t partBlocks, int64_t fewPartBlocks,
                            varlen_work_items *items) {
  varlen_runtime::SplitTilesRequest request = {
      tiles, count, group, kvBlock, maxFew, partBlocks, fewPartBlocks};
  varlen_runtime::Allocator allocator = {
      [](size_t bytes) { return current->allocate(bytes); }, release};
  if (!current->isMeasuring) {
    bool hadError = varlen_last_error();
    count = varlen_runtime::splitTiles(request, items, allocator);
    if (count < 0 && !hadError)
      current->lacksMemory = true;
    return count;
  }
  int64_t bytes;
  if (!varlen_runtime::getMaxItems(request, measuredList.maxTiles,
                                   measuredList.kvHeads,
                                   measuredList.tile.k_rows, bytes, items) ||
      __builtin_mul_overflow(bytes, int64_t(sizeof(varlen_work_item)), &bytes))
    bytes = INT64_MAX;
  items->items = static_cast<varlen_work_item *>(allocator.allocate(bytes));
  if (!items->items)
    current->leave(VARLEN_OUT_OF_MEMORY, "the list of work is too large");
  // One for the tile that the list of tiles has.
  items->first_merge = count;
  return items->items ? count : -1;
}

int64_t Entries::makeAppendRuns(
    const void *cu, int64_t cuSize, const void *used, int64_t usedSize,
    int32_t indexBytes, const int32_t *table, int64_t tableRows,
    int64_t columns, int64_t tableStride, int64_t kRows, int64_t vRows,
    int64_t kPages, int64_t vPages, int64_t kPageRows, int64_t vPageRows,
    int64_t kScalePages, int64_t kScalePageRows, int64_t vScalePages,
    int64_t vScalePageRows, int64_t cosRows, int64_t sinRows,
    varlen_append_run **runs) {
  bool hadError = varlen_last_error();
  int64_t count = varlen_runtime::makeAppendRuns(
      {cu,          cuSize,         used,        usedSize,       indexBytes,
       table,       tableRows,      columns,     tableStride,    kRows,
       vRows,       kPages,         vPages,      kPageRows,      vPageRows,
       kScalePages, kScalePageRows, vScalePages, vScalePageRows, cosRows,
       sinRows},
      runs, {[](size_t bytes) { return current->allocate(bytes); }, release});
  llvm::StringRef error = count < 0 && !hadError ? varlen_last_error() : "";
  if (error.starts_with("not enough memory"))
    current->lacksMemory = true;
  return count;
}

void Entries::runParallel(int64_t n, int64_t workspaceBytes, varlen_range_fn fn,
                          void *context) {
  if (n <= 0)
    return;
  Invocation &invocation = *current;
  // As many items as there are threads: the list that is counted has fewer.
  Items items = {invocation, fn, context,
                 invocation.isMeasuring ? invocation.threads : n,
                 std::max<int64_t>(workspaceBytes, 0)};
  if (invocation.workspace && !insideItems)
    items.addScratch();
  if (!invocation.isMeasuring)
    items.runAll();
  else if (!items.scratch)
    invocation.leave(VARLEN_OUT_OF_MEMORY,
                     "workspaces of %lld bytes for %lld threads are too large",
                     static_cast<long long>(workspaceBytes),
                     static_cast<long long>(invocation.threads));
  if (items.scratch)
    invocation.release(items.scratch);
  if (invocation.status.load())
    longjmp(*wayOut, 1);
}

void Invocation::forEachSymbol(
    llvm::function_ref<void(llvm::StringRef, void *)> visit) {
  auto add = [&](llvm::StringRef name, auto *function) {
    visit(name, reinterpret_cast<void *>(function));
  };
  mlir::varlen::forEachRuntimeSymbol(visit);
  // In place of the runtime's, or the process's.
  add("malloc", Entries::allocate);
  add("aligned_alloc", Entries::alignedAllocate);
  add("free", Entries::release);
  add("puts", Entries::keepLine);
  add("abort", Entries::failCheck);
  add("varlen_work_tiles", Entries::makeWorkTiles);
  add("varlen_check_block_table", Entries::checkBlockTable);
  add("varlen_append_runs", Entries::makeAppendRuns);
  add("varlen_free_tiles", Entries::release);
  add("varlen_split_tiles", Entries::splitTiles);
  add("varlen_parallel_for", Entries::runParallel);
  add("varlen_is_measuring", Entries::isMeasuring);
}

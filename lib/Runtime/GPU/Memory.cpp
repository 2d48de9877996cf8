//===- Memory.cpp - Device memory of calls and of contexts ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Error.h"
#include "Host.h"
#include "Lock.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

using namespace varlen_runtime;
using namespace varlen_runtime::gpu;

//===----------------------------------------------------------------------===//
// Workspace
//===----------------------------------------------------------------------===//

namespace {

/// What cudaMalloc aligns to; tensor maps need 16, vectors as much.
constexpr uint64_t alignment = 256;

/// Memory that is in use, at a place of the workspace. In the order of places.
struct Block {
  void *memory;
  uint64_t begin, end;
};

/// Of one thread. Where a workspace is only measured, blocks have their places,
/// and memory of the driver.
struct Workspace {
  enum { Off, Measured, Used } mode;
  char *memory;
  uint64_t bytes;
  uint64_t needed; // the largest end so far
  Block *blocks;
  size_t numBlocks, capacity;
};

} // namespace

static pthread_once_t keyOnce = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool hasKey = false;

static void destroyWorkspace(void *opaque) {
  auto *workspace = static_cast<Workspace *>(opaque);
  free(workspace->blocks);
  free(workspace);
}

static void makeKey() {
  hasKey = pthread_key_create(&key, destroyWorkspace) == 0;
}

/// The calling thread's; null if it has never asked for one.
static Workspace *getWorkspace() {
  pthread_once(&keyOnce, makeKey);
  return hasKey ? static_cast<Workspace *>(pthread_getspecific(key)) : nullptr;
}

static void startWorkspace(Workspace start) {
  Workspace *workspace = getWorkspace();
  if (!workspace) {
    if (start.mode == Workspace::Off)
      return;
    workspace = static_cast<Workspace *>(calloc(1, sizeof(Workspace)));
    if (!workspace || !hasKey || pthread_setspecific(key, workspace) != 0) {
      free(workspace);
      setError("no memory to keep account of a workspace");
      return noteFailure();
    }
  }
  start.blocks = workspace->blocks;
  start.capacity = workspace->capacity;
  *workspace = start;
}

void varlen_gpu_set_workspace(void *memory, uint64_t bytes) {
  if (reinterpret_cast<uintptr_t>(memory) % alignment != 0) {
    setError("a workspace at %p: expected memory aligned to %" PRIu64 " bytes",
             memory, alignment);
    return noteFailure();
  }
  startWorkspace({memory ? Workspace::Used : Workspace::Off,
                  static_cast<char *>(memory), bytes, 0, nullptr, 0, 0});
}

void varlen_gpu_measure_workspace() {
  startWorkspace({Workspace::Measured, nullptr, UINT64_MAX, 0, nullptr, 0, 0});
}

uint64_t varlen_gpu_workspace_size() {
  Workspace *workspace = getWorkspace();
  return workspace ? workspace->needed : 0;
}

/// The first place with this much room, for a block that is entered there; null
/// with the error set.
static Block *enterBlock(Workspace &workspace, uint64_t bytes) {
  if (workspace.numBlocks == workspace.capacity) {
    size_t capacity = 2 * workspace.capacity + 16;
    void *grown = realloc(workspace.blocks, capacity * sizeof(Block));
    if (!grown) {
      setError("no memory to keep account of a workspace");
      return nullptr;
    }
    workspace.blocks = static_cast<Block *>(grown);
    workspace.capacity = capacity;
  }
  uint64_t begin = 0;
  size_t i = 0;
  for (; i < workspace.numBlocks && workspace.blocks[i].begin - begin < bytes;
       ++i)
    begin = workspace.blocks[i].end;
  uint64_t end = bytes > UINT64_MAX - alignment - begin
                     ? UINT64_MAX
                     : (begin + bytes + alignment - 1) / alignment * alignment;
  if (end > workspace.needed)
    workspace.needed = end;
  if (begin + bytes > workspace.bytes || end == UINT64_MAX) {
    setError("a workspace of %" PRIu64 " bytes is too small: expected %" PRIu64
             " or more",
             workspace.bytes, end);
    return nullptr;
  }
  Block *block = workspace.blocks + i;
  memmove(block + 1, block, (workspace.numBlocks - i) * sizeof(Block));
  ++workspace.numBlocks;
  // One that is only measured has no memory to point into.
  uintptr_t address = reinterpret_cast<uintptr_t>(workspace.memory) + begin;
  *block = {reinterpret_cast<void *>(address), begin, end};
  return block;
}

/// Whether the block was entered in the workspace.
static bool leaveBlock(Workspace &workspace, const void *memory) {
  for (size_t i = 0; i < workspace.numBlocks; ++i) {
    if (workspace.blocks[i].memory != memory)
      continue;
    --workspace.numBlocks;
    memmove(workspace.blocks + i, workspace.blocks + i + 1,
            (workspace.numBlocks - i) * sizeof(Block));
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Memory of calls
//===----------------------------------------------------------------------===//

void *gpu::allocate(const Place &place, uint64_t bytes) {
  // An empty buffer has an address, too.
  void *memory = backend().allocate(bytes ? bytes : 1, place.stream);
  // Other threads, and the streams of other runtimes, may use it at once.
  if (memory && !hasCallersStream() && backend().synchronize(place.stream)) {
    backend().free(memory, place.stream);
    memory = nullptr;
  }
  return noteNull(memory);
}

void *varlen_gpu_allocate(uint64_t bytes) {
  if (!mayContinue())
    return nullptr;
  Workspace *workspace = getWorkspace();
  bool isEntered = workspace && workspace->mode != Workspace::Off;
  Block *block =
      isEntered ? enterBlock(*workspace, bytes ? bytes : 1) : nullptr;
  if (isEntered && !block)
    return noteNull<void>(nullptr);
  if (isEntered && workspace->mode == Workspace::Used)
    return block->memory;
  Place place = getPlace();
  void *memory = place.isValid ? allocate(place, bytes) : nullptr;
  if (block) {
    void *entered = block->memory;
    block->memory = memory;
    if (!memory) {
      block->memory = entered;
      leaveBlock(*workspace, entered);
    }
  }
  return memory;
}

void varlen_gpu_free(void *memory) {
  if (!memory)
    return;
  Workspace *workspace = getWorkspace();
  if (workspace && workspace->mode != Workspace::Off &&
      leaveBlock(*workspace, memory) && workspace->mode == Workspace::Used)
    return;
  Place place = getPlace();
  if (place.isValid)
    backend().free(memory, place.stream);
}

//===----------------------------------------------------------------------===//
// Memory of contexts
//===----------------------------------------------------------------------===//

namespace {
struct Kept {
  Kept *next;
  const varlen_gpu_backend *owner;
  uint64_t context;
  const char *use;
  void *memory;
  size_t bytes;
  char contents[1]; // as many as there are
};
} // namespace

static pthread_mutex_t keptMutex = PTHREAD_MUTEX_INITIALIZER;
static Kept *kept = nullptr;

static bool isOf(const Kept &entry, uint64_t context, const char *use) {
  return entry.owner == &backend() && entry.context == context &&
         strcmp(entry.use, use) == 0;
}

void *gpu::findKept(uint64_t context, const char *use) {
  Lock lock(keptMutex);
  for (Kept *entry = kept; entry; entry = entry->next)
    if (isOf(*entry, context, use))
      return entry->memory;
  return nullptr;
}

/// Device memory with the entry's contents, ready for every stream; null with
/// the error set.
static void *makeFilled(const Place &place, const Kept &entry) {
  void *memory = backend().allocate(entry.bytes, place.stream);
  if (memory &&
      (backend().copy(memory, entry.contents, entry.bytes, place.stream) ||
       backend().synchronize(place.stream))) {
    backend().free(memory, place.stream);
    return nullptr;
  }
  return memory;
}

void *gpu::getKept(const Place &place, const char *use, const void *contents,
                   size_t bytes) {
  uint64_t context = backend().get_context(place.stream);
  if (noteError(context == 0))
    return nullptr;
  Lock lock(keptMutex);
  for (Kept *entry = kept; entry; entry = entry->next)
    if (isOf(*entry, context, use) && entry->bytes == bytes &&
        memcmp(entry->contents, contents, bytes) == 0)
      return entry->memory;
  if (!mayMake(place, use))
    return nullptr;
  auto *entry = static_cast<Kept *>(malloc(sizeof(Kept) + bytes));
  if (!entry) {
    setError("no memory for %s", use);
    return noteNull<void>(nullptr);
  }
  *entry = {kept, &backend(), context, use, nullptr, bytes, {}};
  memcpy(entry->contents, contents, bytes);
  // The entry stays in any case: if waiting fails, the copy may come later.
  entry->memory = makeFilled(place, *entry);
  if (!entry->memory)
    entry->context = 0;
  kept = entry;
  return noteNull(entry->memory);
}

void gpu::freeKept(const Place &place, uint64_t context) {
  Lock lock(keptMutex);
  for (Kept **link = &kept; *link;) {
    Kept *entry = *link;
    if (entry->owner != &backend() || entry->context != context) {
      link = &entry->next;
      continue;
    }
    backend().free(entry->memory, place.stream);
    *link = entry->next;
    free(entry);
  }
}

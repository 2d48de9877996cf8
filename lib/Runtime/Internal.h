//===- Internal.h - The runtime for a host in this project ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What varlen/Runtime/Runtime.h does, with memory and threads as arguments: a
// host that compiles functions itself gives compiled code its own entry points,
// and chooses both for each call.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_RUNTIME_INTERNAL_H
#define VARLEN_LIB_RUNTIME_INTERNAL_H

#include "varlen/Runtime/Runtime.h"

#include <cstddef>

namespace varlen_runtime {

/// malloc and free, or others.
struct Allocator {
  void *(*allocate)(size_t bytes);
  void (*release)(void *pointer);
};

/// Bytes of what varlen_work_tiles allocates beside the list, for each tile of
/// one kv head.
int64_t getBlockBytes();

/// The arguments of varlen_work_tiles.
struct WorkTilesRequest {
  const void *cuQ;
  int64_t cuQSize;
  const void *cuK;
  int64_t cuKSize;
  const void *usedQ;
  int64_t usedQSize;
  const void *usedK;
  int64_t usedKSize;
  const void *offset;
  int64_t offsetSize;
  int32_t indexBytes;
  int64_t tq, tk, kvHeads, group, blockM;
  varlen_mask_fn mask;
};

/// varlen_work_tiles, with memory from `allocator`: the list first, and what is
/// released before the end after it.
int64_t makeWorkTiles(const WorkTilesRequest &request, varlen_work_tile **tiles,
                      const Allocator &allocator);

/// As many tiles of one kv head as a list of these extents can have, whatever
/// is in cu_seqlens; INT64_MAX if they are too many to count.
int64_t getMaxBlocks(const WorkTilesRequest &request);

/// count * size bytes, at least one; null if that overflows or there is not
/// enough memory.
void *allocate(const Allocator &allocator, int64_t count, int64_t size);

/// The arguments of varlen_append_runs.
struct AppendRequest {
  const void *cu;
  int64_t cuSize;
  const void *used;
  int64_t usedSize;
  int32_t indexBytes;
  const int32_t *table;
  int64_t tableRows, columns, tableStride;
  int64_t kRows, vRows, kPages, vPages, kPageRows, vPageRows;
  int64_t kScalePages, kScalePageRows, vScalePages, vScalePageRows;
  int64_t cosRows, sinRows;
};

/// varlen_append_runs, with memory from `allocator`.
int64_t makeAppendRuns(const AppendRequest &request, varlen_append_run **runs,
                       const Allocator &allocator);

/// The arguments of varlen_split_tiles, in their order.
struct SplitTilesRequest {
  const varlen_work_tile *tiles;
  int64_t count, group, kvBlock, maxFew, partBlocks, fewPartBlocks;
};

/// varlen_split_tiles, with memory from `allocator`.
int64_t splitTiles(const SplitTilesRequest &request, varlen_work_items *items,
                   const Allocator &allocator);

/// As many items, and slots of each kind, as the tiles of a batch of these
/// extents can have; `items` is null. False if they are too many to count.
bool getMaxItems(const SplitTilesRequest &request, int64_t maxTiles,
                 int64_t kvHeads, int64_t keys, int64_t &count,
                 varlen_work_items *items);

/// varlen_parallel_for on our threads, `threads` of them.
void parallelFor(int64_t threads, int64_t n, int64_t workspaceBytes,
                 varlen_range_fn fn, void *context);

/// Items lo..hi-1, on this thread, with a workspace of it. False, with the
/// error set, if there is no memory for that.
bool runOnThisThread(int64_t lo, int64_t hi, int64_t workspaceBytes,
                     varlen_range_fn fn, void *context);

} // namespace varlen_runtime

#endif // VARLEN_LIB_RUNTIME_INTERNAL_H

//===- SplitTiles.cpp - From tiles to work items --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile with so much of all work that threads would wait for it becomes parts.
// That decides who computes sums, never their order: where parts begin, and
// whether a tile has few queries, depends on its sequence alone.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Internal.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>

using namespace varlen_runtime;

/// A tile with more than one of this many parts of all scores is cut.
static constexpr int64_t largeParts = 8;
/// Tiles of few queries: half as many where no more blocks are visited, as
/// these are read from memory for a shorter time than it takes to begin and to
/// end (docs/notes/cpu-kernels.md).
static constexpr int64_t fewBlocks = 2;

/// The first key of the blocks that a tile visits.
static int64_t beginOf(const SplitTilesRequest &request,
                       const varlen_work_tile &tile) {
  return tile.k_begin / request.kvBlock * request.kvBlock;
}

static double scoresOf(const SplitTilesRequest &request,
                       const varlen_work_tile &tile) {
  return static_cast<double>(tile.rows) *
         static_cast<double>(tile.k_end - beginOf(request, tile));
}

/// Asks the sequence, not the tile, which may be its last few rows: tiles of
/// few queries have sums of their own.
static bool isFew(const SplitTilesRequest &request,
                  const varlen_work_tile &tile) {
  int64_t keys = tile.k_end - beginOf(request, tile);
  int64_t most =
      keys > fewBlocks * request.kvBlock ? request.maxFew : request.maxFew / 2;
  // Pairs of a sequence with a tile do not overflow.
  return tile.queries * request.group <= most;
}

namespace {
/// The parts of the keys of a tile.
struct Parts {
  int64_t keys, first, count;

  Parts(const SplitTilesRequest &request, const varlen_work_tile &tile,
        bool few) {
    keys = request.kvBlock * (few ? request.fewPartBlocks : request.partBlocks);
    first = keys ? tile.k_begin / keys : 0;
    count = keys ? (tile.k_end + keys - 1) / keys - first : 1;
  }
};
} // namespace

int64_t varlen_runtime::splitTiles(const SplitTilesRequest &request,
                                   varlen_work_items *result,
                                   const Allocator &allocator) {
  *result = {};
  double allScores = 0;
  for (int64_t i = 0; i < request.count; ++i)
    allScores += scoresOf(request, request.tiles[i]);
  auto isCut = [&](const varlen_work_tile &tile, const Parts &parts) {
    return parts.count > 1 &&
           scoresOf(request, tile) > allScores * (1.0 / largeParts);
  };

  int64_t count = request.count, numCut = 0;
  for (int64_t i = 0; i < request.count; ++i) {
    const varlen_work_tile &tile = request.tiles[i];
    Parts parts(request, tile, isFew(request, tile));
    if (isCut(tile, parts)) {
      count += parts.count;
      ++numCut;
    }
  }
  result->items = static_cast<varlen_work_item *>(
      allocate(allocator, count, sizeof(varlen_work_item)));
  if (!result->items) {
    setError("not enough memory for a list of %" PRId64 " work items", count);
    return -1;
  }
  result->first_merge = count - numCut;
  varlen_work_item *item = result->items,
                   *merge = result->items + result->first_merge;
  for (int64_t i = 0; i < request.count; ++i) {
    const varlen_work_tile &tile = request.tiles[i];
    bool few = isFew(request, tile);
    Parts parts(request, tile, few);
    if (!isCut(tile, parts)) {
      *item++ = {tile, VARLEN_ITEM_WHOLE, few, 0};
      continue;
    }
    int64_t &slots = few ? result->few_slots : result->slots;
    *merge++ = {tile, VARLEN_ITEM_MERGE, few, slots};
    for (int64_t part = 0; part < parts.count; ++part) {
      int64_t begin = (parts.first + part) * parts.keys;
      *item = {tile, VARLEN_ITEM_PART, few, slots++};
      item->tile.k_begin = std::max(begin, tile.k_begin);
      item->tile.k_end = std::min(begin + parts.keys, tile.k_end);
      ++item;
    }
  }
  return count;
}

bool varlen_runtime::getMaxItems(const SplitTilesRequest &request,
                                 int64_t maxTiles, int64_t kvHeads,
                                 int64_t keys, int64_t &count,
                                 varlen_work_items *items) {
  // The tiles of one kv head are those of each other.
  int64_t cut = 0;
  if (request.partBlocks && kvHeads > 0 && kvHeads < largeParts)
    cut = std::min((largeParts - 1) / kvHeads * kvHeads, maxTiles);
  varlen_work_tile all = {};
  all.k_end = keys;
  *items = {};
  items->slots = Parts(request, all, /*few=*/false).count;
  items->few_slots = Parts(request, all, /*few=*/true).count;
  int64_t most = std::max(items->slots, items->few_slots), rows;
  return !__builtin_mul_overflow(items->slots, cut, &items->slots) &&
         !__builtin_mul_overflow(items->few_slots, cut, &items->few_slots) &&
         !__builtin_mul_overflow(most, cut, &rows) &&
         !__builtin_add_overflow(maxTiles, rows, &count);
}

int64_t varlen_split_tiles(const varlen_work_tile *tiles, int64_t count,
                           int64_t group, int64_t kv_block, int64_t max_few,
                           int64_t part_blocks, int64_t few_part_blocks,
                           varlen_work_items *items) {
  return splitTiles(
      {tiles, count, group, kv_block, max_few, part_blocks, few_part_blocks},
      items, {malloc, free});
}

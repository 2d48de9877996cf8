//===- split-tiles.cpp - Tests of lists of work items ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-split-tiles-test

#include "../Expect.h"
#include "Internal.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <random>
#include <vector>

using varlen_runtime::SplitTilesRequest;

namespace {
/// Items that were made, and what was said of them.
struct Items {
  std::vector<varlen_work_item> rows;
  varlen_work_items numbers;
};
} // namespace

static Items split(const SplitTilesRequest &request) {
  Items result = {};
  int64_t count =
      varlen_split_tiles(request.tiles, request.count, request.group,
                         request.kvBlock, request.maxFew, request.partBlocks,
                         request.fewPartBlocks, &result.numbers);
  EXPECT(count >= 0 && result.numbers.items, "no list of items");
  if (count >= 0)
    result.rows.assign(result.numbers.items, result.numbers.items + count);
  varlen_free_tiles(reinterpret_cast<varlen_work_tile *>(result.numbers.items));
  return result;
}

static bool isSame(const varlen_work_tile &a, const varlen_work_tile &b) {
  return !memcmp(&a, &b, sizeof a);
}

/// Checks the items of tiles against the definition, tile by tile.
static void check(const SplitTilesRequest &request, int64_t &numCut,
                  int64_t &numFew) {
  Items items = split(request);
  auto keysOf = [&](const varlen_work_tile &tile) {
    return tile.k_end - tile.k_begin / request.kvBlock * request.kvBlock;
  };
  int64_t all = 0;
  for (int64_t i = 0; i < request.count; ++i)
    all += request.tiles[i].rows * keysOf(request.tiles[i]);
  size_t at = 0, merge = static_cast<size_t>(items.numbers.first_merge);
  int64_t slots[2] = {0, 0};
  for (int64_t i = 0; i < request.count; ++i) {
    const varlen_work_tile &tile = request.tiles[i];
    int64_t most = request.maxFew;
    if (keysOf(tile) <= 2 * request.kvBlock)
      most /= 2;
    bool few = tile.queries * request.group <= most;
    int64_t part =
        request.kvBlock * (few ? request.fewPartBlocks : request.partBlocks);
    bool isCut = part && 8 * tile.rows * keysOf(tile) > all &&
                 tile.k_begin / part != (tile.k_end - 1) / part;
    numFew += few;
    if (!isCut) {
      EXPECT(at < items.rows.size() && isSame(items.rows[at].tile, tile) &&
                 items.rows[at].kind == VARLEN_ITEM_WHOLE &&
                 items.rows[at].few == few,
             "tile %" PRId64 " is not whole", i);
      ++at;
      continue;
    }
    ++numCut;
    EXPECT(merge < items.rows.size() && isSame(items.rows[merge].tile, tile) &&
               items.rows[merge].kind == VARLEN_ITEM_MERGE &&
               items.rows[merge].few == few &&
               items.rows[merge].slot == slots[few],
           "nothing merges tile %" PRId64, i);
    ++merge;
    for (int64_t begin = tile.k_begin; begin < tile.k_end; ++at) {
      if (at >= items.rows.size()) {
        EXPECT(false, "parts of tile %" PRId64 " are missing", i);
        return;
      }
      varlen_work_tile own = tile;
      own.k_begin = begin;
      own.k_end = begin = std::min((begin / part + 1) * part, tile.k_end);
      const varlen_work_item &item = items.rows[at];
      EXPECT(isSame(item.tile, own) && item.kind == VARLEN_ITEM_PART &&
                 item.few == few && item.slot == slots[few]++,
             "tile %" PRId64 ", keys from %" PRId64 " to %" PRId64, i,
             item.tile.k_begin, item.tile.k_end);
    }
  }
  EXPECT(static_cast<int64_t>(at) == items.numbers.first_merge &&
             merge == items.rows.size(),
         "items behind the last one");
  EXPECT(items.numbers.slots == slots[0] && items.numbers.few_slots == slots[1],
         "slots for %" PRId64 " and %" PRId64 " states", items.numbers.slots,
         items.numbers.few_slots);
}

static void testRandomTiles() {
  std::mt19937_64 random(1);
  int64_t numCut = 0, numFew = 0;
  auto number = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<varlen_work_tile> tiles(number(0, 12));
    for (varlen_work_tile &tile : tiles) {
      tile = {};
      tile.rows = number(1, 20);
      tile.queries = number(0, 12);
      tile.k_rows = number(0, 5) ? number(0, 300) : -1;
      tile.k_end = number(0, std::max<int64_t>(tile.k_rows, 0));
      tile.k_begin = number(0, 1) * number(0, tile.k_end);
      if (tile.k_begin == tile.k_end)
        tile.k_begin = tile.k_end = 0;
    }
    bool hasParts = number(0, 4);
    check({tiles.data(), static_cast<int64_t>(tiles.size()), number(1, 3),
           number(1, 9), number(2, 16), hasParts ? number(1, 4) : 0,
           hasParts ? number(1, 4) : 0},
          numCut, numFew);
  }
  EXPECT(numCut > 1000 && numFew > 1000, "%" PRId64 " cut, %" PRId64 " few",
         numCut, numFew);
}

/// No batch of these extents has more items, or slots, than are counted.
static void testMaxItems() {
  std::mt19937_64 random(2);
  bool isReached = false;
  for (int round = 0; round < 5000; ++round) {
    int64_t kvHeads = 1 + static_cast<int64_t>(random() % 9);
    int64_t keys = 1 + static_cast<int64_t>(random() % 200);
    std::vector<varlen_work_tile> blocks(1 + random() % 4), tiles;
    for (varlen_work_tile &tile : blocks) {
      tile = {};
      tile.rows = 1 + static_cast<int64_t>(random() % 4);
      tile.queries = static_cast<int64_t>(random() % 20);
      tile.k_rows = tile.k_end = 1 + static_cast<int64_t>(random() % keys);
    }
    for (int64_t head = 0; head < kvHeads; ++head)
      tiles.insert(tiles.end(), blocks.begin(), blocks.end());
    SplitTilesRequest request = {
        tiles.data(), static_cast<int64_t>(tiles.size()), 1, 4, 8, 2, 1};
    Items items = split(request);
    int64_t count;
    varlen_work_items most;
    EXPECT(varlen_runtime::getMaxItems(request, request.count, kvHeads, keys,
                                       count, &most),
           "not counted");
    EXPECT(static_cast<int64_t>(items.rows.size()) <= count &&
               items.numbers.slots <= most.slots &&
               items.numbers.few_slots <= most.few_slots,
           "%zu items of %" PRId64 ", %" PRId64 " slots of %" PRId64,
           items.rows.size(), count, items.numbers.slots, most.slots);
    isReached |= items.numbers.slots > 0 && items.numbers.slots == most.slots;
  }
  EXPECT(isReached, "no batch has as many slots as are counted");
  int64_t count;
  varlen_work_items most;
  EXPECT(!varlen_runtime::getMaxItems({nullptr, 0, 1, 1, 8, 1, 1}, INT64_MAX, 1,
                                      INT64_MAX / 2, count, &most),
         "too many items are counted");
}

static void testNoMemory() {
  varlen_work_tile tile = {};
  tile.rows = tile.queries = 1;
  varlen_work_items items;
  varlen_clear_error();
  int64_t count = varlen_runtime::splitTiles(
      {&tile, 1, 1, 4, 8, 2, 1}, &items,
      {[](size_t) -> void * { return nullptr; }, [](void *) {}});
  EXPECT(count == -1 && !items.items && varlen_last_error() &&
             !strcmp(varlen_last_error(),
                     "not enough memory for a list of 1 work items"),
         "%" PRId64 " items", count);
  varlen_clear_error();
}

int main() {
  testRandomTiles();
  testMaxItems();
  testNoMemory();
  return summary();
}

//===- WorkTiles.cpp - From cu_seqlens to a list of work ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cu_seqlens may hold anything: all of it is checked before the first tile is
// made. Another thread may change it afterwards, so what is read again is
// clamped: tiles are of 0 <= begin <= end <= rows, whatever it holds by then.
// No C++ library function that needs libstdc++ is used: C programs link this.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Integers.h"
#include "Internal.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>

using varlen_runtime::checkCuSeqlens;
using varlen_runtime::Integers;
using varlen_runtime::setError;

namespace {

/// What is known of a batch, and how to cut it.
struct Batch {
  Integers cuQ, cuK, usedQ, usedK, offset;
  int64_t tq, tk, kvHeads, group, blockM;
  varlen_mask_fn mask;

  int64_t sequences() const { return cuQ.size - 1; }
  /// Whether keys are in pages, `tk` rows of each sequence at most.
  bool isPaged() const { return !cuK && cuK.size == -1; }
};

/// The tiles of one block of pairs, the same for every kv head.
struct Block {
  int64_t longest; // keysOf of the blocks of the same run of rows
  varlen_work_tile tile;
};

} // namespace

/// The number of keys that some row of a tile sees.
static int64_t keysOf(const varlen_work_tile &tile) {
  return tile.k_end - tile.k_begin;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool varlen_runtime::checkIndexBytes(int32_t bytes) {
  if (bytes == 4 || bytes == 8)
    return true;
  setError("cu_seqlens of %" PRId32 "-byte integers: expected 4 or 8", bytes);
  return false;
}

bool varlen_runtime::checkCuSeqlens(const Integers &cu, int64_t rows,
                                    const char *rowsName) {
  if (cu.size < 1 || !cu) {
    setError("%s is empty: expected at least 1 entry, the 0 it starts with",
             cu.name);
    return false;
  }
  if (cu[0] != 0) {
    setError("%s[0] = %" PRId64 ": cu_seqlens must start at 0", cu.name, cu[0]);
    return false;
  }
  for (int64_t i = 1; i < cu.size; ++i) {
    if (cu[i] < cu[i - 1]) {
      setError("%s[%" PRId64 "] = %" PRId64 " is smaller than %s[%" PRId64
               "] = %" PRId64 ": cu_seqlens must not decrease",
               cu.name, i, cu[i], cu.name, i - 1, cu[i - 1]);
      return false;
    }
    if (cu[i] - cu[i - 1] > VARLEN_MAX_SEQUENCE) {
      setError("sequence %" PRId64 " of %s has %" PRId64
               " rows: expected at most %" PRId64,
               i - 1, cu.name, cu[i] - cu[i - 1], VARLEN_MAX_SEQUENCE);
      return false;
    }
    if (cu[i] > rows) {
      setError("%s[%" PRId64 "] = %" PRId64 " is larger than the %" PRId64
               " rows of %s: cu_seqlens must end within them",
               cu.name, i, cu[i], rows, rowsName);
      return false;
    }
  }
  return true;
}

static bool checkLength(const Integers &list, int64_t sequences) {
  if (!list || list.size == sequences)
    return true;
  setError("%s has %" PRId64 " entries: expected %" PRId64
           ", one for each sequence of cu_seqlens_q",
           list.name, list.size, sequences);
  return false;
}

static bool checkUsed(const Integers &used, const Integers &cu) {
  if (!checkLength(used, cu.size - 1))
    return false;
  for (int64_t s = 0; used && s < used.size; ++s) {
    int64_t slot = cu[s + 1] - cu[s];
    if (used[s] >= 0 && used[s] <= slot)
      continue;
    setError("%s[%" PRId64 "] = %" PRId64 ": expected 0 to %" PRId64
             ", the length of the sequence's slot in %s",
             used.name, s, used[s], slot, cu.name);
    return false;
  }
  return true;
}

/// That each sequence has so many rows at most: those of its pages.
static bool checkPagedLengths(const Integers &used, int64_t rows) {
  for (int64_t s = 0; s < used.size; ++s) {
    if (used[s] < 0 || used[s] > rows) {
      setError("%s[%" PRId64 "] = %" PRId64 ": expected 0 to %" PRId64
               ", the rows of the pages that block_table has of a sequence",
               used.name, s, used[s], rows);
      return false;
    }
    if (used[s] > VARLEN_MAX_SEQUENCE) {
      setError("%s[%" PRId64 "] = %" PRId64 ": expected at most %" PRId64,
               used.name, s, used[s], VARLEN_MAX_SEQUENCE);
      return false;
    }
  }
  return true;
}

static bool check(const Batch &batch) {
  auto isExtent = [](int64_t x) { return x >= 0 && x <= VARLEN_MAX_ROWS; };
  if (!isExtent(batch.tq) || !isExtent(batch.tk) || !isExtent(batch.kvHeads) ||
      !isExtent(batch.group) || batch.blockM < 1) {
    setError("bad sizes of an attention: %" PRId64 " query rows, %" PRId64
             " key rows, %" PRId64 " kv heads, group %" PRId64
             ", block_m %" PRId64 ": expected extents from 0 to 2^60 and "
             "block_m >= 1",
             batch.tq, batch.tk, batch.kvHeads, batch.group, batch.blockM);
    return false;
  }
  if (!checkCuSeqlens(batch.cuQ, batch.tq, "q"))
    return false;
  if (batch.isPaged() && batch.usedK)
    return checkUsed(batch.usedQ, batch.cuQ) &&
           checkLength(batch.usedK, batch.sequences()) &&
           checkPagedLengths(batch.usedK, batch.tk) &&
           checkLength(batch.offset, batch.sequences());
  if (!checkCuSeqlens(batch.cuK, batch.tk, "k"))
    return false;
  if (batch.cuQ.size != batch.cuK.size) {
    setError("cu_seqlens_q has %" PRId64 " entries and cu_seqlens_k %" PRId64
             ": expected the same number",
             batch.cuQ.size, batch.cuK.size);
    return false;
  }
  return checkUsed(batch.usedQ, batch.cuQ) &&
         checkUsed(batch.usedK, batch.cuK) &&
         checkLength(batch.offset, batch.sequences());
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Calls visit(rows, tile) for every run of query rows that share a tile's
/// sequence fields: the rows in use of each sequence, and the gaps between.
template <typename Visit>
static void forEachRun(const Batch &batch, Visit visit) {
  auto visitGap = [&](int64_t begin, int64_t end) {
    varlen_work_tile tile = {};
    tile.q_row = begin;
    tile.k_rows = -1;
    if (begin < end)
      visit(end - begin, tile);
  };
  auto clamp = [](int64_t x, int64_t low, int64_t high) {
    return std::max(low, std::min(x, high));
  };
  int64_t end = 0;
  for (int64_t s = 0; s < batch.sequences(); ++s) {
    int64_t begin = end;
    end = clamp(batch.cuQ[s + 1], begin,
                begin + std::min(batch.tq - begin, VARLEN_MAX_SEQUENCE));
    if (begin == end)
      continue;
    varlen_work_tile tile = {};
    tile.q_row = begin;
    int64_t kBegin = 0, kEnd = batch.tk;
    if (!batch.isPaged()) {
      kBegin = clamp(batch.cuK[s], 0, batch.tk);
      kEnd = clamp(batch.cuK[s + 1], kBegin, batch.tk);
    }
    tile.k_row = batch.isPaged() ? s : kBegin;
    tile.k_rows = batch.usedK ? batch.usedK[s] : kEnd - kBegin;
    tile.k_rows =
        clamp(tile.k_rows, 0, std::min(batch.tk - kBegin, VARLEN_MAX_SEQUENCE));
    tile.queries =
        batch.usedQ ? clamp(batch.usedQ[s], 0, end - begin) : end - begin;
    tile.offset = batch.offset ? batch.offset[s] : 0;
    if (tile.queries > 0)
      visit(tile.queries, tile);
    visitGap(begin + tile.queries, end);
  }
  visitGap(end, batch.tq);
}

/// Sets the bounds of the keys that the rows of `tile` see.
static void setKeyRange(const Batch &batch, varlen_work_tile &tile) {
  int64_t range[] = {0, tile.k_rows};
  if (batch.mask && tile.k_rows > 0)
    batch.mask(tile.queries, tile.k_rows, tile.offset, tile.first / batch.group,
               (tile.first + tile.rows - 1) / batch.group, range);
  bool isSeen = range[0] < range[1];
  tile.k_begin = isSeen ? range[0] : 0;
  tile.k_end = isSeen ? range[1] : 0;
}

/// The number of blocks, or -1 if that or the number of pairs overflows.
static int64_t countBlocks(const Batch &batch) {
  int64_t count = 0;
  bool overflow = false;
  forEachRun(batch, [&](int64_t rows, const varlen_work_tile &) {
    int64_t pairs, blocks = 0;
    overflow |= __builtin_mul_overflow(rows, batch.group, &pairs);
    if (!overflow)
      blocks = (pairs - 1) / batch.blockM + 1;
    overflow |= __builtin_add_overflow(count, blocks, &count);
  });
  return overflow ? -1 : count;
}

/// Makes the blocks that have been counted; returns whether there were as many.
static bool makeBlocks(const Batch &batch, Block *block, int64_t count) {
  Block *const last = block + count;
  bool asMany = true;
  forEachRun(batch, [&](int64_t rows, varlen_work_tile tile) {
    int64_t pairs, longest = 0;
    if (__builtin_mul_overflow(rows, batch.group, &pairs)) {
      asMany = false;
      return;
    }
    Block *begin = block;
    for (int64_t first = 0; first < pairs; first += tile.rows) {
      if (block == last) {
        asMany = false;
        return;
      }
      tile.first = first;
      tile.rows = std::min(batch.blockM, pairs - first);
      setKeyRange(batch, tile);
      *block++ = {0, tile};
      longest = std::max(longest, keysOf(tile));
    }
    for (; begin != block; ++begin)
      begin->longest = longest;
  });
  return asMany && block == last;
}

/// Longest first, so that threads end together. But blocks of one run of rows
/// stay together, as they read the same keys and values.
static bool isBefore(const Block &a, const Block &b) {
  if (a.longest != b.longest)
    return a.longest > b.longest;
  if (a.tile.q_row != b.tile.q_row)
    return a.tile.q_row < b.tile.q_row;
  if (keysOf(a.tile) != keysOf(b.tile))
    return keysOf(a.tile) > keysOf(b.tile);
  return a.tile.first < b.tile.first;
}

/// Expands sorted blocks to tiles: those of each kv head, run by run.
static void expandHeads(const Block *blocks, int64_t numBlocks, int64_t kvHeads,
                        varlen_work_tile *tile) {
  for (int64_t lo = 0, hi; lo < numBlocks; lo = hi) {
    hi = lo + 1;
    while (hi < numBlocks && blocks[hi].tile.q_row == blocks[lo].tile.q_row)
      ++hi;
    for (int64_t head = 0; head < kvHeads; ++head)
      for (int64_t i = lo; i < hi; ++i) {
        *tile = blocks[i].tile;
        tile->kv_head = head;
        ++tile;
      }
  }
}

//===----------------------------------------------------------------------===//
// With any allocator
//===----------------------------------------------------------------------===//

void *varlen_runtime::allocate(const Allocator &allocator, int64_t count,
                               int64_t size) {
  int64_t bytes;
  if (count < 0 || __builtin_mul_overflow(count, size, &bytes))
    return nullptr;
  // An empty list is not null either: null means an error.
  return allocator.allocate(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
}

int64_t varlen_runtime::getBlockBytes() { return sizeof(Block); }

int64_t varlen_runtime::getMaxBlocks(const WorkTilesRequest &request) {
  // Each sequence has a run of rows in use and may have one of others, and rows
  // may follow the last. A run fills all of its blocks but the last.
  int64_t sequences = std::max<int64_t>(request.cuQSize - 1, 0), pairs, blocks;
  if (request.kvHeads <= 0 || request.group <= 0)
    return 0;
  int64_t runs = (request.usedQ || request.usedQSize ? 2 : 1) * sequences + 1;
  if (__builtin_mul_overflow(std::max<int64_t>(request.tq, 0), request.group,
                             &pairs) ||
      __builtin_add_overflow(pairs / request.blockM, std::min(runs, pairs),
                             &blocks))
    return INT64_MAX;
  return blocks;
}

int64_t varlen_runtime::makeWorkTiles(const WorkTilesRequest &request,
                                      varlen_work_tile **tiles,
                                      const Allocator &allocator) {
  *tiles = nullptr;
  if (!checkIndexBytes(request.indexBytes))
    return -1;
  auto integers = [&](const char *name, const void *data, int64_t size) {
    return Integers(name, data, size, request.indexBytes);
  };
  Batch batch = {integers("cu_seqlens_q", request.cuQ, request.cuQSize),
                 integers("cu_seqlens_k", request.cuK, request.cuKSize),
                 integers("seqused_q", request.usedQ, request.usedQSize),
                 integers("seqused_k", request.usedK, request.usedKSize),
                 integers("q_offset", request.offset, request.offsetSize),
                 request.tq,
                 request.tk,
                 request.kvHeads,
                 request.group,
                 request.blockM,
                 request.mask};
  if (!check(batch))
    return -1;

  // No head, no row to write: the division by the group would be by 0.
  bool empty = batch.kvHeads == 0 || batch.group == 0;
  int64_t numBlocks = empty ? 0 : countBlocks(batch), count = -1;
  if (numBlocks >= 0 &&
      __builtin_mul_overflow(numBlocks, batch.kvHeads, &count))
    count = -1;
  auto *list = static_cast<varlen_work_tile *>(
      allocate(allocator, count, sizeof(varlen_work_tile)));
  auto *blocks =
      static_cast<Block *>(allocate(allocator, numBlocks, sizeof(Block)));
  if (!blocks || !list) {
    allocator.release(blocks);
    allocator.release(list);
    setError("not enough memory for the work tiles of %" PRId64
             " query rows and %" PRId64 " kv heads",
             batch.tq, batch.kvHeads);
    return -1;
  }
  if (!empty && !makeBlocks(batch, blocks, numBlocks)) {
    allocator.release(blocks);
    allocator.release(list);
    setError("cu_seqlens have changed while they were read");
    return -1;
  }
  std::sort(blocks, blocks + numBlocks, isBefore);
  expandHeads(blocks, numBlocks, batch.kvHeads, list);
  allocator.release(blocks);
  *tiles = list;
  return count;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

int64_t varlen_work_tiles(const void *cu_q, int64_t cu_q_size, const void *cu_k,
                          int64_t cu_k_size, const void *seqused_q,
                          int64_t seqused_q_size, const void *seqused_k,
                          int64_t seqused_k_size, const void *q_offset,
                          int64_t q_offset_size, int32_t index_bytes,
                          int64_t tq, int64_t tk, int64_t kv_heads,
                          int64_t group, int64_t block_m, varlen_mask_fn mask,
                          varlen_work_tile **tiles) {
  return varlen_runtime::makeWorkTiles(
      {cu_q, cu_q_size, cu_k, cu_k_size, seqused_q, seqused_q_size, seqused_k,
       seqused_k_size, q_offset, q_offset_size, index_bytes, tq, tk, kv_heads,
       group, block_m, mask},
      tiles, {malloc, free});
}

void varlen_free_tiles(varlen_work_tile *tiles) { free(tiles); }

int32_t varlen_check_block_table(const int32_t *table, int64_t rows,
                                 int64_t columns, int64_t row_stride,
                                 int64_t num_pages, int64_t page_rows,
                                 const void *seqused_k, int64_t seqused_k_size,
                                 int32_t index_bytes) {
  Integers used("seqused_k", seqused_k, seqused_k_size, index_bytes);
  int64_t capacity;
  if (page_rows < 1 || columns < 0 ||
      __builtin_mul_overflow(columns, page_rows, &capacity)) {
    setError("bad sizes of pages: %" PRId64 " of a sequence, %" PRId64
             " rows of a page: expected positive numbers",
             columns, page_rows);
    return 0;
  }
  if (rows != used.size) {
    setError("block_table has %" PRId64 " rows: expected %" PRId64
             ", one for each sequence of seqused_k",
             rows, used.size);
    return 0;
  }
  if (!checkPagedLengths(used, capacity))
    return 0;
  for (int64_t s = 0; s < rows; ++s) {
    Integers pages("block_table", table + s * row_stride, columns, 4);
    for (int64_t i = 0; i * page_rows < used[s]; ++i) {
      // Another thread may change seqused_k meanwhile.
      if (i < columns && pages[i] >= 0 && pages[i] < num_pages)
        continue;
      setError("block_table[%" PRId64 ", %" PRId64 "] = %" PRId64
               ": expected 0 to %" PRId64 ", the pages of k, for the %" PRId64
               " keys of the sequence",
               s, i, i < columns ? pages[i] : -1, num_pages - 1, used[s]);
      return 0;
    }
  }
  return 1;
}

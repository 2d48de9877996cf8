//===- runtime.cpp - Tests of the runtime library -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A sanitizer would abort at the allocations that are to fail.
// RUN: env ASAN_OPTIONS=allocator_may_return_null=1 \
// RUN: %varlen-build/bin/varlen-runtime-test

#include "varlen/Runtime/Runtime.h"

#include "../Expect.h"
#include "varlen/Runtime/MemRefCopy.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <pthread.h>
#include <random>
#include <string>
#include <sys/wait.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace {

/// The arguments of varlen_work_tiles. Lists that are not `has...` are null.
struct Batch {
  std::vector<int64_t> cuQ, cuK, usedQ, usedK, offset;
  bool hasUsedQ = false, hasUsedK = false, hasOffset = false;
  int64_t tq = 0, tk = 0, kvHeads = 1, group = 1, blockM = 16;
  int64_t left = -1, right = -1;
  bool bottomRight = true;
  int32_t bytes = 8;
};

using Wide = __int128;

/// Whose window `windowOf` is the mask of.
const Batch *masked = nullptr;

/// A varlen_mask_fn.
void windowOf(int64_t queries, int64_t keys, int64_t offset, int64_t first,
              int64_t last, int64_t range[2]) {
  EXPECT(0 <= first && first <= last && last < queries && 0 < keys,
         "a mask of queries %" PRId64 " to %" PRId64 " of %" PRId64
         " and %" PRId64 " keys",
         first, last, queries, keys);
  Wide diagonal = Wide(offset) + (masked->bottomRight ? keys - queries : 0);
  if (masked->left >= 0)
    range[0] = static_cast<int64_t>(
        std::clamp<Wide>(first + diagonal - masked->left, 0, keys));
  else
    range[0] = 0;
  range[1] = keys;
  if (masked->right >= 0)
    range[1] = static_cast<int64_t>(
        std::clamp<Wide>(last + diagonal + masked->right + 1, 0, keys));
}

/// An exact-size copy of a list, so that a sanitizer sees any read beyond it.
class Buffer {
public:
  Buffer(const std::vector<int64_t> &values, bool present, int32_t bytes)
      : size(static_cast<int64_t>(values.size())) {
    if (!present)
      return;
    data = malloc(std::max<size_t>(values.size() * bytes, 1));
    for (size_t i = 0; i < values.size(); ++i) {
      auto narrow = static_cast<int32_t>(values[i]);
      memcpy(static_cast<char *>(data) + i * bytes,
             bytes == 4 ? static_cast<const void *>(&narrow) : &values[i],
             bytes);
    }
  }
  ~Buffer() { free(data); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  void *data = nullptr;
  int64_t size;
};

struct Result {
  int64_t count = 0;
  std::vector<varlen_work_tile> tiles;
  std::string error;
};

} // namespace

static Result call(const Batch &batch) {
  Buffer cuQ(batch.cuQ, true, batch.bytes), cuK(batch.cuK, true, batch.bytes);
  Buffer usedQ(batch.usedQ, batch.hasUsedQ, batch.bytes);
  Buffer usedK(batch.usedK, batch.hasUsedK, batch.bytes);
  Buffer offset(batch.offset, batch.hasOffset, batch.bytes);
  varlen_clear_error();
  masked = &batch;
  Result result;
  auto *tiles = reinterpret_cast<varlen_work_tile *>(16);
  result.count = varlen_work_tiles(
      cuQ.data, cuQ.size, cuK.data, cuK.size, usedQ.data, usedQ.size,
      usedK.data, usedK.size, offset.data, offset.size, batch.bytes, batch.tq,
      batch.tk, batch.kvHeads, batch.group, batch.blockM,
      batch.left < 0 && batch.right < 0 ? nullptr : windowOf, &tiles);
  if (const char *error = varlen_last_error())
    result.error = error;
  if (result.count < 0) {
    EXPECT(!tiles, "a list came with an error");
  } else {
    EXPECT(tiles, "no list");
    result.tiles.assign(tiles, tiles + result.count);
    varlen_free_tiles(tiles);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Work tiles against a row-by-row definition
//===----------------------------------------------------------------------===//

/// Checks every tile, and that each (row, head) is in exactly one.
static void checkTiles(const Batch &batch, const char *what) {
  Result result = call(batch);
  EXPECT(result.count >= 0 && result.error.empty(), "%s: %s", what,
         result.error.c_str());
  if (result.count < 0)
    return;
  int64_t heads = batch.kvHeads * batch.group;
  auto sequences = static_cast<int64_t>(batch.cuQ.size()) - 1;
  std::vector<int64_t> owner(batch.tq, -1); // sequence, or -1
  for (int64_t s = 0, row = 0; s < sequences; ++s)
    for (; row < batch.cuQ[s + 1]; ++row)
      if (!batch.hasUsedQ || row - batch.cuQ[s] < batch.usedQ[s])
        owner[row] = s;
  std::vector<int> covered(batch.tq * heads, 0);
  for (const varlen_work_tile &tile : result.tiles) {
    EXPECT(tile.rows >= 1 && tile.rows <= batch.blockM, "%s", what);
    EXPECT(tile.kv_head >= 0 && tile.kv_head < batch.kvHeads, "%s", what);
    EXPECT(tile.k_begin <= tile.k_end, "%s: a negative range", what);
    int64_t begin = INT64_MAX, end = 0;
    for (int64_t p = tile.first; p < tile.first + tile.rows; ++p) {
      int64_t i = p / batch.group, row = tile.q_row + i;
      if (row < 0 || row >= batch.tq) {
        EXPECT(false, "%s: row %" PRId64 " outside", what, row);
        return;
      }
      ++covered[row * heads + tile.kv_head * batch.group + p % batch.group];
      int64_t s = owner[row];
      EXPECT((tile.k_rows < 0) == (s < 0), "%s: row %" PRId64, what, row);
      if (s < 0)
        continue;
      int64_t slotK = batch.cuK[s + 1] - batch.cuK[s];
      int64_t lk = batch.hasUsedK ? batch.usedK[s] : slotK;
      int64_t lq =
          batch.hasUsedQ ? batch.usedQ[s] : batch.cuQ[s + 1] - batch.cuQ[s];
      int64_t offset = batch.hasOffset ? batch.offset[s] : 0;
      EXPECT(tile.q_row == batch.cuQ[s] && tile.k_row == batch.cuK[s] &&
                 tile.k_rows == lk && tile.queries == lq &&
                 tile.offset == offset,
             "%s: sequence %" PRId64, what, s);
      Wide diagonal = Wide(offset) + (batch.bottomRight ? lk - lq : 0);
      for (int64_t j = 0; j < lk; ++j) {
        bool visible =
            (batch.left < 0 || Wide(i) + diagonal - batch.left <= j) &&
            (batch.right < 0 || j <= Wide(i) + diagonal + batch.right);
        if (visible) {
          begin = std::min(begin, j);
          end = std::max(end, j + 1);
        }
      }
    }
    if (begin == INT64_MAX)
      EXPECT(tile.k_begin == tile.k_end, "%s: no key is visible", what);
    else
      EXPECT(tile.k_begin == begin && tile.k_end == end,
             "%s: keys %" PRId64 "..%" PRId64 ", got %" PRId64 "..%" PRId64,
             what, begin, end, tile.k_begin, tile.k_end);
  }
  for (int count : covered)
    if (count != 1) {
      EXPECT(count == 1, "%s: a row is in %d tiles", what, count);
      break;
    }
  // The run of rows with the longest tile first; in it head by head; of a head
  // most keys first.
  std::map<int64_t, int64_t> longest;
  for (const varlen_work_tile &tile : result.tiles)
    longest[tile.q_row] =
        std::max(longest[tile.q_row], tile.k_end - tile.k_begin);
  auto rank = [&](const varlen_work_tile &tile) {
    return std::tuple(-longest[tile.q_row], tile.q_row, tile.kv_head,
                      tile.k_begin - tile.k_end, tile.first);
  };
  for (size_t i = 1; i < result.tiles.size(); ++i)
    EXPECT(rank(result.tiles[i - 1]) < rank(result.tiles[i]),
           "%s: tile %zu out of order", what, i);
}

static void testFixedBatches() {
  Batch batch;
  batch.cuQ = batch.cuK = {0};
  checkTiles(batch, "no sequence, no row");
  batch.tq = batch.tk = 5;
  checkTiles(batch, "rows and no sequence");
  batch.cuQ = batch.cuK = {0, 0, 0};
  checkTiles(batch, "empty sequences only");
  batch.cuQ = batch.cuK = {0, 5, 5, 5};
  batch.kvHeads = 2;
  batch.group = 3;
  batch.blockM = 4;
  checkTiles(batch, "ghosts");
  batch.cuK = {0, 0, 5, 5};
  checkTiles(batch, "a sequence without keys");
  batch.right = 0;
  batch.cuK = {0, 2, 5, 5};
  checkTiles(batch, "causal, more queries than keys");

  batch.kvHeads = 0;
  EXPECT(call(batch).count == 0, "no kv head");
  batch.kvHeads = 2;
  batch.group = 0;
  EXPECT(call(batch).count == 0, "no query head");

  // Offsets at the ends of the type.
  batch.group = 1;
  batch.hasOffset = true;
  for (int64_t offset : {INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX})
    for (int64_t bound : {int64_t(-1), int64_t(0), INT64_MAX}) {
      batch.left = batch.right = bound;
      batch.offset = {offset, 0, offset};
      checkTiles(batch, "extreme offsets");
    }
}

static void testRandomBatches() {
  std::mt19937_64 random(1);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    Batch batch;
    int64_t n = below(6);
    bool square = below(2);
    batch.cuQ = {0};
    batch.cuK = {0};
    for (int64_t s = 0; s < n; ++s) {
      int64_t lq = below(3) ? below(40) : 0;
      int64_t lk = square ? lq : below(3) ? below(40) : 0;
      batch.cuQ.push_back(batch.cuQ.back() + lq);
      batch.cuK.push_back(batch.cuK.back() + lk);
      batch.usedQ.push_back(below(lq + 1));
      batch.usedK.push_back(below(lk + 1));
      batch.offset.push_back(below(41) - 20);
    }
    batch.hasUsedQ = !below(3);
    batch.hasUsedK = !below(3);
    batch.hasOffset = !below(3);
    batch.tq = batch.cuQ.back() + (below(2) ? below(20) : 0);
    batch.tk = batch.cuK.back() + (below(2) ? below(20) : 0);
    batch.kvHeads = 1 + below(3);
    batch.group = 1 + below(4);
    batch.blockM = 1 + below(24);
    batch.left = below(2) ? -1 : below(30);
    batch.right = below(2) ? -1 : below(3) ? below(30) : 0;
    batch.bottomRight = below(2);
    batch.bytes = below(2) ? 4 : 8;
    std::string what = "random batch " + std::to_string(round);
    checkTiles(batch, what.c_str());
  }
}

//===----------------------------------------------------------------------===//
// Bad cu_seqlens
//===----------------------------------------------------------------------===//

static void expectError(const Batch &batch, const char *message) {
  Result result = call(batch);
  EXPECT(result.count == -1 && result.error == message,
         "%" PRId64 " tiles and \"%s\", not \"%s\"", result.count,
         result.error.c_str(), message);
}

static void testErrors() {
  Batch good;
  good.cuQ = good.cuK = {0, 3, 7};
  good.tq = good.tk = 8;
  for (int32_t bytes : {4, 8}) {
    good.bytes = bytes;
    EXPECT(call(good).count > 0, "the batch that the others start from");

    Batch bad = good;
    bad.cuQ = {};
    expectError(bad, "cu_seqlens_q is empty: expected at least 1 entry, the 0 "
                     "it starts with");
    bad = good;
    bad.cuQ[0] = 1;
    expectError(bad, "cu_seqlens_q[0] = 1: cu_seqlens must start at 0");
    bad = good;
    bad.cuK = {0, 7, 5};
    expectError(bad, "cu_seqlens_k[2] = 5 is smaller than cu_seqlens_k[1] = 7: "
                     "cu_seqlens must not decrease");
    bad = good;
    bad.tk = VARLEN_MAX_SEQUENCE + 8;
    bad.cuK = {0, 3, 3 + VARLEN_MAX_SEQUENCE};
    EXPECT(call(bad).count > 0, "the longest sequence");
    ++bad.cuK[2];
    expectError(bad, "sequence 1 of cu_seqlens_k has 1073741825 rows: expected "
                     "at most 1073741824");
    bad = good;
    bad.cuK[2] = 9;
    expectError(bad, "cu_seqlens_k[2] = 9 is larger than the 8 rows of k: "
                     "cu_seqlens must end within them");
    bad = good;
    bad.cuK.push_back(7);
    expectError(bad, "cu_seqlens_q has 3 entries and cu_seqlens_k 4: expected "
                     "the same number");
    bad = good;
    bad.hasUsedQ = true;
    bad.usedQ = {1};
    expectError(bad, "seqused_q has 1 entries: expected 2, one for each "
                     "sequence of cu_seqlens_q");
    bad.usedQ = {1, -1};
    expectError(bad, "seqused_q[1] = -1: expected 0 to 4, the length of the "
                     "sequence's slot in cu_seqlens_q");
    bad = good;
    bad.hasUsedK = true;
    bad.usedK = {4, 0};
    expectError(bad, "seqused_k[0] = 4: expected 0 to 3, the length of the "
                     "sequence's slot in cu_seqlens_k");
    bad = good;
    bad.hasOffset = true;
    bad.offset = {0, 0, 0};
    expectError(bad, "q_offset has 3 entries: expected 2, one for each "
                     "sequence of cu_seqlens_q");
  }
  Batch bad = good;
  bad.bytes = 2;
  bad.cuQ = bad.cuK = {0, 0};
  expectError(bad, "cu_seqlens of 2-byte integers: expected 4 or 8");
  bad = good;
  bad.blockM = 0;
  expectError(bad, "bad sizes of an attention: 8 query rows, 8 key rows, 1 kv "
                   "heads, group 1, block_m 0: expected extents from 0 to 2^60 "
                   "and block_m >= 1");
  bad = good;
  bad.tq = int64_t(1) << 60;
  bad.group = 16;
  expectError(bad, "not enough memory for the work tiles of "
                   "1152921504606846976 query rows and 1 kv heads");
  bad.group = 1;
  bad.kvHeads = int64_t(1) << 59;
  expectError(bad, "not enough memory for the work tiles of "
                   "1152921504606846976 query rows and 576460752303423488 kv "
                   "heads");

  // The first error stays until it is cleared.
  bad = good;
  bad.cuQ[0] = 1;
  call(bad);
  varlen_work_tile *tiles;
  varlen_work_tiles(nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0,
                    8, 0, 0, 1, 1, 1, nullptr, &tiles);
  EXPECT(varlen_last_error() &&
             !strcmp(varlen_last_error(),
                     "cu_seqlens_q[0] = 1: cu_seqlens must start at 0"),
         "got %s", varlen_last_error());
  varlen_clear_error();
  EXPECT(!varlen_last_error(), "an error after the clear");
}

/// Entries of any value: the answer is a list that covers every row, or an
/// error; never a read outside the lists (seen by the asan build).
/// Lists that change once they have been checked: a varlen_mask_fn that writes
/// to them stands for another thread.
struct ChangingLists {
  std::vector<int64_t> values[4];
  int64_t change = 0, calls = 0;
};
static ChangingLists *changing = nullptr;

static void changeLists(int64_t, int64_t keys, int64_t, int64_t, int64_t,
                        int64_t range[2]) {
  static std::mt19937_64 random(4);
  static constexpr int64_t hostile[] = {
      0,         1,         -1,        -5,        9, INT64_MAX,
      INT64_MIN, 1LL << 30, 1LL << 60, 1LL << 62, 20};
  range[0] = 0;
  range[1] = keys;
  if (changing->calls++ < changing->change)
    return;
  for (std::vector<int64_t> &list : changing->values)
    for (int64_t &value : list)
      if (random() % 2)
        value = hostile[random() % std::size(hostile)];
}

static void testChangedLists() {
  std::mt19937_64 random(3);
  int made = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    ChangingLists lists;
    changing = &lists;
    lists.change = static_cast<int64_t>(random() % 8);
    auto &[cuQ, cuK, usedQ, usedK] = lists.values;
    int64_t tq = 0, tk = 0, group = 1 + static_cast<int64_t>(random() % 3);
    cuQ = cuK = {0};
    for (int s = 0; s < 5; ++s) {
      usedQ.push_back(static_cast<int64_t>(random() % 8));
      usedK.push_back(static_cast<int64_t>(random() % 8));
      cuQ.push_back(tq += usedQ.back() + static_cast<int64_t>(random() % 2));
      cuK.push_back(tk += usedK.back());
    }
    varlen_clear_error();
    varlen_work_tile *tiles = nullptr;
    bool hasUsed = random() % 2;
    int64_t count = varlen_work_tiles(
        cuQ.data(), 6, cuK.data(), 6, hasUsed ? usedQ.data() : nullptr,
        hasUsed ? 5 : 0, hasUsed ? usedK.data() : nullptr, hasUsed ? 5 : 0,
        nullptr, 0, 8, tq, tk, 2, group, 4, changeLists, &tiles);
    if (count < 0) {
      EXPECT(!tiles && !strcmp(varlen_last_error(),
                               "cu_seqlens have changed while they were read"),
             "an error: %s", varlen_last_error());
      ++refused;
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const varlen_work_tile &tile = tiles[i];
      int64_t last = (tile.first + tile.rows - 1) / group;
      EXPECT(tile.q_row >= 0 && tile.rows > 0 && tile.first >= 0 &&
                 tile.q_row + last < tq,
             "rows from %" PRId64 " and %" PRId64 " of %" PRId64, tile.q_row,
             last, tq);
      EXPECT(tile.k_rows < 0 ||
                 (tile.k_row >= 0 && tile.k_begin >= 0 &&
                  tile.k_end <= tile.k_rows && tile.k_row + tile.k_rows <= tk),
             "keys from %" PRId64 ", %" PRId64 " of %" PRId64, tile.k_row,
             tile.k_rows, tk);
    }
    varlen_free_tiles(tiles);
    ++made;
  }
  EXPECT(made > 100 && refused > 100, "%d made, %d refused", made, refused);
}

static void testHostileValues() {
  std::mt19937_64 random(2);
  int valid = 0;
  for (int round = 0; round < 100000; ++round) {
    Batch batch;
    batch.bytes = random() % 2 ? 4 : 8;
    batch.tq = random() % 20;
    batch.tk = random() % 20;
    auto entry = [&]() -> int64_t {
      switch (random() % 8) {
      case 0:
        return batch.bytes == 4 ? static_cast<int32_t>(random())
                                : static_cast<int64_t>(random());
      case 1:
        return batch.bytes == 4 ? INT32_MIN : INT64_MIN;
      case 2:
        return batch.bytes == 4 ? INT32_MAX : INT64_MAX;
      default:
        return static_cast<int64_t>(random() % 24) - 2;
      }
    };
    auto fill = [&](std::vector<int64_t> &list, int64_t size, bool sorted) {
      for (int64_t i = 0; i < size; ++i)
        list.push_back(sorted ? static_cast<int64_t>(random() % 20) : entry());
      if (sorted)
        std::sort(list.begin(), list.end());
      if (!list.empty() && (sorted || random() % 2))
        list[0] = 0;
    };
    int64_t n = random() % 5;
    fill(batch.cuQ, n + (random() % 8 ? 1 : random() % 3), random() % 4);
    fill(batch.cuK, n + (random() % 8 ? 1 : random() % 3), random() % 4);
    if ((batch.hasUsedQ = random() % 8 == 0))
      fill(batch.usedQ, n, false);
    if ((batch.hasUsedK = random() % 8 == 0))
      fill(batch.usedK, n, false);
    if ((batch.hasOffset = random() % 4 == 0))
      fill(batch.offset, n, false);
    batch.left = random() % 4 ? -1 : entry();
    batch.right = random() % 4 ? -1 : entry();
    batch.group = 1 + random() % 3;
    batch.blockM = 1 + random() % 8;
    Result result = call(batch);
    if (result.count < 0) {
      EXPECT(!result.error.empty(), "an error without a message");
      continue;
    }
    ++valid;
    checkTiles(batch, "hostile values that are valid");
  }
  EXPECT(valid > 10000, "only %d of the batches were valid", valid);
}

//===----------------------------------------------------------------------===//
// varlen_parallel_for
//===----------------------------------------------------------------------===//

namespace {
struct Counts {
  std::vector<std::atomic<int>> done;
  std::atomic<int> misaligned{0};
  int64_t workspaceBytes;
  explicit Counts(int64_t n, int64_t bytes) : done(n), workspaceBytes(bytes) {}
};
} // namespace

static void countItems(void *context, int64_t lo, int64_t hi, void *workspace) {
  auto *counts = static_cast<Counts *>(context);
  if (reinterpret_cast<uintptr_t>(workspace) % 64)
    ++counts->misaligned;
  // Each thread owns all of its workspace while it is in an item.
  memset(workspace, static_cast<int>(lo), counts->workspaceBytes);
  for (int64_t i = lo; i < hi; ++i)
    ++counts->done[i];
  for (int64_t b = 0; b < counts->workspaceBytes; ++b)
    if (static_cast<unsigned char *>(workspace)[b] != (lo & 255))
      ++counts->misaligned;
}

static void runAndCheck(int64_t n, int64_t bytes, const char *what) {
  Counts counts(n, bytes);
  varlen_parallel_for(n, bytes, countItems, &counts);
  EXPECT(counts.misaligned == 0, "%s: bad or shared workspace", what);
  for (int64_t i = 0; i < n; ++i)
    if (counts.done[i] != 1) {
      EXPECT(counts.done[i] == 1, "%s: item %" PRId64 " was done %d times",
             what, i, counts.done[i].load());
      break;
    }
}

static void testParallelFor() {
  for (int64_t threads : {1, 2, 3, 8, 2, 1}) {
    varlen_set_num_threads(threads);
    EXPECT(varlen_get_num_threads() == threads, "%" PRId64, threads);
    for (int round = 0; round < 50; ++round)
      for (int64_t n : {0, 1, 2, 7, 100})
        runAndCheck(n, round * 100, "parallel_for");
  }
  varlen_set_num_threads(0);
  EXPECT(varlen_get_num_threads() >= 1, "the default");
  Counts counts(1, 0);
  varlen_parallel_for(-1, 0, countItems, &counts);
  varlen_parallel_for(INT64_MIN, 0, countItems, &counts);
  EXPECT(counts.done[0] == 0, "an item of an empty range was done");
}

static void testNested() {
  varlen_set_num_threads(4);
  std::atomic<int> bad{0};
  auto outer = [](void *context, int64_t lo, int64_t hi, void *workspace) {
    auto &bad = *static_cast<std::atomic<int> *>(context);
    for (int64_t i = lo; i < hi; ++i) {
      memset(workspace, 7, 256);
      Counts counts(10, 256);
      varlen_parallel_for(10, 256, countItems, &counts);
      for (auto &done : counts.done)
        bad += done != 1;
      for (int b = 0; b < 256; ++b)
        bad += static_cast<char *>(workspace)[b] != 7;
    }
  };
  varlen_parallel_for(20, 256, outer, &bad);
  EXPECT(bad == 0, "a call inside an item");
}

/// Several threads of the host call at once.
static void testConcurrentCalls() {
  varlen_set_num_threads(3);
  auto body = [](void *) -> void * {
    for (int round = 0; round < 200; ++round)
      runAndCheck(50, 64, "concurrent calls");
    return nullptr;
  };
  pthread_t threads[4];
  for (pthread_t &thread : threads)
    pthread_create(&thread, nullptr, body, nullptr);
  for (pthread_t &thread : threads)
    pthread_join(thread, nullptr);
}

static void testHostThreads() {
  static int64_t calls;
  varlen_set_parallel_for(
      [](int64_t n, int64_t bytes, varlen_range_fn fn, void *context) {
        ++calls;
        void *workspace = aligned_alloc(64, (bytes + 63) / 64 * 64);
        fn(context, n / 2, n, workspace);
        fn(context, 0, n / 2, workspace);
        free(workspace);
      });
  runAndCheck(9, 128, "the host's threads");
  varlen_set_parallel_for(nullptr);
  runAndCheck(9, 128, "our threads again");
  EXPECT(calls == 1, "%" PRId64 " calls of the host's function", calls);
}

static void testWorkspaceTooLarge() {
  varlen_clear_error();
  Counts counts(4, 0);
  varlen_parallel_for(4, INT64_MAX, countItems, &counts);
  EXPECT(varlen_last_error() &&
             !strcmp(varlen_last_error(), "not enough memory for a workspace "
                                          "of 9223372036854775807 bytes"),
         "got %s", varlen_last_error());
  EXPECT(counts.done[0] == 0, "an item ran without its workspace");
  varlen_clear_error();
}

/// A child of fork has none of its parent's workers.
static void testFork() {
  varlen_set_num_threads(3);
  runAndCheck(20, 64, "before fork");
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    failures = 0;
    runAndCheck(20, 64, "after fork");
    _exit(failures != 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

//===----------------------------------------------------------------------===//
// memrefCopy
//===----------------------------------------------------------------------===//

static void testMemRefCopy() {
  // Row-major to column-major, from an offset.
  int16_t from[7] = {-1, 0, 1, 2, 3, 4, 5}, to[6] = {};
  int64_t source[] = {0, reinterpret_cast<intptr_t>(from), 1, 2, 3, 3, 1};
  int64_t target[] = {0, reinterpret_cast<intptr_t>(to), 0, 2, 3, 1, 2};
  varlen_unranked_memref a = {2, source}, b = {2, target};
  memrefCopy(2, &a, &b);
  const int16_t expected[6] = {0, 3, 1, 4, 2, 5};
  EXPECT(!memcmp(to, expected, sizeof to), "a transpose");
  // Rows at once.
  int64_t rows[] = {0, reinterpret_cast<intptr_t>(to), 0, 2, 3, 3, 1};
  b.descriptor = rows;
  memrefCopy(2, &a, &b);
  EXPECT(!memcmp(to, from + 1, sizeof to), "contiguous rows");
  // No element, no access; no dimension, one element.
  int64_t empty[] = {0, 0, 0, 2, 0, 0, 1};
  varlen_unranked_memref none = {2, empty};
  memrefCopy(2, &none, &none);
  to[0] = 9;
  a.rank = b.rank = 0;
  memrefCopy(2, &a, &b);
  EXPECT(to[0] == 0 && to[1] == 1, "rank 0");
}

int main() {
  testMemRefCopy();
  testFixedBatches();
  testRandomBatches();
  testErrors();
  testHostileValues();
  testChangedLists();
  testParallelFor();
  testNested();
  testConcurrentCalls();
  testHostThreads();
  testWorkspaceTooLarge();
  testFork();
  return summary();
}

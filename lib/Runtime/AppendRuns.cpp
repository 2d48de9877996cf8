//===- AppendRuns.cpp - Where new rows of a cache are ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists and tables may hold anything, and another thread may change them: a run
// is made of numbers that were read once and then checked. No C++ library
// function that needs libstdc++ is used: C programs link this.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Integers.h"
#include "Internal.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>

using varlen_runtime::AppendRequest;
using varlen_runtime::Integers;
using varlen_runtime::setError;

namespace {

/// What is known of an append.
struct Append {
  Integers cu, used;
  const AppendRequest &request;
  /// How many rows a sequence may have.
  int64_t capacity = 0;

  int64_t sequences() const { return cu.size - 1; }
  /// Where the new rows of a sequence end, which begin at `begin`.
  int64_t getEnd(int64_t sequence, int64_t begin) const {
    return std::max(begin, std::min(cu[sequence + 1], request.kRows));
  }
};

} // namespace

/// The extents, which set the capacity.
static bool checkExtents(Append &append) {
  const AppendRequest &request = append.request;
  struct {
    int64_t rule, value, wanted;
  } same[] = {
      {VARLEN_EXTENT_RULE(VARLEN_TENSOR_V, VARLEN_EXTENT_ROWS, VARLEN_TENSOR_K),
       request.vRows, request.kRows},
      {VARLEN_EXTENT_RULE(VARLEN_TENSOR_V_CACHE, VARLEN_EXTENT_PAGES,
                          VARLEN_TENSOR_K_CACHE),
       request.vPages, request.kPages},
      {VARLEN_EXTENT_RULE(VARLEN_TENSOR_V_CACHE_PAGE, VARLEN_EXTENT_ROWS,
                          VARLEN_TENSOR_K_CACHE_PAGE),
       request.vPageRows, request.kPageRows},
      {VARLEN_EXTENT_RULE(VARLEN_TENSOR_K_SCALE, VARLEN_EXTENT_PAGES,
                          VARLEN_TENSOR_K_CACHE),
       request.kScalePages, request.kPages},
      {VARLEN_EXTENT_RULE(VARLEN_TENSOR_K_SCALE_PAGE, VARLEN_EXTENT_ROWS,
                          VARLEN_TENSOR_K_CACHE_PAGE),
       request.kScalePageRows, request.kPageRows},
      {VARLEN_EXTENT_RULE(VARLEN_TENSOR_V_SCALE, VARLEN_EXTENT_PAGES,
                          VARLEN_TENSOR_K_CACHE),
       request.vScalePages, request.kPages},
      {VARLEN_EXTENT_RULE(VARLEN_TENSOR_V_SCALE_PAGE, VARLEN_EXTENT_ROWS,
                          VARLEN_TENSOR_K_CACHE_PAGE),
       request.vScalePageRows, request.kPageRows}};
  // Extents of scales that there are none of are negative.
  for (auto &each : same) {
    if (each.value < 0 || each.value == each.wanted)
      continue;
    varlen_extent_error(each.rule, each.value, each.wanted);
    return false;
  }
  if (request.kPageRows < 1) {
    varlen_extent_error(VARLEN_EXTENT_RULE(VARLEN_TENSOR_K_CACHE_PAGE,
                                           VARLEN_EXTENT_ROWS,
                                           VARLEN_TENSOR_K_CACHE_PAGE),
                        request.kPageRows, request.kPageRows);
    return false;
  }
  int64_t columns = request.table ? request.columns : 1;
  if (__builtin_mul_overflow(columns, request.kPageRows, &append.capacity))
    append.capacity = VARLEN_MAX_SEQUENCE;
  append.capacity = std::min(append.capacity, VARLEN_MAX_SEQUENCE);
  return true;
}

/// The numbers of entries, when cu is known to be valid.
static bool checkCounts(const Append &append) {
  const AppendRequest &request = append.request;
  if (append.used.size != append.sequences()) {
    setError("seqused_k has %" PRId64 " entries: expected %" PRId64
             ", one for each sequence of cu_seqlens",
             append.used.size, append.sequences());
    return false;
  }
  if (request.table && request.tableRows != append.sequences()) {
    setError("block_table has %" PRId64 " rows: expected %" PRId64
             ", one for each sequence of cu_seqlens",
             request.tableRows, append.sequences());
    return false;
  }
  if (!request.table && append.sequences() > request.kPages) {
    setError("cu_seqlens has %" PRId64 " sequences: expected at most %" PRId64
             ", the slots of k_cache",
             append.sequences(), request.kPages);
    return false;
  }
  return true;
}

/// That a sequence with `used` rows has room for `rows` more, and tables of a
/// rotary embedding their positions.
static bool checkPositions(const Append &append, int64_t sequence, int64_t used,
                           int64_t rows) {
  const AppendRequest &request = append.request;
  const char *place = request.table
                          ? "the pages that block_table has of a sequence"
                          : "a slot of k_cache";
  if (rows > append.capacity) {
    setError("sequence %" PRId64 " of cu_seqlens has %" PRId64
             " rows: expected at most %" PRId64 ", those of %s",
             sequence, rows, append.capacity, place);
    return false;
  }
  if (used < 0 || used > append.capacity - rows) {
    setError("seqused_k[%" PRId64 "] = %" PRId64 ": expected 0 to %" PRId64
             ", as %" PRId64 " new rows must fit into %s",
             sequence, used, append.capacity - rows, rows, place);
    return false;
  }
  if (rows == 0)
    return true;
  struct {
    const char *name;
    int64_t rows;
  } tables[] = {{"cos", request.cosRows}, {"sin", request.sinRows}};
  for (auto &table : tables) {
    if (table.rows < 0 || used + rows <= table.rows)
      continue;
    setError("%s has %" PRId64 " rows: expected at least %" PRId64
             ", the positions of the keys of sequence %" PRId64,
             table.name, table.rows, used + rows, sequence);
    return false;
  }
  return true;
}

/// Calls visit(run) for each run of a page, whole, with a page that has not
/// been looked at; false where something is wrong, or visit says so.
template <typename Visit>
static bool forEachPage(const Append &append, Visit visit) {
  const AppendRequest &request = append.request;
  int64_t end = 0;
  for (int64_t s = 0; s < append.sequences(); ++s) {
    int64_t begin = end, used = append.used[s];
    end = append.getEnd(s, begin);
    if (!checkPositions(append, s, used, end - begin))
      return false;
    varlen_append_run run = {s, used, begin, 0, 0, 0};
    for (; run.row < end; run.row += run.rows, run.position += run.rows) {
      int64_t slot = run.position / request.kPageRows;
      run.page_row = run.position % request.kPageRows;
      run.rows = std::min(end - run.row, request.kPageRows - run.page_row);
      // The capacity has all slots of the positions.
      run.page =
          request.table
              ? Integers("block_table", request.table + s * request.tableStride,
                         request.columns, 4)[slot]
              : s;
      if (!visit(run))
        return false;
    }
  }
  return true;
}

static int64_t countRuns(const varlen_append_run &run) {
  return (run.rows - 1) / VARLEN_MAX_RUN + 1;
}

/// That the page is one of the cache.
static bool checkPage(const Append &append, const varlen_append_run &run) {
  const AppendRequest &request = append.request;
  if (run.page >= 0 && run.page < request.kPages)
    return true;
  setError("block_table[%" PRId64 ", %" PRId64 "] = %" PRId64
           ": expected 0 to %" PRId64
           ", the pages of k_cache, for new rows of the sequence",
           run.sequence, run.position / request.kPageRows, run.page,
           request.kPages - 1);
  return false;
}

/// Runs in the order of the cache, of one page in that of what writes to it.
static bool isBefore(const varlen_append_run &a, const varlen_append_run &b) {
  if (a.page != b.page)
    return a.page < b.page;
  if (a.sequence != b.sequence)
    return a.sequence < b.sequence;
  return a.position < b.position;
}

/// That no page is written to by two entries of the table.
static bool checkDistinct(const Append &append, const varlen_append_run *runs,
                          int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    const varlen_append_run &a = runs[i - 1], &b = runs[i];
    int64_t rows = append.request.kPageRows;
    if (a.page != b.page ||
        (a.sequence == b.sequence && a.position / rows == b.position / rows))
      continue;
    setError("block_table[%" PRId64 ", %" PRId64 "] = %" PRId64
             ": expected a page that nothing else writes to, and "
             "block_table[%" PRId64 ", %" PRId64 "] is the same",
             b.sequence, b.position / rows, b.page, a.sequence,
             a.position / rows);
    return false;
  }
  return true;
}

int64_t varlen_runtime::makeAppendRuns(const AppendRequest &request,
                                       varlen_append_run **runs,
                                       const Allocator &allocator) {
  *runs = nullptr;
  if (!checkIndexBytes(request.indexBytes))
    return -1;
  Append append = {
      {"cu_seqlens", request.cu, request.cuSize, request.indexBytes},
      {"seqused_k", request.used, request.usedSize, request.indexBytes},
      request};
  if (!checkExtents(append) || !checkCuSeqlens(append.cu, request.kRows, "k") ||
      !checkCounts(append))
    return -1;
  int64_t count = 0;
  if (!forEachPage(append, [&](const varlen_append_run &run) {
        count += countRuns(run);
        return checkPage(append, run);
      }))
    return -1;
  auto *list = static_cast<varlen_append_run *>(
      allocate(allocator, count, sizeof(varlen_append_run)));
  if (!list) {
    setError("not enough memory for the %" PRId64 " runs of an append", count);
    return -1;
  }
  int64_t made = 0;
  bool good = forEachPage(append, [&](varlen_append_run run) {
    if (!checkPage(append, run))
      return false;
    if (countRuns(run) > count - made) {
      setError("cu_seqlens have changed while they were read");
      return false;
    }
    for (int64_t rest = run.rows; rest > 0; rest -= run.rows) {
      run.rows = std::min<int64_t>(rest, VARLEN_MAX_RUN);
      list[made++] = run;
      run.row += run.rows;
      run.position += run.rows;
      run.page_row += run.rows;
    }
    return true;
  });
  std::sort(list, list + made, isBefore);
  if (!good || !checkDistinct(append, list, made)) {
    allocator.release(list);
    return -1;
  }
  *runs = list;
  return made;
}

int64_t varlen_append_runs(
    const void *cu, int64_t cu_size, const void *seqused_k,
    int64_t seqused_k_size, int32_t index_bytes, const int32_t *table,
    int64_t table_rows, int64_t columns, int64_t table_stride, int64_t k_rows,
    int64_t v_rows, int64_t k_pages, int64_t v_pages, int64_t k_page_rows,
    int64_t v_page_rows, int64_t k_scale_pages, int64_t k_scale_page_rows,
    int64_t v_scale_pages, int64_t v_scale_page_rows, int64_t cos_rows,
    int64_t sin_rows, varlen_append_run **runs) {
  return varlen_runtime::makeAppendRuns({cu,
                                         cu_size,
                                         seqused_k,
                                         seqused_k_size,
                                         index_bytes,
                                         table,
                                         table_rows,
                                         columns,
                                         table_stride,
                                         k_rows,
                                         v_rows,
                                         k_pages,
                                         v_pages,
                                         k_page_rows,
                                         v_page_rows,
                                         k_scale_pages,
                                         k_scale_page_rows,
                                         v_scale_pages,
                                         v_scale_page_rows,
                                         cos_rows,
                                         sin_rows},
                                        runs, {malloc, free});
}

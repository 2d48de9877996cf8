//===- append-runs.cpp - Tests of the runs of an append -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-append-runs-test

#include "../Expect.h"
#include "varlen/Runtime/Runtime.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

/// Two sequences, of 3 and 6 rows in pages of 4, which get 6 rows and 1. Rows
/// of the table lie 5 entries apart; what is not written to is no page.
struct Append {
  std::vector<int64_t> cu = {0, 6, 7}, used = {3, 6};
  std::vector<int32_t> table = {2, 0, 4, 99, 99, -1, 3, INT32_MIN, -7, 0};
  bool hasTable = true;
  int64_t columns = 3, kRows = 8, vRows = 8, kPages = 5, vPages = 5,
          kPageRows = 4, vPageRows = 4, kScalePages = -1, kScalePageRows = -1,
          vScalePages = -1, vScalePageRows = -1, cosRows = -1, sinRows = -1;
};

} // namespace

/// The runs, with lists of i64, of which those of i32 make the same.
static std::vector<varlen_append_run> makeRuns(const Append &append) {
  std::vector<varlen_append_run> results[2];
  for (int32_t bytes : {8, 4}) {
    auto narrow = [](const std::vector<int64_t> &list) {
      return std::vector<int32_t>(list.begin(), list.end());
    };
    std::vector<int32_t> cu = narrow(append.cu), used = narrow(append.used);
    auto pick = [&](auto &wide, auto &small) {
      return bytes == 8 ? static_cast<const void *>(wide.data())
                        : static_cast<const void *>(small.data());
    };
    varlen_clear_error();
    auto *runs = reinterpret_cast<varlen_append_run *>(8);
    auto rows = static_cast<int64_t>(append.cu.size()) - 1;
    int64_t count = varlen_append_runs(
        pick(append.cu, cu), static_cast<int64_t>(append.cu.size()),
        pick(append.used, used), static_cast<int64_t>(append.used.size()),
        bytes, append.hasTable ? append.table.data() : nullptr, rows,
        append.columns, /*table_stride=*/5, append.kRows, append.vRows,
        append.kPages, append.vPages, append.kPageRows, append.vPageRows,
        append.kScalePages, append.kScalePageRows, append.vScalePages,
        append.vScalePageRows, append.cosRows, append.sinRows, &runs);
    EXPECT((count < 0) == (varlen_last_error() != nullptr),
           "an error if and only if it says so");
    EXPECT((count < 0) == (runs == nullptr), "a list if there is no error");
    if (runs)
      results[bytes == 4].assign(runs, runs + count);
    free(runs);
  }
  EXPECT(results[0].size() == results[1].size() &&
             !memcmp(results[0].data(), results[1].data(),
                     results[0].size() * sizeof(varlen_append_run)),
         "the same with i64 and with i32");
  return results[0];
}

static void expectRuns(const Append &append,
                       const std::vector<varlen_append_run> &wanted,
                       const char *what) {
  std::vector<varlen_append_run> runs = makeRuns(append);
  bool same = runs.size() == wanted.size() &&
              !memcmp(runs.data(), wanted.data(),
                      wanted.size() * sizeof(varlen_append_run));
  EXPECT(same && !varlen_last_error(), "%s", what);
}

static void expectError(const Append &append, const char *message) {
  bool empty = makeRuns(append).empty();
  const char *error = varlen_last_error();
  EXPECT(empty && error && !strcmp(error, message), "\"%s\", not \"%s\"",
         error ? error : "", message);
}

static void testRuns() {
  // {sequence, position, row, rows, page, page_row}, in the order of pages.
  expectRuns({},
             {{0, 4, 1, 4, 0, 0},
              {0, 3, 0, 1, 2, 3},
              {1, 6, 6, 1, 3, 2},
              {0, 8, 5, 1, 4, 0}},
             "the runs that the others start from");
  Append slots;
  slots.hasTable = false;
  slots.kPageRows = slots.vPageRows = 300;
  slots.cu = {0, 130, 130, 131};
  slots.used = {0, 300, 299};
  slots.kRows = slots.vRows = 131;
  expectRuns(slots,
             {{0, 0, 0, 64, 0, 0},
              {0, 64, 64, 64, 0, 64},
              {0, 128, 128, 2, 0, 128},
              {2, 299, 130, 1, 2, 299}},
             "long runs are cut, and a slot that is full gets no row");
  Append none;
  none.cu = {0, 0, 0};
  none.table.assign(10, -1);
  expectRuns(none, {}, "no new row");
  none.kPages = none.vPages = 0;
  expectRuns(none, {}, "no page");
  none.cu = {0};
  none.used = {};
  expectRuns(none, {}, "no sequence");
}

static void testErrors() {
  auto check = [](auto change, const char *message) {
    Append append;
    change(append);
    expectError(append, message);
  };
  check([](Append &a) { a.table[1] = 5; },
        "block_table[0, 1] = 5: expected 0 to 4, the pages of k_cache, for new "
        "rows of the sequence");
  check([](Append &a) { a.table[6] = -1; },
        "block_table[1, 1] = -1: expected 0 to 4, the pages of k_cache, for "
        "new rows of the sequence");
  check([](Append &a) { a.table[6] = 0; },
        "block_table[1, 1] = 0: expected a page that nothing else writes to, "
        "and block_table[0, 1] is the same");
  check([](Append &a) { a.table[2] = 2; },
        "block_table[0, 2] = 2: expected a page that nothing else writes to, "
        "and block_table[0, 0] is the same");
  check([](Append &a) { a.used[0] = 7; },
        "seqused_k[0] = 7: expected 0 to 6, as 6 new rows must fit into "
        "the pages that block_table has of a sequence");
  check([](Append &a) { a.used[1] = -1; },
        "seqused_k[1] = -1: expected 0 to 11, as 1 new rows must fit "
        "into the pages that block_table has of a sequence");
  check([](Append &a) { a.columns = 1; },
        "sequence 0 of cu_seqlens has 6 rows: expected at most 4, those of the "
        "pages that block_table has of a sequence");
  check([](Append &a) { a.used.pop_back(); },
        "seqused_k has 1 entries: expected 2, one for each sequence of "
        "cu_seqlens");
  check([](Append &a) { a.cu = {0, 6, 5}; },
        "cu_seqlens[2] = 5 is smaller than cu_seqlens[1] = 6: cu_seqlens must "
        "not decrease");
  check([](Append &a) { a.kRows = a.vRows = 6; },
        "cu_seqlens[2] = 7 is larger than the 6 rows of k: cu_seqlens must end "
        "within them");
  check([](Append &a) { a.vRows = 9; },
        "v has 9 rows: expected 8, as many as k");
  check([](Append &a) { a.vPages = 4; },
        "v_cache has 4 pages: expected 5, as many as k_cache");
  check([](Append &a) { a.vPageRows = 5; },
        "a page of v_cache has 5 rows: expected 4, as many as a page of "
        "k_cache");
  // Of scales one kind of extents is wrong at a time.
  auto checkScales = [&](auto change, const char *message) {
    check(
        [&](Append &a) {
          a.kScalePages = a.vScalePages = 5;
          a.kScalePageRows = a.vScalePageRows = 4;
          change(a);
        },
        message);
  };
  checkScales([](Append &a) { a.kScalePages = 4; },
              "k_scale has 4 pages: expected 5, as many as k_cache");
  checkScales([](Append &a) { a.vScalePages = 0; },
              "v_scale has 0 pages: expected 5, as many as k_cache");
  checkScales([](Append &a) { a.vScalePageRows = 3; },
              "a page of v_scale has 3 rows: expected 4, as many as a page of "
              "k_cache");
  check([](Append &a) { a.kPageRows = a.vPageRows = 0; },
        "a page of k_cache has 0 rows: expected a positive number");
  check(
      [](Append &a) {
        a.cosRows = 8;
        a.sinRows = 9;
      },
      "cos has 8 rows: expected at least 9, the positions of the keys of "
      "sequence 0");
  check(
      [](Append &a) {
        a.cosRows = 9;
        a.sinRows = 6;
      },
      "sin has 6 rows: expected at least 9, the positions of the keys of "
      "sequence 0");
  check(
      [](Append &a) {
        a.hasTable = false;
        a.kPages = a.vPages = 1;
      },
      "cu_seqlens has 2 sequences: expected at most 1, the slots of k_cache");
  check(
      [](Append &a) {
        a.hasTable = false;
        a.kPageRows = a.vPageRows = 8;
      },
      "seqused_k[0] = 3: expected 0 to 2, as 6 new rows must fit into a "
      "slot of k_cache");
}

int main() {
  testRuns();
  testErrors();
  return summary();
}

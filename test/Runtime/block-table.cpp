//===- block-table.cpp - Tests of the checks of pages ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %varlen-build/bin/varlen-block-table-test

#include "../Expect.h"
#include "varlen/Runtime/Runtime.h"

#include <cinttypes>
#include <cstring>
#include <string>
#include <vector>

namespace {

/// Two sequences in pages of 4 rows, the first in pages 2 and 0; rows of the
/// table lie 5 entries apart. What is not used is no page.
struct Table {
  std::vector<int32_t> entries = {2, 0, -1, 99, 99, 1, INT32_MIN, -7};
  std::vector<int64_t> used = {7, 4};
  int64_t rows = 2, columns = 3, numPages = 3, pageRows = 4;
};

} // namespace

/// Whether the table may be used, with lengths of i64 and of i32.
static bool check(const Table &table) {
  std::vector<int32_t> narrow(table.used.begin(), table.used.end());
  int32_t results[2];
  for (int32_t bytes : {8, 4}) {
    varlen_clear_error();
    const void *used = bytes == 8 ? static_cast<const void *>(table.used.data())
                                  : static_cast<const void *>(narrow.data());
    results[bytes == 4] = varlen_check_block_table(
        table.entries.data(), table.rows, table.columns, /*row_stride=*/5,
        table.numPages, table.pageRows, used,
        static_cast<int64_t>(table.used.size()), bytes);
    EXPECT(!results[bytes == 4] == (varlen_last_error() != nullptr),
           "an error if and only if it says so");
  }
  EXPECT(results[0] == results[1], "with i64 and with i32");
  return results[1];
}

static void expectError(const Table &table, const char *message) {
  bool isGood = check(table);
  const char *error = varlen_last_error();
  EXPECT(!isGood && error && !strcmp(error, message), "\"%s\", not \"%s\"",
         error ? error : "", message);
}

static void testTables() {
  Table good;
  EXPECT(check(good), "the table that the others start from");
  Table other = good;
  other.used = {0, 0};
  other.entries.assign(8, -1);
  EXPECT(check(other), "no entry is used");
  other.numPages = 0;
  EXPECT(check(other), "there is no page");
  other = good;
  other.used = {8, 1};
  EXPECT(check(other), "whole pages, and one row");
  other = {};
  other.used = {};
  other.rows = 0;
  EXPECT(check(other), "no sequence");
}

static void testErrors() {
  Table good;
  for (int32_t entry : {-1, 3, INT32_MAX}) {
    Table bad = good;
    bad.entries[1] = entry;
    std::string message =
        "block_table[0, 1] = " + std::to_string(entry) +
        ": expected 0 to 2, the pages of k, for the 7 keys of "
        "the sequence";
    expectError(bad, message.c_str());
  }
  Table bad = good;
  bad.used[1] = 5;
  expectError(bad, "block_table[1, 1] = -2147483648: expected 0 to 2, the "
                   "pages of k, for the 5 keys of the sequence");
  for (int64_t length : {-1, 13}) {
    bad = good;
    bad.used[0] = length;
    std::string message =
        "seqused_k[0] = " + std::to_string(length) +
        ": expected 0 to 12, the rows of the pages that block_table has of a "
        "sequence";
    expectError(bad, message.c_str());
  }
  bad = good;
  bad.rows = 1;
  expectError(bad, "block_table has 1 rows: expected 2, one for each sequence "
                   "of seqused_k");
  bad = good;
  bad.pageRows = 0;
  expectError(bad, "bad sizes of pages: 3 of a sequence, 0 rows of a page: "
                   "expected positive numbers");
  bad = good;
  bad.columns = int64_t(1) << 62;
  expectError(bad, "bad sizes of pages: 4611686018427387904 of a sequence, 4 "
                   "rows of a page: expected positive numbers");
  bad = good;
  bad.used = {(int64_t(1) << 30) + 1, 0};
  bad.pageRows = int64_t(1) << 31;
  expectError(bad, "seqused_k[0] = 1073741825: expected at most 1073741824");
}

/// Tiles of keys in pages have the number of their sequence for a first row.
static void testWorkTiles() {
  const int32_t cu[] = {0, 1, 1, 3}, used[] = {7, 3, 0};
  varlen_work_tile *tiles;
  int64_t count = varlen_work_tiles(
      cu, 4, nullptr, -1, nullptr, 0, used, 3, nullptr, 0, 4, /*tq=*/3,
      /*tk=*/12, /*kv_heads=*/1, /*group=*/1, /*block_m=*/8, nullptr, &tiles);
  EXPECT(count == 2, "%" PRId64 " tiles", count);
  if (count == 2) {
    EXPECT(tiles[0].k_row == 0 && tiles[0].k_rows == 7 && tiles[0].k_end == 7);
    EXPECT(tiles[1].k_row == 2 && tiles[1].k_rows == 0 && tiles[1].q_row == 1);
  }
  varlen_free_tiles(tiles);

  varlen_clear_error();
  EXPECT(varlen_work_tiles(cu, 4, nullptr, -1, nullptr, 0, used, 3, nullptr, 0,
                           4, 3, /*tk=*/6, 1, 1, 8, nullptr, &tiles) == -1 &&
             !strcmp(varlen_last_error(),
                     "seqused_k[0] = 7: expected 0 to 6, the rows of the pages "
                     "that block_table has of a sequence"),
         "%s", varlen_last_error());
  varlen_clear_error();
  // A list of keys without entries, which may have no address, says no pages.
  const char *empty = "cu_seqlens_k is empty: expected at least 1 entry, the 0 "
                      "it starts with";
  EXPECT(varlen_work_tiles(cu, 4, nullptr, 0, nullptr, 0, used, 3, nullptr, 0,
                           4, 3, 12, 1, 1, 8, nullptr, &tiles) == -1 &&
             !strcmp(varlen_last_error(), empty),
         "%s", varlen_last_error());
  varlen_clear_error();
  EXPECT(varlen_work_tiles(cu, 4, nullptr, -1, nullptr, 0, nullptr, 0, nullptr,
                           0, 4, 3, 12, 1, 1, 8, nullptr, &tiles) == -1 &&
             !strcmp(varlen_last_error(), empty),
         "%s", varlen_last_error());
}

int main() {
  testTables();
  testErrors();
  testWorkTiles();
  return summary();
}

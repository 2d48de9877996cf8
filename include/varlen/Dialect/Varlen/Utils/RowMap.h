//===- RowMap.h - Where the rows of a tile are in memory --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_ROWMAP_H
#define VARLEN_DIALECT_VARLEN_UTILS_ROWMAP_H

#include "varlen/Support/IndexBuilder.h"

namespace mlir::varlen {

/// Where rows in pages are: page j div `rows` of those of a sequence, a row of
/// `table`, has its row j. Null if rows are packed.
struct PageMap {
  Value table = {}, rows = {};

  explicit operator bool() const { return static_cast<bool>(table); }
};

/// Where the rows of a sequence and kv head are in packed memory T x H x D. For
/// queries such a row is a *pair* of a query row and a head: the query heads
/// that share a kv head follow each other, so pair p is query row p / group of
/// head kvHead * group + p % group. Keys are pairs with a group of 1; they may
/// be in pages.
struct RowMap {
  /// The row of the first query or key of the sequence; of keys in pages the
  /// row of the table.
  Value firstRow;
  Value kvHead, group;
  PageMap pages = {};

  /// The query of a pair, counted in its sequence, and the first pair of a
  /// query.
  Value query(IndexBuilder &index, Value pair) const;
  Value firstPair(IndexBuilder &index, Value query) const;
  /// Its place in memory, or in its page.
  Value row(IndexBuilder &index, Value pair) const;
  /// The page that a row is in, within memory whatever the table has by now.
  Value page(IndexBuilder &index, Value memory, Value row) const;
  Value head(IndexBuilder &index, Value pair) const {
    return headOf(index, index.rem(pair, group));
  }
  /// The query head with that number among those that share the kv head.
  Value headOf(IndexBuilder &index, Value member) const;

  /// The indices of a pair: of its row in memory of T x H x D (rank 3), of its
  /// number in memory of H x T or of H.
  SmallVector<Value> placeOf(IndexBuilder &index, int64_t rank,
                             Value pair) const;
  /// The indices of the number of a row and query head in memory of kv heads x
  /// (rows * group), in which the pairs of a kv head lie side by side; and of
  /// the first pair of this sequence and kv head.
  static SmallVector<Value> placeByKvHead(IndexBuilder &index, Value row,
                                          Value head, Value group);
  SmallVector<Value> firstByKvHead(IndexBuilder &index) const;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_ROWMAP_H

//===- TableMemory.h - Tables of score regions in memory --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps see a table of an attention, H x M or H x T x M, as a view in which a
// row begins at every element: the row of a query is an offset into it, for any
// strides of the table.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_TABLEMEMORY_H
#define VARLEN_DIALECT_VARLEN_UTILS_TABLEMEMORY_H

#include "varlen/Support/IndexBuilder.h"

#include <limits>

namespace mlir::varlen {

/// Emits the view of a table that is `argument` in a score region; of a table
/// of keys, H x T, the view of `keys` of them from `firstKey` on: its entries
/// are theirs, and no others.
Value emitTableView(IndexBuilder index, Value table, BlockArgument argument,
                    Value firstKey, Value keys);

/// Emits the strides of a table, but for the last one.
SmallVector<Value> emitTableStrides(IndexBuilder index, Value table);
/// Emits the row of a query and head in the view, i64, of a table of these.
Value emitTableRow(IndexBuilder index, ValueRange strides, Value head,
                   Value query);

/// What stands for the row of a query that a `varlen.scatter_add` leaves out:
/// as an offset in bytes, too, it is far from any memory.
constexpr int64_t kNoTableRow = std::numeric_limits<int64_t>::min() / 16;

/// Emits the place of an entry of a view, an offset to its first element, for a
/// row and an index of any value, or for vectors of them; and the view as the
/// flat memory that the offset is of.
Value emitTableOffset(IndexBuilder index, Value view, Value row, Value entry);
Value emitFlatTable(IndexBuilder index, Value view);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_TABLEMEMORY_H

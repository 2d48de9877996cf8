//===- RowViews.h - Rows of sequences in memory, as views -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_ROWVIEWS_H
#define VARLEN_DIALECT_VARLEN_UTILS_ROWVIEWS_H

#include "varlen/Dialect/Varlen/Utils/RowMap.h"
#include "varlen/Support/ControlFlow.h"

namespace mlir::varlen {

/// The rows of `count` pairs from `first` on.
struct RowRange {
  RowMap map;
  Value first, count;
};

/// Calls `body` with views of rows memory[row, head, :], the number of the
/// first one, and how many they are: one view where a token has one pair, else
/// one for each token; one for each page of rows in pages, if they may be in
/// several.
void forEachRowView(
    ImplicitLocOpBuilder &b, Value memory, const RowRange &rows, bool isOnePage,
    function_ref<void(Value view, Value from, Value count)> body);
/// A loop over the pages that rows are in: `body` is called with the rows of
/// one, and takes and returns the values that the loop carries.
ValueRange
forEachPage(ImplicitLocOpBuilder &b, const RowRange &rows, ValueRange inits,
            function_ref<Values(const RowRange &page, ValueRange)> body);
/// The rows of pairs with a group of 1, as those of keys; in pages, of one.
Value emitRowsInPlace(ImplicitLocOpBuilder &b, Value memory,
                      const RowRange &rows);

/// Rows of any distance, so that views of different memory have one type.
Value castRows(ImplicitLocOpBuilder &b, Value rows);
/// Whether the rows of `memory` are elements of that type, one beside the
/// other.
bool isOfRows(Value memory, Type element);
/// Whether `count` rows, which a vector may have, lie in one view of `memory`,
/// as elements of that type; null if they never do.
Value emitIsInPlace(ImplicitLocOpBuilder &b, Value memory, const RowRange &rows,
                    Type element, int64_t count);
/// These rows where they are if they are `inPlace`, else `scratch`, for which
/// `otherwise` may emit something.
Value emitVectorRows(ImplicitLocOpBuilder &b, Value memory,
                     const RowRange &rows, int64_t count, Value inPlace,
                     Value scratch, function_ref<void()> otherwise);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_ROWVIEWS_H

//===- RowMap.cpp - Where the rows of a tile are in memory ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/RowMap.h"

using namespace mlir;
using namespace mlir::varlen;

Value RowMap::query(IndexBuilder &index, Value pair) const {
  return index.div(pair, group);
}

Value RowMap::firstPair(IndexBuilder &index, Value query) const {
  return index.mul(query, group);
}

Value RowMap::row(IndexBuilder &index, Value pair) const {
  if (pages)
    return index.rem(pair, pages.rows);
  return index.add(firstRow, query(index, pair));
}

Value RowMap::page(IndexBuilder &index, Value memory, Value row) const {
  // A view of no rows may begin behind the last page.
  Value column = index.min(index.div(row, pages.rows),
                           index.sub(index.dim(pages.table, 1), 1));
  Value entry = index.load(pages.table, ValueRange{firstRow, column});
  return index.min(index.max(entry, 0), index.sub(index.dim(memory, 0), 1));
}

Value RowMap::headOf(IndexBuilder &index, Value member) const {
  return index.add(index.mul(kvHead, group), member);
}

SmallVector<Value> RowMap::placeOf(IndexBuilder &index, int64_t rank,
                                   Value pair) const {
  if (rank == 1)
    return {head(index, pair)};
  SmallVector<Value> place = {row(index, pair), head(index, pair)};
  if (rank == 2)
    std::swap(place[0], place[1]);
  return place;
}

SmallVector<Value> RowMap::placeByKvHead(IndexBuilder &index, Value row,
                                         Value head, Value group) {
  return {index.div(head, group),
          index.add(index.mul(row, group), index.rem(head, group))};
}

SmallVector<Value> RowMap::firstByKvHead(IndexBuilder &index) const {
  return {kvHead, firstPair(index, firstRow)};
}

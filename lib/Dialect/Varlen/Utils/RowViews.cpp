//===- RowViews.cpp - Rows of sequences in memory, as views ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/RowViews.h"

#include "varlen/Support/Matrices.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// `count` rows of memory of T x H x D from that place on, of one head, or, if
/// they are `ofHeads`, of the heads of one token.
static Value viewRows(ImplicitLocOpBuilder &b, Value memory, Value row,
                      Value head, Value count, bool ofHeads) {
  OpFoldResult one = b.getIndexAttr(1), rows = getAsOpFoldResult(count),
               columns = b.getIndexAttr(innerSize(memory));
  SmallVector<OpFoldResult> offsets = {row, head, b.getIndexAttr(0)},
                            sizes = {rows, one, columns};
  if (ofHeads)
    std::swap(sizes[0], sizes[1]);
  SmallVector<OpFoldResult> ones(3, one);
  // By number: a row of one element is an extent of 1, too.
  unsigned dropped = ofHeads ? 0 : 1;
  auto whole = memref::SubViewOp::inferResultType(memoryType(memory), offsets,
                                                  sizes, ones);
  auto [strides, offset] = cast<MemRefType>(whole).getStridesAndOffset();
  strides.erase(strides.begin() + dropped);
  SmallVector<int64_t> shape(cast<MemRefType>(whole).getShape());
  shape.erase(shape.begin() + dropped);
  auto type =
      MemRefType::get(shape, elementOf(memory),
                      StridedLayoutAttr::get(b.getContext(), offset, strides));
  return memref::SubViewOp::create(b, type, memory, offsets, sizes, ones);
}

/// A page: memory of T x H x D.
static Value viewPage(ImplicitLocOpBuilder &b, Value memory, Value page) {
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0)),
      sizes = memref::getMixedSizes(b, b.getLoc(), memory),
      ones(4, b.getIndexAttr(1));
  offsets.front() = page;
  sizes.front() = b.getIndexAttr(1);
  auto type = memref::SubViewOp::inferRankReducedResultType(
      memoryType(memory).getShape().drop_front(), memoryType(memory), offsets,
      sizes, ones);
  return memref::SubViewOp::create(b, type, memory, offsets, sizes, ones);
}

Value varlen::emitRowsInPlace(ImplicitLocOpBuilder &b, Value memory,
                              const RowRange &rows) {
  IndexBuilder index{b};
  if (rows.map.pages)
    memory = viewPage(b, memory, rows.map.page(index, memory, rows.first));
  return viewRows(b, memory, rows.map.row(index, rows.first), rows.map.kvHead,
                  rows.count, /*ofHeads=*/false);
}

ValueRange varlen::forEachPage(
    ImplicitLocOpBuilder &b, const RowRange &rows, ValueRange inits,
    function_ref<Values(const RowRange &page, ValueRange)> body) {
  IndexBuilder index{b};
  Value end = index.add(rows.first, rows.count), size = rows.map.pages.rows;
  return emitLoop(
      b, index.div(rows.first, size), index.ceilDiv(end, size),
      index.constant(1), inits, [&](Value page, ValueRange carried) {
        Value row = index.mul(page, size);
        Value begin = index.max(rows.first, row);
        Value length = index.sub(index.min(end, index.add(row, size)), begin);
        return body({rows.map, begin, length}, carried);
      });
}

void varlen::forEachRowView(
    ImplicitLocOpBuilder &b, Value memory, const RowRange &rows, bool isOnePage,
    function_ref<void(Value view, Value from, Value count)> body) {
  IndexBuilder index{b};
  const RowMap &map = rows.map;
  Value first = rows.first, count = rows.count;
  auto all = [&] {
    body(emitRowsInPlace(b, memory, rows), index.constant(0), count);
  };
  auto byToken = [&] {
    Value end = index.add(first, count);
    emitLoop(b, map.query(index, first), index.ceilDiv(end, map.group), 1,
             [&](Value token) {
               Value begin = index.max(first, map.firstPair(index, token));
               Value next = map.firstPair(index, index.add(token, 1));
               Value length = index.sub(index.min(end, next), begin);
               body(viewRows(b, memory, index.add(map.firstRow, token),
                             map.head(index, begin), length, /*ofHeads=*/true),
                    index.sub(begin, first), length);
             });
  };
  auto byPage = [&] {
    forEachPage(b, rows, {}, [&](const RowRange &page, ValueRange) -> Values {
      body(emitRowsInPlace(b, memory, page), index.sub(page.first, first),
           page.count);
      return {};
    });
  };
  std::optional<int64_t> group = getConstantIntValue(map.group);
  if (map.pages && !isOnePage)
    byPage();
  else if (!group)
    emitIf(b, index.equal(map.group, 1), all, byToken);
  else if (*group == 1)
    all();
  else
    byToken();
}

//===----------------------------------------------------------------------===//
// Rows where they are, or in scratch
//===----------------------------------------------------------------------===//

Value varlen::castRows(ImplicitLocOpBuilder &b, Value rows) {
  MemRefType type = memoryType(rows);
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                                       {ShapedType::kDynamic, 1});
  return memref::CastOp::create(
      b, MemRefType::get(type.getShape(), type.getElementType(), layout), rows);
}

bool varlen::isOfRows(Value memory, Type element) {
  // The stride of one column may be any.
  return elementOf(memory) == element &&
         memoryType(memory).getStridesAndOffset().first.back() == 1;
}

Value varlen::emitIsInPlace(ImplicitLocOpBuilder &b, Value memory,
                            const RowRange &rows, Type element, int64_t count) {
  std::optional<int64_t> group = getConstantIntValue(rows.map.group);
  if (!isOfRows(memory, element) || (group && *group != 1))
    return {};
  IndexBuilder index{b};
  return index.both(index.equal(rows.count, count),
                    index.equal(rows.map.group, 1));
}

Value varlen::emitVectorRows(ImplicitLocOpBuilder &b, Value memory,
                             const RowRange &rows, int64_t count, Value inPlace,
                             Value scratch, function_ref<void()> otherwise) {
  if (!inPlace) {
    otherwise();
    return scratch;
  }
  auto chosen = [&](Value rows) { return Values{castRows(b, rows)}; };
  return emitChoice(
             b, inPlace,
             [&] {
               Value all = IndexBuilder{b}.constant(count);
               return chosen(
                   emitRowsInPlace(b, memory, {rows.map, rows.first, all}));
             },
             [&] {
               otherwise();
               return chosen(scratch);
             })
      .front();
}

//===- CPUTileMemory.cpp - Moves between packed tensors and scratch -------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileBuilder.h"
#include "varlen/Dialect/Varlen/Utils/Body.h"
#include "varlen/Dialect/Varlen/Utils/PairMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value mlir::varlen::emitConvert(ImplicitLocOpBuilder &b, Value value,
                                Type element) {
  auto from = cast<FloatType>(getElementTypeOrSelf(value.getType()));
  if (from == element)
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  if (from.getWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, type, value);
  return arith::TruncFOp::create(b, type, value);
}

static int64_t innerSize(Value memory) {
  return memoryType(memory).getShape().back();
}

/// `count` rows of memory of T x H x D from that place on, of one head, or, if
/// they are `ofHeads`, of the heads of one token.
static Value viewRows(ImplicitLocOpBuilder &b, Value memory, Value row,
                      Value head, Value count, bool ofHeads) {
  OpFoldResult one = b.getIndexAttr(1),
               columns = b.getIndexAttr(innerSize(memory));
  SmallVector<OpFoldResult> offsets = {row, head, b.getIndexAttr(0)},
                            sizes = {count, one, columns};
  if (ofHeads)
    std::swap(sizes[0], sizes[1]);
  SmallVector<OpFoldResult> strides(3, one);
  auto type = memref::SubViewOp::inferRankReducedResultType(
      {ShapedType::kDynamic, innerSize(memory)}, memoryType(memory), offsets,
      sizes, strides);
  return memref::SubViewOp::create(b, type, memory, offsets, sizes, strides);
}

Value CPUTileBuilder::emitRowsInPlace(Value source, const RowRange &rows) {
  return viewRows(b, source, rows.map.row(index, rows.first), rows.map.kvHead,
                  rows.count, /*ofHeads=*/false);
}

void CPUTileBuilder::forEachView(
    Value memory, const RowRange &rows,
    function_ref<void(Value view, Value from, Value count)> body) {
  const auto &[map, first, count] = rows;
  auto all = [&] {
    body(emitRowsInPlace(memory, rows), index.constant(0), count);
  };
  auto byToken = [&] {
    Value end = index.add(first, count);
    loop(map.query(index, first), index.ceilDiv(end, map.group), 1,
         [&](Value token) {
           Value begin = index.max(first, map.firstPair(index, token));
           Value next = map.firstPair(index, index.add(token, 1));
           Value length = index.sub(index.min(end, next), begin);
           body(viewRows(b, memory, index.add(map.firstRow, token),
                         map.head(index, begin), length, /*ofHeads=*/true),
                index.sub(begin, first), length);
         });
  };
  std::optional<int64_t> group = getConstantIntValue(map.group);
  if (!group)
    branch(index.equal(map.group, 1), all, byToken);
  else if (*group == 1)
    all();
  else
    byToken();
}

void CPUTileBuilder::emitPrefetchRows(Value source, const RowRange &rows) {
  constexpr unsigned secondLevel = 2;
  int64_t line = getCacheLineElements(elementOf(source));
  loop(index.constant(0), rows.count, 1, [&](Value i) {
    Value pair = index.add(rows.first, i);
    Value row = rows.map.row(index, pair), head = rows.map.head(index, pair);
    for (int64_t d = 0; d < innerSize(source); d += line)
      memref::PrefetchOp::create(b, source,
                                 ValueRange{row, head, index.constant(d)},
                                 /*isWrite=*/false, secondLevel,
                                 /*isDataCache=*/true);
  });
}

void CPUTileBuilder::emitReadRows(Value source, const RowRange &rows,
                                  Value paddedRows, Value destination) {
  int64_t size = innerSize(source), padded = innerSize(destination);
  OpFoldResult zero = b.getIndexAttr(0), columns = b.getIndexAttr(size);
  forEachView(source, rows, [&](Value view, Value from, Value count) {
    linalg::CopyOp::create(b, view,
                           this->view(destination, from, zero, count, columns));
  });
  if (size != padded)
    emitFill(0.0, view(destination, zero, columns, rows.count,
                       b.getIndexAttr(padded - size)));
  if (paddedRows != rows.count)
    emitFill(0.0, rowView(destination, rows.count,
                          index.sub(paddedRows, rows.count)));
}

/// Rows and columns, one dimension of which is cut to `count` pairs.
static Value cutToPairs(ImplicitLocOpBuilder &b, Value memory, unsigned dim,
                        OpFoldResult count) {
  SmallVector<OpFoldResult> sizes =
      memref::getMixedSizes(b, b.getLoc(), memory);
  sizes[dim] = count;
  sizes.insert(sizes.begin() + dim + 1, b.getIndexAttr(2));
  SmallVector<ReassociationIndices> dims =
      dim == 0 ? SmallVector<ReassociationIndices>{{0, 1}, {2}}
               : getPairDims(/*rank=*/3);
  SmallVector<int64_t> shape;
  SmallVector<Value> extents;
  dispatchIndexOpFoldResults(sizes, extents, shape);
  return memref::ExpandShapeOp::create(b, shape, memory, dims, sizes);
}

void CPUTileBuilder::emitReorder(Value rows, TileOrder order, Value count,
                                 Value destination) {
  OpFoldResult zero = b.getIndexAttr(0), all = getAsOpFoldResult(count);
  int64_t columns = innerSize(rows);
  rows = rowView(rows, zero, all);
  if (order == TileOrder::Columns) {
    destination = view(destination, zero, zero, b.getIndexAttr(columns), all);
    linalg::TransposeOp::create(b, rows, destination, ArrayRef<int64_t>{1, 0});
    return;
  }
  if (order == TileOrder::ColumnPairs) {
    OpFoldResult pairs = b.getIndexAttr(columns / 2);
    destination = view(destination, zero, zero, pairs,
                       getAsOpFoldResult(index.mul(count, 2)));
    linalg::TransposeOp::create(b, cutToPairs(b, rows, 1, pairs),
                                cutToPairs(b, destination, 1, all),
                                ArrayRef<int64_t>{1, 0, 2});
    return;
  }
  OpFoldResult pairs = getAsOpFoldResult(index.div(count, 2));
  destination =
      view(destination, zero, zero, pairs, b.getIndexAttr(2 * columns));
  linalg::TransposeOp::create(
      b, cutToPairs(b, rows, 0, pairs),
      cutToPairs(b, destination, 1, b.getIndexAttr(columns)),
      ArrayRef<int64_t>{0, 2, 1});
}

void CPUTileBuilder::emitReadPairs(Value source, const RowRange &rows,
                                   Value paddedRows, Value destination) {
  int64_t size = innerSize(source), columns = innerSize(destination) / 2;
  OpFoldResult zero = b.getIndexAttr(0);
  Value even = index.roundDown(rows.count, 2), whole = index.div(even, 2);
  emitReorder(emitRowsInPlace(source, {rows.map, rows.first, even}),
              TileOrder::RowPairs, even, destination);
  if (size != columns)
    emitFill(0.0, view(destination, zero, b.getIndexAttr(2 * size), whole,
                       b.getIndexAttr(2 * (columns - size))));
  // The last row, if its pair has no other.
  Value two = index.constant(2);
  branch(index.less(even, rows.count), [&] {
    Value last = allocate({2, columns}, elementOf(source));
    emitReadRows(source,
                 {rows.map, index.add(rows.first, even), index.constant(1)},
                 two, last);
    emitReorder(last, TileOrder::RowPairs, two,
                rowView(destination, whole, b.getIndexAttr(1)));
  });
  Value pairs = index.ceilDiv(rows.count, 2);
  emitFill(0.0, rowView(destination, pairs,
                        index.sub(index.div(paddedRows, 2), pairs)));
}

void CPUTileBuilder::emitStoreRows(Value source, Value factor,
                                   const RowRange &rows, Value destination) {
  forEachView(destination, rows, [&](Value to, Value from, Value count) {
    Value part = view(source, from, b.getIndexAttr(0), count,
                      b.getIndexAttr(innerSize(destination)));
    if (!factor) {
      linalg::CopyOp::create(b, part, to);
      return;
    }
    emitElementwise(b, part, to, [&](ImplicitLocOpBuilder &b, ValueRange args) {
      Value product = arith::MulFOp::create(b, args[0], factor);
      return Values{emitConvert(b, product, elementOf(to))};
    });
  });
}

void CPUTileBuilder::emitFillRows(double value, const RowRange &rows,
                                  Value destination) {
  forEachView(destination, rows,
              [&](Value view, Value, Value) { emitFill(value, view); });
}

void CPUTileBuilder::emitFill(double value, Value memory) {
  Value number =
      arith::ConstantOp::create(b, b.getFloatAttr(elementOf(memory), value));
  linalg::FillOp::create(b, number, memory);
}

//===- CPUTileBuilder.cpp - What tilings for a CPU have in common ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileBuilder.h"

#include "varlen/Support/Body.h"
#include "varlen/Support/PairMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Work tiles
//===----------------------------------------------------------------------===//

/// A number of a row of a list.
static Value readField(IndexBuilder &index, Value list, Value number,
                       int64_t column) {
  return index.load(list, ValueRange{number, index.constant(column)});
}

void CPUTileBuilder::readKeys(Value tiles, Value number, WorkExtents &extents) {
  // Blocks and parts begin at the same keys in every tile, so that how rows are
  // cut into tiles changes no sum.
  extents.kBegin =
      index.roundDown(readField(index, tiles, number, WorkTilesOp::KBegin),
                      schedule.getKvBlock());
  extents.kEnd = readField(index, tiles, number, WorkTilesOp::KEnd);
}

CPUTileBuilder::WorkExtents CPUTileBuilder::readExtents(Value tiles,
                                                        Value number) {
  WorkExtents extents;
  extents.rows = readField(index, tiles, number, WorkTilesOp::Rows);
  readKeys(tiles, number, extents);
  return extents;
}

CPUTileBuilder::WorkTile CPUTileBuilder::readRows(Value tiles, Value number,
                                                  Value group) {
  auto field = [&](WorkTilesOp::Column column) {
    return readField(index, tiles, number, column);
  };
  WorkTile tile;
  tile.pairs = {field(WorkTilesOp::QRow), field(WorkTilesOp::KvHead), group};
  tile.first = field(WorkTilesOp::First);
  tile.rows = field(WorkTilesOp::Rows);
  tile.kRows = field(WorkTilesOp::KRows);
  return tile;
}

CPUTileBuilder::WorkTile CPUTileBuilder::readTile(Value tiles, Value number,
                                                  Value group) {
  auto field = [&](WorkTilesOp::Column column) {
    return readField(index, tiles, number, column);
  };
  WorkTile tile = readRows(tiles, number, group);
  readKeys(tiles, number, tile);
  tile.kRow = field(WorkTilesOp::KRow);
  tile.queries = field(WorkTilesOp::Queries);
  tile.offset = field(WorkTilesOp::Offset);
  return tile;
}

Operation *
CPUTileBuilder::forEachTile(Value tiles, Value group,
                            function_ref<void(const WorkTile &)> body) {
  return emitForall(b, index.dim(tiles, 0),
                    [&](Value item) { body(readRows(tiles, item, group)); });
}

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

Value CPUTileBuilder::isNot(Value condition) {
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  return arith::XOrIOp::create(b, condition, yes);
}

Value CPUTileBuilder::floatConstant(double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
}

Value CPUTileBuilder::splat(int64_t length, Type element, double value) {
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({length}, element),
                                b.getFloatAttr(element, value)));
}

Value CPUTileBuilder::view(Value memref, OpFoldResult row, OpFoldResult column,
                           OpFoldResult rows, OpFoldResult columns) {
  OpFoldResult one = b.getIndexAttr(1);
  return memref::SubViewOp::create(b, memref, {row, column}, {rows, columns},
                                   {one, one});
}

Value CPUTileBuilder::rowView(Value memref, OpFoldResult row,
                              OpFoldResult rows) {
  return view(memref, row, b.getIndexAttr(0), rows,
              b.getIndexAttr(memoryType(memref).getDimSize(1)));
}

Value CPUTileBuilder::matrixAt(Value all, Value number) {
  MemRefType type = memoryType(all);
  int64_t rows = type.getDimSize(1), columns = type.getDimSize(2);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {number, zero, zero};
  SmallVector<OpFoldResult> sizes = {one, b.getIndexAttr(rows),
                                     b.getIndexAttr(columns)};
  SmallVector<OpFoldResult> strides(3, one);
  auto view = memref::SubViewOp::inferRankReducedResultType(
      {rows, columns}, type, offsets, sizes, strides);
  return memref::SubViewOp::create(b, view, all, offsets, sizes, strides);
}

Value CPUTileBuilder::allocate(ArrayRef<int64_t> shape, Type type,
                               ValueRange sizes) {
  return memref::AllocOp::create(b, MemRefType::get(shape, type), sizes,
                                 /*alignment=*/b.getI64IntegerAttr(64));
}

Value CPUTileBuilder::allocatePadded(int64_t rows, int64_t columns, Type type) {
  int64_t line = getCacheLineElements(type);
  int64_t padded = llvm::alignTo(columns, line) + line;
  Value whole = allocate({rows, padded}, type);
  OpFoldResult zero = b.getIndexAttr(0);
  return view(whole, zero, zero, b.getIndexAttr(rows), b.getIndexAttr(columns));
}

Value CPUTileBuilder::load(Value memref, bool writable) {
  return bufferization::ToTensorOp::create(
      b, memref::getTensorTypeFromMemRefType(memref.getType()), memref,
      /*restrict=*/true, writable);
}

Value CPUTileBuilder::load(ArrayRef<TileCopy> copies, int64_t rows,
                           int64_t columns) {
  if (copies.size() == 1 && copies.front().order == TileOrder::Rows)
    return load(copies.front().memref);
  return ToTileOp::create(
      b, RankedTensorType::get({rows, columns}, tileElement), copies);
}

void CPUTileBuilder::store(Value tile, Value memref) {
  Type element = elementOf(memref);
  if (auto type = cast<RankedTensorType>(tile.getType());
      type.getElementType() != element) {
    Value init = tensor::EmptyOp::create(
        b, tensor::getMixedSizes(b, b.getLoc(), tile), element);
    tile = emitElementwise(b, tile, init,
                           [&](ImplicitLocOpBuilder &b, ValueRange args) {
                             return Values{emitConvert(b, args[0], element)};
                           })
               .getResult(0);
  }
  bufferization::MaterializeInDestinationOp::create(
      b, TypeRange{}, tile, memref, /*restrict=*/true, /*writable=*/true);
}

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

Value CPUTileBuilder::emitAreInPages() {
  if (!pages)
    return {};
  int64_t block = schedule.getKvBlock();
  // Blocks begin at multiples of their size.
  std::optional<int64_t> rows = getConstantIntValue(pages.rows);
  if (rows && *rows % block == 0)
    return {};
  return index.equal(index.rem(pages.rows, index.constant(block)), 0);
}

Value CPUTileBuilder::emitRowsInPlace(Value source, const RowRange &rows) {
  if (rows.map.pages)
    source = viewPage(b, source, rows.map.page(index, source, rows.first));
  return viewRows(b, source, rows.map.row(index, rows.first), rows.map.kvHead,
                  rows.count, /*ofHeads=*/false);
}

Value CPUTileBuilder::castRows(Value rows) {
  MemRefType type = memoryType(rows);
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                                       {ShapedType::kDynamic, 1});
  return memref::CastOp::create(
      b, MemRefType::get(type.getShape(), type.getElementType(), layout), rows);
}

bool CPUTileBuilder::isOfRows(Value memory, Type element) {
  // The stride of one column may be any.
  return elementOf(memory) == element &&
         memoryType(memory).getStridesAndOffset().first.back() == 1;
}

Value CPUTileBuilder::emitIsInPlace(Value memory, const RowRange &rows,
                                    Type element) {
  std::optional<int64_t> group = getConstantIntValue(rows.map.group);
  if (!isOfRows(memory, element) || (group && *group != 1))
    return {};
  return index.both(index.equal(rows.count, lanes),
                    index.equal(rows.map.group, 1));
}

Value CPUTileBuilder::emitVectorRows(Value memory, const RowRange &rows,
                                     Value inPlace, Value scratch,
                                     function_ref<void()> otherwise) {
  if (!inPlace) {
    otherwise();
    return scratch;
  }
  auto chosen = [&](Value rows) { return Values{castRows(rows)}; };
  return emitChoice(
             b, inPlace,
             [&] {
               return chosen(emitRowsInPlace(
                   memory, {rows.map, rows.first, index.constant(lanes)}));
             },
             [&] {
               otherwise();
               return chosen(scratch);
             })
      .front();
}

void CPUTileBuilder::forEachView(
    Value memory, const RowRange &rows,
    function_ref<void(Value view, Value from, Value count)> body) {
  const RowMap &map = rows.map;
  Value first = rows.first, count = rows.count;
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
  auto byPage = [&] {
    Value end = index.add(first, count);
    loop(index.div(first, map.pages.rows), index.ceilDiv(end, map.pages.rows),
         1, [&](Value page) {
           Value row = index.mul(page, map.pages.rows);
           Value begin = index.max(first, row);
           Value length =
               index.sub(index.min(end, index.add(row, map.pages.rows)), begin);
           body(emitRowsInPlace(memory, {map, begin, length}),
                index.sub(begin, first), length);
         });
  };
  std::optional<int64_t> group = getConstantIntValue(map.group);
  if (map.pages && emitAreInPages())
    byPage();
  else if (!group)
    branch(index.equal(map.group, 1), all, byToken);
  else if (*group == 1)
    all();
  else
    byToken();
}

void CPUTileBuilder::emitPrefetchRows(Value source, const RowRange &rows) {
  constexpr unsigned secondLevel = 2;
  int64_t line = getCacheLineElements(elementOf(source));
  // Behind the last row there are fewer than none.
  RowRange some = {rows.map, rows.first, index.max(rows.count, 0)};
  forEachView(source, some, [&](Value view, Value, Value count) {
    loop(index.constant(0), count, 1, [&](Value row) {
      for (int64_t d = 0; d < innerSize(source); d += line)
        memref::PrefetchOp::create(b, view, ValueRange{row, index.constant(d)},
                                   /*isWrite=*/false, secondLevel,
                                   /*isDataCache=*/true);
    });
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

void CPUTileBuilder::emitReorder(Value rows, TileOrder order,
                                 Value destination) {
  SmallVector<int64_t> permutation = {1, 0};
  int64_t columns = innerSize(rows);
  auto sizeOf = [&](Value memory) {
    return memref::getMixedSize(b, b.getLoc(), memory, 0);
  };
  if (order == TileOrder::ColumnPairs) {
    destination = cutToPairs(b, destination, 1, sizeOf(rows));
    rows = cutToPairs(b, rows, 1, b.getIndexAttr(columns / 2));
    permutation = {1, 0, 2};
  } else if (order == TileOrder::RowPairs) {
    rows = cutToPairs(b, rows, 0, sizeOf(destination));
    destination = cutToPairs(b, destination, 1, b.getIndexAttr(columns));
    permutation = {0, 2, 1};
  }
  linalg::TransposeOp::create(b, rows, destination, permutation);
}

void CPUTileBuilder::emitReadPairs(Value source, const RowRange &rows,
                                   Value paddedRows, Value destination) {
  int64_t size = innerSize(source), columns = innerSize(destination) / 2;
  OpFoldResult zero = b.getIndexAttr(0);
  // Pairs of rows that may be in different pages, or are not of this type yet:
  // of a copy.
  if (elementOf(source) != elementOf(destination) ||
      (rows.map.pages && emitAreInPages())) {
    Value copy =
        allocate({schedule.getKvBlock(), columns}, elementOf(destination));
    emitReadRows(source, rows, paddedRows, copy);
    return emitReorder(
        rowView(copy, b.getIndexAttr(0), paddedRows), TileOrder::RowPairs,
        rowView(destination, b.getIndexAttr(0), index.div(paddedRows, 2)));
  }
  Value even = index.roundDown(rows.count, 2), whole = index.div(even, 2);
  emitReorder(emitRowsInPlace(source, {rows.map, rows.first, even}),
              TileOrder::RowPairs,
              view(destination, zero, zero, whole, b.getIndexAttr(2 * size)));
  if (size != columns)
    emitFill(0.0, view(destination, zero, b.getIndexAttr(2 * size), whole,
                       b.getIndexAttr(2 * (columns - size))));
  // The last row, if its pair has no other.
  branch(index.less(even, rows.count), [&] {
    Value last = allocate({2, columns}, elementOf(source));
    emitReadRows(source,
                 {rows.map, index.add(rows.first, even), index.constant(1)},
                 index.constant(2), last);
    emitReorder(last, TileOrder::RowPairs,
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
  Type element = elementOf(memory);
  assert((isa<FloatType>(element) || value == 0) &&
         "integers are filled with 0");
  TypedAttr attribute = b.getZeroAttr(element);
  if (value != 0)
    attribute = b.getFloatAttr(element, value);
  Value number = arith::ConstantOp::create(b, attribute);
  linalg::FillOp::create(b, number, memory);
}

//===- CPUTileBuilder.cpp - What tilings for a CPU have in common ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Work tiles
//===----------------------------------------------------------------------===//

CPUTileBuilder::WorkExtents CPUTileBuilder::extentsOf(ValueRange fields) {
  // Blocks and parts begin at the same keys in every tile, so that how rows are
  // cut into tiles changes no sum.
  return {fields[WorkTilesOp::Rows],
          index.roundDown(fields[WorkTilesOp::KBegin], schedule.getKvBlock()),
          fields[WorkTilesOp::KEnd]};
}

CPUTileBuilder::WorkExtents CPUTileBuilder::readExtents(Value tiles,
                                                        Value number) {
  return extentsOf(ReadWorkOp::create(b, tiles, number).getFields());
}

CPUTileBuilder::WorkTile CPUTileBuilder::rowsOf(ValueRange fields,
                                                Value group) {
  WorkTile tile;
  tile.pairs = {fields[WorkTilesOp::QRow], fields[WorkTilesOp::KvHead], group};
  tile.first = fields[WorkTilesOp::First];
  tile.rows = fields[WorkTilesOp::Rows];
  tile.kRows = fields[WorkTilesOp::KRows];
  return tile;
}

CPUTileBuilder::WorkTile CPUTileBuilder::tileOf(ValueRange fields,
                                                Value group) {
  WorkTile tile = rowsOf(fields, group);
  static_cast<WorkExtents &>(tile) = extentsOf(fields);
  tile.kRow = fields[WorkTilesOp::KRow];
  tile.queries = fields[WorkTilesOp::Queries];
  tile.offset = fields[WorkTilesOp::Offset];
  return tile;
}

Operation *
CPUTileBuilder::forEachTile(Value tiles, Value group,
                            function_ref<void(const WorkTile &)> body) {
  return emitForall(b, index.dim(tiles, 0), [&](Value item) {
    body(rowsOf(ReadWorkOp::create(b, tiles, item).getFields(), group));
  });
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

bool CPUTileBuilder::havePagesWholeBlocks() {
  // Blocks begin at multiples of their size.
  std::optional<int64_t> rows = getConstantIntValue(pages.rows);
  return rows && *rows % schedule.getKvBlock() == 0;
}

Value CPUTileBuilder::emitHavePages(int64_t multiple) {
  if (!pages)
    return {};
  Value rest = index.rem(pages.rows, multiple);
  return getConstantIntValue(rest) == 0 ? Value() : index.equal(rest, 0);
}

void CPUTileBuilder::emitReadRows(Value memory, const RowRange &rows,
                                  ArrayRef<TileCopy> copies) {
  ReadRowsOp::create(b, memory, rows.map.firstRow, rows.map.kvHead, rows.first,
                     rows.map.group, rows.count, rows.map.pages.table,
                     rows.map.pages && havePagesWholeBlocks(), copies);
}

Value CPUTileBuilder::loadRows(Value memory, const RowRange &rows) {
  auto type = RankedTensorType::get({ShapedType::kDynamic, innerSize(memory)},
                                    elementOf(memory));
  return LoadRowsOp::create(b, type, memory, rows.map.firstRow, rows.map.kvHead,
                            rows.first, rows.count, rows.map.pages.table,
                            rows.map.pages && havePagesWholeBlocks());
}

void CPUTileBuilder::emitPrefetchRows(Value memory, const RowRange &rows) {
  PrefetchRowsOp::create(b, memory, rows.map.firstRow, rows.map.kvHead,
                         rows.first, rows.map.group, rows.count,
                         rows.map.pages.table,
                         rows.map.pages && havePagesWholeBlocks());
}

void CPUTileBuilder::emitWriteRows(Value scratch, FloatAttr factor,
                                   const RowRange &rows, Value memory) {
  WriteRowsOp::create(b, scratch, memory, rows.map.firstRow, rows.map.kvHead,
                      rows.first, rows.map.group, rows.count, factor);
}

void CPUTileBuilder::emitFillRows(double number, const RowRange &rows,
                                  Value memory) {
  FillRowsOp::create(b, memory, rows.map.firstRow, rows.map.kvHead, rows.first,
                     rows.map.group, rows.count, b.getF64FloatAttr(number));
}

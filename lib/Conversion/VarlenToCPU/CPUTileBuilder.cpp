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

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Work tiles
//===----------------------------------------------------------------------===//

CPUTileBuilder::WorkTile CPUTileBuilder::readTile(Value tiles, Value number,
                                                  Value group) {
  auto field = [&](WorkTilesOp::Column column) -> Value {
    return index.load(tiles, ValueRange{number, index.constant(column)});
  };
  WorkTile tile;
  tile.pairs = {field(WorkTilesOp::QRow), field(WorkTilesOp::KvHead), group};
  tile.first = field(WorkTilesOp::First);
  tile.rows = field(WorkTilesOp::Rows);
  tile.kRow = field(WorkTilesOp::KRow);
  tile.kRows = field(WorkTilesOp::KRows);
  tile.queries = field(WorkTilesOp::Queries);
  tile.offset = field(WorkTilesOp::Offset);
  // Blocks and parts begin at the same keys in every tile, so that how rows are
  // cut into tiles changes no sum.
  tile.kBegin =
      index.roundDown(field(WorkTilesOp::KBegin), schedule.getKvBlock());
  tile.kEnd = field(WorkTilesOp::KEnd);
  return tile;
}

Operation *
CPUTileBuilder::forEachTile(Value tiles, Value group,
                            function_ref<void(const WorkTile &)> body) {
  return emitForall(b, index.dim(tiles, 0),
                    [&](Value item) { body(readTile(tiles, item, group)); });
}

//===----------------------------------------------------------------------===//
// Large tiles
//===----------------------------------------------------------------------===//

/// A tile with more than this part of all scores is large.
static constexpr double kLargePart = 1.0 / 8;

Value CPUTileBuilder::emitScores(const WorkTile &tile) {
  auto number = [&](Value count) -> Value {
    return arith::SIToFPOp::create(
        b, b.getF64Type(),
        arith::IndexCastOp::create(b, b.getI64Type(), count));
  };
  return arith::MulFOp::create(b, number(tile.rows),
                               number(index.sub(tile.kEnd, tile.kBegin)));
}

Value CPUTileBuilder::emitIsLarge(Value scores, Value allScores) {
  Value part = arith::ConstantOp::create(b, b.getF64FloatAttr(kLargePart));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, scores,
                               arith::MulFOp::create(b, allScores, part));
}

CPUTileBuilder::Extremes CPUTileBuilder::emitExtremes(Value tiles,
                                                      Value group) {
  Value zero = index.constant(0);
  Value none = arith::ConstantOp::create(b, b.getF64FloatAttr(0));
  ValueRange most = emitLoop(
      b, zero, index.dim(tiles, 0), index.constant(1), {zero, zero, none, none},
      [&](Value number, ValueRange most) {
        WorkTile tile = readTile(tiles, number, group);
        Value keys = index.sub(tile.kEnd, tile.kBegin);
        Value rows = index.select(index.less(zero, keys), tile.rows, zero);
        Value scores = emitScores(tile);
        return Values{index.max(most[0], rows), index.max(most[1], keys),
                      arith::AddFOp::create(b, most[2], scores),
                      arith::MaximumFOp::create(b, most[3], scores)};
      });
  return {most[0], most[1], most[2], most[3]};
}

void CPUTileBuilder::forEachTurn(Value tiles, Value canBeCut,
                                 function_ref<void(Value, Value)> body) {
  Value zero = index.constant(0), one = index.constant(1);
  Value count = index.dim(tiles, 0);
  Value end = index.select(canBeCut, index.add(count, one), one);
  loop(zero, index.select(index.less(zero, count), end, zero), 1,
       [&](Value turn) {
         Value isWhole = index.equal(turn, zero);
         body(index.max(index.sub(turn, one), zero), isWhole);
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

Value CPUTileBuilder::load(Value memref) {
  return bufferization::ToTensorOp::create(
      b, memref::getTensorTypeFromMemRefType(memref.getType()), memref,
      /*restrict=*/true);
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

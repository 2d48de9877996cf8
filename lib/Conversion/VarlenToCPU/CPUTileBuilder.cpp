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
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

scf::ForallOp CPUTileBuilder::forEach(Value count,
                                      function_ref<void(Value)> body) {
  auto work = scf::ForallOp::create(b, ArrayRef<OpFoldResult>{count},
                                    ValueRange{}, std::nullopt);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(work.getBody());
  body(work.getInductionVar(0));
  return work;
}

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
  tile.kBegin = field(WorkTilesOp::KBegin);
  tile.kEnd = field(WorkTilesOp::KEnd);
  return tile;
}

scf::ForallOp
CPUTileBuilder::forEachTile(Value tiles, Value group,
                            function_ref<void(const WorkTile &)> body) {
  return forEach(dim(tiles, 0),
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
      b, zero, dim(tiles, 0), index.constant(1), {zero, zero, none, none},
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
  Value count = dim(tiles, 0);
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

Value CPUTileBuilder::splat(double value) {
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({lanes}, compute),
                                b.getFloatAttr(compute, value)));
}

Value CPUTileBuilder::dim(Value memref, int64_t dim) {
  return b.createOrFold<memref::DimOp>(memref, dim);
}

Value CPUTileBuilder::view(Value memref, OpFoldResult row, OpFoldResult column,
                           OpFoldResult rows, OpFoldResult columns) {
  OpFoldResult one = b.getIndexAttr(1);
  return memref::SubViewOp::create(b, memref, {row, column}, {rows, columns},
                                   {one, one});
}

Value CPUTileBuilder::rowView(Value memref, OpFoldResult row, OpFoldResult rows,
                              OpFoldResult columns) {
  return view(memref, row, b.getIndexAttr(0), rows, columns);
}

Value CPUTileBuilder::matrixAt(Value all, Value number) {
  auto type = cast<MemRefType>(all.getType());
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
  Value whole = allocate(rows, llvm::alignTo(columns, line) + line, type);
  return rowView(whole, b.getIndexAttr(0), b.getIndexAttr(rows),
                 b.getIndexAttr(columns));
}

Value CPUTileBuilder::load(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return bufferization::ToTensorOp::create(
      b, RankedTensorType::get(type.getShape(), type.getElementType()), memref,
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

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

CPUTileBuilder::VisiblePart CPUTileBuilder::visiblePart(const WorkTile &tile,
                                                        Value first, Value rows,
                                                        Value k0, Value keys) {
  Value last = index.sub(index.add(first, rows), index.constant(1));
  VisiblePart part;
  part.keys = tile.mask.emitKeysOf(index, tile.pairs.query(index, first),
                                   tile.pairs.query(index, last), tile.kRows);
  part.begin =
      index.roundDown(index.sub(index.max(part.keys.begin, k0), k0), kGranule);
  part.end = index.roundUp(
      index.max(index.sub(index.min(part.keys.end, index.add(k0, keys)), k0),
                index.constant(0)),
      kGranule);
  return part;
}

Value CPUTileBuilder::seeAll(const VisiblePart &seen, Value begin, Value end) {
  return index.both(index.lessEqual(seen.keys.wholeBegin, begin),
                    index.lessEqual(end, seen.keys.wholeEnd));
}

/// The memory and the place of a number of a pair.
static std::pair<Value, SmallVector<Value>>
findNumber(IndexBuilder &index, const RowScratchMap &scratch,
           const RowMap &pairs, Value memory, Value pair, unsigned column) {
  auto rows = scratch.find(memory);
  if (rows == scratch.end())
    return {memory, pairs.placeOf(index, memoryType(memory).getRank(), pair)};
  return {rows->second.memory[column],
          RowMap::placeByKvHead(index, pairs.row(index, pair),
                                pairs.head(index, pair), rows->second.group)};
}

Value CPUTileBuilder::loadNumber(const WorkTile &tile, Value memory, Value pair,
                                 unsigned column) {
  auto [from, place] =
      findNumber(index, scratch, tile.pairs, memory, pair, column);
  return emitConvert(b, memref::LoadOp::create(b, from, place), compute);
}

void CPUTileBuilder::storeNumber(const WorkTile &tile, Value number,
                                 Value memory, Value pair, unsigned column) {
  auto [to, place] =
      findNumber(index, scratch, tile.pairs, memory, pair, column);
  memref::StoreOp::create(b, emitConvert(b, number, elementOf(to)), to, place);
}

void CPUTileBuilder::emitLimits(const WorkTile &tile, Value query, Value lo,
                                Value hi, ValueRange at) {
  MaskRange<Value> keys = tile.mask.emitKeysOf(index, query, query, tile.kRows);
  auto store = [&](Value key, Value destination) {
    key = arith::IndexCastOp::create(b, b.getI32Type(), key);
    memref::StoreOp::create(b, key, destination, at);
  };
  store(index.min(keys.begin, keys.end), lo);
  store(keys.end, hi);
}

//===- QueryPanels.cpp - Queries of a tile in scratch ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryPanels.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

SmallVector<int64_t> QueryPanels::getBufferShape(int64_t perQuery) {
  if (isKQ())
    return {panels * perQuery, size};
  return {size, perQuery};
}

PanelBuffer QueryPanels::allocateNumbers(OpFoldResult queries, Type type) {
  auto [count, extent] = decomposeMixedValues({queries});
  SmallVector<int64_t> shape = {1, count.front()};
  if (!isKQ())
    std::swap(shape[0], shape[1]);
  return {allocate(shape, type, extent), 1, /*isStacked=*/false};
}

PanelBuffer QueryPanels::getRowsInPlace(Value memory) {
  SmallVector<Value> first = tile.pairs.firstByKvHead(index);
  return {memory, 1, /*isStacked=*/false, first[0], first[1]};
}

OpFoldResult QueryPanels::getWidth(const Panel &at) {
  return isKQ() ? OpFoldResult(b.getIndexAttr(size)) : OpFoldResult(at.rows);
}

std::pair<Value, Value> QueryPanels::originOf(const PanelBuffer &buffer,
                                              const Panel &at) {
  Value zero = index.constant(0);
  if (buffer.isStacked && isKQ())
    return {index.mul(at.number, buffer.perQuery), zero};
  Value row = buffer.row ? buffer.row : zero;
  Value column = buffer.column ? buffer.column : zero;
  Value &along = isKQ() ? column : row;
  along = index.add(along, at.offset);
  return {row, column};
}

Value QueryPanels::view(const PanelBuffer &buffer, const Panel &at) {
  auto [row, column] = originOf(buffer, at);
  OpFoldResult values = b.getIndexAttr(buffer.perQuery), width = getWidth(at);
  if (!isKQ())
    std::swap(values, width);
  return view(buffer.memory, getAsOpFoldResult(row), getAsOpFoldResult(column),
              values, width);
}

SmallVector<Value> QueryPanels::placeOf(const PanelBuffer &buffer,
                                        const Panel &at, Value lane) {
  auto [row, column] = originOf(buffer, at);
  Value &along = isKQ() ? column : row;
  along = index.add(along, lane);
  return {row, column};
}

Value QueryPanels::loadNumber(const PanelBuffer &buffer, const Panel &at,
                              Value lane) {
  return memref::LoadOp::create(b, buffer.memory, placeOf(buffer, at, lane));
}

void QueryPanels::storeNumber(Value number, const PanelBuffer &buffer,
                              const Panel &at, Value lane) {
  memref::StoreOp::create(b, number, buffer.memory, placeOf(buffer, at, lane));
}

/// The memory of each number of a pair, and the place where they are.
static std::pair<ValueRange, SmallVector<Value>>
findNumbers(IndexBuilder &index, const RowScratchMap &scratch,
            const RowMap &pairs, const Value &memory, Value pair) {
  auto rows = scratch.find(memory);
  if (rows == scratch.end())
    return {memory, pairs.placeOf(index, memoryType(memory).getRank(), pair)};
  return {rows->second.memory,
          RowMap::placeByKvHead(index, pairs.row(index, pair),
                                pairs.head(index, pair), rows->second.group)};
}

Values QueryPanels::loadNumbers(Value memory, Value pair, size_t count) {
  auto [from, place] = findNumbers(index, scratch, tile.pairs, memory, pair);
  Values numbers;
  for (Value column : from.take_front(count))
    numbers.push_back(
        emitConvert(b, memref::LoadOp::create(b, column, place), compute));
  return numbers;
}

void QueryPanels::storeNumbers(ValueRange numbers, Value memory, Value pair) {
  auto [to, place] = findNumbers(index, scratch, tile.pairs, memory, pair);
  for (auto [number, column] : llvm::zip_first(numbers, to))
    memref::StoreOp::create(b, emitConvert(b, number, elementOf(column)),
                            column, place);
}

QueryPanels::TileSlice QueryPanels::sliceOf(Value all, const Panel &at) {
  auto type = cast<RankedTensorType>(all.getType());
  OpFoldResult zero = b.getIndexAttr(0);
  if (!isKQ())
    return {{zero, zero}, {at.rows, b.getIndexAttr(type.getDimSize(1))}};
  int64_t perQuery = type.getDimSize(0) / panels;
  return {{index.mul(at.number, perQuery), zero},
          {b.getIndexAttr(perQuery), b.getIndexAttr(size)}};
}

Value QueryPanels::extract(Value all, const TileSlice &at) {
  SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, all, at.offsets, at.sizes, strides);
}

Value QueryPanels::insert(Value tile, Value all, const TileSlice &at) {
  SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, tile, all, at.offsets, at.sizes,
                                       strides);
}

ValueRange QueryPanels::forEachPanel(
    ValueRange inits, function_ref<Values(const Panel &, ValueRange)> body) {
  Value zero = index.constant(0);
  return emitLoop(b, zero, numPanels, index.constant(1), inits,
                  [&](Value number, ValueRange values) {
                    Value offset = index.mul(number, size);
                    return body({number, offset, index.add(tile.first, offset),
                                 index.min(index.sub(tile.rows, offset), size)},
                                values);
                  });
}

void QueryPanels::setTile(const WorkTile &workTile) {
  tile = workTile;
  numPanels = isKQ() ? index.ceilDiv(tile.rows, size) : index.constant(1);
}

void QueryPanels::forEachPanel(function_ref<void(const Panel &)> body) {
  Value zero = index.constant(0);
  if (!isKQ())
    return body({zero, zero, tile.first, tile.rows});
  loop(zero, numPanels, 1, [&](Value number) {
    Value offset = index.mul(number, size);
    body({number, offset, index.add(tile.first, offset),
          index.min(index.sub(tile.rows, offset), size)});
  });
}

void QueryPanels::forEachLane(const Panel &at,
                              function_ref<void(Value, Value)> body) {
  Value width = getValueOrCreateConstantIndexOp(b, b.getLoc(), getWidth(at));
  loop(index.constant(0), width, 1, [&](Value lane) {
    Value pair = index.add(at.first, lane);
    body(lane, isKQ() ? index.min(pair, lastPair()) : pair);
  });
}

//===- TileLoopBlocks.cpp - Tiles and blocks of a tile loop ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoopConverter.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Tiles and blocks
//===----------------------------------------------------------------------===//

TileBuilder::Sequence TileLoopConverter::dropBlindQueries(Sequence sequence) {
  Value zero = index.constant(0);
  MaskRange<Value> queries = sequence.mask.emitQueriesOf(
      index, zero, index.sub(sequence.kUsed, index.constant(1)),
      sequence.qUsed);
  sequence.qRow = index.add(sequence.qRow, queries.begin);
  sequence.mask.shift(index, queries.begin);
  sequence.qUsed = index.max(index.sub(queries.end, queries.begin), zero);
  return sequence;
}

std::pair<TileBuilder::Tile, MaskRange<Value>>
TileLoopConverter::decodeKeys(const TileEntry &entry) {
  Tile tile;
  tile.sequence = dropBlindQueries(decodeSequence(entry.sequence));
  const Sequence &sequence = tile.sequence;
  tile.kvHead = entry.kvHead;
  tile.first = index.mul(entry.tile, tileRows);
  Value zero = index.constant(0);
  tile.rows = index.min(index.sub(sequence.kRows, tile.first),
                        index.constant(tileRows));
  // A tile has a row, but maybe none in use.
  tile.usedRows = tile.rows;
  if (batch.getSequsedK())
    tile.usedRows = index.min(
        index.max(index.sub(sequence.kUsed, tile.first), zero), tile.rows);
  Value last =
      index.sub(index.add(tile.first, tile.usedRows), index.constant(1));
  MaskRange<Value> range =
      sequence.mask.emitQueriesOf(index, tile.first, last, sequence.qUsed);
  // Not even a key: no query.
  if (batch.getSequsedK())
    range.end = index.select(index.less(zero, tile.usedRows), range.end, zero);
  return {tile, range};
}

std::pair<TileBuilder::Tile, MaskRange<Value>>
TileLoopConverter::decode(const TileEntry &entry) {
  return ofQueries ? decodeQueries(entry) : decodeKeys(entry);
}

/// Of blocks of queries, those of one head of the group come after those of
/// another; masked iterations of all heads come first.
TileLoopConverter::BlockRows TileLoopConverter::getBlockRows(Value i,
                                                             bool masked) {
  if (ofQueries)
    return {tile.sequence.kRow, tile.kvHead,
            index.cast(blockStart(visited, i, masked, blockSize))};
  if (getConstantIntValue(group) == 1)
    return {tile.sequence.qRow, tile.kvHead,
            index.cast(blockStart(visited, i, masked, blockSize))};
  Value heads = narrow.cast(group), one = narrow.constant(1);
  Value begin = narrow.mul(visited.masked, heads);
  Value inside = narrow.sub(visited.total, visited.masked);
  Value beyond = narrow.sub(i, begin), count = inside;
  Value isMasked;
  if (masked) {
    isMasked = narrow.less(i, begin);
    beyond = narrow.select(isMasked, i, beyond);
    count = narrow.select(isMasked, visited.masked, inside);
  }
  count = narrow.max(count, one);
  Value member = narrow.div(beyond, count);
  Value number = narrow.rem(beyond, count);
  // In the order of iterations of one head.
  Value skipped = visited.masked;
  if (masked)
    skipped = narrow.select(isMasked, narrow.constant(0), skipped);
  number = narrow.add(number, skipped);
  Value head = pairsOf(tile).headOf(index, index.cast(member));
  return {tile.sequence.qRow, head,
          index.cast(blockStart(visited, number, masked, blockSize))};
}

SmallVector<Value> TileLoopConverter::getTileLimits() {
  return perPosition(
      0, tileRows, 2, [&](ImplicitLocOpBuilder &inner, Value row) {
        IndexBuilder at{inner}, narrow{inner, inner.getI32Type()};
        Value query = pairsOf(tile).query(at, at.add(tile.first, row));
        MaskRange<Value> keys = tile.sequence.mask.emitKeysOf(
            at, query, query, tile.sequence.kUsed);
        return SmallVector<Value>{narrow.cast(keys.begin),
                                  narrow.cast(keys.end)};
      });
}

Value TileLoopConverter::getTilePositions() {
  return perPosition(0, tileRows, [&](IndexBuilder &at, Value row) {
    Value query = pairsOf(tile).query(at, at.add(tile.first, row));
    return tile.sequence.mask.emitPosition(at, query);
  });
}

Value TileLoopConverter::getBlockPositions(Value q0) {
  return perPosition(1, blockSize, [&](IndexBuilder &at, Value column) {
    return tile.sequence.mask.emitPosition(at, at.add(q0, column));
  });
}

SmallVector<Value> TileLoopConverter::getBlockLimits(Value q0) {
  // What differs from query to query has 32 bits, however long sequences are.
  const Sequence &sequence = tile.sequence;
  SequenceMask mask = sequence.mask;
  mask.shift(index, q0, tile.first);
  mask.emitCast(index, narrow);
  Value keys = narrow.cast(index.sub(sequence.kUsed, tile.first));
  Value queries = narrow.cast(
      index.min(index.sub(sequence.qUsed, q0), index.constant(blockSize)));
  return perPosition(
      1, blockSize, 2, [&](ImplicitLocOpBuilder &inner, Value position) {
        IndexBuilder at{inner, inner.getI32Type()};
        Value column = at.cast(position), zero = at.constant(0);
        Value begin = mask.emitBound(at, MaskSide::Begin, column);
        Value end = mask.emitBound(at, MaskSide::End, column);
        Value last = end ? at.min(end, keys) : keys;
        // A query past the end sees nothing.
        last = at.select(at.less(column, queries), last, zero);
        return SmallVector<Value>{begin ? begin : zero, last};
      });
}

// Queries that are not in use have the rows of the last one: what is not seen
// is looked up, too.

Value TileLoopConverter::getTileTableRows(Value table) {
  SmallVector<Value> strides = emitTableStrides(index, table);
  auto rowOf = [&](IndexBuilder &at, Value row) {
    Value last = at.max(at.sub(tile.usedRows, at.constant(1)), at.constant(0));
    Value pair = at.add(tile.first, at.min(row, last));
    RowMap pairs = pairsOf(tile);
    return emitTableRow(at, strides, pairs.head(at, pair), pairs.row(at, pair));
  };
  return perPosition(0, tileRows, rowOf, b.getI64Type());
}

Value TileLoopConverter::getTileGradientRows(Value table) {
  SmallVector<Value> strides = emitTableStrides(index, table);
  auto rowOf = [&](IndexBuilder &at, Value row) {
    IndexBuilder wide{at.b, at.b.getI64Type()};
    Value pair = at.add(tile.first, row);
    RowMap pairs = pairsOf(tile);
    Value own =
        emitTableRow(at, strides, pairs.head(at, pair), pairs.row(at, pair));
    return wide.select(at.less(row, tile.usedRows), own,
                       wide.constant(kNoTableRow));
  };
  return perPosition(0, tileRows, rowOf, b.getI64Type());
}

Value TileLoopConverter::getBlockTableRows(Value table, const BlockRows &rows) {
  SmallVector<Value> strides = emitTableStrides(index, table);
  auto rowOf = [&](IndexBuilder &at, Value column) {
    Value last =
        at.max(at.sub(tile.sequence.qUsed, at.constant(1)), at.constant(0));
    Value query = at.add(rows.row, at.min(at.add(rows.first, column), last));
    return emitTableRow(at, strides, rows.head, query);
  };
  return perPosition(1, blockSize, rowOf, b.getI64Type());
}

Value TileLoopConverter::getBlockGradientRow(Value table,
                                             const BlockRows &rows) {
  Value row = emitTableRow(index, emitTableStrides(index, table), rows.head,
                           /*query=*/Value());
  Value empty = tensor::EmptyOp::create(b, ArrayRef<int64_t>{1, blockSize},
                                        row.getType());
  return linalg::FillOp::create(b, row, empty).getResult(0);
}

//===- TileLoopBlocks.cpp - Tiles and blocks of a tile loop ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoopConverter.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

TileLoopConverter::Sequence TileLoopConverter::decodeSequence(Value s) {
  auto read = ReadSequenceOp::create(b, batch, s);
  Sequence sequence;
  sequence.qRow = read.getQRow();
  sequence.qRows = read.getQRows();
  sequence.qUsed = read.getQUsed();
  sequence.kRow = read.getKRow();
  sequence.kRows = read.getKRows();
  sequence.kUsed = read.getKUsed();
  Position offset;
  if (read.getOffset())
    offset = read.getOffset();
  sequence.mask = SequenceMask(index, batch.getMask(), sequence.qUsed,
                               sequence.kUsed, offset);
  return sequence;
}

TileLoopConverter::Sequence
TileLoopConverter::dropBlindQueries(Sequence sequence) {
  MaskRange<Value> queries = sequence.mask.emitQueriesOf(
      index, index.constant(0), index.sub(sequence.kUsed, 1), sequence.qUsed);
  sequence.qRow = index.add(sequence.qRow, queries.begin);
  sequence.mask.shift(index, queries.begin);
  sequence.qUsed = index.max(index.sub(queries.end, queries.begin), 0);
  return sequence;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

TileEntry TileLoopConverter::decodeEntry(Value entry) {
  auto read = ReadTileOp::create(b, list.getList(), entry, batch.getKvHeads());
  return {read.getSequence(), read.getTile(), read.getKvHead()};
}

TileLoopConverter::Tile
TileLoopConverter::decodeQueries(const TileEntry &entry) {
  Tile tile;
  tile.sequence = decodeSequence(entry.sequence);
  tile.kvHead = entry.kvHead;
  Value number = entry.tile;
  if (keyParts)
    number = decodePart(tile, entry.sequence, number);
  tile.first = index.mul(number, tileRows);
  RowMap pairs = pairsOf(tile);
  auto pairsBefore = [&](Value query) {
    return index.sub(pairs.firstPair(index, query), tile.first);
  };
  tile.rows = index.min(pairsBefore(tile.sequence.qRows), tileRows);
  tile.usedRows =
      index.min(index.max(pairsBefore(tile.sequence.qUsed), 0), tile.rows);
  return tile;
}

void TileLoopConverter::setKeyRows(Tile &tile, Value first) {
  const Sequence &sequence = tile.sequence;
  tile.first = first;
  tile.rows = index.min(index.sub(sequence.kRows, first), tileRows);
  // A tile has a row, but maybe none in use.
  tile.usedRows = tile.rows;
  if (batch.getSequsedK())
    tile.usedRows =
        index.min(index.max(index.sub(sequence.kUsed, first), 0), tile.rows);
}

TileLoopConverter::Tile TileLoopConverter::decodeKeys(const TileEntry &entry) {
  Tile tile;
  tile.sequence = dropBlindQueries(decodeSequence(entry.sequence));
  tile.kvHead = entry.kvHead;
  tile.number = entry.sequence;
  tile.tile = entry.tile;
  setKeyRows(tile, index.mul(entry.tile, tileRows));
  return tile;
}

TileLoopConverter::Tile TileLoopConverter::decode(const TileEntry &entry) {
  return ofQueries ? decodeQueries(entry) : decodeKeys(entry);
}

/// Bounds grow with the position of a row, so the first and the last row of the
/// tile bound those of all.
MaskRange<Value> TileLoopConverter::getVisitedRows() {
  const SequenceMask &mask = tile.sequence.mask;
  Value last = index.sub(index.add(tile.first, tile.usedRows), 1);
  MaskRange<Value> range;
  if (ofQueries) {
    RowMap pairs = pairsOf(tile);
    range = mask.emitKeysOf(index, pairs.query(index, tile.first),
                            pairs.query(index, last), tile.sequence.kUsed);
  } else {
    range = mask.emitQueriesOf(index, tile.first, last, tile.sequence.qUsed);
  }
  // Without a row in use there is nothing to visit. A tile of keys has one if
  // all keys are in use.
  if (ofQueries || batch.getSequsedK())
    range.end = index.select(index.less(0, tile.usedRows), range.end,
                             index.constant(0));
  return keyParts ? clipToPart(range) : range;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

TileLoopConverter::Blocks
TileLoopConverter::getBlocks(const MaskRange<Value> &range) {
  // Counts of blocks are not negative.
  auto atLeast = [&](Value value, Value lo) {
    return isConstantIntValue(lo, 0) ? value : index.max(value, lo);
  };
  Value first = index.div(range.begin, blockSize);
  Value past = atLeast(index.ceilDiv(range.end, blockSize), first);
  // A tile whose range is empty visits no block; one that begins at 0 is empty
  // only if it ends there.
  if (!isConstantIntValue(range.begin, 0))
    past = index.select(index.less(range.begin, range.end), past, first);
  auto within = [&](Value value, Value lo) {
    return atLeast(index.min(value, past), lo);
  };
  // Blocks that every row visits whole.
  Value inside =
      isConstantIntValue(range.wholeBegin, 0)
          ? first
          : within(index.ceilDiv(range.wholeBegin, blockSize), first);
  Value right = within(index.div(range.wholeEnd, blockSize), inside);

  Value left = index.sub(inside, first);
  Value masked = index.add(left, index.sub(past, right));
  return {narrow.cast(left),
          narrow.cast(masked),
          narrow.cast(index.sub(past, first)),
          narrow.cast(first),
          narrow.cast(index.sub(right, left)),
          narrow.cast(index.sub(inside, masked))};
}

Value TileLoopConverter::blockStart(Value i, bool masked) {
  Value base = visited.insideBase;
  if (masked)
    base = narrow.select(
        narrow.less(i, visited.left), visited.leftBase,
        narrow.select(narrow.less(i, visited.masked), visited.rightBase, base));
  return narrow.mul(narrow.add(base, i), blockSize);
}

/// Of blocks of queries, those of one head of the group come after those of
/// another; masked iterations of all heads come first.
TileLoopConverter::BlockRows TileLoopConverter::getBlockRows(Value i,
                                                             bool masked) {
  if (ofQueries)
    return {tile.sequence.kRow, tile.kvHead, index.cast(blockStart(i, masked))};
  if (getConstantIntValue(group) == 1)
    return {tile.sequence.qRow, tile.kvHead, index.cast(blockStart(i, masked))};
  Value heads = narrow.cast(group);
  Value begin = narrow.mul(visited.masked, heads);
  Value inside = narrow.sub(visited.total, visited.masked);
  Value beyond = narrow.sub(i, begin), count = inside;
  Value isMasked;
  if (masked) {
    isMasked = narrow.less(i, begin);
    beyond = narrow.select(isMasked, i, beyond);
    count = narrow.select(isMasked, visited.masked, inside);
  }
  count = narrow.max(count, 1);
  Value member = narrow.div(beyond, count);
  Value number = narrow.rem(beyond, count);
  // In the order of iterations of one head.
  Value skipped = visited.masked;
  if (masked)
    skipped = narrow.select(isMasked, narrow.constant(0), skipped);
  number = narrow.add(number, skipped);
  Value head = pairsOf(tile).headOf(index, index.cast(member));
  return {tile.sequence.qRow, head, index.cast(blockStart(number, masked))};
}

//===----------------------------------------------------------------------===//
// Numbers of rows
//===----------------------------------------------------------------------===//

Values TileLoopConverter::perPosition(
    unsigned dim, int64_t extent, unsigned count,
    function_ref<Values(ImplicitLocOpBuilder &, Value)> body, Type type) {
  // One generic a result: a fragment conversion wants it so, and what they
  // share is common to both afterwards.
  int64_t shape[] = {1, 1};
  shape[dim] = extent;
  Values results;
  for (unsigned number = 0; number < count; ++number) {
    Value empty =
        tensor::EmptyOp::create(b, shape, type ? type : b.getI32Type());
    auto generic = emitElementwise(
        b, /*inputs=*/{}, empty, [&](ImplicitLocOpBuilder &inner, ValueRange) {
          Value position = linalg::IndexOp::create(inner, dim);
          return Values{body(inner, position)[number]};
        });
    // A number that is the same everywhere is a constant of the tile: readers
    // see that a mask is open at one side.
    Attribute constant;
    if (matchPattern(generic.getBody()->getTerminator()->getOperand(0),
                     m_Constant(&constant))) {
      auto tile = cast<ShapedType>(empty.getType());
      generic.erase();
      results.push_back(
          arith::ConstantOp::create(b, DenseElementsAttr::get(tile, constant)));
      continue;
    }
    results.push_back(generic.getResult(0));
  }
  return results;
}

Value TileLoopConverter::perPosition(
    unsigned dim, int64_t extent,
    function_ref<Value(IndexBuilder &, Value)> body, Type type) {
  auto only = [&](ImplicitLocOpBuilder &inner, Value position) {
    IndexBuilder at{inner};
    return Values{body(at, position)};
  };
  return perPosition(dim, extent, 1, only, type).front();
}

SmallVector<Value> TileLoopConverter::getTileLimits() {
  return perPosition(
      0, tileRows, 2, [&](ImplicitLocOpBuilder &inner, Value row) {
        IndexBuilder at{inner}, narrow{inner, inner.getI32Type()};
        Value query = pairsOf(tile).query(at, at.add(tile.first, row));
        MaskRange<Value> keys = tile.sequence.mask.emitKeysOf(
            at, query, query, tile.sequence.kUsed);
        return Values{narrow.cast(keys.begin), narrow.cast(keys.end)};
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
  Value queries =
      narrow.cast(index.min(index.sub(sequence.qUsed, q0), blockSize));
  return perPosition(
      1, blockSize, 2, [&](ImplicitLocOpBuilder &inner, Value position) {
        IndexBuilder at{inner, inner.getI32Type()};
        Value column = at.cast(position), zero = at.constant(0);
        Value begin = mask.emitBound(at, MaskSide::Begin, column);
        Value end = mask.emitBound(at, MaskSide::End, column);
        Value last = end ? at.min(end, keys) : keys;
        // A query past the end sees nothing.
        last = at.select(at.less(column, queries), last, zero);
        return Values{begin ? begin : zero, last};
      });
}

// Queries that are not in use have the rows of the last one: what is not seen
// is looked up, too.

Value TileLoopConverter::getTileTableRows(Value table) {
  SmallVector<Value> strides = emitTableStrides(index, table);
  auto rowOf = [&](IndexBuilder &at, Value row) {
    Value last = at.max(at.sub(tile.usedRows, 1), 0);
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
    Value last = at.max(at.sub(tile.sequence.qUsed, 1), 0);
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

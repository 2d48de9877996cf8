//===- SequenceTileConverter.cpp - A loop over whole sequences ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An item is a sequence and a kv head. It walks over kv blocks and, for each,
// over the panels of queries that see it, so dk and dv of a block stay in cache
// and are written once. dq of the item is summed in scratch, in the order of kv
// blocks: every gradient has one owner and an order of sums that its sequence
// alone decides. Where one item is much of all work, its owners take turns.
//
//===----------------------------------------------------------------------===//

#include "SequenceTileConverter.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

static int64_t columnsOf(ReadOp read) {
  return cast<RankedTensorType>(read.getResult(0).getType()).getDimSize(1);
}

SequenceTileConverter::SequenceTileConverter(
    SequenceTiles parts, CPUScheduleAttr schedule,
    const DenseMap<Value, RowScratch> &scratch, OpBuilder &builder)
    : CPUTileBuilder(
          parts.tiles.getLoc(), builder, schedule,
          elementOf(parts.q.getSource()),
          cast<FloatType>(parts.step.getLse().getType().getElementType())),
      loops(parts), scratch(scratch),
      statistics(scratch.at(parts.statistics.getSource())),
      d(columnsOf(parts.q)), dv(columnsOf(parts.v)), perRow(pairs ? 2 : 1),
      group(parts.tiles.getBatchOp().getGroup()) {}

void SequenceTileConverter::emit(Value items) {
  // Scratch whose size is known before the loop is kept from item to item.
  Extremes all = emitExtremes(items, group);
  Value rows = index.roundUp(all.rows, panel);
  Limits most = {rows, index.div(rows, index.constant(panel)),
                 index.ceilDiv(all.keys, schedule.getKvBlock()), all.scores};
  Value canBeCut =
      emitIsCut(all.mostScores, most.rows, most.blocks, most.scores);
  auto ifCut = [&](Value extent) {
    return index.select(canBeCut, extent, index.constant(0));
  };
  Memory shared =
      allocateMemory(ifCut(most.rows), ifCut(most.panels), ifCut(most.blocks));
  forEachTurn(items, canBeCut, [&](Value number, Value isWhole) {
    emitDiagonals(items, number, isWhole, most, shared);
  });
  for (Value buffer : shared.getAll())
    memref::DeallocOp::create(b, buffer);
}

void SequenceTileConverter::emitDiagonals(Value items, Value number,
                                          Value isWhole, const Limits &most,
                                          const Memory &shared) {
  Value zero = index.constant(0), one = index.constant(1);
  WorkTile own = readTile(items, number, group);
  Grid grid = emitGrid(own);
  auto isCut = [&](const WorkTile &tile) {
    return emitIsCut(emitScores(tile), tile.rows, emitNumBlocks(tile),
                     most.scores);
  };
  Value diagonals = index.select(
      isCut(own), index.sub(index.add(grid.ranges, grid.chunks), one), zero);
  loop(zero, index.select(isWhole, one, diagonals), 1, [&](Value diagonal) {
    // Cells are numbered from the first chunk on.
    Value first =
        index.max(index.sub(diagonal, index.sub(grid.ranges, one)), zero);
    Value last = index.min(diagonal, index.sub(grid.chunks, one));
    Value cells = index.add(index.sub(last, first), one);
    auto work =
        forEach(index.select(isWhole, dim(items, 0), cells), [&](Value i) {
          WorkTile tile =
              readTile(items, index.select(isWhole, i, number), group);
          tile.mask = maskOf(tile, loops.tiles.getBatchOp());
          Value chunk = index.add(first, i);
          Cell whole = emitWholeCell(tile);
          Cell part = emitCell(tile, grid, index.sub(diagonal, chunk), chunk);
          auto choose = [&](Value Cell::*field) {
            return index.select(isWhole, whole.*field, part.*field);
          };
          Cell cell = {choose(&Cell::firstRow),      choose(&Cell::endRow),
                       choose(&Cell::firstBlock),    choose(&Cell::endBlock),
                       choose(&Cell::beginsQueries), choose(&Cell::endsQueries),
                       choose(&Cell::beginsKeys),    choose(&Cell::endsKeys)};
          Memory ofItem = allocateMemory(most.rows, most.panels, one);
          allocateScratch(tile);
          ValueRange memory = emitChoice(
              b, isWhole, [&] { return ofItem.getAll(); },
              [&] { return shared.getAll(); });
          item = ofItem.with(memory);
          // Those that are cut have their turn later.
          branch(isNot(both(isWhole, isCut(tile))),
                 [&] { emitItem(tile, cell); });
        });
    work->setAttr(kScheduleAttrName, schedule);
  });
}

// To a list the other way round, keys that no item has are rows without a key:
// they belong to no sequence, or to one without queries.
void SequenceTileConverter::emitUnseenKeys(Value list) {
  forEachTile(list, index.constant(1), [&](const WorkTile &tile) {
    branch(index.lessEqual(tile.kRows, index.constant(0)), [&] {
      for (WriteOp write : {loops.dk, loops.dv})
        emitOtherwise(write, tile.pairs, tile.first, tile.rows);
      emitKeyClears(tile.pairs, tile.first, tile.rows);
    });
  });
}

void SequenceTileConverter::emitOtherwise(WriteOp write, const RowMap &rows,
                                          Value first, Value count) {
  emitFillRows(b, write.getOtherwise().front(), rows, first, count,
               write.getDestination(), lanes);
}

void SequenceTileConverter::emitWrite(WriteOp write, Value sum,
                                      const RowMap &rows, Value first,
                                      Value count) {
  Value factor;
  if (auto times = write.getFactor())
    factor = floatConstant(times->convertToDouble());
  emitStoreRows(b, sum, factor, rows, first, count, write.getDestination(),
                lanes);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// How many ranges and chunks the grid of an item has at most: enough for many
/// threads, and so few that diagonals are long.
static constexpr int64_t kMaxRanges = 16, kMaxChunks = 256;
/// Rows of a range at least: a kv block is copied once for each.
static constexpr int64_t kMinRangeRows = 1024;

Value SequenceTileConverter::emitNumBlocks(const WorkTile &tile) {
  return index.ceilDiv(index.sub(tile.kEnd, tile.kBegin),
                       schedule.getKvBlock());
}

Value SequenceTileConverter::emitIsCut(Value scores, Value rows, Value blocks,
                                       Value allScores) {
  return both(emitIsLarge(scores, allScores),
              both(index.less(index.constant(kMinRangeRows), rows),
                   index.less(index.constant(1), blocks)));
}

SequenceTileConverter::Grid
SequenceTileConverter::emitGrid(const WorkTile &tile) {
  Grid grid;
  grid.rows = index.roundUp(index.max(index.ceilDiv(tile.rows, kMaxRanges),
                                      index.constant(kMinRangeRows)),
                            panel);
  grid.ranges = index.ceilDiv(tile.rows, grid.rows);
  Value blocks = emitNumBlocks(tile);
  grid.blocks = index.max(index.ceilDiv(blocks, kMaxChunks), index.constant(1));
  grid.chunks = index.ceilDiv(blocks, grid.blocks);
  return grid;
}

SequenceTileConverter::Cell
SequenceTileConverter::emitWholeCell(const WorkTile &tile) {
  Value zero = index.constant(0);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  return {zero, tile.rows, zero, emitNumBlocks(tile), yes, yes, yes, yes};
}

SequenceTileConverter::Cell
SequenceTileConverter::emitCell(const WorkTile &tile, const Grid &grid,
                                Value range, Value chunk) {
  Value zero = index.constant(0), one = index.constant(1);
  Cell cell;
  cell.firstRow = index.mul(range, grid.rows);
  cell.endRow = index.min(index.add(cell.firstRow, grid.rows), tile.rows);
  cell.firstBlock = index.mul(chunk, grid.blocks);
  cell.endBlock =
      index.min(index.add(cell.firstBlock, grid.blocks), emitNumBlocks(tile));
  cell.beginsQueries = index.equal(chunk, zero);
  cell.endsQueries = index.equal(index.add(chunk, one), grid.chunks);
  cell.beginsKeys = index.equal(range, zero);
  cell.endsKeys = index.equal(index.add(range, one), grid.ranges);
  return cell;
}

SmallVector<Value> SequenceTileConverter::Memory::getAll() const {
  SmallVector<Value> all = {q.columns, q.rows, dout.columns, dout.rows, dq,
                            dk,        dv};
  if (positions)
    all.push_back(positions);
  if (captureRanges)
    all.push_back(captureRanges);
  llvm::append_range(all, dcaptures);
  llvm::append_range(all, tableRows);
  return all;
}

SequenceTileConverter::Memory
SequenceTileConverter::Memory::with(ValueRange values) const {
  Memory result = {{values[0], values[1]},
                   {values[2], values[3]},
                   values[4],
                   values[5],
                   values[6],
                   /*positions=*/Value(),
                   /*dcaptures=*/{},
                   /*captureRanges=*/Value(),
                   /*tableRows=*/{}};
  values = values.drop_front(7);
  if (positions) {
    result.positions = values.front();
    values = values.drop_front();
  }
  if (captureRanges) {
    result.captureRanges = values.front();
    values = values.drop_front();
  }
  result.dcaptures =
      llvm::to_vector_of<Value>(values.take_front(dcaptures.size()));
  result.tableRows =
      llvm::to_vector_of<Value>(values.drop_front(dcaptures.size()));
  return result;
}

SequenceTileConverter::Memory
SequenceTileConverter::allocateMemory(Value rows, Value panels, Value blocks) {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  auto allocatePanels = [&](int64_t rows, int64_t columns) {
    return allocate({dynamic, rows, columns}, tileElement, panels);
  };
  auto factor = [&](int64_t size) -> Factor {
    return {allocatePanels(size / perRow, perRow * panel),
            allocatePanels(panel / perRow, perRow * size)};
  };
  auto allocateBlocks = [&](int64_t size) {
    return allocate({dynamic, schedule.getKvBlock(), size}, compute, blocks);
  };
  Memory memory;
  memory.q = factor(d);
  memory.dout = factor(dv);
  memory.dq = allocate({dynamic, d}, compute, rows);
  memory.dk = allocateBlocks(d);
  memory.dv = allocateBlocks(dv);
  if (readsPositions(loops.step.getScoreBody()))
    memory.positions = allocate({1, dynamic}, b.getI32Type(), rows);
  memory.captureRanges = allocateRanges(loops.step.getScoreBody(), panels);
  for (size_t i = 0; i < loops.dcaptures.size(); ++i)
    memory.dcaptures.push_back(allocate({1, dynamic}, compute, rows));
  for (size_t i = 0;
       i < loops.step.getTables().size() + loops.step.getDtables().size(); ++i)
    memory.tableRows.push_back(allocate({1, dynamic}, b.getI64Type(), rows));
  return memory;
}

void SequenceTileConverter::allocateScratch(const WorkTile &tile) {
  int64_t kvBlock = schedule.getKvBlock();
  loTile = allocate(1, panel, b.getI32Type());
  hiTile = allocate(1, panel, b.getI32Type());
  kTile = allocatePadded(kvBlock, d, tileElement);
  if (pairs)
    kPairs = allocatePadded(kvBlock / 2, 2 * d, element);
  vTile = allocatePadded(kvBlock, dv, tileElement);
  tableViews = emitTableViews(tile, loops.step.getTables(),
                              getTableArguments(loops.step.getScoreBody()));
  dtableViews = emitTableViews(tile, loops.step.getDtables(),
                               loops.step.getGradientTables());
}

void SequenceTileConverter::emitKeyClears(const RowMap &rows, Value first,
                                          Value count) {
  if (loops.keyClears.empty())
    return;
  Value zero = index.constant(0), none = floatConstant(0.0);
  Value head = index.mul(rows.kvHead, group);
  loop(zero, group, 1, [&](Value member) {
    loop(first, index.add(first, count), 1, [&](Value key) {
      for (ClearOp clear : loops.keyClears)
        memref::StoreOp::create(
            b, none, clear.getMemory(),
            ValueRange{index.add(head, member), rows.row(index, key)});
    });
  });
}

void SequenceTileConverter::emitClears(const WorkTile &tile, Value first,
                                       Value end) {
  if (loops.clears.empty())
    return;
  loop(first, end, 1, [&](Value pair) {
    Value row = tile.pairs.row(index, pair),
          head = tile.pairs.head(index, pair);
    for (ClearOp clear : loops.clears) {
      Value memory = clear.getMemory();
      loop(index.constant(0), dim(memory, 2), 1, [&](Value entry) {
        memref::StoreOp::create(b, floatConstant(0.0), memory,
                                ValueRange{head, row, entry});
      });
    }
  });
}

void SequenceTileConverter::emitTableRowsOf(const WorkTile &tile, Value pair) {
  size_t count = loops.step.getTables().size();
  SmallVector<Value> at = {index.constant(0), pair};
  Value last = lastPair(tile), own = index.min(pair, last);
  ArrayRef<Value> rows = item.tableRows;
  emitTableRows(tile, own, loops.step.getTables(), rows.take_front(count), at);
  Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(kNoTableRow));
  for (auto [table, scratch] :
       llvm::zip_equal(loops.step.getDtables(), rows.drop_front(count))) {
    Value row =
        emitTableRow(index, emitTableStrides(index, table),
                     tile.pairs.head(index, own), tile.pairs.row(index, own));
    memref::StoreOp::create(
        b, index.select(index.lessEqual(pair, last), row, none), scratch, at);
  }
}

void SequenceTileConverter::emitItem(const WorkTile &tile, const Cell &cell) {
  auto zeroKeys = [&](Value from, Value to) {
    for (WriteOp write : {loops.dk, loops.dv})
      emitOtherwise(write, keyRows(tile), from, index.sub(to, from));
    emitKeyClears(keyRows(tile), from, index.sub(to, from));
  };
  auto dqRows = [&](Value end) {
    return rowView(item.dq, cell.firstRow, index.sub(end, cell.firstRow),
                   b.getIndexAttr(d));
  };
  auto seen = [&] {
    branch(cell.beginsQueries, [&] {
      Value end = index.roundUp(cell.endRow, panel);
      emitClear(b, dqRows(end), index.sub(end, cell.firstRow), lanes);
      Value zero = index.constant(0);
      for (Value sums : item.dcaptures)
        loop(cell.firstRow, end, lanes, [&, sums](Value at) {
          vector::StoreOp::create(b, splat(0.0), sums, ValueRange{zero, at});
        });
      if (item.positions)
        loop(cell.firstRow, end, 1, [&](Value pair) {
          emitScoreInputs(tile, index.min(pair, lastPair(tile)), /*memory=*/{},
                          item.positions, ValueRange{zero, pair});
        });
      if (item.captureRanges)
        loop(cell.firstRow, cell.endRow, panel, [&](Value p) {
          storeRanges(
              loops.step.getScoreBody(), item.captureRanges,
              index.div(p, index.constant(panel)),
              index.min(index.sub(tile.rows, p), index.constant(panel)),
              [&](unsigned capture, Value lane) -> Value {
                return memref::LoadOp::create(
                    b, captureMemory(capture),
                    ValueRange{tile.pairs.kvHead,
                               index.add(firstStatistic(tile, p), lane)});
              });
        });
      emitClears(tile, cell.firstRow, cell.endRow);
      if (!item.tableRows.empty())
        loop(cell.firstRow, end, 1,
             [&](Value pair) { emitTableRowsOf(tile, pair); });
      // Once for all kv blocks: rows lie as far apart as a token has heads,
      // where no hardware fetches them in advance.
      loop(cell.firstRow, cell.endRow, panel, [&](Value p) {
        Value columns =
            index.min(index.sub(tile.rows, p), index.constant(panel));
        emitPack(tile, loops.q.getSource(), p, columns, panelAt(item.q, p));
        emitPack(tile, loops.dout.getSource(), p, columns,
                 panelAt(item.dout, p));
      });
    });
    branch(both(cell.beginsQueries, cell.beginsKeys), [&] {
      zeroKeys(index.constant(0), tile.kBegin);
      zeroKeys(tile.kEnd, tile.kRows);
    });
    loop(cell.firstBlock, cell.endBlock, 1,
         [&](Value number) { emitBlock(tile, cell, number); });
    branch(cell.endsQueries, [&] {
      emitWrite(loops.dq, dqRows(cell.endRow), tile.pairs, cell.firstRow,
                index.sub(cell.endRow, cell.firstRow));
      emitWriteCaptures(
          tile, cell.firstRow, cell.endRow,
          [&](WriteOp write, Value sums, Value row) -> Value {
            Value sum = memref::LoadOp::create(
                b, sums, ValueRange{index.constant(0), row});
            auto times = write.getFactor();
            return times ? arith::MulFOp::create(
                               b, sum, floatConstant(times->convertToDouble()))
                               .getResult()
                         : sum;
          });
    });
  };
  auto unseen = [&] {
    zeroKeys(index.constant(0), tile.kRows);
    emitOtherwise(loops.dq, tile.pairs, index.constant(0), tile.rows);
    emitClears(tile, index.constant(0), tile.rows);
    emitWriteCaptures(tile, index.constant(0), tile.rows,
                      [&](WriteOp write, Value, Value) {
                        return floatConstant(write.getOtherwise().front());
                      });
  };
  branch(index.less(tile.kBegin, tile.kEnd), seen, unseen);
}

void SequenceTileConverter::emitWriteCaptures(
    const WorkTile &tile, Value first, Value end,
    function_ref<Value(WriteOp, Value dcaptures, Value row)> valueOf) {
  if (loops.dcaptures.empty())
    return;
  loop(first, end, 1, [&](Value row) {
    for (auto [write, sums] :
         llvm::zip_equal(loops.dcaptures, item.dcaptures)) {
      Value value = valueOf(write, sums, row);
      auto rows = scratch.find(write.getDestination());
      if (rows == scratch.end()) {
        storeNumber(tile, value, write.getDestination(), row);
        continue;
      }
      memref::StoreOp::create(
          b, value, rows->second.memory.front(),
          rows->second.placeOf(index, tile.pairs.row(index, row),
                               tile.pairs.head(index, row)));
    }
  });
}

void SequenceTileConverter::emitBlock(const WorkTile &tile, const Cell &cell,
                                      Value number) {
  Value k0 = index.add(tile.kBegin, index.mul(number, schedule.getKvBlock()));
  Value keys = blockKeys(tile, k0);
  Value padded = index.roundUp(keys, kGranule);
  // Those of an item in one piece have room for one block.
  auto gradient = [&](Value all) {
    return matrixAt(
        all, index.min(number, index.sub(dim(all, 0), index.constant(1))));
  };
  dkTile = gradient(item.dk);
  dvTile = gradient(item.dv);
  branch(cell.beginsKeys, [&] {
    emitClear(b, dkTile, padded, lanes);
    emitClear(b, dvTile, padded, lanes);
    emitKeyClears(keyRows(tile), k0, keys);
  });

  // The queries that see some key of the block.
  Value last = index.sub(index.add(k0, keys), index.constant(1));
  MaskRange<Value> queries = tile.mask.emitQueriesOf(
      index, k0, last, tile.pairs.query(index, tile.rows));
  Value begin = index.max(
      index.roundDown(tile.pairs.firstPair(index, queries.begin), panel),
      cell.firstRow);
  Value end = index.min(tile.pairs.firstPair(index, queries.end), cell.endRow);
  branch(index.less(begin, end), [&] {
    emitCopyRows(b, loops.k.getSource(), keyRows(tile), k0, keys, padded, kTile,
                 lanes);
    emitCopyRows(b, loops.v.getSource(), keyRows(tile), k0, keys, padded, vTile,
                 lanes);
    if (pairs)
      emitPairRows(b, loops.k.getSource(), keyRows(tile), k0, keys, padded,
                   kPairs, lanes);
    loop(begin, end, panel, [&](Value p) { emitPanel(tile, p, k0, keys); });
  });

  branch(cell.endsKeys, [&] {
    emitWrite(loops.dk, dkTile, keyRows(tile), k0, keys);
    emitWrite(loops.dv, dvTile, keyRows(tile), k0, keys);
  });
}

void SequenceTileConverter::emitPack(const WorkTile &tile, Value source,
                                     Value p, Value columns, const Factor &to) {
  // Rows first: a loop over them has more misses in flight than one that
  // transposes.
  (pairs ? emitPairRows : emitCopyRows)(b, source, tile.pairs, p, columns,
                                        index.constant(panel), to.rows, lanes);
  loop(index.constant(0), columns, lanes, [&](Value column) {
    emitPackColumns(b, source, tile.pairs, index.add(p, column), lastPair(tile),
                    to.columns, index.constant(0), index.mul(column, perRow),
                    lanes, pairs);
  });
  // Of rows it makes what is past the head size zero, of columns we do.
  auto type = cast<MemRefType>(to.columns.getType());
  int64_t size = cast<MemRefType>(source.getType()).getDimSize(2) / perRow;
  int64_t past = type.getDimSize(0) - size;
  if (past != 0)
    emitClear(b,
              rowView(to.columns, b.getIndexAttr(size), b.getIndexAttr(past),
                      b.getIndexAttr(type.getDimSize(1))),
              index.constant(past), lanes);
}

void SequenceTileConverter::emitPanel(const WorkTile &tile, Value p, Value k0,
                                      Value keys) {
  Value columns = index.min(index.sub(tile.rows, p), index.constant(panel));
  VisiblePart seen = visiblePart(tile, p, columns, k0, keys);
  Value begin = seen.begin, end = seen.end;
  auto compute = [&] {
    // Lanes behind the last query see nothing.
    Value from = index.add(k0, begin);
    Value whole = index.both(seeAll(seen, from, index.add(k0, end)),
                             index.lessEqual(index.constant(panel), columns));
    branch(
        whole, [] {},
        [&] {
          loop(index.constant(0), columns, 1, [&](Value lane) {
            emitLimits(tile, tile.pairs.query(index, index.add(p, lane)),
                       loTile, hiTile, ValueRange{index.constant(0), lane});
          });
          // Limits do not fall from one lane to the next.
          Value zero = index.constant(0);
          Value end = memref::LoadOp::create(
              b, hiTile,
              ValueRange{zero, index.sub(columns, index.constant(1))});
          loop(columns, index.constant(panel), 1, [&](Value lane) {
            for (Value limit : {loTile, hiTile})
              memref::StoreOp::create(b, end, limit, ValueRange{zero, lane});
          });
        });
    emitStep(tile, p, begin, index.sub(end, begin), from, whole);
  };
  Block *score = loops.step.getScoreBody();
  auto ranges = loadRanges(score, item.captureRanges,
                           index.div(p, index.constant(panel)));
  Value may = mayBeVisible(tile, score, ranges, p, columns,
                           index.add(k0, begin), index.add(k0, end));
  branch(both(index.less(begin, end), may), compute);
}

void SequenceTileConverter::emitStep(const WorkTile &tile, Value p, Value begin,
                                     Value size, Value from, Value whole) {
  auto rowsOf = [&](Value memref, OpFoldResult row, OpFoldResult rows) {
    return rowView(
        memref, row, rows,
        b.getIndexAttr(cast<MemRefType>(memref.getType()).getDimSize(1)));
  };
  auto queries = [&](const Factor &all, int64_t size) {
    Factor at = panelAt(all, p);
    TileCopy columns = {pairs ? TileOrder::ColumnPairs : TileOrder::Columns,
                        at.columns};
    TileCopy rows = {pairs ? TileOrder::RowPairs : TileOrder::Rows, at.rows};
    return load({columns, rows}, panel, size);
  };
  auto keys = [&](Value memref) { return rowsOf(memref, begin, size); };
  auto statistic = [&](Value memref, Value row, Value at) {
    return load(
        view(memref, row, at, b.getIndexAttr(1), b.getIndexAttr(panel)));
  };
  Value two = index.constant(2);
  SmallVector<TileCopy> k = {{TileOrder::Rows, keys(kTile)}};
  if (pairs)
    k.push_back({TileOrder::RowPairs,
                 rowsOf(kPairs, index.div(begin, two), index.div(size, two))});
  Value zero = index.constant(0);
  Value at = firstStatistic(tile, p);
  Value dqView = rowsOf(item.dq, p, b.getIndexAttr(panel));
  Value dkView = keys(dkTile), dvView = keys(dvTile);
  Value from32 = arith::IndexCastOp::create(b, b.getI32Type(), from);
  SmallVector<Value> captures, sums, dcaptureViews;
  for (size_t i = 0; i < loops.step.getCaptures().size(); ++i)
    captures.push_back(statistic(captureMemory(i), tile.pairs.kvHead, at));
  auto rows = llvm::map_to_vector(
      item.tableRows, [&](Value all) { return statistic(all, zero, p); });
  for (Value all : item.dcaptures) {
    dcaptureViews.push_back(
        view(all, zero, p, b.getIndexAttr(1), b.getIndexAttr(panel)));
    sums.push_back(load(dcaptureViews.back()));
  }
  auto step = OnlineAttnGradOp::create(
      b, queries(item.q, d), load(k, ShapedType::kDynamic, d),
      load(keys(vTile)), queries(item.dout, dv),
      statistic(statistics.memory[0], tile.pairs.kvHead, at),
      statistic(statistics.memory[1], tile.pairs.kvHead, at),
      statistic(loTile, zero, zero), statistic(hiTile, zero, zero), from32,
      whole,
      /*queries=*/Value(), /*keys=*/Value(),
      item.positions ? statistic(item.positions, zero, p) : Value(),
      item.positions ? from32 : Value(), captures, tableViews,
      ArrayRef(rows).take_front(tableViews.size()), dtableViews,
      ArrayRef(rows).drop_front(tableViews.size()), load(dqView), load(dkView),
      load(dvView), sums, loops.step.getScaleAttr(),
      loops.step.getOrientationAttr(), loops.step.getNaturalAttr(),
      loops.step.getWrtCapturesAttr(), loops.step.getScore().size());
  copyScore(loops.step, step);
  step->setDiscardableAttrs(loops.step->getDiscardableAttrDictionary());
  store(step.getDqOut(), dqView);
  store(step.getDkOut(), dkView);
  store(step.getDvOut(), dvView);
  for (auto [sum, destination] :
       llvm::zip_equal(step.getDcapturesOut(), dcaptureViews))
    store(sum, destination);
}

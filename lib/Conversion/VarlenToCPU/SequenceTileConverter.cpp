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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

SequenceTileConverter::SequenceTileConverter(SequenceTiles parts,
                                             const CPUTileBuilder &common)
    : QueryPanels(common, Orientation::KQ, common.panel, /*panels=*/0),
      loops(parts), statistics(scratch.at(parts.statistics.getSource())),
      group(parts.tiles.getBatchOp().getGroup()), factors(*this, parts.step),
      score(*this, parts.step) {}

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
  SmallVector<Value> shared =
      allocateMemory(ifCut(most.rows), ifCut(most.panels), ifCut(most.blocks));
  forEachTurn(items, canBeCut, [&](Value number, Value isWhole) {
    emitDiagonals(items, number, isWhole, most, shared);
  });
  for (Value buffer : shared)
    memref::DeallocOp::create(b, buffer);
}

void SequenceTileConverter::emitDiagonals(Value items, Value number,
                                          Value isWhole, const Limits &most,
                                          ArrayRef<Value> shared) {
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
          SmallVector<Value> own = allocateMemory(most.rows, most.panels, one);
          allocateScratch(tile);
          use(tile, emitChoice(
                        b, isWhole, [&] { return Values(own); },
                        [&] { return Values(shared); }));
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

SmallVector<Value>
SequenceTileConverter::allocateMemory(Value rows, Value panels, Value blocks) {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  auto columnsOf = [](Value sum) {
    return cast<RankedTensorType>(sum.getType()).getDimSize(1);
  };
  SmallVector<Value> memory = factors.allocateQueries(panels);
  memory.push_back(
      allocate({dynamic, columnsOf(loops.step.getDq())}, compute, rows));
  for (Value sum : {loops.step.getDk(), loops.step.getDv()})
    memory.push_back(allocate({dynamic, schedule.getKvBlock(), columnsOf(sum)},
                              compute, blocks));
  for (size_t i = 0; i < loops.dcaptures.size(); ++i)
    memory.push_back(allocateNumbers(rows, compute).memory);
  llvm::append_range(memory, score.allocate(panels, [&](Type type) {
    return allocateNumbers(rows, type);
  }));
  return memory;
}

void SequenceTileConverter::use(const WorkTile &tile, ValueRange memory) {
  auto take = [&](size_t count) {
    ValueRange taken = memory.take_front(count);
    memory = memory.drop_front(count);
    return taken;
  };
  factors.use(take(factors.getNumQueryCopies()));
  dq = take(1).front();
  dk = take(1).front();
  dv = take(1).front();
  dcaptures = llvm::to_vector(take(loops.dcaptures.size()));
  numbers = llvm::map_to_vector(
      statistics.memory, [&](Value all) { return getRowsInPlace(all, tile); });
  // Behind lse and delta.
  score.use(memory, ArrayRef(numbers).drop_front(2));
}

void SequenceTileConverter::allocateScratch(const WorkTile &tile) {
  loTile = allocate(1, panel, b.getI32Type());
  hiTile = allocate(1, panel, b.getI32Type());
  factors.allocateKeys();
  score.emitViews(tile);
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

void SequenceTileConverter::emitItem(const WorkTile &tile, const Cell &cell) {
  auto zeroKeys = [&](Value from, Value to) {
    for (WriteOp write : {loops.dk, loops.dv})
      emitOtherwise(write, keyRows(tile), from, index.sub(to, from));
    emitKeyClears(keyRows(tile), from, index.sub(to, from));
  };
  auto dqRows = [&](Value end) {
    return rowView(dq, cell.firstRow, index.sub(end, cell.firstRow),
                   b.getIndexAttr(memoryType(dq).getDimSize(1)));
  };
  auto seen = [&] {
    branch(cell.beginsQueries, [&] {
      Value end = index.roundUp(cell.endRow, panel);
      emitFill(b, 0.0, dqRows(end), index.sub(end, cell.firstRow), lanes);
      Value zero = index.constant(0);
      for (Value sums : dcaptures)
        loop(cell.firstRow, end, lanes, [&, sums](Value at) {
          vector::StoreOp::create(b, splat(0.0), sums, ValueRange{zero, at});
        });
      if (!score.isEmpty())
        loop(cell.firstRow, end, 1, [&](Value pair) {
          score.store(tile, queriesAt(tile, zero), pair);
        });
      if (score.hasRanges())
        loop(cell.firstRow, cell.endRow, panel,
             [&](Value p) { score.storeRanges(queriesAt(tile, p)); });
      emitClears(tile, cell.firstRow, cell.endRow);
      // Once for all kv blocks: rows lie as far apart as a token has heads,
      // where no hardware fetches them in advance.
      loop(cell.firstRow, cell.endRow, panel,
           [&](Value p) { factors.pack(tile, queriesAt(tile, p)); });
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
    for (auto [write, sums] : llvm::zip_equal(loops.dcaptures, dcaptures)) {
      storeNumber(tile, valueOf(write, sums, row), write.getDestination(), row);
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
  dkTile = gradient(dk);
  dvTile = gradient(dv);
  branch(cell.beginsKeys, [&] {
    emitFill(b, 0.0, dkTile, padded, lanes);
    emitFill(b, 0.0, dvTile, padded, lanes);
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
    factors.readKeys(tile, k0, keys, /*inPlace=*/Value());
    loop(begin, end, panel,
         [&](Value p) { emitPanel(tile, queriesAt(tile, p), k0, keys); });
  });

  branch(cell.endsKeys, [&] {
    emitWrite(loops.dk, dkTile, keyRows(tile), k0, keys);
    emitWrite(loops.dv, dvTile, keyRows(tile), k0, keys);
  });
}

void SequenceTileConverter::emitPanel(const WorkTile &tile, const Panel &at,
                                      Value k0, Value keys) {
  VisiblePart seen = visiblePart(tile, at.first, at.rows, k0, keys);
  Value from = index.add(k0, seen.begin), to = index.add(k0, seen.end);
  auto compute = [&] {
    // Lanes behind the last query see nothing.
    Value whole = index.both(seeAll(seen, from, to),
                             index.lessEqual(index.constant(panel), at.rows));
    branch(
        whole, [] {},
        [&] {
          loop(index.constant(0), at.rows, 1, [&](Value lane) {
            emitLimits(tile, tile.pairs.query(index, index.add(at.first, lane)),
                       loTile, hiTile, ValueRange{index.constant(0), lane});
          });
          // Limits do not fall from one lane to the next.
          Value zero = index.constant(0);
          Value end = memref::LoadOp::create(
              b, hiTile,
              ValueRange{zero, index.sub(at.rows, index.constant(1))});
          loop(at.rows, index.constant(panel), 1, [&](Value lane) {
            for (Value limit : {loTile, hiTile})
              memref::StoreOp::create(b, end, limit, ValueRange{zero, lane});
          });
        });
    emitStep(tile, at, k0, seen.begin, index.sub(seen.end, seen.begin), whole);
  };
  Value may = score.mayBeVisible(tile, score.loadRanges(at.number), at.first,
                                 at.rows, from, to);
  branch(both(index.less(seen.begin, seen.end), may), compute);
}

void SequenceTileConverter::emitStep(const WorkTile &tile, const Panel &at,
                                     Value k0, Value begin, Value size,
                                     Value whole) {
  auto rowsOf = [&](Value memref, OpFoldResult row, OpFoldResult rows) {
    return rowView(memref, row, rows,
                   b.getIndexAttr(memoryType(memref).getDimSize(1)));
  };
  OnlineAttnGradOp step = loops.step;
  SmallVector<Value> operands(step->getOperands());
  factors.load(operands, tile, at, k0, begin, size);
  for (Value &operand : operands)
    if (operand.getDefiningOp() == loops.statistics)
      operand = load(numbers[cast<OpResult>(operand).getResultNumber()], at);
  SmallVector<Value> sums = {rowsOf(dq, at.offset, b.getIndexAttr(panel)),
                             rowsOf(dkTile, begin, size),
                             rowsOf(dvTile, begin, size)};
  for (Value all : dcaptures)
    sums.push_back(view(Slab{all, 1, /*isStacked=*/false}, at));
  for (auto [init, sum] : llvm::zip_equal(step.getDpsInitsMutable(), sums))
    operands[init.getOperandNumber()] = CPUTileBuilder::load(sum);
  Value from =
      arith::IndexCastOp::create(b, b.getI32Type(), index.add(k0, begin));
  StepInputs inputs = score.getInputs(at, from);
  inputs.lo = CPUTileBuilder::load(loTile);
  inputs.hi = CPUTileBuilder::load(hiTile);
  inputs.k0 = from;
  inputs.whole = whole;
  auto copy = StepOpInterface(step).cloneOnTiles(b, operands, inputs);
  for (auto [result, sum] : llvm::zip_equal(copy->getResults(), sums))
    store(result, sum);
}

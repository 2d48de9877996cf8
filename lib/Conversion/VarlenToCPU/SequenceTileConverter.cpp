//===- SequenceTileConverter.cpp - A loop over whole sequences ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An item is a sequence and a kv head. It walks over kv blocks and, for each,
// over the panels of queries that see it, so sums of keys of a block stay in
// cache and are written once. Gradients of queries are summed in scratch, in
// the order of kv blocks: every sum has one owner and an order that its
// sequence alone decides. Where one item is much of all work, threads compute
// its cells, one diagonal after the other.
//
//===----------------------------------------------------------------------===//

#include "SequenceTileConverter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

SequenceTileConverter::SequenceTileConverter(TileLoop loop,
                                             const CPUTileBuilder &common)
    : TileConverter(common, loop, common.panel, /*panels=*/0),
      group(loop.tiles.getBatchOp().getGroup()) {
  for (OpOperand &init : ops.step.getDpsInitsMutable())
    sums.push_back({cast<RankedTensorType>(init.get().getType()),
                    !ops.step.getDimOfQueries(init)});
}

void SequenceTileConverter::emit(Value items) {
  // Scratch whose size is known before the loop is kept from item to item.
  Limits most = emitListLimits(items);
  Value canBeCut = emitIsCut(
      {most.rows, /*keys=*/Value(), most.blocks, most.mostScores}, most.scores);
  auto ifCut = [&](Value extent) {
    return index.select(canBeCut, extent, index.constant(0));
  };
  SmallVector<Value> shared =
      allocateMemory(ifCut(most.rows), ifCut(most.panels), ifCut(most.blocks));
  forEachPhase(most.items, canBeCut, [&](Value number, Value isWhole) {
    emitDiagonals(items, number, isWhole, most, shared);
  });
  for (Value buffer : shared)
    memref::DeallocOp::create(b, buffer);
}

void SequenceTileConverter::forEachPhase(
    Value count, Value canBeCut, function_ref<void(Value, Value)> body) {
  Value zero = index.constant(0), one = index.constant(1);
  Value end = index.select(canBeCut, index.add(count, one), one);
  loop(zero, index.select(index.less(zero, count), end, zero), 1,
       [&](Value phase) {
         Value isWhole = index.equal(phase, zero);
         body(index.max(index.sub(phase, one), zero), isWhole);
       });
}

void SequenceTileConverter::emitDiagonals(Value items, Value number,
                                          Value isWhole, const Limits &most,
                                          ArrayRef<Value> shared) {
  Value zero = index.constant(0), one = index.constant(1);
  Size own = emitSize(readExtents(items, number));
  Grid grid = emitGrid(own);
  Value diagonals =
      index.select(emitIsCut(own, most.scores),
                   index.sub(index.add(grid.ranges, grid.chunks), one), zero);
  loop(zero, index.select(isWhole, one, diagonals), 1, [&](Value diagonal) {
    // Cells are numbered from the first chunk on.
    Value first =
        index.max(index.sub(diagonal, index.sub(grid.ranges, one)), zero);
    Value last = index.min(diagonal, index.sub(grid.chunks, one));
    Value cells = index.add(index.sub(last, first), one);
    Value count = index.select(isWhole, most.items, cells);
    Operation *work = emitForall(b, count, [&](Value i) {
      Value at = index.select(isWhole, i, number);
      tile = tileOf(ReadWorkOp::create(b, items, at).getFields(), group);
      tile.mask = maskOf(tile, ops.tiles.getBatchOp());
      Size size = emitSize(tile);
      Value chunk = index.add(first, i);
      Cell whole = emitWholeCell(size);
      Cell part = emitCell(size, grid, index.sub(diagonal, chunk), chunk);
      auto choose = [&](Value Cell::*field) {
        return index.select(isWhole, whole.*field, part.*field);
      };
      Cell cell = {choose(&Cell::firstRow),      choose(&Cell::endRow),
                   choose(&Cell::firstBlock),    choose(&Cell::endBlock),
                   choose(&Cell::beginsQueries), choose(&Cell::endsQueries),
                   choose(&Cell::beginsKeys),    choose(&Cell::endsKeys)};
      SmallVector<Value> own = allocateMemory(most.rows, most.panels, one);
      allocateScratch();
      use(emitChoice(
          b, isWhole, [&] { return Values(own); },
          [&] { return Values(shared); }));
      // Those that are cut have a phase of their own.
      Value isCut = emitIsCut(size, most.scores);
      branch(isNot(index.both(isWhole, isCut)), [&] { emitItem(cell); });
    });
    work->setAttr(kScheduleAttrName, schedule);
  });
}

// To a list whose rows are keys, keys that no item has are rows without a key:
// they belong to no sequence, or to one without queries.
void SequenceTileConverter::emitUnseenKeys(Value list) {
  forEachTile(list, index.constant(1), [&](const WorkTile &keys) {
    branch(index.lessEqual(keys.kRows, 0), [&] {
      emitUnseen(*ops.blocks.getBody(), {keys.pairs, keys.first, keys.rows});
    });
  });
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

/// How many ranges and chunks the grid of an item has at most: enough for many
/// threads, and so few that diagonals are long.
static constexpr int64_t kMaxRanges = 16, kMaxChunks = 256;
/// Rows of a range at least: a kv block is copied once for each.
static constexpr int64_t kMinRangeRows = 1024;

/// An item with more than this part of all scores is large.
static constexpr double kLargePart = 1.0 / 8;

Value SequenceTileConverter::emitNumKeys(const WorkExtents &item) {
  return index.sub(item.kEnd, item.kBegin);
}

Value SequenceTileConverter::emitScores(Value rows, Value keys) {
  auto number = [&](Value count) -> Value {
    return arith::SIToFPOp::create(
        b, b.getF64Type(),
        arith::IndexCastOp::create(b, b.getI64Type(), count));
  };
  return arith::MulFOp::create(b, number(rows), number(keys));
}

SequenceTileConverter::Size
SequenceTileConverter::emitSize(const WorkExtents &item) {
  Value keys = emitNumKeys(item);
  return {item.rows, keys, index.ceilDiv(keys, schedule.getKvBlock()),
          emitScores(item.rows, keys)};
}

SequenceTileConverter::Limits
SequenceTileConverter::emitListLimits(Value items) {
  Value zero = index.constant(0), count = index.dim(items, 0);
  Value none = arith::ConstantOp::create(b, b.getF64FloatAttr(0));
  ValueRange most = emitLoop(
      b, zero, count, index.constant(1), {zero, zero, none, none},
      [&](Value number, ValueRange most) {
        WorkExtents item = readExtents(items, number);
        Value keys = emitNumKeys(item);
        Value rows = index.select(index.less(zero, keys), item.rows, zero);
        Value scores = emitScores(item.rows, keys);
        return Values{index.max(most[0], rows), index.max(most[1], keys),
                      arith::AddFOp::create(b, most[2], scores),
                      arith::MaximumFOp::create(b, most[3], scores)};
      });
  Value rows = index.roundUp(most[0], panel);
  return {count,
          rows,
          index.div(rows, panel),
          index.ceilDiv(most[1], schedule.getKvBlock()),
          most[2],
          most[3]};
}

Value SequenceTileConverter::emitIsCut(const Size &item, Value allScores) {
  Value part = arith::ConstantOp::create(b, b.getF64FloatAttr(kLargePart));
  Value isLarge =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, item.scores,
                            arith::MulFOp::create(b, allScores, part));
  return index.both(isLarge, index.both(index.less(kMinRangeRows, item.rows),
                                        index.less(1, item.blocks)));
}

SequenceTileConverter::Grid SequenceTileConverter::emitGrid(const Size &item) {
  Grid grid;
  grid.rows = index.roundUp(
      index.max(index.ceilDiv(item.rows, kMaxRanges), kMinRangeRows), panel);
  grid.ranges = index.ceilDiv(item.rows, grid.rows);
  grid.blocks = index.max(index.ceilDiv(item.blocks, kMaxChunks), 1);
  grid.chunks = index.ceilDiv(item.blocks, grid.blocks);
  return grid;
}

SequenceTileConverter::Cell
SequenceTileConverter::emitWholeCell(const Size &item) {
  Value zero = index.constant(0);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  return {zero, item.rows, zero, item.blocks, yes, yes, yes, yes};
}

SequenceTileConverter::Cell SequenceTileConverter::emitCell(const Size &item,
                                                            const Grid &grid,
                                                            Value range,
                                                            Value chunk) {
  Value zero = index.constant(0), one = index.constant(1);
  Cell cell;
  cell.firstRow = index.mul(range, grid.rows);
  cell.endRow = index.min(index.add(cell.firstRow, grid.rows), item.rows);
  cell.firstBlock = index.mul(chunk, grid.blocks);
  cell.endBlock =
      index.min(index.add(cell.firstBlock, grid.blocks), item.blocks);
  cell.beginsQueries = index.equal(chunk, zero);
  cell.endsQueries = index.equal(index.add(chunk, one), grid.chunks);
  cell.beginsKeys = index.equal(range, zero);
  cell.endsKeys = index.equal(index.add(range, one), grid.ranges);
  return cell;
}

SmallVector<Value>
SequenceTileConverter::allocateMemory(Value rows, Value panels, Value blocks) {
  constexpr int64_t dynamic = ShapedType::kDynamic;
  SmallVector<Value> memory = factors->allocateQueries(panels);
  for (const Sum &sum : sums) {
    int64_t columns = sum.type.getDimSize(1);
    memory.push_back(sum.isOfNumbers() ? allocateNumbers(rows, compute).memory
                     : sum.ofKeys
                         ? allocate({dynamic, schedule.getKvBlock(), columns},
                                    compute, blocks)
                         : allocate({dynamic, columns}, compute, rows));
  }
  llvm::append_range(memory, score->allocate(panels, [&](Type type) {
    return allocateNumbers(rows, type);
  }));
  return memory;
}

void SequenceTileConverter::use(ValueRange memory) {
  factors->use(memory);
  for (Sum &sum : sums) {
    sum.memory = memory.front();
    memory = memory.drop_front();
  }
  for (Value result : ops.blocks.getResults())
    if (Sum &sum = sumOf(result); sum.isOfNumbers())
      buffers[result] = {sum.memory, 1, /*isStacked=*/false};
  for (auto read : ops.tiles.getBody()->getOps<ReadOp>())
    if (!read.isOfVectors())
      for (auto [number, all] : llvm::zip_equal(
               read.getValues(), scratch.at(read.getSource()).memory))
        buffers[number] = getRowsInPlace(all);
  useScore(memory);
}

void SequenceTileConverter::allocateScratch() {
  lo = {allocate({1, panel}, b.getI32Type())};
  hi = {allocate({1, panel}, b.getI32Type())};
  factors->allocateKeys();
  score->emitViews();
}

//===----------------------------------------------------------------------===//
// Operations of a sequence
//===----------------------------------------------------------------------===//

SequenceTileConverter::Sum &SequenceTileConverter::sumOf(Value result) {
  if (result.getDefiningOp() == ops.blocks)
    result = ops.blocks.getYielded()[cast<OpResult>(result).getResultNumber()];
  return sums[cast<OpResult>(result).getResultNumber()];
}

void SequenceTileConverter::emitWriteRows(WriteOp write, Value sum,
                                          const RowRange &rows) {
  CPUTileBuilder::emitWriteRows(sum, write.getFactorAttr(), rows,
                                write.getDestination());
}

void SequenceTileConverter::emitClear(ClearOp clear, const RowRange &rows) {
  Value memory = clear.getMemory(), zero = index.constant(0);
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(elementOf(memory)));
  const RowMap &map = rows.map;
  Value first = rows.first, end = index.add(first, rows.count);
  if (clear.getTile().getType().getAxis() != Axis::Keys)
    return loop(first, end, 1, [&](Value pair) {
      Value row = map.row(index, pair), head = map.head(index, pair);
      loop(zero, index.dim(memory, 2), 1, [&](Value entry) {
        memref::StoreOp::create(b, none, memory, ValueRange{head, row, entry});
      });
    });
  Value head = index.mul(map.kvHead, group);
  loop(zero, group, 1, [&](Value member) {
    loop(first, end, 1, [&](Value key) {
      memref::StoreOp::create(
          b, none, memory,
          ValueRange{index.add(head, member), map.row(index, key)});
    });
  });
}

void SequenceTileConverter::emitUnseen(Block &body, const RowRange &rows) {
  for (Operation &op : body)
    TypeSwitch<Operation *>(&op)
        .Case([&](ClearOp clear) { emitClear(clear, rows); })
        .Case([&](WriteOp write) { emitOtherwise(write, rows); });
}

void SequenceTileConverter::emitBefore(const Cell &cell) {
  Value zero = index.constant(0), end = index.roundUp(cell.endRow, panel);
  Value rows = index.sub(end, cell.firstRow);
  for (const Sum &sum : sums)
    if (sum.isOfNumbers())
      loop(cell.firstRow, end, lanes, [&](Value at) {
        vector::StoreOp::create(b, splat(lanes, compute, 0.0), sum.memory,
                                ValueRange{zero, at});
      });
    else if (!sum.ofKeys)
      emitFill(0.0, rowView(sum.memory, cell.firstRow, rows));
  if (!score->isEmpty())
    loop(cell.firstRow, end, 1,
         [&](Value pair) { score->store(queriesAt(zero), pair); });
  if (score->hasRanges())
    loop(cell.firstRow, cell.endRow, panel,
         [&](Value p) { score->storeRanges(queriesAt(p)); });
  for (auto clear : ops.tiles.getBody()->getOps<ClearOp>())
    emitClear(clear, {tile.pairs, cell.firstRow,
                      index.sub(cell.endRow, cell.firstRow)});
  // Once for all kv blocks: rows lie as far apart as a token has heads, where
  // no hardware fetches them in advance.
  loop(cell.firstRow, cell.endRow, panel,
       [&](Value p) { factors->pack(queriesAt(p)); });
}

void SequenceTileConverter::emitAfter(const Cell &cell) {
  Value zero = index.constant(0), first = cell.firstRow;
  Value count = index.sub(cell.endRow, first);
  for (auto write : ops.tiles.getBody()->getOps<WriteOp>())
    if (!write.isOfVectors())
      emitWriteNumbers(write, first, count, [&](size_t i, Value lane) {
        return loadNumber(buffers.at(write.getValues()[i]),
                          {zero, first, first, count}, lane);
      });
    else
      emitWriteRows(
          write, rowView(sumOf(write.getValues().front()).memory, first, count),
          {tile.pairs, first, count});
}

void SequenceTileConverter::emitItem(const Cell &cell) {
  Block &body = *ops.tiles.getBody(), &blockBody = *ops.blocks.getBody();
  Value zero = index.constant(0);
  auto seen = [&] {
    branch(cell.beginsQueries, [&] { emitBefore(cell); });
    branch(index.both(cell.beginsQueries, cell.beginsKeys), [&] {
      emitUnseen(blockBody, keyRows(zero, tile.kBegin));
      emitUnseen(blockBody,
                 keyRows(tile.kEnd, index.sub(tile.kRows, tile.kEnd)));
    });
    emitBlocks(cell);
    branch(cell.endsQueries, [&] { emitAfter(cell); });
  };
  auto unseen = [&] {
    // Rows of no sequence have -1 keys.
    emitUnseen(blockBody, keyRows(zero, index.max(tile.kRows, 0)));
    emitUnseen(body, {tile.pairs, zero, tile.rows});
  };
  branch(index.less(tile.kBegin, tile.kEnd), seen, unseen);
}

void SequenceTileConverter::emitBlocks(const Cell &cell) {
  Values memory, ofQueries;
  for (const Sum &sum : sums)
    if (!sum.ofKeys) {
      memory.push_back(sum.memory);
      ofQueries.push_back(load(sum.memory, /*writable=*/true));
    }
  ValueRange ends =
      emitLoop(b, cell.firstBlock, cell.endBlock, index.constant(1), ofQueries,
               [&](Value number, ValueRange ofQueries) {
                 return emitBlock(cell, number, ofQueries);
               });
  for (auto [sum, place] : llvm::zip_equal(ends, memory))
    store(sum, place);
}

Values SequenceTileConverter::emitBlock(const Cell &cell, Value number,
                                        ValueRange ofQueries) {
  KeyBlock block;
  block.k0 = index.add(tile.kBegin, index.mul(number, schedule.getKvBlock()));
  block.keys = blockKeys(block.k0);
  Value padded = index.roundUp(block.keys, kRegisterBlock);
  // Buffers of an item in one piece have room for one block.
  for (Sum &sum : sums)
    if (sum.ofKeys)
      sum.ofBlock =
          matrixAt(sum.memory,
                   index.min(number, index.sub(index.dim(sum.memory, 0), 1)));
  branch(cell.beginsKeys, [&] {
    for (const Sum &sum : sums)
      if (sum.ofKeys)
        emitFill(0.0, rowView(sum.ofBlock, b.getIndexAttr(0), padded));
    for (auto clear : ops.blocks.getBody()->getOps<ClearOp>())
      emitClear(clear, keyRows(block.k0, block.keys));
  });

  // The queries that see some key of the block.
  Value last = index.sub(index.add(block.k0, block.keys), 1);
  MaskRange<Value> queries = tile.mask.emitQueriesOf(
      index, block.k0, last, tile.pairs.query(index, tile.rows));
  Value begin = index.max(
      index.roundDown(tile.pairs.firstPair(index, queries.begin), panel),
      cell.firstRow);
  Value end = index.min(tile.pairs.firstPair(index, queries.end), cell.endRow);
  Values all;
  for (const Sum &sum : sums) {
    if (sum.ofKeys) {
      all.push_back(load(sum.ofBlock, /*writable=*/true));
      continue;
    }
    all.push_back(ofQueries.front());
    ofQueries = ofQueries.drop_front();
  }
  ValueRange ends = emitChoice(
      b, index.less(begin, end),
      [&] { return Values(emitPanels(block, begin, end, all)); },
      [&] { return all; });
  Values endsOfQueries;
  for (auto [sum, end] : llvm::zip_equal(sums, ends))
    if (sum.ofKeys)
      store(end, sum.ofBlock);
    else
      endsOfQueries.push_back(end);

  branch(cell.endsKeys, [&] {
    for (auto write : ops.blocks.getBody()->getOps<WriteOp>())
      emitWriteRows(write, sumOf(write.getValues().front()).ofBlock,
                    keyRows(block.k0, block.keys));
  });
  return endsOfQueries;
}

ValueRange SequenceTileConverter::emitPanels(const KeyBlock &block, Value begin,
                                             Value end, ValueRange all) {
  factors->readKeys(block.k0, block.keys, /*asTheyAre=*/Value());
  return emitLoop(b, begin, end, index.constant(panel), all,
                  [&](Value p, ValueRange all) {
                    return emitPanel(queriesAt(p), block, all);
                  });
}

QueryPanels::TileSlice SequenceTileConverter::sliceOf(const Sum &sum,
                                                      const Panel &at,
                                                      const KeyRange &keys) {
  OpFoldResult zero = b.getIndexAttr(0), width = b.getIndexAttr(panel);
  if (sum.isOfNumbers())
    return {{zero, at.offset}, {b.getIndexAttr(1), width}};
  OpFoldResult columns = b.getIndexAttr(sum.type.getDimSize(1));
  if (sum.ofKeys)
    return {{keys.begin, zero}, {keys.size, columns}};
  return {{at.offset, zero}, {width, columns}};
}

Values SequenceTileConverter::emitPanel(const Panel &at, const KeyBlock &block,
                                        ValueRange all) {
  return emitSeen(at, block, all, [&](KeyRange keys) {
    Value zero = index.constant(0), width = index.constant(panel);
    // Lanes behind the last query see nothing.
    keys.seenEnd =
        index.select(index.lessEqual(width, at.rows), keys.seenEnd, zero);
    // Limits that hide nothing are not read.
    branch(
        index.both(index.lessEqual(keys.seenBegin, zero),
                   index.lessEqual(keys.size, keys.seenEnd)),
        [] {},
        [&] {
          loop(zero, at.rows, 1, [&](Value lane) {
            emitLimits(tile.pairs.query(index, index.add(at.first, lane)),
                       ValueRange{zero, lane});
          });
          // Limits do not fall from one lane to the next.
          Value end = memref::LoadOp::create(
              b, hi.memory, ValueRange{zero, index.sub(at.rows, 1)});
          loop(at.rows, width, 1, [&](Value lane) {
            for (const PanelBuffer &limits : {lo, hi})
              memref::StoreOp::create(b, end, limits.memory,
                                      ValueRange{zero, lane});
          });
        });
    auto places = llvm::map_to_vector(
        sums, [&](const Sum &sum) { return sliceOf(sum, at, keys); });
    return emitStep(at, block, keys, lo.memory, hi.memory, all, places);
  });
}

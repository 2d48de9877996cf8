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
// alone decides.
//
//===----------------------------------------------------------------------===//

#include "SequenceTileConverter.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

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
  Value mostRows = emitMostRows(items);
  // Scratch whose size is known before the loop is kept from item to item.
  Value mostPanels = index.div(mostRows, index.constant(panel));
  auto work = forEachTile(items, group, [&](WorkTile tile) {
    tile.mask = maskOf(tile, loops.tiles.getBatchOp());
    allocateScratch(mostRows, mostPanels);
    emitItem(tile);
  });
  work->setAttr(kScheduleAttrName, schedule);
}

// To a list the other way round, keys that no item has are rows without a key:
// they belong to no sequence, or to one without queries.
void SequenceTileConverter::emitUnseenKeys(Value list) {
  forEachTile(list, index.constant(1), [&](const WorkTile &tile) {
    branch(lessEqual(tile.kRows, index.constant(0)), [&] {
      for (WriteOp write : {loops.dk, loops.dv})
        emitOtherwise(write, tile.pairs, tile.first, tile.rows);
    });
  });
}

void SequenceTileConverter::emitOtherwise(WriteOp write, const PairMap &rows,
                                          Value first, Value count) {
  emitFillRows(b, write.getOtherwise().front(), rows, first, count,
               write.getDestination(), lanes);
}

void SequenceTileConverter::emitWrite(WriteOp write, Value sum,
                                      const PairMap &rows, Value first,
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

/// The most rows of a work tile that sees a key.
Value SequenceTileConverter::emitMostRows(Value tiles) {
  ValueRange most = emitLoop(
      b, index.constant(0), dim(tiles, 0), index.constant(1), index.constant(0),
      [&](Value item, ValueRange most) {
        auto field = [&](WorkTilesOp::Column column) {
          return index.load(tiles, ValueRange{item, index.constant(column)});
        };
        Value seen =
            index.less(field(WorkTilesOp::KBegin), field(WorkTilesOp::KEnd));
        Value rows = index.select(seen, field(WorkTilesOp::Rows), most.front());
        return Values{index.max(most.front(), rows)};
      });
  return index.roundUp(most.front(), panel);
}

void SequenceTileConverter::allocateScratch(Value mostRows, Value mostPanels) {
  int64_t kvBlock = schedule.getKvBlock();
  auto allocatePanels = [&](int64_t rows, int64_t columns) {
    return allocate({ShapedType::kDynamic, rows, columns}, tileElement,
                    mostPanels);
  };
  auto factor = [&](int64_t size) -> Factor {
    return {allocatePanels(size / perRow, perRow * panel),
            allocatePanels(panel / perRow, perRow * size)};
  };
  q = factor(d);
  dout = factor(dv);
  loTile = allocate(1, panel, b.getI32Type());
  hiTile = allocate(1, panel, b.getI32Type());
  kTile = allocatePadded(kvBlock, d, tileElement);
  if (pairs)
    kPairs = allocatePadded(kvBlock / 2, 2 * d, element);
  vTile = allocatePadded(kvBlock, dv, tileElement);
  dkTile = allocate(kvBlock, d, compute);
  dvTile = allocate(kvBlock, dv, compute);
  dqTile = allocate({ShapedType::kDynamic, d}, compute, mostRows);
  positions =
      readsPositions(loops.step.getScoreBody())
          ? allocate({1, ShapedType::kDynamic}, b.getI32Type(), mostRows)
          : Value();
  dcaptures.clear();
  for (size_t i = 0; i < loops.dcaptures.size(); ++i)
    dcaptures.push_back(allocate({1, ShapedType::kDynamic}, compute, mostRows));
}

void SequenceTileConverter::emitItem(const WorkTile &tile) {
  auto zeroKeys = [&](Value from, Value to) {
    for (WriteOp write : {loops.dk, loops.dv})
      emitOtherwise(write, keyRows(tile), from, index.sub(to, from));
  };
  auto seen = [&] {
    Value zero = index.constant(0), rows = index.roundUp(tile.rows, panel);
    emitClear(b, dqTile, rows, lanes);
    for (Value sums : dcaptures)
      loop(zero, rows, lanes, [&, sums](Value at) {
        vector::StoreOp::create(b, splat(0.0), sums, ValueRange{zero, at});
      });
    if (positions)
      loop(zero, rows, 1, [&](Value pair) {
        Value last = index.min(pair, lastPair(tile));
        emitScoreInputs(tile, last, /*memory=*/{}, positions,
                        ValueRange{zero, pair});
      });
    // Once for all kv blocks: rows lie as far apart as a token has heads, where
    // no hardware fetches them in advance.
    loop(index.constant(0), tile.rows, panel, [&](Value p) {
      Value columns = index.min(index.sub(tile.rows, p), index.constant(panel));
      emitPack(tile, loops.q.getSource(), p, columns, panelAt(q, p));
      emitPack(tile, loops.dout.getSource(), p, columns, panelAt(dout, p));
    });
    zeroKeys(index.constant(0), tile.kBegin);
    loop(tile.kBegin, tile.kEnd, schedule.getKvBlock(),
         [&](Value k0) { emitBlock(tile, k0); });
    zeroKeys(tile.kEnd, tile.kRows);
    emitWrite(loops.dq, dqTile, tile.pairs, index.constant(0), tile.rows);
    emitWriteCaptures(tile, [&](WriteOp write, Value sums, Value row) -> Value {
      Value sum = memref::LoadOp::create(b, sums, ValueRange{zero, row});
      auto times = write.getFactor();
      return times ? arith::MulFOp::create(
                         b, sum, floatConstant(times->convertToDouble()))
                         .getResult()
                   : sum;
    });
  };
  auto unseen = [&] {
    zeroKeys(index.constant(0), tile.kRows);
    emitOtherwise(loops.dq, tile.pairs, index.constant(0), tile.rows);
    emitWriteCaptures(tile, [&](WriteOp write, Value, Value) {
      return floatConstant(write.getOtherwise().front());
    });
  };
  branch(index.less(tile.kBegin, tile.kEnd), seen, unseen);
}

void SequenceTileConverter::emitWriteCaptures(
    const WorkTile &tile,
    function_ref<Value(WriteOp, Value dcaptures, Value row)> valueOf) {
  if (loops.dcaptures.empty())
    return;
  loop(index.constant(0), tile.rows, 1, [&](Value row) {
    for (auto [write, sums] : llvm::zip_equal(loops.dcaptures, dcaptures)) {
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

void SequenceTileConverter::emitBlock(const WorkTile &tile, Value k0) {
  Value keys = blockKeys(tile, k0);
  Value padded = index.roundUp(keys, kGranule);
  emitCopyRows(b, loops.k.getSource(), keyRows(tile), k0, keys, padded, kTile,
               lanes);
  emitCopyRows(b, loops.v.getSource(), keyRows(tile), k0, keys, padded, vTile,
               lanes);
  if (pairs)
    emitPairRows(b, loops.k.getSource(), keyRows(tile), k0, keys, padded,
                 kPairs, lanes);
  emitClear(b, dkTile, padded, lanes);
  emitClear(b, dvTile, padded, lanes);

  // The queries that see some key of the block.
  Value last = index.sub(index.add(k0, keys), index.constant(1));
  MaskRange<Value> queries =
      tile.mask.emitQueriesOf(index, k0, last, index.div(tile.rows, group));
  Value begin = index.roundDown(index.mul(queries.begin, group), panel);
  loop(begin, index.mul(queries.end, group), panel,
       [&](Value p) { emitPanel(tile, p, k0, keys); });

  emitWrite(loops.dk, dkTile, keyRows(tile), k0, keys);
  emitWrite(loops.dv, dvTile, keyRows(tile), k0, keys);
}

/// The panel at `p` of a buffer of all panels.
Value SequenceTileConverter::panelAt(Value all, Value p) {
  auto type = cast<MemRefType>(all.getType());
  int64_t rows = type.getDimSize(1), columns = type.getDimSize(2);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {index.div(p, index.constant(panel)),
                                       zero, zero};
  SmallVector<OpFoldResult> sizes = {one, b.getIndexAttr(rows),
                                     b.getIndexAttr(columns)};
  SmallVector<OpFoldResult> strides(3, one);
  auto view = memref::SubViewOp::inferRankReducedResultType(
      {rows, columns}, type, offsets, sizes, strides);
  return memref::SubViewOp::create(b, view, all, offsets, sizes, strides);
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
    Value whole =
        arith::AndIOp::create(b, seeAll(seen, from, index.add(k0, end)),
                              lessEqual(index.constant(panel), columns));
    branch(
        whole, [] {},
        [&] {
          loop(index.constant(0), columns, 1, [&](Value lane) {
            emitLimits(tile, index.div(index.add(p, lane), group), loTile,
                       hiTile, ValueRange{index.constant(0), lane});
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
  Value may = mayBeVisible(tile, loops.step.getScoreBody(), p, columns,
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
  Value at = index.add(index.mul(tile.pairs.qRow, group), p);
  Value dqView = rowsOf(dqTile, p, b.getIndexAttr(panel));
  Value dkView = keys(dkTile), dvView = keys(dvTile);
  Value from32 = arith::IndexCastOp::create(b, b.getI32Type(), from);
  SmallVector<Value> captures, sums, dcaptureViews;
  for (size_t i = 0; i < loops.step.getCaptures().size(); ++i)
    captures.push_back(
        statistic(statistics.memory[2 + i], tile.pairs.kvHead, at));
  for (Value all : dcaptures) {
    dcaptureViews.push_back(
        view(all, zero, p, b.getIndexAttr(1), b.getIndexAttr(panel)));
    sums.push_back(load(dcaptureViews.back()));
  }
  auto step = OnlineAttnGradOp::create(
      b, queries(q, d), load(k, ShapedType::kDynamic, d), load(keys(vTile)),
      queries(dout, dv), statistic(statistics.memory[0], tile.pairs.kvHead, at),
      statistic(statistics.memory[1], tile.pairs.kvHead, at),
      statistic(loTile, zero, zero), statistic(hiTile, zero, zero), from32,
      whole,
      /*queries=*/Value(), /*keys=*/Value(),
      positions ? statistic(positions, zero, p) : Value(),
      positions ? from32 : Value(), captures, load(dqView), load(dkView),
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

//===- QueryTileConverter.cpp - A loop over tiles of queries --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryTileConverter.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

/// The rows of a tile in memory.
static int64_t rowsOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getDimSize(0);
}

QueryTileConverter::QueryTileConverter(QueryTiles parts,
                                       CPUScheduleAttr schedule,
                                       OpBuilder &builder)
    : CPUTileBuilder(
          parts.tiles.getLoc(), builder, schedule,
          elementOf(parts.q.getSource()),
          cast<FloatType>(parts.step.getM().getType().getElementType())),
      loops(parts) {
  auto factor = [](ReadOp read, TileOrder order) -> Factor {
    Value source = read.getSource();
    return {source, memoryType(source).getDimSize(2), order, Value()};
  };
  q = factor(loops.q, pairs ? TileOrder::ColumnPairs : TileOrder::Columns);
  // Keys have their pairs in a row already, values get theirs from two rows.
  k = factor(loops.k, TileOrder::Rows);
  v = factor(loops.v, pairs ? TileOrder::RowPairs : TileOrder::Rows);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void QueryTileConverter::emit(Value list) {
  Value group = loops.tiles.getBatchOp().getGroup();
  FewQueriesConverter few(loops, schedule, b);
  Extremes all = emitExtremes(list, group);
  Value mostParts = few.emitNumParts(all.keys), one = index.constant(1);
  Value canBeCut = index.both(emitIsLarge(all.mostScores, all.scores),
                              index.less(one, mostParts));
  FewQueriesConverter::States shared = few.allocateStates(mostParts);
  forEachTurn(list, canBeCut, [&](Value number, Value isWhole) {
    emitTurn(list, number, isWhole, all.scores, shared);
  });
  for (Value states : shared)
    memref::DeallocOp::create(b, states);
}

/// Whether a tile is one of few queries, and whether its keys are met by
/// several threads.
std::pair<Value, Value> QueryTileConverter::emitKind(const WorkTile &item,
                                                     Value allScores) {
  Value keys = index.sub(item.kEnd, item.kBegin);
  Value isFew = index.lessEqual(
      item.rows, FewQueriesConverter::emitMaxQueries(index, schedule, keys));
  Value parts = FewQueriesConverter(loops, schedule, b).emitNumParts(keys);
  Value isLarge = index.both(emitIsLarge(emitScores(item), allScores),
                             index.less(index.constant(1), parts));
  return {isFew, index.both(isFew, isLarge)};
}

/// All tiles but those that are cut, if `isWhole`; else the parts of tile
/// `number`, if that is one, and then what they become.
void QueryTileConverter::emitTurn(Value list, Value number, Value isWhole,
                                  Value allScores, ArrayRef<Value> shared) {
  BatchOp batch = loops.tiles.getBatchOp();
  Value group = batch.getGroup();
  Value zero = index.constant(0), one = index.constant(1);
  WorkTile own = readTile(list, number, group);
  Value numPhases =
      index.select(emitKind(own, allScores).second, index.constant(2), zero);
  Value ownParts = FewQueriesConverter(loops, schedule, b)
                       .emitNumParts(index.sub(own.kEnd, own.kBegin));
  loop(zero, index.select(isWhole, one, numPhases), 1, [&](Value phase) {
    Value isFirst = index.equal(phase, zero);
    Value count = index.select(isWhole, dim(list, 0),
                               index.select(isFirst, ownParts, one));
    forEach(count, [&](Value i) {
      tile = readTile(list, index.select(isWhole, i, number), group);
      tile.mask = maskOf(tile, batch);
      allocateScratch();
      panels = index.ceilDiv(tile.rows, panel);
      auto [isFew, isCut] = emitKind(tile, allScores);
      FewQueriesConverter few(loops, schedule, b);
      Value parts = few.emitNumParts(index.sub(tile.kEnd, tile.kBegin));
      // A whole tile, or one part, or all of them to their end.
      Value isPart = index.both(isFirst, isNot(isWhole));
      FewQueriesConverter::Share share{
          isWhole,
          isFirst,
          isNot(isPart),
          index.select(isPart, i, zero),
          index.select(isPart, index.add(i, one), parts),
          llvm::to_vector(shared)};
      // Those that are cut have their turn later.
      branch(isNot(index.both(isWhole, isCut)),
             [&, isFew = isFew] { emitShare(isFew, share); });
    });
  });
}

void QueryTileConverter::emitShare(Value isFew,
                                   const FewQueriesConverter::Share &share) {
  branch(
      index.lessEqual(index.constant(0), tile.kRows),
      [&] {
        branch(isFew, [&] {
          FewQueriesConverter(loops, schedule, b).emit(tile, share);
        });
        auto panelled = scf::IfOp::create(b, isNot(isFew),
                                          /*withElseRegion=*/false);
        panelled->setAttr(kScheduleAttrName, schedule);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(panelled.thenBlock());
        emitTile();
      },
      [&] {
        // Rows of no sequence.
        for (auto write : loops.tiles.getBody()->getOps<WriteOp>())
          emitOtherwise(write);
      });
}

void QueryTileConverter::forEachPanel(function_ref<void(const Panel &)> body) {
  loop(index.constant(0), panels, 1, [&](Value number) {
    Value first = index.mul(number, panel);
    body({number, index.add(tile.first, first),
          index.min(index.sub(tile.rows, first), index.constant(panel))});
  });
}

void QueryTileConverter::emitTile() {
  forEachPanel([&](const Panel &at) {
    emitPack(at);
    emitInits(at);
    emitLimits(at);
  });
  SmallVector<NumberRange> ofTile = emitTileRanges();
  Block *score = loops.step.getScoreBody();
  loop(tile.kBegin, tile.kEnd, schedule.getKvBlock(), [&](Value k0) {
    Value may = mayBeVisible(tile, score, ofTile, tile.first, tile.rows, k0,
                             index.add(k0, blockKeys(tile, k0)));
    if (!may)
      return emitBlock(k0);
    branch(may, [&] { emitBlock(k0); });
  });
  forEachPanel([&](const Panel &at) {
    emitFinish(at);
    for (auto write : loops.tiles.getBody()->getOps<WriteOp>())
      emitWrite(write, at);
  });
}

/// What rows of no sequence get.
void QueryTileConverter::emitOtherwise(WriteOp write) {
  Value destination = write.getDestination();
  double value = write.getOtherwise().front();
  if (memoryType(destination).getRank() == 3)
    return emitFillRows(b, value, tile.pairs, tile.first, tile.rows,
                        destination, lanes);
  Value number = arith::ConstantOp::create(
      b, b.getFloatAttr(elementOf(destination), value));
  loop(index.constant(0), tile.rows, 1, [&](Value i) {
    memref::StoreOp::create(
        b, number, destination,
        placeOf(tile, destination, index.add(tile.first, i)));
  });
}

void QueryTileConverter::allocateScratch() {
  int64_t count = schedule.getPanels();
  SmallVector<int64_t> shape = getTileMemoryShape(q.order, panel, q.columns);
  q.scratch = allocate(count * shape[0], shape[1], tileElement);
  state.clear();
  for (Value init : loops.blocks.getInits())
    state.push_back(allocate(count * rowsOf(init), panel, compute));
  lo = allocate(count, panel, b.getI32Type());
  hi = allocate(count, panel, b.getI32Type());
  if (loops.sink)
    sinks = allocate(1, lanes, compute);
  position = readsPositions(loops.step.getScoreBody())
                 ? allocate(count, panel, b.getI32Type())
                 : Value();
  captures.clear();
  for (size_t i = 0; i < loops.captures.size(); ++i)
    captures.push_back(allocate(count, panel, compute));
  captureRanges =
      allocateRanges(loops.step.getScoreBody(), b.getIndexAttr(count));
  tables = {emitTableViews(tile, loops.step.getTables(),
                           getTableArguments(loops.step.getScoreBody())),
            {}};
  for (size_t i = 0; i < tables.views.size(); ++i)
    tables.rows.push_back(allocate(count, panel, b.getI64Type()));
  for (Factor *factor : {&k, &v}) {
    shape = getTileMemoryShape(factor->order, schedule.getKvBlock(),
                               factor->columns);
    factor->scratch = allocatePadded(shape[0], shape[1], tileElement);
  }
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

void QueryTileConverter::emitPack(const Panel &at) {
  int64_t perColumn = pairs ? 2 : 1;
  Value row = index.mul(at.number, q.columns / perColumn);
  loop(index.constant(0), at.rows, lanes, [&](Value column) {
    emitPackColumns(b, q.source, tile.pairs, index.add(at.first, column),
                    lastPair(tile), q.scratch, row,
                    index.mul(column, perColumn), lanes, pairs);
  });
}

Value QueryTileConverter::columnsOf(const Panel &at, Value column,
                                    int64_t vectors, Value scratch,
                                    int64_t rows, int64_t perColumn) {
  return view(scratch, getAsOpFoldResult(index.mul(at.number, rows)),
              getAsOpFoldResult(index.mul(column, perColumn)),
              b.getIndexAttr(rows),
              b.getIndexAttr(vectors * lanes * perColumn));
}

SmallVector<Value> QueryTileConverter::stateColumns(const Panel &at,
                                                    Value column,
                                                    int64_t vectors) {
  SmallVector<Value> views;
  for (auto [init, scratch] : llvm::zip_equal(loops.blocks.getInits(), state))
    views.push_back(columnsOf(at, column, vectors, scratch, rowsOf(init)));
  return views;
}

/// The state before the first block, of vectors without a query, too.
void QueryTileConverter::emitInits(const Panel &at) {
  for (auto [init, number, scratch] :
       llvm::zip_equal(loops.blocks.getInits(), loops.inits, state)) {
    Value value = splat(number), memref = scratch;
    int64_t rows = rowsOf(init);
    Value first = index.mul(at.number, rows);
    loop(index.constant(0), index.constant(panel), lanes, [&](Value column) {
      loop(index.constant(0), index.constant(rows), 1, [&](Value row) {
        vector::StoreOp::create(b, value, memref,
                                ValueRange{index.add(first, row), column});
      });
    });
  }
}

/// Lanes behind the last query have its limits, and vectors behind it begin and
/// end with the last key: nothing is computed for them.
void QueryTileConverter::emitLimits(const Panel &at) {
  Value columns = index.roundUp(at.rows, lanes);
  loop(index.constant(0), index.constant(panel), 1, [&](Value lane) {
    Value pair = index.min(index.add(at.first, lane), lastPair(tile));
    SmallVector<Value> place = {at.number, lane};
    CPUTileBuilder::emitLimits(tile, tile.pairs.query(index, pair), lo, hi,
                               place);
    emitScoreInputs(tile, pair, getSources(loops.captures),
                    getScoreScratch(position, captures), place);
    emitTableRows(tile, pair, loops.step.getTables(), tables.rows, place);
  });
  Value end = arith::IndexCastOp::create(b, b.getI32Type(), tile.kRows);
  loop(columns, index.constant(panel), 1, [&](Value lane) {
    for (Value limits : {lo, hi})
      memref::StoreOp::create(b, end, limits, ValueRange{at.number, lane});
  });
  storeRanges(loops.step.getScoreBody(), captureRanges, at.number, at.rows,
              [&](unsigned capture, Value lane) -> Value {
                return memref::LoadOp::create(b, captures[capture],
                                              ValueRange{at.number, lane});
              });
}

SmallVector<NumberRange> QueryTileConverter::emitTileRanges() {
  Block *score = loops.step.getScoreBody();
  auto flatten = [](ArrayRef<NumberRange> ranges) {
    Values bounds;
    for (const NumberRange &range : ranges)
      if (range.low)
        bounds.append({range.low, range.high});
    return bounds;
  };
  SmallVector<NumberRange> ranges =
      loadRanges(score, captureRanges, index.constant(0));
  Values first = flatten(ranges);
  if (first.empty())
    return ranges;
  Value one = index.constant(1);
  auto withBounds = [](SmallVector<NumberRange> ranges, ValueRange bounds) {
    for (NumberRange &range : ranges)
      if (range.low) {
        range = {bounds[0], bounds[1]};
        bounds = bounds.drop_front(2);
      }
    return ranges;
  };
  ValueRange all = emitLoop(
      b, one, panels, one, first, [&](Value number, ValueRange carried) {
        auto united = withBounds(ranges, carried);
        for (auto [range, more] :
             llvm::zip_equal(united, loadRanges(score, captureRanges, number)))
          if (range.low)
            range = unite(range, more);
        return flatten(united);
      });
  return withBounds(ranges, all);
}

/// Leaves out in place of acc and lse in place of m.
void QueryTileConverter::emitFinish(const Panel &at) {
  OnlineFinishOp end = loops.finish;
  loop(index.constant(0), at.rows, lanes, [&](Value column) {
    SmallVector<Value> views = stateColumns(at, column, /*vectors=*/1);
    Value sink;
    if (loops.sink) {
      loop(index.constant(0), index.constant(lanes), 1, [&](Value lane) {
        Value pair = index.add(index.add(at.first, column), lane);
        Value number = loadNumber(tile, loops.sink.getSource(),
                                  index.min(pair, lastPair(tile)));
        memref::StoreOp::create(b, number, sinks,
                                ValueRange{index.constant(0), lane});
      });
      sink = load(sinks);
    }
    auto finish = OnlineFinishOp::create(
        b, load(views[0]), load(views[1]), load(views[2]), sink,
        end.getScaleAttr(), end.getOrientationAttr(), end.getRoundedAttr());
    AffineMap swap =
        AffineMap::getPermutationMap(ArrayRef<int64_t>{1, 0}, b.getContext());
    store(finish.getOut(),
          memref::TransposeOp::create(b, views[0], AffineMapAttr::get(swap)));
    store(finish.getLse(), views[1]);
  });
}

void QueryTileConverter::emitWrite(WriteOp write, const Panel &at) {
  // As emitFinish leaves them.
  Value out = state[0], lse = state[1];
  Value destination = write.getDestination();
  if (write.getValues().front() == loops.finish.getOut()) {
    Value row = index.mul(at.number, memoryType(destination).getDimSize(2));
    return loop(index.constant(0), at.rows, lanes, [&](Value column) {
      emitUnpackColumns(b, out, row, column, tile.pairs,
                        index.add(at.first, column), lastPair(tile),
                        destination, lanes);
    });
  }
  loop(index.constant(0), at.rows, 1, [&](Value lane) {
    Value number = memref::LoadOp::create(b, lse, ValueRange{at.number, lane});
    storeNumber(tile, number, destination, index.add(at.first, lane));
  });
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void QueryTileConverter::emitBlock(Value k0) {
  Value keys = blockKeys(tile, k0);
  // A copy pays when several panels share it; rows that no one owns, past the
  // last granule, must be copied to be made zero.
  Value rest = index.rem(keys, index.constant(kGranule));
  Value inPlace = index.both(index.equal(rest, index.constant(0)),
                             index.equal(panels, index.constant(1)));
  KeyBlock block{k0, keys, inPlace};
  Value kRows = emitRead(k, block), vRows = emitRead(v, block);
  emitPrefetch(index.add(k0, keys));
  forEachPanel([&](const Panel &at) { emitSteps(at, block, kRows, vRows); });
}

/// The rows of a block as steps read them.
Value QueryTileConverter::emitRead(const Factor &factor,
                                   const KeyBlock &block) {
  if (factor.order == TileOrder::RowPairs) {
    emitPairRows(b, factor.source, keyRows(tile), block.k0, block.keys,
                 index.roundUp(block.keys, kGranule), factor.scratch, lanes);
    return factor.scratch;
  }
  if (elementOf(factor.source) != tileElement)
    return emitCopy(factor, block);
  return emitChoice(
             b, block.inPlace,
             [&] { return Values{emitInPlace(factor, block)}; },
             [&] { return Values{emitCopy(factor, block)}; })
      .front();
}

/// Of any rows that a step reads, in scratch or not.
static MemRefType getRowsType(MLIRContext *context, int64_t columns,
                              Type element) {
  return MemRefType::get({ShapedType::kDynamic, columns}, element,
                         StridedLayoutAttr::get(context, ShapedType::kDynamic,
                                                {ShapedType::kDynamic, 1}));
}

Value QueryTileConverter::emitCopy(const Factor &factor,
                                   const KeyBlock &block) {
  Value padded = index.roundUp(block.keys, kGranule);
  emitCopyRows(b, factor.source, keyRows(tile), block.k0, block.keys, padded,
               factor.scratch, lanes);
  int64_t columns = memoryType(factor.scratch).getDimSize(1);
  Value view = rowView(factor.scratch, b.getIndexAttr(0), padded,
                       b.getIndexAttr(columns));
  return memref::CastOp::create(
      b, getRowsType(b.getContext(), columns, tileElement), view);
}

Value QueryTileConverter::emitInPlace(const Factor &factor,
                                      const KeyBlock &block) {
  int64_t columns = memoryType(factor.source).getDimSize(2);
  Value view = keysInPlace(tile, factor.source, block.k0, block.keys);
  return memref::CastOp::create(
      b, getRowsType(b.getContext(), columns, tileElement), view);
}

/// Asks for the block at k0 where one panel is all the work that could hide its
/// way from memory, as in decoding. No hardware foresees it: rows of a head lie
/// as far apart as a token has heads.
void QueryTileConverter::emitPrefetch(Value k0) {
  Value isSingle = index.equal(panels, index.constant(1));
  Value keys = blockKeys(tile, k0);
  branch(isSingle, [&] {
    for (const Factor &factor : {k, v})
      emitPrefetchRows(b, factor.source, keyRows(tile), k0, keys);
  });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void QueryTileConverter::emitSteps(const Panel &at, const KeyBlock &block,
                                   Value kRows, Value vRows) {
  VisiblePart seen = visiblePart(tile, at.first, at.rows, block.k0, block.keys);
  auto emit = [&] {
    // The part of the block that is seen.
    Value size = index.sub(seen.end, seen.begin);
    auto part = [&](const Factor &factor, Value rows) {
      int64_t perRow = factor.order == TileOrder::RowPairs ? 2 : 1;
      auto inRows = [&](Value keys) {
        return perRow == 1 ? keys : index.div(keys, index.constant(perRow));
      };
      return rowView(rows, inRows(seen.begin), inRows(size),
                     b.getIndexAttr(perRow * factor.columns));
    };
    Value kPart = part(k, kRows), vPart = part(v, vRows);
    Value from = index.add(block.k0, seen.begin);
    // Vectors without a query see nothing.
    Value isFull = index.less(index.constant(panel - lanes), at.rows);
    Value whole =
        index.both(isFull, seeAll(seen, from, index.add(block.k0, seen.end)));
    Value from32 = arith::IndexCastOp::create(b, b.getI32Type(), from);
    emitStep(at, kPart, vPart, from32, whole);
  };
  Block *score = loops.step.getScoreBody();
  Value may = mayBeVisible(
      tile, score, loadRanges(score, captureRanges, at.number), at.first,
      at.rows, index.add(block.k0, seen.begin), index.add(block.k0, seen.end));
  branch(both(index.less(seen.begin, seen.end), may), emit);
}

void QueryTileConverter::emitStep(const Panel &at, Value kRows, Value vRows,
                                  Value from, Value whole) {
  int64_t perColumn = pairs ? 2 : 1, vectors = schedule.getVectors();
  Value column = index.constant(0);
  Value qTile = load({{q.order, columnsOf(at, column, vectors, q.scratch,
                                          q.columns / perColumn, perColumn)}},
                     panel, q.columns);
  Value vTile = load({{v.order, vRows}}, ShapedType::kDynamic, v.columns);
  auto limit = [&](Value scratch) {
    return load(columnsOf(at, column, vectors, scratch, /*rows=*/1));
  };
  OnlineAttnOp step = loops.step;
  SmallVector<Value> views = stateColumns(at, column, vectors);
  auto panelStep = OnlineAttnOp::create(
      b, qTile, load(kRows), vTile, limit(lo), limit(hi), from, whole,
      /*queries=*/Value(), /*keys=*/Value(),
      position ? limit(position) : Value(), position ? from : Value(),
      llvm::map_to_vector(captures, limit), tables.views,
      llvm::map_to_vector(tables.rows, limit), load(views[0]), load(views[1]),
      load(views[2]), step.getScaleAttr(), step.getOrientationAttr(),
      step.getScore().size());
  copyScore(step, panelStep);
  panelStep->setDiscardableAttrs(step->getDiscardableAttrDictionary());
  for (auto [result, destination] :
       llvm::zip_equal(panelStep->getResults(), views))
    store(result, destination);
}

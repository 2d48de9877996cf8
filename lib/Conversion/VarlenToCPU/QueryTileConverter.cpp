//===- QueryTileConverter.cpp - A loop over tiles of queries --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryTileConverter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Kinds of tiles
//===----------------------------------------------------------------------===//

/// kv blocks of a part: reading one takes so long that a thread may begin, and
/// its state be merged, for nothing.
static constexpr int64_t kPartBlocks = 8;

Value QueryTileConverter::emitNumParts(Value keys) {
  // A tile that sees none has a state, too.
  return index.max(index.ceilDiv(keys, kPartBlocks * schedule.getKvBlock()),
                   index.constant(1));
}

Value QueryTileConverter::emitMaxQueries(Value keys) {
  int64_t most = getMaxQueries();
  Value isLong = index.less(index.constant(2 * schedule.getKvBlock()), keys);
  return index.select(isLong, index.constant(most), index.constant(most / 2));
}

std::pair<Value, Value> QueryTileConverter::emitKind(const WorkTile &tile,
                                                     Value allScores) {
  Value keys = index.sub(tile.kEnd, tile.kBegin);
  Value isFew = index.lessEqual(tile.rows, emitMaxQueries(keys));
  Value isLarge = index.both(emitIsLarge(emitScores(tile), allScores),
                             index.less(index.constant(1), emitNumParts(keys)));
  return {isFew, index.both(isFew, isLarge)};
}

SmallVector<Value> QueryTileConverter::allocateStates(QueryTileBody &few,
                                                      Value parts) {
  return llvm::map_to_vector(few.getStateSizes(), [&](int64_t size) {
    return allocate({ShapedType::kDynamic, getMaxQueries(), size}, compute,
                    parts);
  });
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void QueryTileConverter::emit(Value list, Value group) {
  if (!ops.blocks)
    return emitTiles(list, group);
  Extremes all = emitExtremes(list, group);
  Value mostParts = emitNumParts(all.keys), one = index.constant(1);
  Value canBeCut = index.both(emitIsLarge(all.mostScores, all.scores),
                              index.less(one, mostParts));
  QueryTileBody few = makeFew();
  shared = allocateStates(few, mostParts);
  forEachTurn(list, canBeCut, [&](Value number, Value isWhole) {
    emitTurn(list, number, isWhole, all.scores);
  });
  for (Value states : shared)
    memref::DeallocOp::create(b, states);
}

/// Tiles that meet no blocks: vector by vector.
void QueryTileConverter::emitTiles(Value list, Value group) {
  QueryTileBody body(*this, ops, Orientation::KQ, lanes, /*panels=*/1);
  auto work = forEachTile(list, group, [&](const WorkTile &tile) {
    body.allocate(tile);
    branch(
        index.lessEqual(index.constant(0), tile.kRows), [&] { body.emitAll(); },
        [&] { body.emitUnused(); });
  });
  work->setAttr(kScheduleAttrName, schedule);
}

/// All tiles but those that are cut, if `isWhole`; else the parts of tile
/// `number`, if that is one, and then what they become.
void QueryTileConverter::emitTurn(Value list, Value number, Value isWhole,
                                  Value allScores) {
  BatchOp batch = ops.tiles.getBatchOp();
  Value group = batch.getGroup();
  Value zero = index.constant(0), one = index.constant(1);
  WorkTile own = readTile(list, number, group);
  Value numPhases =
      index.select(emitKind(own, allScores).second, index.constant(2), zero);
  Value ownParts = emitNumParts(own);
  loop(zero, index.select(isWhole, one, numPhases), 1, [&](Value phase) {
    Value isFirst = index.equal(phase, zero);
    Value count = index.select(isWhole, dim(list, 0),
                               index.select(isFirst, ownParts, one));
    forEach(count, [&](Value i) {
      WorkTile tile = readTile(list, index.select(isWhole, i, number), group);
      tile.mask = maskOf(tile, batch);
      QueryTileBody panels = makePanels();
      QueryTileBody::State state = panels.allocateState();
      panels.allocate(tile);
      auto [isFew, isCut] = emitKind(tile, allScores);
      // A whole tile, or one part, or all of them to their end.
      Value isPart = index.both(isFirst, isNot(isWhole));
      Share share{isWhole, isFirst, isNot(isPart),
                  index.select(isPart, i, zero),
                  index.select(isPart, index.add(i, one), emitNumParts(tile))};
      // Those that are cut have their turn later.
      branch(isNot(index.both(isWhole, isCut)), [&, isFew = isFew] {
        emitShare(panels, state, tile, isFew, share);
      });
    });
  });
}

void QueryTileConverter::emitShare(QueryTileBody &panels,
                                   const QueryTileBody::State &state,
                                   const WorkTile &tile, Value isFew,
                                   const Share &share) {
  branch(
      index.lessEqual(index.constant(0), tile.kRows),
      [&] {
        branch(isFew, [&] { emitFew(tile, share); });
        auto panelled = scf::IfOp::create(b, isNot(isFew),
                                          /*withElseRegion=*/false);
        panelled->setAttr(kScheduleAttrName, schedule);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(panelled.thenBlock());
        emitPanels(panels, tile, state);
      },
      [&] { panels.emitUnused(); });
}

void QueryTileConverter::emitPanels(QueryTileBody &panels, const WorkTile &tile,
                                    const QueryTileBody::State &state) {
  panels.emitBefore();
  panels.emitBlocks(tile.kBegin, tile.kEnd, state);
  panels.emitAfter(state);
}

void QueryTileConverter::emitFew(WorkTile tile, const Share &share) {
  tile.rows = index.min(tile.rows, index.constant(getMaxQueries()));
  QueryTileBody few = makeFew();
  few.allocate(tile);
  Value zero = index.constant(0), one = index.constant(1);
  // Of a whole tile the first part's state, which becomes that of all, and
  // another part's.
  SmallVector<Value> own = allocateStates(few, index.constant(2));
  ValueRange chosen = emitChoice(
      b, share.whole, [&] { return Values(own); },
      [&] { return Values(shared); });
  auto stateAt = [&](Value slot) {
    QueryTileBody::State state;
    for (auto [all, size] : llvm::zip_equal(chosen, few.getStateSizes()))
      state.push_back({matrixAt(all, slot), size});
    return state;
  };
  few.emitBefore();
  loop(share.first, share.end, 1, [&](Value number) {
    Value isFirst = index.equal(number, zero);
    Value slot =
        index.select(isFirst, zero, index.select(share.whole, one, number));
    int64_t size = kPartBlocks * schedule.getKvBlock();
    branch(share.meets, [&] {
      Value begin = index.add(tile.kBegin, index.mul(number, size));
      few.emitBlocks(
          begin, index.min(index.add(begin, index.constant(size)), tile.kEnd),
          stateAt(slot));
    });
    branch(index.both(share.ends, index.less(zero, number)),
           [&] { few.emitMerge(stateAt(zero), stateAt(slot)); });
  });
  branch(share.ends, [&] { few.emitAfter(stateAt(zero)); });
}

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

Value QueryTileConverter::emitFirstPart(const WorkTile &tile, Value partKeys) {
  return index.div(tile.kBegin, partKeys);
}

Value QueryTileConverter::emitNumParts(const WorkTile &tile, Value partKeys) {
  if (!ops.parts)
    return index.constant(1);
  // A tile that sees none has a state, too.
  return index.max(index.sub(index.ceilDiv(tile.kEnd, partKeys),
                             emitFirstPart(tile, partKeys)),
                   1);
}

Value QueryTileConverter::emitPartKeys(Value isFew) {
  return index.select(isFew, index.constant(ofFew.partKeys),
                      index.constant(ofPanels.partKeys));
}

ValueRange QueryTileConverter::emitMostParts(Value list, Value group,
                                             ArrayRef<int64_t> partKeys) {
  Value zero = index.constant(0);
  return emitLoop(b, zero, index.dim(list, 0), index.constant(1),
                  Values(partKeys.size(), zero),
                  [&](Value number, ValueRange most) {
                    WorkTile tile = readTile(list, number, group);
                    Values next;
                    for (auto [before, keys] : llvm::zip_equal(most, partKeys))
                      next.push_back(index.max(
                          before, emitNumParts(tile, index.constant(keys))));
                    return next;
                  });
}

Value QueryTileConverter::emitIsFew(const WorkTile &tile) {
  Value keys = index.sub(tile.kEnd, tile.kBegin);
  int64_t most = getMaxQueries();
  Value isLong = index.less(2 * schedule.getKvBlock(), keys);
  // The sequence's, not the tile's, which may be its last few rows: both
  // forms have sums of their own.
  Value queries = tile.pairs.firstPair(index, tile.queries);
  return index.lessEqual(queries, index.select(isLong, index.constant(most),
                                               index.constant(most / 2)));
}

Value QueryTileConverter::emitIsCut(const WorkTile &tile, Value isFew,
                                    Value allScores) {
  return index.both(emitIsLarge(emitScores(tile), allScores),
                    index.less(1, emitNumParts(tile, emitPartKeys(isFew))));
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void QueryTileConverter::emit(Value list, Value group) {
  if (!ops.blocks)
    return emitTiles(list, group);
  Extremes all = emitExtremes(list, group);
  ValueRange mostParts =
      emitMostParts(list, group, {ofFew.partKeys, ofPanels.partKeys});
  Value partsOfFew = mostParts[0], partsOfPanels = mostParts[1];
  Value canBeCut =
      index.both(emitIsLarge(all.mostScores, all.scores),
                 index.less(1, index.max(partsOfFew, partsOfPanels)));
  auto allocateShared = [&](Form &form, QueryTileBody body, Value parts) {
    form.shared =
        body.allocateStates(index.select(canBeCut, parts, index.constant(0)));
  };
  allocateShared(ofFew, makeFew(), partsOfFew);
  allocateShared(ofPanels, makePanels(), partsOfPanels);
  forEachTurn(list, canBeCut, [&](Value number, Value isWhole) {
    emitTurn(list, number, isWhole, all.scores);
  });
  for (const Form &form : {ofFew, ofPanels})
    for (Value states : form.shared)
      memref::DeallocOp::create(b, states);
}

/// Tiles that visit no blocks: vector by vector.
void QueryTileConverter::emitTiles(Value list, Value group) {
  QueryTileBody body(*this, ops, Orientation::KQ, lanes, /*panels=*/1);
  forEachTile(list, group, [&](const WorkTile &tile) {
    body.allocate(tile);
    branch(
        index.lessEqual(0, tile.kRows), [&] { body.emitBefore(); },
        [&] { body.emitUnused(); });
  })->setAttr(kScheduleAttrName, schedule);
}

/// All tiles but those that are cut, if `isWhole`; else the parts of tile
/// `number`, if that is one, and then what they become.
void QueryTileConverter::emitTurn(Value list, Value number, Value isWhole,
                                  Value allScores) {
  BatchOp batch = ops.tiles.getBatchOp();
  Value group = batch.getGroup();
  Value zero = index.constant(0), one = index.constant(1);
  WorkTile own = readTile(list, number, group);
  Value ownFew = emitIsFew(own);
  Value numPhases =
      index.select(emitIsCut(own, ownFew, allScores), index.constant(2), zero);
  Value ownParts = emitNumParts(own, emitPartKeys(ownFew));
  loop(zero, index.select(isWhole, one, numPhases), 1, [&](Value phase) {
    Value isFirst = index.equal(phase, zero);
    Value count = index.select(isWhole, index.dim(list, 0),
                               index.select(isFirst, ownParts, one));
    emitForall(b, count, [&](Value i) {
      WorkTile tile = readTile(list, index.select(isWhole, i, number), group);
      tile.mask = maskOf(tile, batch);
      QueryTileBody panels = makePanels();
      // In a whole tile: the first part's state, which becomes the tile's, and
      // another part's.
      SmallVector<Value> states = panels.allocateStates(index.constant(2));
      panels.allocate(tile);
      Value isFew = emitIsFew(tile), isCut = emitIsCut(tile, isFew, allScores);
      // A whole tile, or one part, or all of them to their end.
      Value isPart = index.both(isFirst, isNot(isWhole));
      Share share{isWhole, isFirst, isNot(isPart),
                  index.select(isPart, i, zero),
                  index.select(isPart, index.add(i, one),
                               emitNumParts(tile, emitPartKeys(isFew)))};
      // Those that are cut have their turn later.
      branch(isNot(index.both(isWhole, isCut)),
             [&] { emitShare(panels, states, isFew, share); });
    });
  });
}

void QueryTileConverter::emitShare(QueryTileBody &panels, ValueRange own,
                                   Value isFew, const Share &share) {
  const WorkTile &tile = panels.tile;
  branch(
      index.lessEqual(0, tile.kRows),
      [&] {
        branch(isFew, [&] {
          WorkTile some = tile;
          some.rows = index.min(tile.rows, getMaxQueries());
          QueryTileBody few = makeFew();
          few.allocate(some);
          emitParts(few, ofFew, few.allocateStates(index.constant(2)), share);
        });
        branch(isNot(isFew), [&] {
          emitParts(panels, ofPanels, own, share);
        })->setAttr(kScheduleAttrName, schedule);
      },
      [&] { panels.emitUnused(); });
}

void QueryTileConverter::emitParts(QueryTileBody &body, const Form &form,
                                   ValueRange own, const Share &share) {
  Value zero = index.constant(0), one = index.constant(1);
  ValueRange states = emitChoice(
      b, share.whole, [&] { return Values(own); },
      [&] { return Values(form.shared); });
  Value partKeys = index.constant(form.partKeys);
  Value firstPart = emitFirstPart(body.tile, partKeys);
  body.emitBefore();
  loop(share.first, share.end, 1, [&](Value number) {
    Value isFirst = index.equal(number, zero);
    Value slot =
        index.select(isFirst, zero, index.select(share.whole, one, number));
    branch(share.visits, [&] {
      Value part = index.mul(index.add(firstPart, number), partKeys);
      Value begin = index.max(part, body.tile.kBegin);
      Value end = index.min(index.add(part, partKeys), body.tile.kEnd);
      body.emitBlocks(begin, end, body.getState(states, slot));
    });
    if (!ops.parts)
      return;
    branch(index.both(share.ends, index.less(zero, number)), [&] {
      body.emitMerge(body.getState(states, zero), body.getState(states, slot));
    });
  });
  branch(share.ends, [&] { body.emitAfter(body.getState(states, zero)); });
}

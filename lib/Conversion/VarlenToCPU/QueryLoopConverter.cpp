//===- QueryLoopConverter.cpp - A loop over tiles of queries --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryLoopConverter.h"

#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

void QueryLoopConverter::emit(Value list, Value group) {
  if (!ops.blocks)
    return emitTiles(list, group);
  int64_t kvBlock = schedule.getKvBlock();
  IntegerAttr blocks, fewBlocks;
  if (ops.parts) {
    blocks = b.getI64IntegerAttr(ops.parts.getBlocks());
    fewBlocks = b.getI64IntegerAttr(ops.parts.getFew());
    ofPanels.keys = blocks.getInt() * kvBlock;
    ofFew.keys = fewBlocks.getInt() * kvBlock;
  }
  auto type = MemRefType::get({ShapedType::kDynamic, SplitTilesOp::NumColumns},
                              b.getI64Type());
  Type number = b.getIndexType();
  auto split = SplitTilesOp::create(b, type, number, number, number, list,
                                    group, b.getI64IntegerAttr(kvBlock),
                                    b.getI64IntegerAttr(getMaxQueries()),
                                    blocks, fewBlocks);
  Value items = split.getItems(), firstMerge = split.getFirstMerge();
  if (ops.parts) {
    ofPanels.slots = makePanels().allocateStates(split.getSlots());
    if (few)
      ofFew.slots = makeFew().allocateStates(split.getFewSlots());
  }
  emitPhases(items, firstMerge);
  for (const Parts &parts : {ofFew, ofPanels})
    for (Value states : parts.slots)
      memref::DeallocOp::create(b, states);
  memref::DeallocOp::create(b, items);
}

void QueryLoopConverter::emitPhases(Value items, Value firstMerge) {
  Value zero = index.constant(0), count = index.dim(items, 0);
  Value phases = index.select(index.less(firstMerge, count), index.constant(2),
                              index.constant(1));
  loop(zero, ops.parts ? phases : index.constant(1), 1, [&](Value phase) {
    Value isFirst = index.equal(phase, zero);
    Value begin = index.select(isFirst, zero, firstMerge);
    Value end = index.select(isFirst, firstMerge, count);
    emitForall(b, index.sub(end, begin),
               [&](Value i) { emitItem(items, index.add(begin, i)); });
  });
}

/// Tiles that visit no blocks: vector by vector.
void QueryLoopConverter::emitTiles(Value list, Value group) {
  QueryTileConverter body(*this, ops, lanes, /*panels=*/1);
  forEachTile(list, group, [&](const WorkTile &tile) {
    body.allocate(tile);
    branch(
        index.lessEqual(0, tile.kRows), [&] { body.emitBefore(); },
        [&] { body.emitUnused(); });
  })->setAttr(kScheduleAttrName, schedule);
}

QueryLoopConverter::Item QueryLoopConverter::itemOf(ValueRange fields) {
  Value kind = fields[SplitTilesOp::Kind];
  return {index.equal(kind, index.constant(VARLEN_ITEM_PART)),
          index.equal(kind, index.constant(VARLEN_ITEM_MERGE)),
          index.less(0, fields[SplitTilesOp::Few]), fields[SplitTilesOp::Slot]};
}

void QueryLoopConverter::emitItem(Value items, Value number) {
  BatchOp batch = ops.tiles.getBatchOp();
  ValueRange fields = ReadWorkOp::create(b, items, number).getFields();
  WorkTile tile = tileOf(fields, batch.getGroup());
  tile.mask = maskOf(tile, batch);
  Item item = itemOf(fields);
  QueryTileConverter panels = makePanels();
  // The first part's state, which becomes the tile's, and another part's.
  SmallVector<Value> states = panels.allocateStates(index.constant(2));
  panels.allocate(tile);
  Operation *used = branch(
      index.lessEqual(0, tile.kRows),
      [&] { emitInOrientation(panels, states, item); },
      [&] { panels.emitUnused(); });
  // Where queries are rows, no schedule is around them.
  if (!few)
    used->setAttr(kScheduleAttrName, schedule);
}

void QueryLoopConverter::emitInOrientation(QueryTileConverter &panels,
                                           ValueRange own, const Item &item) {
  auto many = [&] { emitParts(panels, ofPanels, own, item); };
  if (!few)
    return many();
  branch(item.isFew, [&] {
    WorkTile some = panels.tile;
    some.rows = index.min(some.rows, getMaxQueries());
    QueryTileConverter form = makeFew();
    form.allocate(some);
    emitParts(form, ofFew, form.allocateStates(index.constant(2)), item);
  });
  branch(isNot(item.isFew), many)->setAttr(kScheduleAttrName, schedule);
}

void QueryLoopConverter::emitParts(QueryTileConverter &body, const Parts &parts,
                                   ValueRange own, const Item &item) {
  const WorkTile &tile = body.tile;
  Value zero = index.constant(0), one = index.constant(1);
  QueryTileConverter::State state = body.getState(own, zero);
  body.emitBefore();
  if (!ops.parts) {
    body.emitBlocks(tile.kBegin, tile.kEnd, state);
    return body.emitAfter(state);
  }
  // Parts are numbered from the first key of a sequence on. A tile that sees
  // none has a state, too.
  Value keys = index.constant(parts.keys);
  Value first = index.div(tile.kBegin, keys);
  Value count = index.max(index.sub(index.ceilDiv(tile.kEnd, keys), first), 1);
  loop(zero, count, 1, [&](Value number) {
    QueryTileConverter::State next = body.getState(own, index.min(number, one));
    branch(
        item.isMerge,
        [&] {
          body.emitCopy(
              body.getState(parts.slots, index.add(item.slot, number)), next);
        },
        [&] {
          Value part = index.mul(index.add(first, number), keys);
          body.emitBlocks(index.max(part, tile.kBegin),
                          index.min(index.add(part, keys), tile.kEnd), next);
        });
    branch(index.less(zero, number), [&] { body.emitMerge(state, next); });
  });
  branch(
      item.isPart,
      [&] { body.emitCopy(state, body.getState(parts.slots, item.slot)); },
      [&] { body.emitAfter(state); });
}

//===- TileListWeights.cpp - The work of tiles, one by one ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lengths do not tell how long a tile takes where a score region hides keys.
// After the kernel that checks sequences, a warp a tile and kv head counts the
// blocks that the tile visits. A tile weighs what it does for the kv head that
// visits most, a sequence what its heaviest tile does. When sequences are
// sorted, a warp a tile counts the tiles of its sequence that come before it.
//
//===----------------------------------------------------------------------===//

#include "../WarpReduction.h"
#include "TileListBuilder.h"
#include "varlen/Dialect/Kernel/IR/SharedTile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::varlen;

Value TileListBuilder::emitSlot(Value segment) {
  Value rows = index.load(ofQueries ? op.getCuQ() : op.getCuK(), segment);
  if (ofQueries)
    rows = index.mul(rows, group);
  return index.add(index.div(rows, size), segment);
}

Value TileListBuilder::emitWork(Value s, Value tile, Value kvHead) {
  Block &body = list.getWeights().front();
  IRMapping map;
  map.map(body.getArguments(), ValueRange{s, tile, kvHead});
  for (Operation &op : body.without_terminator())
    b.clone(op, map);
  return map.lookupOrDefault(body.getTerminator()->getOperand(0));
}

void TileListBuilder::emitWeight(Value slot, Value kvHead, Value lane) {
  Value zero = index.constant(0);
  Value last = index.sub(segments, 1);
  Value s = emitSearch(b, zero, last, [&](Value at) {
    return index.lessEqual(emitSlot(index.add(at, 1)), slot);
  });
  Sequence segment = sequence(s);
  Value tile = index.sub(slot, emitSlot(s));
  auto isWithin = [&](const PackedRows &rows, Value end) {
    return index.both(index.lessEqual(0, rows.begin),
                      index.lessEqual(rows.end, end));
  };
  // The sequence alone is known to be right, not yet where it lies. With an
  // error it has no tile.
  Value isTile = index.both(index.lessEqual(0, tile),
                            index.less(tile, load(zero, Tiles, s)));
  isTile = index.both(isTile, index.less(s, sequences));
  isTile = index.both(isTile, isWithin(segment.q, tq));
  isTile = index.both(isTile, isWithin(segment.k, tk));
  emitIf(b, isTile, [&] {
    Value weight = emitWork(s, tile, kvHead);
    emitIf(b, index.equal(lane, 0), [&] {
      auto raise = [&](Value memref, ValueRange at) {
        Type type = cast<MemRefType>(memref.getType()).getElementType();
        memref::AtomicRMWOp::create(b, arith::AtomicRMWKind::maxs,
                                    IndexBuilder{b, type}.cast(weight), memref,
                                    at);
      };
      raise(slots, slot);
      raise(table, {zero, index.constant(Work), s});
    });
  });
}

void TileListBuilder::emitWeights() {
  Value heads = list.getByHead() ? op.getKvHeads() : index.constant(1);
  emitWarps("_weights", index.mul(bound, heads), [&](Value i, Value lane) {
    emitIf(
        b, emitIsBad(), [] {},
        [&] { emitWeight(index.div(i, heads), index.rem(i, heads), lane); });
  });
}

Value TileListBuilder::emitRank(Value segment, Value tile, Value tiles,
                                Value lane) {
  IndexBuilder narrow{b, b.getI32Type()};
  Value slot = emitSlot(segment), zero = narrow.constant(0);
  auto weightOf = [&](Value at) {
    return narrow.load(slots, index.add(slot, at));
  };
  Value own = weightOf(tile);
  ValueRange before = emitLoop(
      b, lane, tiles, index.constant(kernel::kWarpLanes), zero,
      [&](Value at, ValueRange before) {
        Value other = weightOf(at);
        // Entries of equal weight are in the order of a causal sequence.
        Value isFirst = ofQueries ? index.less(tile, at) : index.less(at, tile);
        Value isBefore =
            index.either(narrow.less(own, other),
                         index.both(narrow.equal(own, other), isFirst));
        return Values{narrow.add(
            before[0], narrow.select(isBefore, narrow.constant(1), zero))};
      });
  return index.cast(emitWarpReduction(
      b, before[0], [&](Value x, Value y) { return narrow.add(x, y); }));
}

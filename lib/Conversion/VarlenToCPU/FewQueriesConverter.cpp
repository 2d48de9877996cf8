//===- FewQueriesConverter.cpp - A tile of few queries on a CPU -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FewQueriesConverter.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

FewQueriesConverter::FewQueriesConverter(QueryTiles parts,
                                         CPUScheduleAttr schedule,
                                         OpBuilder &builder)
    : CPUTileBuilder(
          parts.tiles.getLoc(), builder, schedule,
          elementOf(parts.q.getSource()),
          cast<FloatType>(parts.step.getM().getType().getElementType())),
      loops(parts), maxQueries(getMaxQueries(schedule)) {}

/// kv blocks of a part: reading one takes so long that a thread may begin, and
/// its state be merged, for nothing.
static constexpr int64_t kPartBlocks = 8;

Value FewQueriesConverter::emitNumParts(Value keys) {
  // A tile that sees none has a state, too.
  return index.max(index.ceilDiv(keys, kPartBlocks * schedule.getKvBlock()),
                   index.constant(1));
}

FewQueriesConverter::States FewQueriesConverter::allocateStates(Value parts) {
  auto matrices = [&](int64_t columns) {
    return allocate({ShapedType::kDynamic, maxQueries, columns}, compute,
                    parts);
  };
  return {matrices(memoryType(loops.v.getSource()).getDimSize(2)), matrices(1),
          matrices(1)};
}

Value FewQueriesConverter::emitMaxQueries(IndexBuilder index,
                                          CPUScheduleAttr schedule,
                                          Value keys) {
  int64_t most = getMaxQueries(schedule);
  Value isLong = index.less(index.constant(2 * schedule.getKvBlock()), keys);
  return index.select(isLong, index.constant(most), index.constant(most / 2));
}

Value FewQueriesConverter::used(Value scratch) {
  return rowView(scratch, b.getIndexAttr(0), tile.rows,
                 b.getIndexAttr(memoryType(scratch).getDimSize(1)));
}

SmallVector<Value> FewQueriesConverter::usedState(ArrayRef<Value> state) {
  return llvm::map_to_vector(state, [&](Value memory) { return used(memory); });
}

/// Steps on narrow values round probabilities.
UnitAttr FewQueriesConverter::getRounded() {
  return element == compute ? UnitAttr() : b.getUnitAttr();
}

void FewQueriesConverter::emitRows() {
  emitCopyRows(b, loops.q.getSource(), tile.pairs, tile.first, tile.rows,
               tile.rows, q, lanes);
  loop(index.constant(0), tile.rows, 1, [&](Value row) {
    Value pair = index.add(tile.first, row);
    SmallVector<Value> at = {row, index.constant(0)};
    emitLimits(tile, tile.pairs.query(index, pair), lo, hi, at);
    emitScoreInputs(tile, pair, getSources(loops.captures),
                    getScoreScratch(position, captures), at);
    emitTableRows(tile, pair, loops.step.getTables(), tables.rows, at);
    if (loops.sink)
      memref::StoreOp::create(b, loadNumber(tile, loops.sink.getSource(), pair),
                              sinks, at);
  });
}

void FewQueriesConverter::emitInits(ArrayRef<Value> state) {
  loop(index.constant(0), tile.rows, 1, [&](Value row) {
    for (auto [number, scratch] : llvm::zip_equal(loops.inits, state)) {
      Value value = floatConstant(number), memory = scratch;
      loop(index.constant(0), dim(memory, 1), 1, [&](Value column) {
        memref::StoreOp::create(b, value, memory, ValueRange{row, column});
      });
    }
  });
}

void FewQueriesConverter::emitBlock(Value k0, ArrayRef<Value> state) {
  Value keys = blockKeys(tile, k0);
  VisiblePart seen = visiblePart(tile, tile.first, tile.rows, k0, keys);
  Value next = index.add(k0, keys);
  for (ReadOp read : {loops.k, loops.v})
    emitPrefetchRows(b, read.getSource(), keyRows(tile), next,
                     blockKeys(tile, next));
  // In whole granules, of which the last may be cut.
  Value end = index.min(seen.end, keys);
  Value may =
      mayBeVisible(tile, loops.step.getScoreBody(), captureRanges, tile.first,
                   tile.rows, index.add(k0, seen.begin), index.add(k0, end));
  branch(both(index.less(seen.begin, end), may), [&] {
    // As a minimum it bounds the size of the scores.
    Value from = index.add(k0, seen.begin);
    Value count = index.min(index.sub(end, seen.begin),
                            index.constant(schedule.getKvBlock()));
    Value whole = seeAll(seen, from, index.add(k0, end));
    SmallVector<Value> views = usedState(state);
    OnlineAttnOp step = loops.step;
    Value from32 = arith::IndexCastOp::create(b, b.getI32Type(), from);
    auto number = [&](Value scratch) { return load(used(scratch)); };
    auto few = OnlineAttnOp::create(
        b, load(used(q)),
        load(keysInPlace(tile, loops.k.getSource(), from, count)),
        load(keysInPlace(tile, loops.v.getSource(), from, count)), number(lo),
        number(hi), from32, whole,
        /*queries=*/Value(), /*keys=*/Value(),
        position ? number(position) : Value(), position ? from32 : Value(),
        llvm::map_to_vector(captures, number), tables.views,
        llvm::map_to_vector(tables.rows, number), load(views[0]),
        load(views[1]), load(views[2]), step.getScaleAttr(),
        OrientationAttr::get(b.getContext(), Orientation::QK),
        step.getScore().size());
    copyScore(step, few);
    few->setDiscardableAttrs(step->getDiscardableAttrDictionary());
    for (auto [result, view] : llvm::zip_equal(few->getResults(), views))
      store(result, view);
  });
}

/// Adds the keys of another state.
void FewQueriesConverter::emitMerge(ArrayRef<Value> state,
                                    ArrayRef<Value> more) {
  SmallVector<Value> views = usedState(state), others = usedState(more);
  auto merge = OnlineMergeOp::create(
      b, load(views[0]), load(views[1]), load(views[2]), load(others[0]),
      load(others[1]), load(others[2]), loops.step.getScaleAttr(),
      OrientationAttr::get(b.getContext(), Orientation::QK), getRounded());
  for (auto [result, view] : llvm::zip_equal(merge->getResults(), views))
    store(result, view);
}

void FewQueriesConverter::emitFinish(ArrayRef<Value> state) {
  OnlineFinishOp end = loops.finish;
  SmallVector<Value> views = usedState(state);
  auto finish = OnlineFinishOp::create(
      b, load(views[0]), load(views[1]), load(views[2]),
      loops.sink ? load(used(sinks)) : Value(), end.getScaleAttr(),
      OrientationAttr::get(b.getContext(), Orientation::QK), getRounded());
  store(finish.getOut(), views[0]);
  store(finish.getLse(), views[1]);
  for (auto write : loops.tiles.getBody()->getOps<WriteOp>()) {
    Value destination = write.getDestination();
    if (write.getValues().front() == end.getOut()) {
      emitStoreRows(b, state[0], /*factor=*/Value(), tile.pairs, tile.first,
                    tile.rows, destination, lanes);
      continue;
    }
    loop(index.constant(0), tile.rows, 1, [&](Value row) {
      Value number = memref::LoadOp::create(b, state[1],
                                            ValueRange{row, index.constant(0)});
      storeNumber(tile, number, destination, index.add(tile.first, row));
    });
  }
}

void FewQueriesConverter::emitPart(Value number, ArrayRef<Value> state) {
  int64_t size = kPartBlocks * schedule.getKvBlock();
  Value begin = index.add(tile.kBegin, index.mul(number, size));
  Value end = index.min(index.add(begin, index.constant(size)), tile.kEnd);
  emitInits(state);
  loop(begin, end, schedule.getKvBlock(),
       [&](Value k0) { emitBlock(k0, state); });
}

void FewQueriesConverter::emit(const WorkTile &workTile, const Share &share) {
  tile = workTile;
  tile.rows = index.min(tile.rows, index.constant(maxQueries));
  q = allocate(maxQueries, memoryType(loops.q.getSource()).getDimSize(2),
               element);
  lo = allocate(maxQueries, 1, b.getI32Type());
  hi = allocate(maxQueries, 1, b.getI32Type());
  if (loops.sink)
    sinks = allocate(maxQueries, 1, compute);
  if (readsPositions(loops.step.getScoreBody()))
    position = allocate(maxQueries, 1, b.getI32Type());
  for (size_t i = 0; i < loops.captures.size(); ++i)
    captures.push_back(allocate(maxQueries, 1, compute));
  tables = {emitTableViews(tile, loops.step.getTables(),
                           getTableArguments(loops.step.getScoreBody())),
            {}};
  for (size_t i = 0; i < tables.views.size(); ++i)
    tables.rows.push_back(allocate(maxQueries, 1, b.getI64Type()));
  // Of a whole tile the first part's state, which becomes that of all, and
  // another part's.
  Value zero = index.constant(0), one = index.constant(1);
  States own = allocateStates(index.constant(2));
  ValueRange chosen = emitChoice(
      b, share.whole, [&] { return Values(own); },
      [&] { return Values(share.shared); });
  auto stateAt = [&](Value slot) {
    return llvm::map_to_vector(chosen,
                               [&](Value all) { return matrixAt(all, slot); });
  };
  emitRows();
  captureRanges =
      emitCaptureRanges(loops.step.getScoreBody(), [&](unsigned capture) {
        return emitExtremes(tile.rows, [&](Value row) -> Value {
          return memref::LoadOp::create(b, captures[capture],
                                        ValueRange{row, index.constant(0)});
        });
      });
  loop(share.first, share.end, 1, [&](Value number) {
    Value isFirst = index.equal(number, zero);
    Value slot =
        index.select(isFirst, zero, index.select(share.whole, one, number));
    branch(share.meets, [&] { emitPart(number, stateAt(slot)); });
    branch(index.both(share.ends, index.less(zero, number)),
           [&] { emitMerge(stateAt(zero), stateAt(slot)); });
  });
  branch(share.ends, [&] { emitFinish(stateAt(zero)); });
}

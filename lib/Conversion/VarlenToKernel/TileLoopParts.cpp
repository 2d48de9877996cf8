//===- TileLoopParts.cpp - Parts of the keys of a tile --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Split-KV: the keys of a sequence with few queries are in parts, which are
// items as tiles are. A part leaves its state in global memory; a kernel of its
// own merges the states of a tile in the order of parts, and does what follows
// the loop over blocks. Which keys a part has depends on its sequence alone, so
// the bits of a sequence do not depend on the batch.
//
//===----------------------------------------------------------------------===//

#include "TileLoopConverter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::varlen;

/// Pairs of a query and a head of the group that are few: a token or some, and
/// rows of two tensor core tiles. Memory has room for as many in each part.
static constexpr int64_t kFewPairs = 32;

std::optional<KeyParts> varlen::getKeyParts(ForTilesOp loop) {
  auto parts = loop.getBody()->getOps<ForPartsOp>();
  if (parts.empty() || loop.getTileType().getAxis() != Axis::Queries)
    return std::nullopt;
  ForPartsOp op = *parts.begin();
  ForBlocksOp blocks = op.getLoop();
  return KeyParts{static_cast<int64_t>(op.getFew()) *
                      blocks.getBlockType().getSize(),
                  std::min(kFewPairs, loop.getTileType().getSize())};
}

LogicalResult TileLoopConverter::verifyParts() {
  if (!ofQueries)
    return parts.emitOpError("expected parts of a tile of queries on a GPU");
  if (parts.getBlocks() != 0)
    return parts.emitOpError("expected blocks(0), one part for tiles of "
                             "sequences with many queries, on a GPU, got "
                             "blocks(")
           << parts.getBlocks() << ')';
  auto clears = loop.getBody()->getOps<ClearOp>();
  if (!clears.empty())
    return (*clears.begin())
        .emitOpError("expected keys in one part beside what a tile sums in "
                     "memory on a GPU");
  for (Operation &op : *parts.getBody())
    if (!isPure(&op) && !isa<ForBlocksOp, YieldOp>(op))
      return op.emitOpError("expected a loop over blocks, and what it begins "
                            "with, in a part on a GPU");
  for (Operation &op : *parts.getMergeBody())
    if (!isPure(&op) && !isa<YieldOp>(op))
      return op.emitOpError("expected 'merge' without effects on memory on a "
                            "GPU");
  for (Type result : parts->getResultTypes()) {
    auto type = cast<RankedTensorType>(result);
    if (!type.getElementType().isF32() || !type.hasStaticShape() ||
        type.getDimSize(0) != tileRows || type.getDimSize(1) == 0)
      return parts.emitOpError("expected a state of f32, with static extents "
                               "and ")
             << tileRows << " rows, on a GPU, got " << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Parts of a tile
//===----------------------------------------------------------------------===//

Value TileLoopConverter::decodePart(Tile &tile, Value s, Value number) {
  Value pairs = index.mul(tile.sequence.qRows, group);
  Value zero = index.constant(0);
  tile.parts =
      emitPartCount(index, *keyParts, s, sequences, pairs, tile.sequence.kUsed);
  Value hasParts = index.less(1, tile.parts);
  tile.part = index.select(hasParts, number, zero);
  return index.select(hasParts, zero, number);
}

MaskRange<Value> TileLoopConverter::clipToPart(MaskRange<Value> range) {
  Value begin = index.mul(tile.part, keyParts->keys);
  Value end = index.add(begin, keyParts->keys);
  range.begin = index.max(range.begin, begin);
  range.end = index.select(index.less(1, tile.parts), index.min(range.end, end),
                           range.end);
  return range;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

kernel::RowsOperands TileLoopConverter::getStateRows(Value entry) {
  Value zero = index.constant(0);
  return {index.mul(index.cast(entry), keyParts->pairs), zero, zero,
          index.constant(1), tile.usedRows};
}

void TileLoopConverter::emitStoreState(Value entry) {
  kernel::RowsOperands rows = getStateRows(entry);
  Values numbers;
  for (auto [value, memory] :
       llvm::zip_equal(parts.getStates(), context.states->tiles)) {
    Value state = map.lookup(value);
    if (memory)
      kernel::StoreOp::create(b, state, memory, rows);
    else
      numbers.push_back(state);
  }
  if (!numbers.empty())
    kernel::StoreOp::create(b, numbers, context.states->numbers, rows);
}

Values TileLoopConverter::emitLoadState(Value entry) {
  kernel::RowsOperands rows = getStateRows(entry);
  Value zero = constant(b.getF32Type(), 0.0);
  SmallVector<Type> types;
  Values state;
  for (auto [value, memory] :
       llvm::zip_equal(parts.getStates(), context.states->tiles)) {
    if (!memory)
      types.push_back(value.getType());
    else
      state.push_back(
          kernel::LoadOp::create(b, value.getType(), memory, rows, zero)
              .getResult(0));
  }
  if (types.empty())
    return state;
  auto numbers =
      kernel::LoadOp::create(b, types, context.states->numbers, rows, zero);
  // In the order of the state.
  auto *next = state.begin();
  ValueRange rest = numbers.getResults();
  Values ordered;
  for (Value memory : context.states->tiles) {
    if (memory) {
      ordered.push_back(*next++);
      continue;
    }
    ordered.push_back(rest.front());
    rest = rest.drop_front();
  }
  return ordered;
}

void TileLoopConverter::emitMergeKernel(Value ctas) {
  Value kvHeads = batch.getKvHeads();
  Value count = index.mul(sequences, kvHeads);
  auto emitTileOf = [&](Value item) {
    Value s = index.div(item, kvHeads), kvHead = index.rem(item, kvHeads);
    tile = decode({s, index.constant(0), kvHead});
    emitIf(b, index.less(1, tile.parts), [&] {
      // Part p is p rows of the list before the first one.
      Value row = index.load(list.getFirstParts(), s);
      auto entryOf = [&](Value part) {
        return index.add(index.mul(index.sub(row, part), kvHeads), kvHead);
      };
      Values first = emitLoadState(entryOf(index.constant(0)));
      ValueRange merged = emitLoop(
          b, index.constant(1), tile.parts, index.constant(1), first,
          [&](Value part, ValueRange state) {
            Values both(state);
            llvm::append_range(both, emitLoadState(entryOf(part)));
            IRMapping merge;
            merge.map(parts.getMergeBody()->getArguments(), both);
            for (Operation &op : parts.getMergeBody()->without_terminator())
              b.clone(op, merge);
            return llvm::map_to_vector(
                parts.getMergeBody()->getTerminator()->getOperands(),
                [&](Value value) { return merge.lookupOrDefault(value); });
          });
      map.map(parts.getStates(), merged);
      auto isOfBlocks = [&](Operation &op) {
        return &op == parts.getOperation() ||
               llvm::is_contained(tileReads, &op);
      };
      for (Operation &op : loop.getBody()->without_terminator())
        if (!isOfBlocks(op))
          emitOp(&op, /*entry=*/Value());
    });
  };
  emitLaunch(
      b, getKernelName(loop) + "_merge", index.max(index.min(ctas, count), 1),
      schedule.getWarps() * kernel::kWarpLanes,
      [&](Value block, Value grid, Value) {
        Value entries = index.load(list.getCount(), index.constant(0));
        Value isGood = index.less(-1, entries);
        emitIf(b, isGood, [&] { emitLoop(b, block, count, grid, emitTileOf); });
      });
}

//===- TileLoopOrder.cpp - Sums of several tiles, in their order ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of queries is visited by tiles of keys that follow each other, as the
// bounds of masks grow with the position of a row. They add up what they have
// for it in global memory, the last tile first: with a causal mask, where each
// begins with the block at its diagonal, no tile has to wait then if they begin
// together. Which tiles are neighbours at a block, each says by its own bounds
// and those of the tiles beside it. Items are taken in the order of the list,
// in which the last tile of a sequence comes first: who is waited for has been
// taken before, so the first of those that are under way waits for none.
//
//===----------------------------------------------------------------------===//

#include "TileLoopConverter.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

AddInOrderOp varlen::getOrderedSum(ForTilesOp loop) {
  for (auto blocks : loop.getBody()->getOps<ForBlocksOp>())
    for (auto add : blocks.getBody()->getOps<AddInOrderOp>())
      return add;
  return {};
}

TileLoopConverter::Turns TileLoopConverter::getTurns() {
  Tile own = tile;
  // The blocks of the tile `distance` further on, and whether there is one.
  auto visit = [&](int64_t distance) -> std::pair<Blocks, Value> {
    setKeyRows(tile, index.add(own.first, distance * tileRows));
    Blocks blocks = getBlocks(getVisitedRows());
    Value isThere = index.both(index.lessEqual(0, tile.first),
                               index.less(tile.first, own.sequence.kRows));
    tile = own;
    return {blocks, index.both(isThere, narrow.less(0, blocks.total))};
  };
  auto [next, hasNext] = visit(1);
  auto [previous, hasPrevious] = visit(-1);
  Value tiles = index.ceilDiv(own.sequence.kRows, tileRows);
  return {narrow.select(hasNext, next.leftBase,
                        narrow.constant(std::numeric_limits<int32_t>::max())),
          narrow.select(hasPrevious,
                        narrow.add(previous.leftBase, previous.total),
                        narrow.constant(0)),
          narrow.cast(index.sub(tiles, own.tile))};
}

void TileLoopConverter::emitAddInOrder(AddInOrderOp add, Value i, bool masked) {
  BlockRows rows = getBlockRows(i, masked);
  Value block = index.div(rows.first, blockSize);
  // Blocks of all sequences before this one, each of which may have begun one
  // that is not whole, come before its own.
  Value heads = index.mul(batch.getKvHeads(), group);
  Value before = index.add(index.div(rows.row, blockSize), tile.number);
  Value slot = index.add(index.mul(index.add(before, block), heads), rows.head);
  Value number = narrow.cast(block);
  Value isFirst = narrow.less(number, turns.next);
  Value isLast = narrow.lessEqual(turns.previous, number);
  Value total = kernel::AddInOrderOp::create(
      b, map.lookup(add.getPart()), context.sums->sums, slot,
      context.sums->counters, turns.turn, isFirst, isLast);
  emitIf(b, isLast, [&] {
    Value memory = add.getDestination();
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    auto type = cast<RankedTensorType>(total.getType());
    Value empty = tensor::EmptyOp::create(b, type.getShape(), element);
    auto rounded = emitElementwise(
        b, total, empty,
        [&](ImplicitLocOpBuilder &inner, ValueRange arguments) -> Values {
          Value x = emitScaled(inner, arguments[0], add.getFactor());
          return {arith::TruncFOp::create(inner, element, x)};
        });
    Value valid = index.sub(tile.sequence.qUsed, rows.first);
    kernel::StoreOp::create(
        b, rounded.getResult(0), memory,
        {rows.row, rows.head, rows.first, index.constant(1), valid});
  });
}

//===- TileLoopVisibility.cpp - What score regions hide -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a score region hides of the blocks of a tile, by intervals of what it
// reads: so that blocks are not copied, not computed, or not masked, and so
// that lists know which tiles take long.
//
//===----------------------------------------------------------------------===//

#include "../WarpReduction.h"
#include "TileLoopConverter.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

/// The number in memory that a number of scratch is a copy of, which may be
/// read before the loop that fills the scratch has run; null if it is none.
static OpResult getOrigin(OpResult number) {
  auto read = dyn_cast<ReadOp>(number.getOwner());
  if (!read)
    return {};
  auto rows = read.getSource().getDefiningOp<RowsOp>();
  if (!rows)
    return number;
  WriteOp only;
  for (Operation *user : rows->getUsers())
    if (auto write = dyn_cast<WriteOp>(user)) {
      if (only)
        return {};
      only = write;
    }
  if (!only || only.getFactor())
    return {};
  auto copied = dyn_cast<OpResult>(only.getValues()[number.getResultNumber()]);
  auto original = copied ? dyn_cast<ReadOp>(copied.getOwner()) : ReadOp();
  return original && !original.getSource().getDefiningOp<RowsOp>() ? copied
                                                                   : OpResult();
}

SmallVector<NumberRange>
TileLoopConverter::getCaptureRanges(const kernel::RowsOperands &rows,
                                    int64_t size, Readers readers) {
  if (!step)
    return {};
  OperandRange captures = step.getCaptures();
  SmallVector<NumberRange> ranges(captures.size());
  for (auto [i, range] : llvm::enumerate(ranges)) {
    if (!visibilityReadsCapture(getScore(), i))
      continue;
    auto number = cast<OpResult>(captures[i]);
    if (isWeighing)
      number = getOrigin(number);
    auto read = cast<ReadOp>(number.getOwner());
    range =
        emitCaptureRange(b, context.scratch.lookupOrDefault(read.getSource()),
                         number.getResultNumber(), rows, size, readers);
  }
  return ranges;
}

NumberRange TileLoopConverter::getKeyRange(Value first, Value count) {
  if (!ofQueries) {
    first = narrow.cast(tile.first);
    count = narrow.cast(tile.usedRows);
  }
  return {first, narrow.add(first, narrow.sub(count, 1))};
}

NumberRange TileLoopConverter::getQueryRange(Value first, Value count) {
  first = ofQueries ? tile.first : index.cast(first);
  count = ofQueries ? tile.usedRows : index.cast(count);
  Value last = index.sub(index.add(first, count), 1);
  auto position = [&](Value row) {
    return tile.sequence.mask.emitPosition(
        index, ofQueries ? pairsOf(tile).query(index, row) : row);
  };
  return {position(first), position(last)};
}

Value TileLoopConverter::getTable(LookupOp lookup) {
  SmallVector<BlockArgument> arguments = getTableArguments(getScore());
  return step.getTables()[llvm::find(arguments, lookup.getTable()) -
                          arguments.begin()];
}

NumberRange TileLoopConverter::getLookupRange(LookupOp lookup,
                                              NumberRange positions,
                                              int64_t size, Readers readers) {
  std::optional<int64_t> members = getConstantIntValue(group);
  if (!members)
    return {};
  Value table = getTable(lookup);
  Value used = tile.sequence.kUsed;
  // As a lookup does it; a sequence without keys has no number.
  auto clamp = [&](Value position) {
    return index.max(index.min(index.cast(position), index.sub(used, 1)), 0);
  };
  ValueRange range = emitChoice(
      b, index.less(0, used),
      [&] {
        Value first = clamp(positions.low);
        Value count = index.add(index.sub(clamp(positions.high), first), 1);
        kernel::RowsOperands rows{tile.sequence.kRow, tile.kvHead,
                                  index.mul(first, group), group,
                                  index.mul(index.max(count, 1), group)};
        NumberRange found = emitCaptureRange(b, table, /*column=*/0, rows,
                                             size * *members, readers);
        return Values{found.low, found.high};
      },
      [&] {
        Value nan = constant(lookup.getEntry().getType(),
                             std::numeric_limits<double>::quiet_NaN());
        return Values{nan, nan};
      });
  return {range[0], range[1]};
}

SmallVector<NumberRange> TileLoopConverter::getTileLookupRanges() {
  SmallVector<NumberRange> ranges;
  // Pairs of a tile may begin and end within the group of a query.
  int64_t members = getConstantIntValue(group).value_or(1);
  int64_t queries = llvm::divideCeil(tileRows - 1, members) + 1;
  for (LookupOp lookup : getVisibilityLookups(getScore()))
    ranges.push_back(isByQuery(lookup)
                         ? getLookupRange(lookup, getQueryRange({}, {}),
                                          queries, Readers::Warps)
                         : NumberRange());
  return ranges;
}

void TileLoopConverter::readTileRanges() {
  if (!ofQueries)
    return;
  // A tile has a row, but maybe none in use, and then no block.
  tileRanges = getCaptureRanges(rowsOf(index.max(tile.usedRows, 1)), tileRows,
                                Readers::Warps);
  tileLookupRanges = getTileLookupRanges();
}

SmallVector<NumberRange> TileLoopConverter::getLookupRanges(Value first,
                                                            Value count) {
  SmallVector<NumberRange> ranges = tileLookupRanges;
  if (ofQueries)
    for (auto [lookup, range] :
         llvm::zip_equal(getVisibilityLookups(getScore()), ranges))
      if (!isByQuery(lookup))
        range = getLookupRange(lookup, getKeyRange(first, count), blockSize,
                               getBlockReaders());
  return ranges;
}

BlockVisibility
TileLoopConverter::getVisibility(Value first, Value count,
                                 ArrayRef<NumberRange> captures,
                                 ArrayRef<NumberRange> lookups) {
  return emitVisibility(narrow, getScore(), getQueryRange(first, count),
                        getKeyRange(first, count), captures, lookups);
}

BlockVisibility TileLoopConverter::getVisibility(Value i, bool masked) {
  if (!getVisible(getScore()))
    return {};
  BlockRows rows = getBlockRows(i, masked);
  Value first = narrow.cast(rows.first);
  Value count = masked ? getUsedRows(first) : narrow.constant(blockSize);
  // Rows of a block are of one query head.
  SmallVector<NumberRange> captures =
      ofQueries ? tileRanges
                : getCaptureRanges({rows.row, rows.head, rows.first,
                                    index.constant(1), index.cast(count)},
                                   blockSize, getBlockReaders());
  return getVisibility(first, count, captures, getLookupRanges(first, count));
}

Value TileLoopConverter::getUsedRows(Value first) {
  Value used = ofQueries ? tile.sequence.kUsed : tile.sequence.qUsed;
  return narrow.min(narrow.sub(narrow.cast(used), first), blockSize);
}

MaskRange<Value> TileLoopConverter::dropHiddenBlocks(MaskRange<Value> range) {
  Block *score = getScore();
  if (!getVisible(score))
    return range;
  SmallVector<NumberRange> captures(step.getCaptures().size());
  auto isRead = [&](unsigned capture) {
    return visibilityReadsCapture(score, capture);
  };
  // To read the numbers of a block takes about as long as to copy it.
  if ((ofQueries && !llvm::all_of(getVisibilityLookups(score), isByQuery)) ||
      (!ofQueries &&
       llvm::any_of(llvm::seq<unsigned>(captures.size()), isRead)))
    return range;
  if (ofQueries)
    captures = tileRanges;
  // A block to a lane, in each warp.
  Value lane = emitLane(narrow);
  Value end = narrow.cast(index.ceilDiv(range.end, blockSize));
  // A bound may lie behind every row, where 32 bits do not hold it.
  Value begin =
      narrow.cast(index.div(index.min(range.begin, range.end), blockSize));
  ValueRange seen = emitLoop(
      b, narrow.add(begin, lane), end, narrow.constant(kernel::kWarpLanes),
      {end, begin}, [&](Value number, ValueRange seen) {
        Value first = narrow.mul(number, blockSize);
        Value may =
            getVisibility(first, getUsedRows(first), captures, tileLookupRanges)
                .mayBeVisible;
        if (!may)
          may = arith::ConstantOp::create(b, b.getBoolAttr(true));
        Value past = narrow.add(number, 1);
        return Values{narrow.select(may, narrow.min(seen[0], number), seen[0]),
                      narrow.select(may, narrow.max(seen[1], past), seen[1])};
      });
  auto least = [&](Value x, Value y) { return narrow.min(x, y); };
  auto most = [&](Value x, Value y) { return narrow.max(x, y); };
  auto row = [&](Value number) {
    return index.mul(index.cast(number), blockSize);
  };
  range.begin =
      index.max(range.begin, row(emitWarpReduction(b, seen[0], least)));
  range.end = index.min(range.end, row(emitWarpReduction(b, seen[1], most)));
  return range;
}

//===----------------------------------------------------------------------===//
// Weights of tiles
//===----------------------------------------------------------------------===//

std::optional<bool> TileLoopConverter::weighsByHead() {
  Block *score = getScore();
  bool hasLookups = ofQueries && getConstantIntValue(group);
  if (!canHideBlocks(score, hasLookups))
    return std::nullopt;
  // Lists are made where the batch is.
  DominanceInfo dominance;
  bool byHead = false, isKnown = true;
  auto addMemory = [&](Value memory) {
    byHead = true;
    isKnown &= memory && dominance.properlyDominates(memory, batch);
  };
  for (auto [i, capture] : llvm::enumerate(step.getCaptures()))
    if (visibilityReadsCapture(score, i)) {
      OpResult origin = getOrigin(cast<OpResult>(capture));
      addMemory(origin ? cast<ReadOp>(origin.getOwner()).getSource() : Value());
    }
  if (hasLookups)
    for (LookupOp lookup : getVisibilityLookups(score))
      addMemory(getTable(lookup));
  return isKnown ? std::optional(byHead) : std::nullopt;
}

Value TileLoopConverter::emitWeight(const TileEntry &entry) {
  tile = decode(entry);
  isWeighing = true;
  MaskRange<Value> range = getVisitedRows();
  readTileRanges();
  visited = getBlocks(range);
  Value zero = narrow.constant(0), one = narrow.constant(1);
  Value heads = ofQueries ? one : narrow.cast(group);
  Value lane = emitLane(narrow);
  ValueRange seen = emitLoop(
      b, lane, narrow.mul(visited.total, heads),
      narrow.constant(kernel::kWarpLanes), zero, [&](Value i, ValueRange seen) {
        Value may = getVisibility(i, /*masked=*/true).mayBeVisible;
        return Values{narrow.add(seen[0], narrow.select(may, one, zero))};
      });
  return emitWarpReduction(b, seen[0],
                           [&](Value x, Value y) { return narrow.add(x, y); });
}

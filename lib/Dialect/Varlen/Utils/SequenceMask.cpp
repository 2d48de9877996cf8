//===- SequenceMask.cpp - What a mask leaves of a sequence ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::varlen;

static MaskRange<Value> emit(IndexBuilder &index,
                             const MaskRange<Position> &range) {
  PositionBuilder b(index);
  return {b.emit(range.begin), b.emit(range.wholeBegin), b.emit(range.wholeEnd),
          b.emit(range.end)};
}

MaskRange<Position> SequenceMask::getKeysOf(PositionBuilder b, Position first,
                                            Position last,
                                            Position keys) const {
  MaskRange<Position> range{0, 0, keys, keys};
  auto boundOf = [&](MaskSide side, Position query) {
    return b.max(mask.getBound(b, state, side, query), 0);
  };
  if (mask.hasBound(MaskSide::Begin)) {
    range.begin = boundOf(MaskSide::Begin, first);
    range.wholeBegin = boundOf(MaskSide::Begin, last);
  }
  if (mask.hasBound(MaskSide::End)) {
    range.wholeEnd = b.min(boundOf(MaskSide::End, first), keys);
    range.end = b.min(boundOf(MaskSide::End, last), keys);
  }
  return range;
}

MaskRange<Value> SequenceMask::emitKeysOf(IndexBuilder &index, Value first,
                                          Value last, Value keys) const {
  return emit(index, getKeysOf(index, first, last, keys));
}

std::pair<Value, Value>
SequenceMask::emitLimits(IndexBuilder &index, Value query, Value keys) const {
  MaskRange<Value> seen = emitKeysOf(index, query, query, keys);
  // Without a bound on that side.
  if (isConstantIntValue(seen.begin, 0))
    return {seen.begin, seen.end};
  return {index.min(seen.begin, seen.end), seen.end};
}

MaskRange<Position> SequenceMask::getQueriesOf(PositionBuilder b,
                                               Position first, Position last,
                                               Position queries) const {
  MaskRange<Position> range{0, 0, queries, queries};
  auto queryBehind = [&](MaskSide side, Position key) {
    return b.min(b.max(mask.getQueryBehind(b, state, side, key), 0), queries);
  };
  if (mask.hasBound(MaskSide::End)) {
    range.begin = queryBehind(MaskSide::End, first);
    range.wholeBegin = queryBehind(MaskSide::End, last);
  }
  if (mask.hasBound(MaskSide::Begin)) {
    range.wholeEnd = queryBehind(MaskSide::Begin, first);
    range.end = queryBehind(MaskSide::Begin, last);
  }
  return range;
}

MaskRange<Value> SequenceMask::emitQueriesOf(IndexBuilder &index, Value first,
                                             Value last, Value queries) const {
  return emit(index, getQueriesOf(index, first, last, queries));
}

Value SequenceMask::emitBound(IndexBuilder &index, MaskSide side,
                              Value query) const {
  PositionBuilder b(index);
  return mask.hasBound(side) ? b.emit(mask.getBound(b, state, side, query))
                             : Value();
}

Value SequenceMask::emitPosition(IndexBuilder &index, Value query) const {
  PositionBuilder b(index);
  Position position = query;
  for (Position first : firstQueries)
    position = b.add(position, first);
  if (mask.getAlignment() == Alignment::BottomRight)
    position = b.add(position, b.sub(keys, queries));
  if (!offset.isKnown() || offset.getNumber() != 0) {
    // Far beyond, so that the sum does not overflow.
    constexpr int64_t far = int64_t(1) << 40;
    position = b.add(position, b.clamp(offset, -far, far));
    position = b.clamp(position, -kFarthestPosition, kFarthestPosition);
  }
  IndexBuilder narrow{index.b, index.b.getI32Type()};
  return narrow.cast(b.emit(position));
}

void SequenceMask::shift(IndexBuilder &index, Position query, Position key) {
  PositionBuilder b(index);
  firstQueries.push_back(query);
  state = mask.getShifted(b, state, query, key);
}

void SequenceMask::emitCast(IndexBuilder &index, IndexBuilder &narrow) {
  PositionBuilder b(index);
  constexpr int64_t most = int64_t(1) << 30;
  for (Position &number : state) {
    number = b.clamp(number, -most, most);
    if (!number.isKnown())
      number = narrow.cast(number.getValue());
  }
}

double varlen::countVisiblePairs(MaskAttrInterface mask, int64_t queries,
                                 int64_t keys, int64_t offset) {
  if (mask.isFull())
    return static_cast<double>(queries) * static_cast<double>(keys);
  PositionBuilder b;
  SequenceMask sequence(b, mask, queries, keys, offset);
  double pairs = 0;
  for (int64_t query = 0; query < queries; ++query) {
    MaskRange<Position> seen = sequence.getKeysOf(b, query, query, keys);
    int64_t count = seen.end.getNumber() - seen.begin.getNumber();
    pairs += static_cast<double>(std::max<int64_t>(count, 0));
  }
  return pairs;
}

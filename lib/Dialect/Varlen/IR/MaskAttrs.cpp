//===- MaskAttrs.cpp - Which keys a query sees ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds and offsets are any integers. What they add up to saturates at a
// distance beyond every row: it is exact wherever a row can tell, and nothing
// that is computed from it overflows.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/IR/DialectImplementation.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

/// Beyond all rows, by more than a tensor has.
static constexpr int64_t kFar = 2 * VARLEN_MAX_ROWS;

/// offset + bound, saturated.
static Position getDistance(PositionBuilder &b, Position offset,
                            int64_t bound) {
  using Limits = std::numeric_limits<int64_t>;
  // Where the sum would wrap around, the nearest one that does not is taken.
  offset = bound < 0 ? b.max(offset, Limits::min() - bound)
                     : b.min(offset, Limits::max() - bound);
  return b.clamp(b.add(offset, bound), -kFar, kFar);
}

/// The key that query 0 is at without an offset.
static Position getDiagonal(PositionBuilder &b, MaskAttrInterface mask,
                            Position queries, Position keys) {
  return mask.getAlignment() == Alignment::BottomRight ? b.sub(keys, queries)
                                                       : Position(0);
}

//===----------------------------------------------------------------------===//
// MaskAttr
//===----------------------------------------------------------------------===//

ArrayRef<StringLiteral> varlen::detail::getMaskKinds() {
  static constexpr StringLiteral kinds[] = {"full", "causal", "window"};
  return kinds;
}

Attribute MaskAttr::parse(AsmParser &parser, Type) {
  int64_t left = -1, right = -1;
  Alignment alignment = Alignment::BottomRight;
  StringRef kind;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&kind))
    return {};
  if (kind == "causal") {
    right = 0;
  } else if (kind == "window") {
    if (parser.parseEqual() || parser.parseLParen() ||
        parser.parseInteger(left) || parser.parseComma() ||
        parser.parseInteger(right) || parser.parseRParen())
      return {};
  } else if (kind != "full") {
    parser.emitError(loc, "expected full, causal or window = (left, right), "
                          "got ")
        << kind;
    return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return {};
    std::optional<Alignment> parsed = symbolizeAlignment(name);
    if (!parsed) {
      parser.emitError(loc, "expected bottom_right or top_left, got ") << name;
      return {};
    }
    alignment = *parsed;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<MaskAttr>(loc, parser.getContext(), left, right,
                                     alignment);
}

void MaskAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (isFull())
    printer << "full";
  else if (isCausal())
    printer << "causal";
  else
    printer << "window = (" << getLeft() << ", " << getRight() << ')';
  if (getAlignment() != Alignment::BottomRight)
    printer << ", " << stringifyAlignment(getAlignment());
  printer << '>';
}

LogicalResult MaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t left, int64_t right, Alignment) {
  if (left < -1 || right < -1)
    return emitError() << "expected window bounds >= -1 (-1 is open), got ("
                       << left << ", " << right << ')';
  return success();
}

bool MaskAttr::hasBound(MaskSide side) const {
  return (side == MaskSide::Begin ? getLeft() : getRight()) >= 0;
}

/// The bounds of query 0; those of another query are as far from it.
SmallVector<Position> MaskAttr::getState(PositionBuilder &b, Position queries,
                                         Position keys, Position offset) const {
  Position diagonal = getDiagonal(b, *this, queries, keys);
  SmallVector<Position> bounds(2);
  if (hasBound(MaskSide::Begin))
    bounds[0] = b.add(diagonal, getDistance(b, offset, -getLeft()));
  if (hasBound(MaskSide::End))
    bounds[1] = b.add(b.add(diagonal, getDistance(b, offset, getRight())), 1);
  return bounds;
}

SmallVector<Position> MaskAttr::getShifted(PositionBuilder &b,
                                           ArrayRef<Position> state,
                                           Position query, Position key) const {
  SmallVector<Position> bounds(state);
  for (MaskSide side : {MaskSide::Begin, MaskSide::End})
    if (hasBound(side))
      bounds[static_cast<size_t>(side)] =
          b.sub(getBound(b, state, side, query), key);
  return bounds;
}

Position MaskAttr::getBound(PositionBuilder &b, ArrayRef<Position> state,
                            MaskSide side, Position row) const {
  return b.add(row, state[static_cast<size_t>(side)]);
}

Position MaskAttr::getQueryBehind(PositionBuilder &b, ArrayRef<Position> state,
                                  MaskSide side, Position row) const {
  return b.add(b.sub(row, state[static_cast<size_t>(side)]), 1);
}

// The last of Lq queries sees keys from `Lk - 1 - left` on (bottom_right) or
// `Lq - 1 - left` on (top_left), the first one keys up to `Lk - Lq + right` or
// `right`: a side binds only if its bound is smaller than the longest sequence
// less one, in keys or in queries.
MaskAttrInterface MaskAttr::getWithin(std::optional<int64_t> queries,
                                      std::optional<int64_t> keys) const {
  auto open = [](int64_t bound, std::optional<int64_t> length) {
    return length && bound >= *length - 1 ? -1 : bound;
  };
  bool bottomRight = getAlignment() == Alignment::BottomRight;
  int64_t left = open(getLeft(), bottomRight ? keys : queries);
  int64_t right = open(getRight(), bottomRight ? queries : keys);
  // Without bounds there is nothing to align.
  return left < 0 && right < 0 ? getFull(getContext())
                               : get(getContext(), left, right, getAlignment());
}

//===----------------------------------------------------------------------===//
// ChunkMaskAttr
//===----------------------------------------------------------------------===//

LogicalResult
ChunkMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t size, Alignment) {
  if (size >= 1 && size <= kMaxChunk)
    return success();
  return emitError() << "expected a chunk of 1 to " << kMaxChunk
                     << " keys, got " << size;
}

bool ChunkMaskAttr::hasBound(MaskSide) const { return true; }

/// The first key of the chunk that query 0 is in, and how far into it.
SmallVector<Position> ChunkMaskAttr::getState(PositionBuilder &b,
                                              Position queries, Position keys,
                                              Position offset) const {
  Position diagonal = getDiagonal(b, *this, queries, keys);
  Position none[] = {0, b.add(diagonal, getDistance(b, offset, 0))};
  return getShifted(b, none, /*query=*/0, /*key=*/0);
}

SmallVector<Position> ChunkMaskAttr::getShifted(PositionBuilder &b,
                                                ArrayRef<Position> state,
                                                Position query,
                                                Position key) const {
  Position into = b.add(query, state[1]);
  Position chunk = b.mul(b.floorDiv(into, getSize()), getSize());
  return {b.sub(b.add(state[0], chunk), key), b.sub(into, chunk)};
}

Position ChunkMaskAttr::getBound(PositionBuilder &b, ArrayRef<Position> state,
                                 MaskSide side, Position row) const {
  Position into = b.add(row, state[1]);
  if (side == MaskSide::Begin)
    into = b.mul(b.floorDiv(into, getSize()), getSize());
  else
    into = b.add(into, 1);
  return b.add(state[0], into);
}

Position ChunkMaskAttr::getQueryBehind(PositionBuilder &b,
                                       ArrayRef<Position> state, MaskSide side,
                                       Position row) const {
  Position into = b.sub(row, state[0]);
  if (side == MaskSide::Begin)
    into = b.mul(b.add(b.floorDiv(into, getSize()), 1), getSize());
  return b.sub(into, state[1]);
}

// With one chunk, it is causal.
MaskAttrInterface ChunkMaskAttr::getWithin(std::optional<int64_t> queries,
                                           std::optional<int64_t> keys) const {
  std::optional<int64_t> positions =
      getAlignment() == Alignment::BottomRight ? keys : queries;
  if (!positions || *positions > getSize())
    return *this;
  return MaskAttr::get(getContext(), -1, 0, getAlignment())
      .getWithin(queries, keys);
}

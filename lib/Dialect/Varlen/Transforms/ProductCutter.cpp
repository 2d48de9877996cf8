//===- ProductCutter.cpp - Products that end at the edges of masks --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductCutter.h"

#include "varlen/Dialect/Varlen/Utils/Body.h"
#include "varlen/Dialect/Varlen/Utils/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::varlen;

/// Vectors of columns that are looked at together: fewer zeros are computed
/// beside narrow chunks, but their multipliers wait for loads.
static constexpr int64_t kBandVectors = 2;

/// The first column from `column` on whose limit lies behind a row.
Value ProductCutter::advance(Value column, Value limits, Value row) {
  return emitWhile(
             b, column,
             [&](ValueRange state) -> Value {
               // Read the last one again where there is none.
               Value last = at.sub(depth, 1);
               Value isMore = at.less(state.front(), depth);
               Value limit =
                   band.emitRow(b, limits, at.min(state.front(), last));
               return at.both(isMore, at.lessEqual(at.cast(limit), row));
             },
             [&](ValueRange state) { return Values{at.add(state.front(), 1)}; })
      .front();
}

/// A constant as an attribute.
static OpFoldResult foldConstant(OpFoldResult value) {
  auto number = dyn_cast<Value>(value);
  return number ? getAsOpFoldResult(number) : value;
}

/// By way of i32, through which bufferization does not look for bounds of
/// slices: that would take it most of its time.
Value ProductCutter::hideBounds(Value position) {
  return at.cast(IndexBuilder{b, b.getI32Type()}.cast(position));
}

/// Rounded outwards to multiples, as tiles have them; all of it where limits
/// may be anything. Without bounds, as by hideBounds.
ProductCutter::RowRange ProductCutter::round(Value begin, Value end,
                                             Value total, int64_t multiple) {
  IndexBuilder in{b, b.getI32Type()};
  Value zero = in.constant(0);
  begin = in.cast(begin);
  end = in.cast(end);
  total = in.cast(total);
  if (band.whole) {
    begin = in.select(band.whole, zero, begin);
    end = in.select(band.whole, total, end);
  }
  auto clamp = [&](Value value) { return in.min(in.max(value, zero), total); };
  return {at.cast(in.roundDown(clamp(begin), multiple)),
          at.cast(in.roundUp(clamp(end), multiple))};
}

/// The keys that some of the columns from `first` on see.
ProductCutter::RowRange ProductCutter::getKeysOf(Value first, int64_t count) {
  return round(band.emitRow(b, band.lo, first),
               band.emitRow(b, band.hi, at.add(first, count - 1)),
               role == Role::Result ? rows : depth,
               role == Role::Left ? depthStep : kGranule);
}

OpFoldResult ProductCutter::getLength(const RowRange &range) {
  IndexBuilder in{b, b.getI32Type()};
  return at.cast(in.sub(in.cast(range.end), in.cast(range.begin)));
}

Value ProductCutter::emitSum(Value row, Value column, int64_t columns,
                             const RowRange &range, Value result) {
  Value sum = slice(result, row, column, height, columns);
  if (initial)
    sum = linalg::FillOp::create(b, initial, sum).getResult(0);
  sum = emitProduct(row, column, columns, range, sum);
  if (score)
    sum = emitElements(score, row, column, columns, sum, sum);
  return sum;
}

Value ProductCutter::emitTile(Value row, Value column, int64_t columns,
                              const RowRange &range, Value result) {
  return insert(emitSum(row, column, columns, range, result), result, row,
                column);
}

/// Adds the products to a tile of the result.
Value ProductCutter::emitProduct(Value row, Value column, int64_t columns,
                                 const RowRange &range, Value sum) {
  OpFoldResult height = b.getIndexAttr(this->height), begin = range.begin,
               length = range.end == depth && isConstantIntValue(begin, 0)
                            ? getAsOpFoldResult(depth)
                            : getLength(range);
  Value lhs = op.getInputs()[0], rhs = op.getInputs()[1];
  lhs = isRowFirst ? slice(lhs, {row, begin}, {height, length})
                   : slice(lhs, {begin, row}, {length, height});
  rhs = slice(rhs, {begin, column}, {length, b.getIndexAttr(columns)});
  auto next = linalg::ContractOp::create(b, TypeRange{sum.getType()},
                                         ValueRange{lhs, rhs}, ValueRange{sum},
                                         op.getIndexingMapsAttr());
  next->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return next.getResult(0);
}

/// A part of a tile; the tile where that is all of it. Not by folding, which
/// would see a part that was put there before in place of the memory.
Value ProductCutter::slice(Value tile, SmallVector<OpFoldResult> offsets,
                           const SmallVector<OpFoldResult> &sizes) {
  SmallVector<OpFoldResult> ones(2, b.getIndexAttr(1));
  for (OpFoldResult &offset : offsets)
    offset = foldConstant(offset);
  auto part = tensor::ExtractSliceOp::create(b, tile, offsets, sizes, ones);
  if (part.getType() != tile.getType() || !part.getType().hasStaticShape())
    return part;
  part.erase();
  return tile;
}

/// Static rows and columns of a tile.
Value ProductCutter::slice(Value tile, OpFoldResult row, OpFoldResult column,
                           int64_t rows, int64_t columns) {
  return slice(tile, {row, column},
               {b.getIndexAttr(rows), b.getIndexAttr(columns)});
}

/// The tile with a part of it replaced.
Value ProductCutter::insert(Value part, Value tile, OpFoldResult row,
                            OpFoldResult column) {
  if (part.getType() == tile.getType())
    return part;
  SmallVector<OpFoldResult> ones(2, b.getIndexAttr(1)), sizes;
  for (int64_t size : cast<RankedTensorType>(part.getType()).getShape())
    sizes.push_back(b.getIndexAttr(size));
  return tensor::InsertSliceOp::create(
      b, part, tile,
      SmallVector<OpFoldResult>{foldConstant(row), foldConstant(column)}, sizes,
      ones);
}

ValueRange
ProductCutter::emitGranules(Value from, Value to, ValueRange state,
                            function_ref<Values(Value, ValueRange)> body) {
  return emitLoop(b, from, to, at.constant(height), state,
                  [&](Value row, ValueRange state) {
                    return body(hideBounds(row), state);
                  });
}

/// Rows that are keys are seen by columns that follow each other, the depth of
/// the product, of which neither the first nor the last one falls; rows that
/// are columns of scores see keys.
Value ProductCutter::emitLeft(Value column, Value result) {
  Value zero = at.constant(0);
  Values state = {result};
  if (isRowFirst) {
    // Nothing is looked for where limits may be anything.
    Value first = band.whole ? at.select(band.whole, depth, zero) : zero;
    state.append({first, first});
  }
  return emitGranules(zero, rows, state,
                      [&](Value row, ValueRange state) {
                        Values next;
                        RowRange range;
                        if (isRowFirst) {
                          Value last = at.add(row, height - 1);
                          next = {advance(state[1], band.hi, row),
                                  advance(state[2], band.lo, last)};
                          range = round(next[0], next[1], depth, depthStep);
                        } else {
                          range = getKeysOf(row, height);
                        }
                        next.insert(
                            next.begin(),
                            emitTile(row, column, width, range, state.front()));
                        return next;
                      })
      .front();
}

/// `op` for a part of its tiles that begins at `row` and has so many columns,
/// written to `init`; `cut` says what it reads of an input with rows.
Value ProductCutter::cloneAt(linalg::GenericOp op, Value row, Value column,
                             int64_t columns, Value init,
                             function_ref<Value(Value)> cut) {
  IRMapping values;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    Value input = operand->get();
    values.map(input,
               op.getMatchingIndexingMap(operand).isIdentity()
                   ? cut(input)
                   : slice(input, b.getIndexAttr(0), column, 1, columns));
  }
  values.map(op.getOutputs()[0], init);
  auto part = cast<linalg::GenericOp>(b.clone(*op, values));
  part->getResult(0).setType(cast<RankedTensorType>(init.getType()));
  moveIndices(b, part, {row, column});
  return part->getResult(0);
}

/// `op`, which is elementwise, for a tile of its result, which is written over
/// that of an input.
Value ProductCutter::emitElements(linalg::GenericOp op, Value row, Value column,
                                  int64_t columns, Value tile, Value sum) {
  return cloneAt(op, row, column, columns, tile, [&](Value input) {
    if (input == this->op->getResult(0))
      return sum;
    if (input == getOverwritten(op))
      return tile;
    return slice(input, row, column, height, columns);
  });
}

/// Two vectors of columns have a depth of their own before and behind the one
/// that both have. `state` is the tile that sums end up in.
Value ProductCutter::emitRight(Value column, Value state) {
  int64_t lanes = schedule.getLanes();
  bool isSplit = width == 2 * lanes;
  RowRange all = getKeysOf(column, width), first, second;
  Value next = column;
  if (isSplit) {
    next = at.add(column, lanes);
    first = getKeysOf(column, lanes);
    second = getKeysOf(next, lanes);
    all = {second.begin, at.max(second.begin, first.end)};
    first.end = at.max(first.begin, at.min(first.end, second.begin));
    second = {all.end, at.max(all.end, second.end)};
  }
  auto emitTile = [&](Value row, ValueRange state) {
    Value tile = slice(state.front(), row, column, height, width), sum = tile;
    if (end && initial)
      sum = tensor::EmptyOp::create(b, SmallVector<int64_t>{height, width},
                                    getElementTypeOrSelf(tile.getType()));
    else if (end)
      sum = slice(op.getOutputs()[0], row, column, height, width);
    if (initial)
      sum = linalg::FillOp::create(b, initial, sum).getResult(0);
    if (begin)
      sum = emitElements(begin, row, column, width, tile, Value());
    auto addVector = [&](Value column, int64_t place, const RowRange &range) {
      OpFoldResult zero = b.getIndexAttr(0), offset = b.getIndexAttr(place);
      Value part = slice(sum, zero, offset, height, lanes);
      part = emitProduct(row, column, lanes, range, part);
      sum = insert(part, sum, zero, offset);
    };
    if (isSplit)
      addVector(column, 0, first);
    sum = emitProduct(row, column, width, all, sum);
    if (isSplit)
      addVector(next, lanes, second);
    if (end)
      sum = emitElements(end, row, column, width, tile, sum);
    return Values{insert(sum, state.front(), row, column)};
  };
  return emitGranules(at.constant(0), rows, state, emitTile).front();
}

/// A granule of keys is computed for the vectors that see one of them.
Value ProductCutter::emitGranule(Value row, Value column, const RowRange &first,
                                 const RowRange &second, Value result) {
  RowRange whole = {at.constant(0), depth};
  int64_t lanes = schedule.getLanes();
  if (width != 2 * lanes)
    return emitTile(row, column, width, whole, result);
  Value isFirst = at.less(row, first.end);
  Value isBoth = at.both(isFirst, at.lessEqual(second.begin, row));
  auto emitBoth = [&] {
    return Values{emitTile(row, column, width, whole, result)};
  };
  auto emitOne = [&] {
    Value only = at.select(isFirst, column, at.add(column, lanes));
    return Values{emitTile(row, hideBounds(only), lanes, whole, result)};
  };
  return emitChoice(b, isBoth, emitBoth, emitOne).front();
}

Value ProductCutter::emitResult(Value column, Value result) {
  int64_t lanes = schedule.getLanes();
  RowRange keys = getKeysOf(column, width), first, second;
  if (width == 2 * lanes) {
    first = getKeysOf(column, lanes);
    second = getKeysOf(at.add(column, lanes), lanes);
  }
  return emitGranules(keys.begin, keys.end, result,
                      [&](Value row, ValueRange state) {
                        return Values{emitGranule(row, column, first, second,
                                                  state.front())};
                      })
      .front();
}

/// The larger ones of the maxima of the columns of a tile and those before,
/// written over these.
Value ProductCutter::emitMaxima(Value tile, Value before) {
  Value empty = tensor::EmptyOp::create(
      b, cast<RankedTensorType>(before.getType()).getShape(),
      getElementTypeOrSelf(before.getType()));
  Value low =
      linalg::FillOp::create(b, lowest.getInputs()[0], empty).getResult(0);
  Operation *next = mlir::clone(b, maximum, before.getType(), {tile, low});
  return emitElementwise(b, next->getResult(0), before,
                         [](ImplicitLocOpBuilder &inner, ValueRange x) {
                           return Values{
                               arith::MaxNumFOp::create(inner, x[1], x[0])};
                         })
      .getResult(0);
}

/// The loop over granules of keys that also computes their scores, masks them,
/// where one of the columns does not see all of them, and reduces them. Where
/// nobody reads more than a vector sees, that is all that is computed.
Values ProductCutter::emitMaximum(Value column, Value result, Value maxima) {
  int64_t lanes = schedule.getLanes();
  bool isSplit = width == 2 * lanes;
  RowRange first, second, whole = {at.constant(0), depth};
  if (isSplit) {
    first = getKeysOf(column, lanes);
    second = getKeysOf(at.add(column, lanes), lanes);
  }
  Value zero = at.constant(0);
  auto [begin, end] =
      band.emitRowsOfAll(b, column, at.add(column, width - 1),
                         IndexBuilder{b, b.getI32Type()}.cast(rows));
  RowRange seen = {at.cast(begin), at.cast(end)};
  OpFoldResult top = b.getIndexAttr(0);
  auto statistic = [&](Value tile) -> Value {
    return slice(tile, top, column, 1, width);
  };
  Value lo = statistic(mask.getInputs()[1]),
        hi = statistic(mask.getInputs()[2]);
  auto emitAll = [&](Value row, Value tile, Value before) {
    Value isSeen = at.both(at.lessEqual(seen.begin, row),
                           at.lessEqual(at.add(row, height), seen.end));
    auto emitMasked = [&] {
      Value granule = slice(tile, row, column, height, width);
      granule = emitMaskOfRows(b, mask, granule, lo, hi, row);
      return Values{insert(granule, tile, row, column)};
    };
    tile =
        emitChoice(b, isSeen, [&] { return Values{tile}; }, emitMasked).front();
    Value granule = slice(tile, row, column, height, width);
    return Values{tile, emitMaxima(granule, before)};
  };
  auto emitVector = [&](Value row, Value isFirst, ValueRange state) {
    Value place = at.select(isFirst, zero, at.constant(lanes));
    Value vector = hideBounds(at.add(column, place));
    auto cut = [&](Value limits) {
      return slice(limits, top, place, 1, lanes);
    };
    Value tile = emitSum(row, vector, lanes, whole, state[0]);
    tile = emitMaskOfRows(b, mask, tile, cut(lo), cut(hi), row);
    Value next = emitMaxima(tile, cut(state[1]));
    return Values{insert(tile, state[0], row, vector),
                  insert(next, state[1], top, place)};
  };
  auto emitRows = [&](Value row, ValueRange state) {
    if (!isSplit || !readInBand.contains(mask->getResult(0)))
      return emitAll(row, emitGranule(row, column, first, second, state[0]),
                     state[1]);
    Value isFirst = at.less(row, first.end);
    Value isBoth = at.both(isFirst, at.lessEqual(second.begin, row));
    auto emitBoth = [&] {
      return emitAll(row, emitTile(row, column, width, whole, state[0]),
                     state[1]);
    };
    return Values(emitChoice(b, isBoth, emitBoth,
                             [&] { return emitVector(row, isFirst, state); }));
  };
  Values state = {result, statistic(maxima)};
  ValueRange results = emitGranules(zero, rows, state, emitRows);
  return {results[0], insert(results[1], maxima, top, column)};
}

void ProductCutter::cut() {
  Value result = op.getOutputs().front();
  rows = emitExtent(b, result, 0);
  depth = emitExtent(b, op.getInputs()[1], 0);
  auto fill = result.getDefiningOp<linalg::FillOp>();
  if (role == Role::Right) {
    findNeighbours();
    cutElements();
  }
  if (role != Role::Left && fill && isReadBy(fill.getResult(0), op)) {
    // What is not computed is not read either.
    initial = fill.getInputs().front();
    result = fill.getOutputs().front();
    fill->getResult(0).replaceAllUsesWith(result);
  }
  if (end || begin)
    result = getOverwritten(end ? end : begin);
  int64_t columns = cast<RankedTensorType>(result.getType()).getDimSize(1);
  width = role == Role::Left ? schedule.getPanelSize()
                             : kBandVectors * schedule.getLanes();
  // What has an edge of its own is as many rows as registers have sums of.
  if (role == Role::Left && columns % width == 0)
    height = schedule.getRows();
  if (columns % width != 0)
    width = columns;
  Values state = {result};
  bool isReduced = findMaximum();
  if (isReduced) {
    auto type = cast<RankedTensorType>(lowest.getResult(0).getType());
    Value empty =
        tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
    // Behind the product.
    Operation *constant = lowest.getInputs()[0].getDefiningOp();
    auto begin =
        linalg::FillOp::create(b, b.clone(*constant)->getResult(0), empty);
    lowest->replaceAllUsesWith(begin);
    lowest.erase();
    lowest = begin;
    state.push_back(begin.getResult(0));
  }
  auto emitColumns = [&](Value column, ValueRange state) {
    Value tile = state.front();
    if (isReduced)
      return emitMaximum(column, tile, state[1]);
    switch (role) {
    case Role::Left:
      return Values{emitLeft(column, tile)};
    case Role::Right:
      return Values{emitRight(column, tile)};
    case Role::Result:
      return Values{emitResult(column, tile)};
    }
    llvm_unreachable("a product has three operands");
  };
  // Without a loop that runs once: bufferization would compare its slices.
  Values results =
      columns == width
          ? emitColumns(at.constant(0), state)
          : Values(emitLoop(b, at.constant(0), at.constant(columns),
                            at.constant(width), state, emitColumns));
  if (end) {
    end->getResult(0).replaceAllUsesWith(results[0]);
    end.erase();
  }
  op->getResult(0).replaceAllUsesWith(results[0]);
  if (isReduced) {
    mask->getResult(0).replaceAllUsesWith(results[0]);
    maximum->getResult(0).replaceAllUsesWith(results[1]);
    maximum.erase();
    mask.erase();
    if (score)
      score.erase();
  }
  op.erase();
  if (begin) {
    begin->getResult(0).replaceAllUsesWith(results[0]);
    begin.erase();
  }
  if (initial)
    fill.erase();
}

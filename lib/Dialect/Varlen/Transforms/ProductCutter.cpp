//===- ProductCutter.cpp - Products that end at the edges of masks --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductCutter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

/// Vectors of columns that are looked at together: fewer zeros are computed
/// beside narrow chunks, but their multipliers wait for loads.
static constexpr int64_t kBandVectors = 2;

/// The row of the score tile at which a column's limit lies.
Value ProductCutter::getRow(Value limits, Value column) {
  Value key =
      tensor::ExtractOp::create(b, limits, ValueRange{at.constant(0), column});
  return arith::SubIOp::create(b, key, band.firstKey);
}

/// The first column from `column` on whose limit lies behind a row.
Value ProductCutter::advance(Value column, Value limits, Value row) {
  return emitWhile(
             b, column,
             [&](ValueRange state) -> Value {
               // Read the last one again where there is none.
               Value last = at.sub(depth, at.constant(1));
               Value isMore = at.less(state.front(), depth);
               Value limit = getRow(limits, at.min(state.front(), last));
               return at.both(isMore, at.lessEqual(at.cast(limit), row));
             },
             [&](ValueRange state) { return Values{at.add(state.front(), 1)}; })
      .front();
}

/// Rounded outwards to multiples, as tiles have them; all of it where limits
/// may be anything. In i32, through which bufferization does not look for
/// bounds of slices, which would take it most of its time.
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
  return round(getRow(band.lo, first),
               getRow(band.hi, at.add(first, count - 1)),
               role == Role::Result ? rows : depth,
               role == Role::Left ? depthStep : kGranule);
}

OpFoldResult ProductCutter::getLength(const RowRange &range) {
  IndexBuilder in{b, b.getI32Type()};
  return at.cast(in.sub(in.cast(range.end), in.cast(range.begin)));
}

Value ProductCutter::emitTile(Value row, Value column, int64_t columns,
                              const RowRange &range, Value result) {
  OpFoldResult one = b.getIndexAttr(1), height = b.getIndexAttr(this->height),
               width = b.getIndexAttr(columns), begin = range.begin,
               length = getLength(range);
  if (range.end == depth && isConstantIntValue(range.begin, 0)) {
    begin = b.getIndexAttr(0);
    length = getAsOpFoldResult(depth);
  }
  SmallVector<OpFoldResult> ones = {one, one};
  auto slice = [&](Value tensor, OpFoldResult first, OpFoldResult second,
                   OpFoldResult size, OpFoldResult otherSize) -> Value {
    return tensor::ExtractSliceOp::create(
        b, tensor, SmallVector<OpFoldResult>{first, second},
        SmallVector<OpFoldResult>{size, otherSize}, ones);
  };
  Value lhs = op.getInputs()[0], rhs = op.getInputs()[1];
  lhs = isRowFirst ? slice(lhs, row, begin, height, length)
                   : slice(lhs, begin, row, length, height);
  rhs = slice(rhs, begin, column, length, width);
  Value sum = slice(result, row, column, height, width);
  if (initial)
    sum = linalg::FillOp::create(b, initial, sum).getResult(0);
  auto next = linalg::ContractOp::create(b, TypeRange{sum.getType()},
                                         ValueRange{lhs, rhs}, ValueRange{sum},
                                         op.getIndexingMapsAttr());
  if (op->hasAttr(kAddLastAttrName))
    next->setAttr(kAddLastAttrName, b.getUnitAttr());
  return tensor::InsertSliceOp::create(
      b, next.getResult(0), result, SmallVector<OpFoldResult>{row, column},
      SmallVector<OpFoldResult>{height, width}, ones);
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
  return emitLoop(b, zero, rows, at.constant(height), state,
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
                    next.insert(next.begin(), emitTile(row, column, width,
                                                       range, state.front()));
                    return next;
                  })
      .front();
}

/// Two vectors of columns have a depth of their own before and behind the one
/// that both have.
Value ProductCutter::emitRight(Value column, Value result) {
  int64_t lanes = schedule.getLanes();
  bool isSplit = width == 2 * lanes;
  RowRange all = getKeysOf(column, width), first, second;
  Value next = column;
  if (isSplit) {
    next = at.add(column, lanes);
    first = getKeysOf(column, lanes);
    second = getKeysOf(next, lanes);
    all = {second.begin, at.max(second.begin, first.end)};
    first.end = at.min(first.end, second.begin);
    second.begin = all.end;
  }
  return emitLoop(b, at.constant(0), rows, at.constant(kGranule), result,
                  [&](Value row, ValueRange state) {
                    Value tile = state.front();
                    auto emit = [&](Value column, int64_t columns,
                                    const RowRange &range) {
                      auto compute = [&] {
                        return Values{
                            emitTile(row, column, columns, range, tile)};
                      };
                      tile = emitChoice(b, at.less(range.begin, range.end),
                                        compute, [&] { return Values{tile}; })
                                 .front();
                    };
                    if (isSplit)
                      emit(column, lanes, first);
                    emit(column, width, all);
                    if (isSplit)
                      emit(next, lanes, second);
                    return Values{tile};
                  })
      .front();
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
    return Values{emitTile(row, only, lanes, whole, result)};
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
  return emitLoop(b, keys.begin, keys.end, at.constant(kGranule), result,
                  [&](Value row, ValueRange state) {
                    return Values{
                        emitGranule(row, column, first, second, state.front())};
                  })
      .front();
}

/// The larger ones of two rows of numbers, written over the second one.
Value ProductCutter::emitLarger(Value lhs, Value rhs) {
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(2));
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, TypeRange{rhs.getType()}, lhs, rhs, maps, loops,
             [&](OpBuilder &nested, Location loc, ValueRange args) {
               linalg::YieldOp::create(
                   nested, loc,
                   arith::MaxNumFOp::create(nested, loc, args[1], args[0])
                       .getResult());
             })
      .getResult(0);
}

/// The loop over granules of keys that also masks them, where one of the
/// columns does not see all of them, and reduces them.
Values ProductCutter::emitMaximum(Value column, Value result, Value maximum) {
  int64_t lanes = schedule.getLanes();
  RowRange first, second;
  if (width == 2 * lanes) {
    first = getKeysOf(column, lanes);
    second = getKeysOf(at.add(column, lanes), lanes);
  }
  Value zero = at.constant(0);
  RowRange seen = {at.cast(getRow(band.lo, at.add(column, width - 1))),
                   at.cast(getRow(band.hi, column))};
  if (band.whole) {
    seen.begin = at.select(band.whole, zero, seen.begin);
    seen.end = at.select(band.whole, rows, seen.end);
  }
  OpFoldResult one = b.getIndexAttr(1), height = b.getIndexAttr(kGranule),
               columns = b.getIndexAttr(width);
  SmallVector<OpFoldResult> ones = {one, one};
  auto statistic = [&](Value tile) -> Value {
    return tensor::ExtractSliceOp::create(
        b, tile, SmallVector<OpFoldResult>{b.getIndexAttr(0), column},
        SmallVector<OpFoldResult>{one, columns}, ones);
  };
  Value lo = statistic(mask.getInputs()[1]),
        hi = statistic(mask.getInputs()[2]);
  Values state = {result, statistic(maximum)};
  ValueRange results = emitLoop(
      b, zero, rows, at.constant(kGranule), state,
      [&](Value row, ValueRange state) {
        SmallVector<OpFoldResult> offsets = {row, column},
                                  sizes = {height, columns};
        Value tile = emitGranule(row, column, first, second, state[0]);
        Value isSeen = at.both(at.lessEqual(seen.begin, row),
                               at.lessEqual(at.add(row, kGranule), seen.end));
        auto emitMasked = [&] {
          Value granule =
              tensor::ExtractSliceOp::create(b, tile, offsets, sizes, ones);
          granule = emitMaskOfRows(b, mask, granule, lo, hi, row);
          return Values{tensor::InsertSliceOp::create(b, granule, tile, offsets,
                                                      sizes, ones)};
        };
        tile = emitChoice(
                   b, isSeen, [&] { return Values{tile}; }, emitMasked)
                   .front();
        Value granule =
            tensor::ExtractSliceOp::create(b, tile, offsets, sizes, ones);
        Value before = state[1];
        Value empty = tensor::EmptyOp::create(
            b, cast<RankedTensorType>(before.getType()).getShape(),
            getElementTypeOrSelf(before.getType()));
        Value begin = linalg::FillOp::create(b, lowest.getInputs()[0], empty)
                          .getResult(0);
        auto next = cast<linalg::GenericOp>(b.clone(*this->maximum));
        next.getInputsMutable()[0].set(granule);
        next.getOutputsMutable()[0].set(begin);
        next->getResult(0).setType(cast<RankedTensorType>(before.getType()));
        return Values{tile, emitLarger(next->getResult(0), before)};
      });
  Value next = tensor::InsertSliceOp::create(
      b, results[1], maximum,
      SmallVector<OpFoldResult>{b.getIndexAttr(0), column},
      SmallVector<OpFoldResult>{one, columns}, ones);
  return {results[0], next};
}

void ProductCutter::cut() {
  Value result = op.getOutputs().front();
  rows = b.createOrFold<tensor::DimOp>(result, at.constant(0));
  depth = b.createOrFold<tensor::DimOp>(op.getInputs()[1], at.constant(0));
  auto fill = result.getDefiningOp<linalg::FillOp>();
  auto isExtent = [&](Operation *user) {
    return user == op || isa<tensor::DimOp>(user);
  };
  if (role == Role::Result && fill &&
      llvm::all_of(fill->getUsers(), isExtent)) {
    // What is not computed is not read either.
    initial = fill.getInputs().front();
    result = fill.getOutputs().front();
    fill->getResult(0).replaceAllUsesWith(result);
  }
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
  ValueRange results =
      emitLoop(b, at.constant(0), at.constant(columns), at.constant(width),
               state, [&](Value column, ValueRange state) {
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
               });
  op->getResult(0).replaceAllUsesWith(results[0]);
  if (isReduced) {
    mask->getResult(0).replaceAllUsesWith(results[0]);
    maximum->getResult(0).replaceAllUsesWith(results[1]);
    maximum.erase();
    mask.erase();
  }
  op.erase();
  if (initial)
    fill.erase();
}

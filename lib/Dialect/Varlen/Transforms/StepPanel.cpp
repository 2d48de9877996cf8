//===- StepPanel.cpp - A step of a panel of queries on a CPU --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepPanel.h"

#include "StepBuilder.h"
#include "varlen/Linalg/Attributes.h"
#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

/// Vectors of queries that are looked at together: fewer zeros are computed
/// beside narrow chunks, but their multipliers wait for loads.
static constexpr int64_t kGroupVectors = 2;

static RankedTensorType typeOf(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

//===----------------------------------------------------------------------===//
// The keys that queries see
//===----------------------------------------------------------------------===//

/// The row of the score tile at which a limit of a query lies, an i32.
Value StepPanel::getLimit(Value limits, Value query) {
  Value key = tensor::ExtractOp::create(b, limits,
                                        ValueRange{index.constant(0), query});
  return arith::SubIOp::create(b, key, k0);
}

/// By way of i32, through which bufferization does not look for bounds of
/// slices: that would take it most of its time.
Value StepPanel::hideBounds(Value position) {
  return index.cast(IndexBuilder{b, b.getI32Type()}.cast(position));
}

/// Rounded outwards to multiples; all of `total` where limits are not read.
/// Without bounds, as by hideBounds.
StepPanel::KeyRange StepPanel::round(Value begin, Value end, Value total,
                                     int64_t multiple) {
  IndexBuilder in{b, b.getI32Type()};
  Value zero = in.constant(0);
  total = in.cast(total);
  begin = in.select(isAllSeen, zero, in.cast(begin));
  end = in.select(isAllSeen, total, in.cast(end));
  auto clamp = [&](Value value) { return in.min(in.max(value, zero), total); };
  return {index.cast(in.roundDown(clamp(begin), multiple)),
          index.cast(in.roundUp(clamp(end), multiple))};
}

StepPanel::KeyRange StepPanel::getKeysOf(Value first, int64_t count,
                                         int64_t multiple) {
  return round(getLimit(lo, first), getLimit(hi, index.add(first, count - 1)),
               numKeys, multiple);
}

Value StepPanel::getLength(const KeyRange &range) {
  IndexBuilder in{b, b.getI32Type()};
  return index.cast(in.sub(in.cast(range.end), in.cast(range.begin)));
}

/// The first query from `query` on whose limit lies behind a row.
Value StepPanel::advance(Value query, Value limits, Value row) {
  Value end = index.constant(numQueries);
  return emitWhile(
             b, query,
             [&](ValueRange state) -> Value {
               // Read the last one again where there is none.
               Value read = index.min(state.front(), numQueries - 1);
               Value limit = index.cast(getLimit(limits, read));
               return index.both(index.less(state.front(), end),
                                 index.lessEqual(limit, row));
             },
             [&](ValueRange state) {
               return Values{index.add(state.front(), 1)};
             })
      .front();
}

/// The number of a key `row` keys behind `key`.
Value StepPanel::addKeys(Value key, Value row) {
  IndexBuilder in{b, b.getI32Type()};
  return in.add(key, in.cast(row));
}

//===----------------------------------------------------------------------===//
// Register blocks
//===----------------------------------------------------------------------===//

Values
StepPanel::forEachGroup(ValueRange state,
                        function_ref<Values(const Group &, ValueRange)> body) {
  int64_t lanes = schedule.getLanes(), width = kGroupVectors * lanes;
  bool isSplit = numQueries % width == 0;
  if (!isSplit)
    width = numQueries;
  auto emit = [&](Value column, ValueRange state) {
    Group group;
    group.column = column;
    group.width = width;
    group.keys = getKeysOf(column, width);
    if (!isSplit)
      group.vectors.push_back(group);
    else
      for (int64_t vector = 0; vector < kGroupVectors; ++vector) {
        Value first = index.add(column, vector * lanes);
        group.vectors.push_back({first, lanes, getKeysOf(first, lanes)});
      }
    return body(group, state);
  };
  // Without a loop that runs once: bufferization would compare its slices.
  Value zero = index.constant(0);
  if (width == numQueries)
    return emit(zero, state);
  return Values(emitLoop(b, zero, index.constant(numQueries),
                         index.constant(width), state, emit));
}

Values StepPanel::forEachRegisterBlock(
    ValueRange state,
    function_ref<Values(const RegisterBlock &, ValueRange)> body) {
  return forEachGroup(state, [&](const Group &group, ValueRange state) {
    return Values(emitLoop(b, group.keys.begin, group.keys.end,
                           index.constant(kRegisterBlock), state,
                           [&](Value row, ValueRange state) {
                             return body({group, hideBounds(row)}, state);
                           }));
  });
}

Values StepPanel::forSeeing(const RegisterBlock &at,
                            function_ref<Values(const Queries &)> body) {
  const Group &group = at.group;
  if (group.vectors.size() == 1)
    return body(group);
  const Queries &first = group.vectors[0], &second = group.vectors[1];
  Value isFirst = index.less(at.row, first.keys.end);
  Value isBoth =
      index.both(isFirst, index.lessEqual(second.keys.begin, at.row));
  return Values(emitChoice(
      b, isBoth, [&] { return body(group); },
      [&] {
        Queries vector = first;
        vector.column =
            hideBounds(index.select(isFirst, first.column, second.column));
        return body(vector);
      }));
}

Value StepPanel::isSeen(const RegisterBlock &at) {
  return index.both(
      index.lessEqual(seenBegin, at.row),
      index.lessEqual(index.add(at.row, kRegisterBlock), seenEnd));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Adds the product of a factor and of rows to `sum`; `lhsDims` are the loops
/// (rows, columns, depth) of the left factor.
static Value emitProduct(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                         Value sum, ArrayRef<unsigned> lhsDims) {
  return emitContract(b, lhs, rhs, sum, lhsDims, {2, 1});
}

/// Sums that go on from step to step are loaded once they are added to.
static Value addLast(Value sum) {
  Operation *op = sum.getDefiningOp();
  op->setAttr(kAddLastAttrName, UnitAttr::get(op->getContext()));
  return sum;
}

Value StepPanel::forEachRow(
    int64_t count, int64_t height, Value state,
    function_ref<Value(Value row, int64_t height, Value)> body) {
  int64_t whole = count / height * height;
  if (whole != 0)
    state =
        emitLoop(b, index.constant(0), index.constant(whole),
                 index.constant(height), state,
                 [&](Value row, ValueRange state) {
                   return Values{body(hideBounds(row), height, state.front())};
                 })
            .front();
  if (whole != count)
    state = body(index.constant(whole), count - whole, state);
  return state;
}

Value StepPanel::forEachColumns(
    Value sums,
    function_ref<Value(Value column, int64_t width, int64_t height, Value)>
        body) {
  int64_t columns = typeOf(sums).getDimSize(1), width = schedule.getPanelSize(),
          height = schedule.getRows();
  if (columns % width != 0) {
    width = columns;
    height = kRegisterBlock;
  }
  Value zero = index.constant(0);
  if (width == columns)
    return body(zero, width, height, sums);
  return emitLoop(b, zero, index.constant(columns), index.constant(width), sums,
                  [&](Value column, ValueRange state) {
                    return Values{body(column, width, height, state.front())};
                  })
      .front();
}

Value StepPanel::addToKeys(Value scores, Value queries, Value sums) {
  auto addColumns = [&](Value column, int64_t width, int64_t height,
                        Value sums) -> Value {
    Value zero = index.constant(0), all = index.constant(numQueries);
    // Nothing is looked for where limits are not read.
    Value first = index.select(isAllSeen, all, zero);
    auto addRows = [&](Value position, ValueRange state) {
      Value row = hideBounds(position);
      Value begin = advance(state[1], hi, row),
            end = advance(state[2], lo, index.add(row, height - 1));
      KeyRange seeing = round(begin, end, all, getDepthStep());
      OpFoldResult depth = getLength(seeing), rows = b.getIndexAttr(height),
                   columns = b.getIndexAttr(width);
      Value sum = slice(state[0], {row, column}, {rows, columns});
      sum = addLast(
          emitProduct(b, slice(scores, {row, seeing.begin}, {rows, depth}),
                      slice(queries, {seeing.begin, column}, {depth, columns}),
                      sum, {0, 2}));
      return Values{insert(sum, state[0], {row, column}), begin, end};
    };
    return emitLoop(b, zero, numKeys, index.constant(height),
                    {sums, first, first}, addRows)
        .front();
  };
  return forEachColumns(sums, addColumns);
}

Value StepPanel::addToQueries(Value scores, Value keys, Value sums) {
  auto addColumns = [&](Value column, int64_t width, int64_t height,
                        Value sums) -> Value {
    auto addRows = [&](Value row, int64_t height, Value sums) {
      KeyRange seen = getKeysOf(row, height, getDepthStep());
      OpFoldResult depth = getLength(seen), rows = b.getIndexAttr(height),
                   columns = b.getIndexAttr(width);
      Value sum = slice(sums, {row, column}, {rows, columns});
      sum = addLast(emitProduct(
          b, slice(scores, {seen.begin, row}, {depth, rows}),
          slice(keys, {seen.begin, column}, {depth, columns}), sum, {2, 0}));
      return insert(sum, sums, {row, column});
    };
    return forEachRow(numQueries, height, sums, addRows);
  };
  return forEachColumns(sums, addColumns);
}

Value StepPanel::forEachRows(Value tile, const Group &group,
                             function_ref<Value(Value row, Value part)> body) {
  return forEachRow(typeOf(tile).getDimSize(0), kRegisterBlock, tile,
                    [&](Value row, int64_t height, Value tile) {
                      Value part = slice(tile, {row, group.column},
                                         {b.getIndexAttr(height),
                                          b.getIndexAttr(group.width)});
                      return insert(body(row, part), tile, {row, group.column});
                    });
}

Value StepPanel::addGroup(const Group &group, Value values, Value row,
                          Value scores, Value sum) {
  OpFoldResult rows = b.getIndexAttr(typeOf(sum).getDimSize(0));
  auto add = [&](const Queries &queries, const KeyRange &keys, Value sum) {
    OpFoldResult depth = getLength(keys);
    return emitProduct(b, slice(values, {keys.begin, row}, {depth, rows}),
                       slice(scores, {keys.begin, queries.column},
                             {depth, b.getIndexAttr(queries.width)}),
                       sum, {2, 0});
  };
  if (group.vectors.size() == 1)
    return add(group, group.keys, sum);
  const Queries &first = group.vectors[0], &second = group.vectors[1];
  auto addVector = [&](const Queries &queries, const KeyRange &keys,
                       int64_t column) {
    OpFoldResult zero = b.getIndexAttr(0), place = b.getIndexAttr(column);
    Value part =
        slice(sum, {zero, place}, {rows, b.getIndexAttr(queries.width)});
    sum = insert(add(queries, keys, part), sum, {zero, place});
  };
  KeyRange both = {second.keys.begin,
                   index.max(second.keys.begin, first.keys.end)};
  KeyRange before = {
      first.keys.begin,
      index.max(first.keys.begin, index.min(first.keys.end, both.begin))};
  KeyRange behind = {both.end, index.max(both.end, second.keys.end)};
  addVector(first, before, 0);
  sum = add(group, both, sum);
  addVector(second, behind, first.width);
  return sum;
}

//===----------------------------------------------------------------------===//
// Parts of tiles
//===----------------------------------------------------------------------===//

/// Constants as attributes.
static SmallVector<OpFoldResult> fold(ArrayRef<OpFoldResult> values) {
  return llvm::map_to_vector(values, [](OpFoldResult value) {
    auto number = dyn_cast<Value>(value);
    return number ? getAsOpFoldResult(number) : value;
  });
}

// Not by folding, which would see a part that was put there before in place of
// the memory.
Value StepPanel::slice(Value tile, ArrayRef<OpFoldResult> offsets,
                       ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> ones(2, b.getIndexAttr(1));
  auto part =
      tensor::ExtractSliceOp::create(b, tile, fold(offsets), fold(sizes), ones);
  if (part.getType() != tile.getType() || !part.getType().hasStaticShape())
    return part;
  part.erase();
  return tile;
}

Value StepPanel::sliceRows(Value tile, Value row, int64_t count) {
  return slice(tile, {row, b.getIndexAttr(0)},
               {b.getIndexAttr(count), getExtents(b, tile)[1]});
}

Value StepPanel::sliceColumns(Value tile, const Queries &queries) {
  return slice(tile, {b.getIndexAttr(0), queries.column},
               {getExtents(b, tile)[0], b.getIndexAttr(queries.width)});
}

Value StepPanel::sliceSeen(Value scores, const Queries &queries) {
  return slice(scores, {queries.keys.begin, queries.column},
               {getLength(queries.keys), b.getIndexAttr(queries.width)});
}

Value StepPanel::insertSeen(Value part, Value scores, const Queries &queries) {
  return insert(part, scores, {queries.keys.begin, queries.column});
}

Value StepPanel::sliceRegisterBlock(Value scores, Value row,
                                    const Queries &queries) {
  return slice(scores, {row, queries.column},
               {b.getIndexAttr(kRegisterBlock), b.getIndexAttr(queries.width)});
}

Value StepPanel::insert(Value part, Value tile,
                        ArrayRef<OpFoldResult> offsets) {
  if (part.getType() == tile.getType() && typeOf(part).hasStaticShape())
    return part;
  SmallVector<OpFoldResult> ones(2, b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, part, tile, fold(offsets),
                                       getExtents(b, part), ones);
}

Value StepPanel::insertColumns(Value part, Value tile, const Queries &queries) {
  return insert(part, tile, {b.getIndexAttr(0), queries.column});
}

//===- ScoreInputs.cpp - What score regions read of queries ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreInputs.h"

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

ScoreInputs::ScoreInputs(QueryPanels &panels, StepOpInterface step)
    : p(panels), step(step), score(step.getScoreBody()) {}

bool ScoreInputs::isRead(unsigned capture) {
  return visibilityReadsCapture(score, capture);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SmallVector<Value>
ScoreInputs::allocate(OpFoldResult numPanels,
                      function_ref<PanelBuffer(Type)> allocateNumbers) {
  position.reset();
  if (varlen::readsPositions(score))
    position = allocateNumbers(p.b.getI32Type());
  auto allocateRow = [&](Value) { return allocateNumbers(p.b.getI64Type()); };
  rows = llvm::map_to_vector(step.getTables(), allocateRow);
  gradientRows = llvm::map_to_vector(step.getTableGradients(), allocateRow);
  ranges = {};
  unsigned numCaptures = step.getCaptures().size();
  if (llvm::any_of(llvm::seq(numCaptures),
                   [&](unsigned capture) { return isRead(capture); })) {
    auto [count, extent] = decomposeMixedValues({numPanels});
    ranges = p.allocate({count.front(), 2 * numCaptures}, p.compute, extent);
  }
  SmallVector<Value> memory;
  forEachBuffer([&](Value &buffer) { memory.push_back(buffer); });
  return memory;
}

void ScoreInputs::forEachBuffer(function_ref<void(Value &)> body) {
  if (position)
    body(position->memory);
  for (PanelBuffer &buffer : llvm::concat<PanelBuffer>(rows, gradientRows))
    body(buffer.memory);
  if (ranges)
    body(ranges);
}

void ScoreInputs::use(ValueRange memory, ArrayRef<PanelBuffer> captures) {
  forEachBuffer([&](Value &buffer) {
    buffer = memory.front();
    memory = memory.drop_front();
  });
  this->captures = llvm::to_vector(captures);
}

void ScoreInputs::emitViews() {
  auto emit = [&](ValueRange memory, ArrayRef<BlockArgument> tables) {
    SmallVector<Value> views;
    for (auto [table, argument] : llvm::zip_equal(memory, tables))
      views.push_back(
          emitTableView(p.index, table, argument, p.tile.kRow, p.tile.kRows));
    return views;
  };
  views = emit(step.getTables(), step.getTableArguments());
  gradientViews = emit(step.getTableGradients(), step.getGradientTables());
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

void ScoreInputs::store(const Panel &at, Value lane) {
  if (isEmpty())
    return;
  IndexBuilder &index = p.index;
  const CPUTileBuilder::WorkTile &tile = p.tile;
  Value pair = index.add(at.first, lane), last = p.lastPair();
  Value own = p.isKQ() ? index.min(pair, last) : pair;
  if (position)
    p.storeNumber(tile.mask.emitPosition(index, tile.pairs.query(index, own)),
                  *position, at, lane);
  auto rowOf = [&](Value table) {
    return emitTableRow(index, emitTableStrides(index, table),
                        tile.pairs.head(index, own),
                        tile.pairs.row(index, own));
  };
  for (auto [table, buffer] : llvm::zip_equal(step.getTables(), rows))
    p.storeNumber(rowOf(table), buffer, at, lane);
  if (gradientRows.empty())
    return;
  Value none =
      arith::ConstantOp::create(p.b, p.b.getI64IntegerAttr(kNoTableRow));
  for (auto [table, buffer] :
       llvm::zip_equal(step.getTableGradients(), gradientRows))
    p.storeNumber(index.select(index.lessEqual(pair, last), rowOf(table), none),
                  buffer, at, lane);
}

//===----------------------------------------------------------------------===//
// Hidden blocks
//===----------------------------------------------------------------------===//

/// Of both: NaN if something is NaN.
static NumberRange unite(ImplicitLocOpBuilder &b, const NumberRange &x,
                         const NumberRange &y) {
  return {arith::MinimumFOp::create(b, x.low, y.low),
          arith::MaximumFOp::create(b, x.high, y.high)};
}

void ScoreInputs::storeRanges(const Panel &at) {
  if (!ranges)
    return;
  ImplicitLocOpBuilder &b = p.b;
  for (auto [capture, buffer] : llvm::enumerate(captures)) {
    if (!isRead(capture))
      continue;
    NumberRange range =
        emitCaptureRange(b, at.rows, [&, &buffer = buffer](Value lane) {
          return p.loadNumber(buffer, at, lane);
        });
    auto store = [&](Value bound, int64_t column) {
      memref::StoreOp::create(b, bound, ranges,
                              ValueRange{at.number, p.index.constant(column)});
    };
    store(range.low, 2 * capture);
    store(range.high, 2 * capture + 1);
  }
}

SmallVector<NumberRange> ScoreInputs::loadRanges(Value number) {
  SmallVector<NumberRange> loaded(step.getCaptures().size());
  auto load = [&](int64_t column) -> Value {
    return memref::LoadOp::create(p.b, ranges,
                                  ValueRange{number, p.index.constant(column)});
  };
  for (auto [capture, range] : llvm::enumerate(loaded))
    if (isRead(capture))
      range = {load(2 * capture), load(2 * capture + 1)};
  return loaded;
}

SmallVector<NumberRange> ScoreInputs::uniteRanges(Value numPanels) {
  SmallVector<NumberRange> united = loadRanges(p.index.constant(0));
  if (!ranges)
    return united;
  Values first;
  for (const NumberRange &range : united)
    if (range.low)
      first.append({range.low, range.high});
  auto withBounds = [&](ValueRange bounds) {
    SmallVector<NumberRange> result = united;
    for (NumberRange &range : result)
      if (range.low) {
        range = {bounds[0], bounds[1]};
        bounds = bounds.drop_front(2);
      }
    return result;
  };
  Value one = p.index.constant(1);
  ValueRange all = emitLoop(
      p.b, one, numPanels, one, first, [&](Value number, ValueRange carried) {
        Values bounds;
        for (auto [range, more] :
             llvm::zip_equal(withBounds(carried), loadRanges(number)))
          if (range.low) {
            NumberRange both = unite(p.b, range, more);
            bounds.append({both.low, both.high});
          }
        return bounds;
      });
  return withBounds(all);
}

bool ScoreInputs::hidesKeys() const { return bool(getVisible(score)); }

Value ScoreInputs::mayBeVisible(ArrayRef<NumberRange> ranges, Value first,
                                Value rows, Value begin, Value end) {
  IndexBuilder &index = p.index, narrow{p.b, p.b.getI32Type()};
  auto position = [&](Value pair) {
    return p.tile.mask.emitPosition(index, p.tile.pairs.query(index, pair));
  };
  Value last = index.sub(index.add(first, rows), 1);
  return emitVisibility(narrow, score, {position(first), position(last)},
                        {narrow.cast(begin), narrow.cast(index.sub(end, 1))},
                        ranges)
      .mayBeVisible;
}

StepInputs ScoreInputs::getInputs(const Panel &at, Value firstKey) {
  StepInputs inputs;
  if (position) {
    inputs.position = p.load(*position, at);
    inputs.firstKey = firstKey;
  }
  auto load = [&](const PanelBuffer &buffer) { return p.load(buffer, at); };
  inputs.tables = views;
  inputs.rows = llvm::map_to_vector(rows, load);
  inputs.dtables = gradientViews;
  inputs.drows = llvm::map_to_vector(gradientRows, load);
  return inputs;
}

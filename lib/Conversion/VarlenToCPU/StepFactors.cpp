//===- StepFactors.cpp - The rows that steps read -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepFactors.h"

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

/// The orders in which the products of a step read a factor of it. With `pairs`
/// two neighbours that are summed one after the other lie side by side.
static SmallVector<TileOrder> getOrders(const StepFactor &factor, bool pairs) {
  SmallVector<TileOrder> orders;
  // Rows have the pairs of their columns side by side already.
  if (factor.alongColumns && !factor.ofQueries)
    orders.push_back(TileOrder::Rows);
  else if (factor.alongColumns)
    orders.push_back(pairs ? TileOrder::ColumnPairs : TileOrder::Columns);
  TileOrder ofRows = pairs ? TileOrder::RowPairs : TileOrder::Rows;
  if (factor.alongRows && !llvm::is_contained(orders, ofRows))
    orders.push_back(ofRows);
  return orders;
}

StepFactors::StepFactors(QueryPanels &panels, StepOpInterface step)
    : p(panels) {
  for (OpOperand *number : step.getKeyNumbers())
    numbers.push_back({number});
  bool isQuantised =
      llvm::any_of(step.getFactors(), [](const StepFactor &factor) {
        return isQuantisedElement(elementOf(getSource(factor)));
      });
  for (const StepFactor &factor : step.getFactors()) {
    auto type = cast<RankedTensorType>(factor.operand->get().getType());
    Factor &added = factors.emplace_back();
    added.of = factor;
    // Where queries are rows, keys are what they are in memory. Products
    // convert quantised ones, and need not convert queries again for each key.
    added.element = p.isKQ() ? p.tileElement : elementOf(getSource(factor));
    if (!p.isKQ() && factor.ofQueries && isQuantised)
      added.element = p.compute;
    added.columns = type.getDimSize(1);
    SmallVector<TileOrder> orders = {TileOrder::Rows};
    if (p.isKQ())
      orders = getOrders(factor, p.pairs);
    for (TileOrder order : orders)
      added.copies.push_back({order, Value()});
  }
}

bool StepFactors::roundsProbabilities() {
  return llvm::any_of(factors, [&](const Factor &factor) {
    return !factor.of.ofQueries && factor.of.alongRows &&
           factor.element != p.compute && !isQuantisedElement(factor.element);
  });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SmallVector<std::pair<StepFactors::Factor *, StepFactors::Copy *>>
StepFactors::getCopies(bool ofQueries) {
  SmallVector<std::pair<Factor *, Copy *>> copies;
  for (Factor &factor : factors)
    if (factor.of.ofQueries == ofQueries)
      for (Copy &copy : factor.copies)
        copies.push_back({&factor, &copy});
  return copies;
}

SmallVector<Value> StepFactors::allocateQueries(OpFoldResult numPanels) {
  auto [count, extent] = decomposeMixedValues({numPanels});
  SmallVector<Value> memory;
  for (auto [factor, copy] : getCopies(/*ofQueries=*/true)) {
    SmallVector<int64_t> shape =
        getTileMemoryShape(copy->order, p.size, factor->columns);
    shape.insert(shape.begin(), count.front());
    copy->memory = p.allocate(shape, factor->element, extent);
    memory.push_back(copy->memory);
  }
  return memory;
}

void StepFactors::use(ValueRange &memory) {
  for (auto [factor, copy] : getCopies(/*ofQueries=*/true)) {
    copy->memory = memory.front();
    memory = memory.drop_front();
  }
}

void StepFactors::allocateKeys() {
  areInPages = p.emitAreInPages();
  for (KeyNumber &number : numbers)
    number.memory = p.allocate({p.schedule.getKvBlock(), 1}, p.compute);
  if (!p.isKQ() && !areInPages)
    return;
  for (auto [factor, copy] : getCopies(/*ofQueries=*/false)) {
    SmallVector<int64_t> shape = getTileMemoryShape(
        copy->order, p.schedule.getKvBlock(), factor->columns);
    copy->memory = p.allocatePadded(shape[0], shape[1], factor->element);
  }
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

void StepFactors::pack(const Panel &at) {
  for (const Factor &factor : factors) {
    if (!factor.of.ofQueries)
      continue;
    // Rows first: a loop over them has more misses in flight than one that
    // transposes.
    Value rows;
    for (const Copy &copy : factor.copies)
      if (copy.order == TileOrder::Rows)
        rows = viewQueries(copy, at);
      else if (copy.order == TileOrder::RowPairs && !rows)
        rows = p.allocate({p.size, factor.columns}, factor.element);
    if (rows)
      p.emitReadRows(getSource(factor.of), {p.tile.pairs, at.first, at.rows},
                     p.isKQ() ? p.index.constant(p.size) : at.rows, rows);
    for (const Copy &copy : factor.copies)
      if (copy.order == TileOrder::RowPairs)
        p.emitReorder(rows, copy.order, viewQueries(copy, at));
      else if (copy.order != TileOrder::Rows)
        packColumns(factor, copy, rows, at);
  }
}

void StepFactors::packColumns(const Factor &factor, const Copy &copy,
                              Value rows, const Panel &at) {
  ImplicitLocOpBuilder &b = p.b;
  IndexBuilder &index = p.index;
  Value source = getSource(factor.of), memory = viewQueries(copy, at);
  OpFoldResult zero = b.getIndexAttr(0), lanes = b.getIndexAttr(p.lanes);
  int64_t perColumn = copy.order == TileOrder::ColumnPairs ? 2 : 1;
  auto viewColumns = [&](OpFoldResult first, OpFoldResult count) {
    return p.view(memory, zero, first,
                  b.getIndexAttr(factor.columns / perColumn), count);
  };
  if (!rows && isConstantIntValue(p.tile.pairs.group, 1) &&
      CPUTileBuilder::isOfRows(source, factor.element) &&
      factor.columns == memoryType(source).getDimSize(2)) {
    // Lanes behind the last query are 0, whatever the memory held.
    Value whole = index.roundDown(at.rows, p.lanes);
    p.branch(index.less(whole, at.rows), [&] {
      p.emitFill(0.0, viewColumns(index.mul(whole, perColumn),
                                  b.getIndexAttr(perColumn * p.lanes)));
    });
    return p.emitReorder(
        p.emitRowsInPlace(source, {p.tile.pairs, at.first, at.rows}),
        copy.order, viewColumns(zero, index.mul(at.rows, perColumn)));
  }
  Value scratch;
  if (!rows)
    scratch = p.allocate({p.lanes, factor.columns}, factor.element);
  p.loop(index.constant(0), at.rows, p.lanes, [&](Value column) {
    Value vector;
    if (rows) {
      vector = p.rowView(rows, column, lanes);
    } else {
      RowRange range = {p.tile.pairs, index.add(at.first, column),
                        index.min(index.sub(at.rows, column), p.lanes)};
      Value inPlace;
      if (factor.columns == memoryType(source).getDimSize(2))
        inPlace = p.emitIsInPlace(source, range, factor.element);
      vector = p.emitVectorRows(source, range, inPlace, scratch, [&] {
        p.emitReadRows(source, range, index.constant(p.lanes), scratch);
      });
    }
    p.emitReorder(vector, copy.order,
                  viewColumns(index.mul(column, perColumn),
                              b.getIndexAttr(perColumn * p.lanes)));
  });
}

Value StepFactors::viewQueries(const Copy &copy, const Panel &at) {
  Value panel = p.matrixAt(copy.memory, at.number);
  if (p.isKQ())
    return panel;
  return p.rowView(panel, p.b.getIndexAttr(0), at.rows);
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void StepFactors::readKeys(Value k0, Value keys, Value inPlace) {
  Value padded = p.isKQ() ? p.index.roundUp(keys, kGranule) : keys;
  if (areInPages)
    inPlace = inPlace ? p.index.both(inPlace, areInPages) : areInPages;
  RowRange rows = p.keyRows(k0, keys);
  auto emitCopy = [&](const Factor &factor, const Copy &copy) {
    p.emitReadRows(getSource(factor.of), rows, padded, copy.memory);
  };
  SmallVector<std::pair<Factor *, Copy *>> eitherWay;
  for (auto [factor, copy] : getCopies(/*ofQueries=*/false)) {
    Value source = getSource(factor->of);
    copy->rows = copy->memory;
    if (copy->order == TileOrder::RowPairs)
      p.emitReadPairs(source, rows, padded, copy->memory);
    else if (inPlace && CPUTileBuilder::isOfRows(source, factor->element))
      eitherWay.push_back({factor, copy});
    else
      emitCopy(*factor, *copy);
  }
  if (eitherWay.empty())
    return;
  auto choose = [&](function_ref<Value(const Factor &, const Copy &)> rowsOf) {
    Values chosen;
    for (auto [factor, copy] : eitherWay)
      chosen.push_back(p.castRows(rowsOf(*factor, *copy)));
    return chosen;
  };
  ValueRange chosen = emitChoice(
      p.b, inPlace,
      [&] {
        return choose([&](const Factor &factor, const Copy &) {
          return p.emitRowsInPlace(getSource(factor.of), rows);
        });
      },
      [&] {
        return choose([&](const Factor &factor, const Copy &copy) {
          emitCopy(factor, copy);
          return p.rowView(copy.memory, p.b.getIndexAttr(0), padded);
        });
      });
  for (auto [pair, memory] : llvm::zip_equal(eitherWay, chosen))
    pair.second->rows = memory;
}

void StepFactors::readNumbers(Value k0, Value keys) {
  if (numbers.empty())
    return;
  Value padded = p.isKQ() ? p.index.roundUp(keys, kGranule) : keys;
  for (const KeyNumber &number : numbers)
    p.emitReadRows(getSource(*number.operand), p.keyRows(k0, keys), padded,
                   number.memory);
}

void StepFactors::prefetch(Value k0, Value keys) {
  for (const Factor &factor : factors)
    if (!factor.of.ofQueries)
      p.emitPrefetchRows(getSource(factor.of), p.keyRows(k0, keys));
}

Value StepFactors::viewKeys(const Copy &copy, Value begin, Value size) {
  int64_t perRow = copy.order == TileOrder::RowPairs ? 2 : 1;
  auto inRows = [&](Value keys) {
    return perRow == 1 ? keys : p.index.div(keys, perRow);
  };
  return p.rowView(copy.rows, inRows(begin), inRows(size));
}

Value StepFactors::loadNumber(const KeyNumber &number, Value begin,
                              Value size) {
  if (p.isKQ())
    return p.load(p.rowView(number.memory, begin, size));
  // As a row.
  OpFoldResult one = p.b.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes = {one, size}, strides = {one, one};
  return p.load(memref::ReinterpretCastOp::create(
      p.b, number.memory, OpFoldResult(begin), sizes, strides));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void StepFactors::load(MutableArrayRef<Value> operands, const Panel &at,
                       Value k0, Value begin, Value size) {
  for (const KeyNumber &number : numbers)
    operands[number.operand->getOperandNumber()] =
        loadNumber(number, begin, size);
  for (const Factor &factor : factors) {
    Value &operand = operands[factor.of.operand->getOperandNumber()];
    if (!p.isKQ() && !factor.of.ofQueries && !areInPages) {
      operand = p.load(p.emitRowsInPlace(
          getSource(factor.of), p.keyRows(p.index.add(k0, begin), size)));
      continue;
    }
    SmallVector<TileCopy> copies;
    for (const Copy &copy : factor.copies)
      copies.push_back({copy.order, factor.of.ofQueries
                                        ? viewQueries(copy, at)
                                        : viewKeys(copy, begin, size)});
    operand = p.load(
        copies, factor.of.ofQueries && p.isKQ() ? p.size : ShapedType::kDynamic,
        factor.columns);
  }
}

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
  // Where queries are rows, products read one page after the other: whole
  // pairs of keys, and enough of them for a loop.
  inPlace =
      p.emitHavePages(p.isKQ() ? p.schedule.getKvBlock() : kRegisterBlock);
  for (KeyNumber &number : numbers)
    number.memory = p.allocate({p.schedule.getKvBlock(), 1}, p.compute);
  if (!p.isKQ() && !inPlace)
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
    auto copies = llvm::map_to_vector(factor.copies, [&](const Copy &copy) {
      return TileCopy{copy.order, viewQueries(copy, at)};
    });
    p.emitReadRows(getSource(factor.of), {p.tile.pairs, at.first, at.rows},
                   copies);
  }
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

Value StepFactors::getPadded(Value keys) {
  return p.isKQ() ? p.index.roundUp(keys, kRegisterBlock) : keys;
}

Value StepFactors::emitCopy(const Factor &factor, const Copy &copy,
                            const RowRange &rows, Value padded) {
  Value view = p.rowView(copy.memory, p.b.getIndexAttr(0),
                         getAsOpFoldResult(getMemoryRows(copy, padded)));
  p.emitReadRows(getSource(factor.of), rows, TileCopy{copy.order, view});
  return view;
}

void StepFactors::readKeys(Value k0, Value keys, Value asTheyAre) {
  if (asTheyAre && inPlace)
    asTheyAre = p.index.both(asTheyAre, inPlace);
  RowRange rows = p.keyRows(k0, keys);
  Value padded = getPadded(keys);
  SmallVector<std::pair<Factor *, Copy *>> eitherWay;
  for (auto [factor, copy] : getCopies(/*ofQueries=*/false)) {
    copy->rows = copy->memory;
    if (asTheyAre && copy->order == TileOrder::Rows &&
        isOfRows(getSource(factor->of), factor->element))
      eitherWay.push_back({factor, copy});
    else
      emitCopy(*factor, *copy, rows, padded);
  }
  if (eitherWay.empty())
    return;
  auto choose = [&](function_ref<Value(const Factor &, const Copy &)> rowsOf) {
    Values chosen;
    for (auto [factor, copy] : eitherWay)
      chosen.push_back(castRows(p.b, rowsOf(*factor, *copy)));
    return chosen;
  };
  ValueRange chosen = emitChoice(
      p.b, asTheyAre,
      [&] {
        return choose([&](const Factor &factor, const Copy &) {
          return emitRowsInPlace(p.b, getSource(factor.of), rows);
        });
      },
      [&] {
        return choose([&](const Factor &factor, const Copy &copy) {
          return emitCopy(factor, copy, rows, padded);
        });
      });
  for (auto [pair, memory] : llvm::zip_equal(eitherWay, chosen))
    pair.second->rows = memory;
}

void StepFactors::readNumbers(Value k0, Value keys) {
  if (numbers.empty())
    return;
  Value padded = getPadded(keys);
  for (const KeyNumber &number : numbers)
    p.emitReadRows(
        getSource(*number.operand), p.keyRows(k0, keys),
        TileCopy{TileOrder::Rows, p.rowView(number.memory, p.b.getIndexAttr(0),
                                            getAsOpFoldResult(padded))});
}

void StepFactors::readKeysInPlace() {
  for (auto [factor, copy] : getCopies(/*ofQueries=*/false))
    copy->rows = Value();
}

void StepFactors::prefetch(Value k0, Value keys) {
  for (const Factor &factor : factors)
    if (!factor.of.ofQueries)
      p.emitPrefetchRows(getSource(factor.of), p.keyRows(k0, keys));
}

Value StepFactors::getMemoryRows(const Copy &copy, Value keys) {
  return copy.order == TileOrder::RowPairs ? p.index.div(keys, 2) : keys;
}

Value StepFactors::viewKeys(const Copy &copy, Value begin, Value size) {
  return p.rowView(copy.rows, getMemoryRows(copy, begin),
                   getMemoryRows(copy, size));
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
    if (!factor.of.ofQueries && !factor.copies.front().rows) {
      operand = p.loadRows(getSource(factor.of),
                           p.keyRows(p.index.add(k0, begin), size));
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

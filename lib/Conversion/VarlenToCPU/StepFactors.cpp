//===- StepFactors.cpp - The rows that steps read -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepFactors.h"

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
    : p(panels), element(p.isKQ() ? p.tileElement : p.element) {
  for (const StepFactor &factor : step.getFactors()) {
    auto type = cast<RankedTensorType>(factor.operand->get().getType());
    Factor &added = factors.emplace_back();
    added.of = factor;
    added.columns = type.getDimSize(1);
    SmallVector<TileOrder> orders = {TileOrder::Rows};
    if (p.isKQ())
      orders = getOrders(factor, p.pairs);
    for (TileOrder order : orders)
      added.copies.push_back({order, Value()});
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SmallVector<Value> StepFactors::allocateQueries(OpFoldResult numPanels) {
  auto [count, extent] = decomposeMixedValues({numPanels});
  SmallVector<Value> memory;
  for (Factor &factor : factors)
    for (Copy &copy : factor.copies) {
      if (!factor.of.ofQueries)
        continue;
      SmallVector<int64_t> shape =
          getTileMemoryShape(copy.order, p.size, factor.columns);
      shape.insert(shape.begin(), count.front());
      copy.memory = p.allocate(shape, element, extent);
      memory.push_back(copy.memory);
    }
  return memory;
}

size_t StepFactors::getNumQueryCopies() const {
  size_t count = 0;
  for (const Factor &factor : factors)
    if (factor.of.ofQueries)
      count += factor.copies.size();
  return count;
}

void StepFactors::use(ValueRange memory) {
  for (Factor &factor : factors)
    for (Copy &copy : factor.copies)
      if (factor.of.ofQueries) {
        copy.memory = memory.front();
        memory = memory.drop_front();
      }
}

void StepFactors::allocateKeys() {
  if (!p.isKQ())
    return;
  for (Factor &factor : factors)
    for (Copy &copy : factor.copies) {
      if (factor.of.ofQueries)
        continue;
      SmallVector<int64_t> shape = getTileMemoryShape(
          copy.order, p.schedule.getKvBlock(), factor.columns);
      copy.memory = p.allocatePadded(shape[0], shape[1], element);
    }
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

void StepFactors::pack(const WorkTile &tile, const Panel &at) {
  for (const Factor &factor : factors)
    if (factor.of.ofQueries)
      // Rows first: a loop over them has more misses in flight than one that
      // transposes.
      for (const Copy &copy : llvm::reverse(factor.copies))
        packCopy(tile, getSource(factor.of), copy, at);
}

void StepFactors::packCopy(const WorkTile &tile, Value source, const Copy &copy,
                           const Panel &at) {
  ImplicitLocOpBuilder &b = p.b;
  IndexBuilder &index = p.index;
  Value memory = viewQueries(copy, at);
  Value rows = p.isKQ() ? index.constant(p.size) : at.rows;
  if (copy.order == TileOrder::Rows)
    return emitCopyRows(b, source, tile.pairs, at.first, at.rows, rows, memory,
                        p.lanes);
  if (copy.order == TileOrder::RowPairs)
    return emitPairRows(b, source, tile.pairs, at.first, at.rows, rows, memory,
                        p.lanes);
  int64_t perColumn = copy.order == TileOrder::ColumnPairs ? 2 : 1;
  p.loop(index.constant(0), at.rows, p.lanes, [&](Value column) {
    emitPackColumns(b, source, tile.pairs, index.add(at.first, column),
                    p.lastPair(tile), memory, index.constant(0),
                    index.mul(column, perColumn), p.lanes, perColumn == 2);
  });
  // Of rows columns past the head size are made zero, of columns rows here.
  int64_t whole = memoryType(source).getDimSize(2) / perColumn;
  int64_t past = memoryType(memory).getDimSize(0) - whole;
  if (past != 0)
    emitFill(b, 0.0,
             p.rowView(memory, b.getIndexAttr(whole), b.getIndexAttr(past),
                       b.getIndexAttr(memoryType(memory).getDimSize(1))),
             index.constant(past), p.lanes);
}

Value StepFactors::viewQueries(const Copy &copy, const Panel &at) {
  Value panel = p.matrixAt(copy.memory, at.number);
  if (p.isKQ())
    return panel;
  return p.rowView(panel, p.b.getIndexAttr(0), at.rows,
                   p.b.getIndexAttr(memoryType(panel).getDimSize(1)));
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void StepFactors::readKeys(const WorkTile &tile, Value k0, Value keys,
                           Value inPlace) {
  Value padded = p.index.roundUp(keys, kGranule);
  for (Factor &factor : factors)
    for (Copy &copy : factor.copies)
      if (!factor.of.ofQueries)
        readCopy(tile, factor, copy, k0, keys, padded, inPlace);
}

void StepFactors::readCopy(const WorkTile &tile, const Factor &factor,
                           Copy &copy, Value k0, Value keys, Value padded,
                           Value inPlace) {
  ImplicitLocOpBuilder &b = p.b;
  Value source = getSource(factor.of);
  copy.rows = copy.memory;
  if (copy.order == TileOrder::RowPairs)
    return emitPairRows(b, source, p.keyRows(tile), k0, keys, padded,
                        copy.memory, p.lanes);
  auto emitCopy = [&] {
    emitCopyRows(b, source, p.keyRows(tile), k0, keys, padded, copy.memory,
                 p.lanes);
  };
  if (!inPlace || elementOf(source) != element)
    return emitCopy();
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic,
                                       {ShapedType::kDynamic, 1});
  auto type =
      MemRefType::get({ShapedType::kDynamic, factor.columns}, element, layout);
  auto cast = [&](Value rows) {
    return Values{memref::CastOp::create(b, type, rows)};
  };
  copy.rows =
      emitChoice(
          b, inPlace,
          [&] {
            return cast(emitRowsInPlace(b, source, p.keyRows(tile), k0, keys));
          },
          [&] {
            emitCopy();
            return cast(p.rowView(copy.memory, b.getIndexAttr(0), padded,
                                  b.getIndexAttr(factor.columns)));
          })
          .front();
}

void StepFactors::prefetch(const WorkTile &tile, Value k0, Value keys) {
  for (const Factor &factor : factors)
    if (!factor.of.ofQueries)
      emitPrefetchRows(p.b, getSource(factor.of), p.keyRows(tile), k0, keys);
}

Value StepFactors::viewKeys(const Copy &copy, int64_t columns, Value begin,
                            Value size) {
  int64_t perRow = copy.order == TileOrder::RowPairs ? 2 : 1;
  auto inRows = [&](Value keys) {
    return perRow == 1 ? keys : p.index.div(keys, p.index.constant(perRow));
  };
  return p.rowView(copy.rows, inRows(begin), inRows(size),
                   p.b.getIndexAttr(perRow * columns));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void StepFactors::load(MutableArrayRef<Value> operands, const WorkTile &tile,
                       const Panel &at, Value k0, Value begin, Value size) {
  for (const Factor &factor : factors) {
    Value &operand = operands[factor.of.operand->getOperandNumber()];
    if (!p.isKQ() && !factor.of.ofQueries) {
      operand =
          p.load(emitRowsInPlace(p.b, getSource(factor.of), p.keyRows(tile),
                                 p.index.add(k0, begin), size));
      continue;
    }
    SmallVector<TileCopy> copies;
    for (const Copy &copy : factor.copies)
      copies.push_back(
          {copy.order, factor.of.ofQueries
                           ? viewQueries(copy, at)
                           : viewKeys(copy, factor.columns, begin, size)});
    operand = p.load(
        copies, factor.of.ofQueries && p.isKQ() ? p.size : ShapedType::kDynamic,
        factor.columns);
  }
}

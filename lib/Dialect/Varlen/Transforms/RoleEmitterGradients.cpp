//===- RoleEmitterGradients.cpp - The roles of a gradient -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleEmitter.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Loops over queries, keys and sequences
//===----------------------------------------------------------------------===//

/// The gradients of captures, in the order of `wrt_captures`.
static SmallVector<Value> getCaptureGradients(AttnGradOp grad) {
  SmallVector<ShapedByInputs> results = grad.getShapedResults();
  return llvm::map_to_vector(
      ArrayRef(results).take_back(grad.getWrtCaptures().size()),
      [](const ShapedByInputs &result) { return result.value; });
}

ForTilesOp RoleEmitter::emitStatistics(AttnGradOp grad,
                                       const RoleShape &shape) {
  auto scratch = [&](int64_t columns) {
    return RowsOp::create(b, RowsType::get(b.getContext(), columns, compute),
                          batch);
  };
  statistics = scratch(2 + getNumbers().size());
  if (op.getSink())
    sinkTerms = scratch(1);
  for (int64_t number : op.getWrtCaptures()) {
    auto type = cast<ShapedType>(op.getCaptures()[number].getType());
    captureTerms.push_back(type.getRank() == 1 ? scratch(1) : Value());
  }
  allocateTableRows(grad);
  natural = shape.factor == compute ? b.getUnitAttr() : UnitAttr();
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("delta", Axis::Queries, shape.tile);
  Value t = loop.getTile();
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  // As they are in memory: no product of tiles takes them.
  RoleShape stored = shape;
  stored.factor = op.getElementType();
  Value dout = readRows(grad.getDout(), t, shape.tile, stored);
  Value out = readRows(grad.getOut(), t, shape.tile, stored);
  Value lse = read(grad.getLse(), t, row);
  Value dlse = grad.getDlse() ? read(grad.getDlse(), t, row) : Value();
  Value sink = op.getSink() ? read(op.getSink(), t, row) : Value();
  Value dot = RowDotOp::create(b, row, dout, out);
  auto values = OnlineStatisticsOp::create(b, dot, lse, dlse, sink, natural);
  // Rows that are not in use have no probability: one infinity alone would make
  // 0 * inf of the products with delta.
  SmallVector<Value> written = {values.getRowLse(), values.getDelta()};
  SmallVector<double> otherwise = {std::numeric_limits<double>::infinity(),
                                   0.0};
  for (Value capture : getNumbers()) {
    written.push_back(read(capture, t, row));
    otherwise.push_back(0.0);
  }
  write(written, statistics, t, otherwise);
  if (sink)
    write(values.getSinkTerm(), sinkTerms, t, 0.0);
  return loop;
}

RoleEmitter::StepCaptures RoleEmitter::getStepCaptures(Wrt which) {
  SmallVector<int64_t> numbers;
  StepCaptures captures;
  for (auto [number, rows] : llvm::zip_equal(op.getWrtCaptures(), tableRows)) {
    if (which != Wrt::All &&
        isKeyTable(op.getScoreBody(), number) != (which == Wrt::TablesOfKeys))
      continue;
    numbers.push_back(number);
    if (rows)
      captures.tableRows.push_back(rows);
  }
  if (!numbers.empty())
    captures.numbers = b.getDenseI64ArrayAttr(numbers);
  return captures;
}

ForTilesOp RoleEmitter::emitQueryGrad(AttnGradOp grad, const RoleShape &shape) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("dq", Axis::Queries, shape.tile);
  Value t = loop.getTile();
  RankedTensorType rows = rowsOf(op.getQ(), shape.tile, shape);
  Value q = read(op.getQ(), t, rows);
  Value dout = readRows(grad.getDout(), t, shape.tile, shape);
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  ValueRange statistic = readStatistics(t, row);
  SmallVector<Value> inits = {fill(rows.getShape(), 0.0)};
  llvm::append_range(inits, zeroCaptures(t, row));
  StepCaptures wrt = getStepCaptures(Wrt::Others);
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), inits,
      [&](Value block, ValueRange sums) -> ValueRange {
        Value k = readRows(op.getK(), block, shape.block, shape);
        Value v = readRows(op.getV(), block, shape.block, shape);
        return emitGradStep(shape, q, k, v, dout, statistic, t, block, wrt,
                            {/*dq=*/sums[0], /*dk=*/Value(), /*dv=*/Value(),
                             /*dcaptures=*/sums.drop_front()})
            .getResults();
      });
  write(blocks.getResult(0), grad.getDq(), t, 0.0, /*isScaled=*/true);
  writeCaptures(grad, blocks.getResults().drop_front(), t);
  return loop;
}

ForTilesOp RoleEmitter::emitKeyGrad(AttnGradOp grad, const RoleShape &shape,
                                    bool ofKeys, bool ofValues) {
  StringRef name = ofKeys && ofValues ? "dkv" : ofKeys ? "dk" : "dv";
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles(name, Axis::Keys, shape.tile);
  Value t = loop.getTile();
  RankedTensorType keys = rowsOf(op.getK(), shape.tile, shape);
  RankedTensorType values = rowsOf(op.getV(), shape.tile, shape);
  Value k = read(op.getK(), t, keys);
  // Without dk, which needs dp, no product reads v.
  Value v = ofKeys ? read(op.getV(), t, values)
                   : tensor::EmptyOp::create(b, values.getShape(),
                                             values.getElementType())
                         .getResult();
  SmallVector<Value> inits;
  StepCaptures wrt;
  if (ofKeys) {
    inits.push_back(fill(keys.getShape(), 0.0));
    clearTables(/*areOfKeys=*/true, t);
    wrt = getStepCaptures(Wrt::TablesOfKeys);
  }
  if (ofValues)
    inits.push_back(fill(values.getShape(), 0.0));
  // Of one head each: a plain range of memory.
  TileType blockType = tileType(Axis::Queries, shape.block, /*byHead=*/true);
  auto blocks = emitBlocks(
      t, blockType, inits, [&](Value block, ValueRange sums) -> ValueRange {
        Value q = readRows(op.getQ(), block, shape.block, shape);
        Value dout = readRows(grad.getDout(), block, shape.block, shape);
        ValueRange statistic =
            readStatistics(block, statisticOf(shape.block, shape.orientation));
        return emitGradStep(shape, q, k, v, dout, statistic, block, t, wrt,
                            {/*dq=*/Value(), ofKeys ? sums.front() : Value(),
                             ofValues ? sums.back() : Value(),
                             /*dcaptures=*/ValueRange()})
            .getResults();
      });
  if (ofKeys)
    write(blocks.getResults().front(), grad.getDk(), t, 0.0,
          /*isScaled=*/true);
  if (ofValues)
    write(blocks.getResults().back(), grad.getDv(), t, 0.0);
  return loop;
}

ForTilesOp RoleEmitter::emitSequenceGrad(AttnGradOp grad,
                                         const RoleShape &shape) {
  constexpr int64_t all = ShapedType::kDynamic;
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("dqkv", Axis::Sequences, all);
  Value t = loop.getTile();
  RankedTensorType rows = rowsOf(op.getQ(), all, shape);
  RankedTensorType keys = rowsOf(op.getK(), shape.block, shape);
  RankedTensorType values = rowsOf(op.getV(), shape.block, shape);
  RankedTensorType row = statisticOf(all, shape.orientation);
  Value q = read(op.getQ(), t, rows);
  Value dout = readRows(grad.getDout(), t, all, shape);
  ValueRange statistic = readStatistics(t, row);
  Value size =
      SizeOp::create(b, b.getIndexType(), t, b.getI64IntegerAttr(shape.tile));
  SmallVector<Value> inits = {fill(rows.getShape(), 0.0, size)};
  llvm::append_range(inits, zeroCaptures(t, row, size));
  StepCaptures wrt = getStepCaptures(Wrt::All);
  // dk and dv are results of the step between those that go on.
  SmallVector<Value> carried;
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), inits,
      [&](Value block, ValueRange sums) -> ValueRange {
        Value k = read(op.getK(), block, keys);
        Value v = read(op.getV(), block, values);
        clearTables(/*areOfKeys=*/true, block);
        OnlineAttnGradOp step =
            emitGradStep(shape, q, k, v, dout, statistic, t, block, wrt,
                         {/*dq=*/sums[0],
                          /*dk=*/fill(keys.getShape(), 0.0),
                          /*dv=*/fill(values.getShape(), 0.0),
                          /*dcaptures=*/sums.drop_front()});
        write(step.getDkOut(), grad.getDk(), block, 0.0, /*isScaled=*/true);
        write(step.getDvOut(), grad.getDv(), block, 0.0);
        carried = {step.getDqOut()};
        llvm::append_range(carried, step.getDcapturesOut());
        return carried;
      });
  write(blocks.getResult(0), grad.getDq(), t, 0.0, /*isScaled=*/true);
  writeCaptures(grad, blocks.getResults().drop_front(), t);
  return loop;
}

//===----------------------------------------------------------------------===//
// Heads and captures
//===----------------------------------------------------------------------===//

void RoleEmitter::emitHeadSum(StringRef name, Value rows, Value gradient,
                              bool isNegated) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles(name, Axis::Heads, ShapedType::kDynamic);
  SumRowsOp::create(b, rows, gradient, loop.getTile(), isNegated);
}

void RoleEmitter::emitHeadGrads(AttnGradOp grad) {
  if (op.getSink())
    emitHeadSum("dsink", sinkTerms, grad.getDsink(), /*isNegated=*/true);
  for (auto [number, terms, rows, gradient] :
       llvm::zip_equal(op.getWrtCaptures(), captureTerms, tableRows,
                       getCaptureGradients(grad))) {
    std::string name = "dcapture" + std::to_string(number);
    if (terms)
      emitHeadSum(name, terms, gradient, /*isNegated=*/true);
    if (rows && rows != gradient)
      emitHeadSum(name, rows, gradient, /*isNegated=*/false);
  }
}

void RoleEmitter::allocateTableRows(AttnGradOp grad) {
  for (auto [number, gradient] :
       llvm::zip_equal(op.getWrtCaptures(), getCaptureGradients(grad))) {
    Value &rows = tableRows.emplace_back();
    if (!isTable(op.getScoreBody(), number))
      continue;
    auto type = cast<MemRefType>(gradient.getType());
    if (type.getRank() == 3 || isKeyTable(op.getScoreBody(), number)) {
      rows = gradient;
      continue;
    }
    OpFoldResult extents[] = {memref::getMixedSize(b, b.getLoc(), gradient, 0),
                              memref::getMixedSize(b, b.getLoc(), op.getQ(), 0),
                              memref::getMixedSize(b, b.getLoc(), gradient, 1)};
    auto [shape, sizes] = decomposeMixedValues(extents);
    rows = memref::AllocOp::create(
        b, MemRefType::get(shape, type.getElementType()), sizes);
    ownTableRows.push_back(rows);
  }
}

SmallVector<Value> RoleEmitter::zeroCaptures(Value tile, RankedTensorType type,
                                             ValueRange sizes) {
  SmallVector<Value> zeros;
  for (Value rows : tableRows)
    if (!rows)
      zeros.push_back(fill(type.getShape(), 0.0, sizes));
  clearTables(/*areOfKeys=*/false, tile);
  return zeros;
}

void RoleEmitter::clearTables(bool areOfKeys, Value tile) {
  for (auto [number, rows] : llvm::zip_equal(op.getWrtCaptures(), tableRows))
    if (rows && isKeyTable(op.getScoreBody(), number) == areOfKeys)
      ClearOp::create(b, rows, tile);
}

void RoleEmitter::writeCaptures(AttnGradOp grad, ValueRange gradients,
                                Value tile) {
  for (auto [rows, terms, memory] :
       llvm::zip_equal(tableRows, captureTerms, getCaptureGradients(grad))) {
    if (rows)
      continue;
    // What rows contribute is subtracted from a head's gradient.
    WriteOp::create(b, gradients.front(), terms ? terms : memory, tile,
                    b.getDenseF64ArrayAttr(0.0),
                    terms ? b.getF64FloatAttr(-1.0) : FloatAttr());
    gradients = gradients.drop_front();
  }
}

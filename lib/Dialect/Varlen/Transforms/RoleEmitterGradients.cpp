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
static SmallVector<Value> getCaptureGradients(AttentionOpInterface op) {
  SmallVector<ShapedByInputs> results = op.getShapedResults();
  return llvm::map_to_vector(
      ArrayRef(results).take_back(op.getWrtCaptures().size()),
      [](const ShapedByInputs &result) { return result.value; });
}

unsigned RoleEmitter::getNumStatistics() {
  return (op.isTangent() ? 4 : 2) + getNumbers().size() +
         getNumberTangents().size();
}

ForTilesOp RoleEmitter::emitStatistics(const RoleShape &shape) {
  auto scratch = [&](int64_t columns) {
    return RowsOp::create(b, RowsType::get(b.getContext(), columns, compute),
                          batch);
  };
  statistics = scratch(getNumStatistics());
  if (op.getSink())
    sinkTerms = scratch(1);
  for (int64_t number : op.getWrtCaptures()) {
    auto type = cast<ShapedType>(op.getCaptures()[number].getType());
    captureTerms.push_back(type.getRank() == 1 ? scratch(1) : Value());
  }
  allocateTableRows();
  natural = shape.factor == compute ? b.getUnitAttr() : UnitAttr();
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("delta", Axis::Queries, shape.tile);
  Value t = loop.getTile();
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  // As they are in memory: no product of tiles takes them.
  RoleShape stored = shape;
  stored.factor = op.getElementType();
  auto readNumbers = [&](Value memory) {
    return memory ? read(memory, t, row) : Value();
  };
  auto readStored = [&](Value memory) {
    return readRows(memory, t, shape.tile, stored);
  };
  auto jvpGrad = dyn_cast<AttnJVPGradOp>(op.getOperation());
  auto grad = dyn_cast<AttnGradOp>(op.getOperation());
  OutAndLse of = getOutAndLse(op);
  Value dout = readStored(jvpGrad ? jvpGrad.getDtout() : grad.getDout());
  Value out = readStored(of.out);
  Value lse = readNumbers(of.lse);
  Value dlse = readNumbers(jvpGrad ? jvpGrad.getDtlse() : grad.getDlse());
  Value sink = readNumbers(op.getSink());
  Value dot = RowDotOp::create(b, row, dout, out);
  // With tangents the term of the sink is another one.
  auto values = OnlineStatisticsOp::create(b, dot, lse, dlse,
                                           jvpGrad ? Value() : sink, natural);
  Value term = values.getSinkTerm();
  // Rows that are not in use have no probability: one infinity alone would make
  // 0 * inf of the products with delta.
  SmallVector<Value> written = {values.getRowLse(), values.getDelta()};
  SmallVector<double> otherwise = {std::numeric_limits<double>::infinity()};
  if (jvpGrad) {
    SmallVector<Value> dots = {
        RowDotOp::create(b, row, dout, readStored(jvpGrad.getTout()))};
    if (jvpGrad.getDout())
      dots.push_back(
          RowDotOp::create(b, row, readStored(jvpGrad.getDout()), out));
    Value tlse = readNumbers(jvpGrad.getTlse());
    Value tdlse = readNumbers(jvpGrad.getDlse());
    Value tsink = readNumbers(jvpGrad.getTsink());
    auto tangents = OnlineTangentStatisticsOp::create(
        b, dots, lse, values.getDelta(), tlse, tdlse, sink, tsink, natural);
    written.append({tlse, tangents.getTdelta()});
    term = tangents.getSinkTerm();
  }
  for (Value capture : getNumbers())
    written.push_back(readNumbers(capture));
  for (Value tangent : getNumberTangents())
    written.push_back(readNumbers(tangent));
  otherwise.append(written.size() - 1, 0.0);
  write(written, statistics, t, otherwise);
  if (sink)
    write(term, sinkTerms, t, 0.0);
  if (shape.clearsDq) {
    RankedTensorType rows = rowsOf(op.getQ(), shape.tile, shape);
    write(fill(rows.getShape(), 0.0), op.getDestinations()[0], t, 0.0);
  }
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

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

RoleEmitter::QueryRows RoleEmitter::readQueryRows(Value tile, int64_t rows,
                                                  const RoleShape &shape) {
  auto readRowsOf = [&](Value memory) {
    return memory ? readRows(memory, tile, rows, shape) : Value();
  };
  QueryRows own;
  own.q = readRowsOf(op.getQ());
  if (auto jvpGrad = dyn_cast<AttnJVPGradOp>(op.getOperation())) {
    own.tq = readRowsOf(jvpGrad.getTq());
    own.dout = readRowsOf(jvpGrad.getDtout());
    own.tdout = readRowsOf(jvpGrad.getDout());
  } else {
    own.dout = readRowsOf(cast<AttnGradOp>(op.getOperation()).getDout());
  }
  return own;
}

RoleEmitter::KeyRows RoleEmitter::readKeyRows(Value tile, int64_t rows,
                                              const RoleShape &shape,
                                              bool ofValues) {
  // What no product reads is not copied either.
  auto readValues = [&](Value memory) -> Value {
    if (ofValues)
      return readRows(memory, tile, rows, shape);
    RankedTensorType type = rowsOf(memory, rows, shape);
    return tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
  };
  KeyRows own;
  own.k = readRows(op.getK(), tile, rows, shape);
  own.v = readValues(op.getV());
  if (auto jvpGrad = dyn_cast<AttnJVPGradOp>(op.getOperation())) {
    own.tk = readRows(jvpGrad.getTk(), tile, rows, shape);
    own.tv = readValues(jvpGrad.getTv());
  }
  return own;
}

ResultRange RoleEmitter::emitGradStep(const RoleShape &shape,
                                      const QueryRows &ofQueries,
                                      const KeyRows &ofKeys,
                                      ValueRange statistic, Value queries,
                                      Value keys, const StepCaptures &wrt,
                                      const GradSums &sums) {
  auto orientation = OrientationAttr::get(b.getContext(), shape.orientation);
  if (!op.isTangent())
    return addScore(OnlineAttnGradOp::create(
                        b, ofQueries.q, ofKeys.k, ofKeys.v, ofQueries.dout,
                        statistic[0], statistic[1], /*lo=*/Value(),
                        /*hi=*/Value(), /*k0=*/Value(), /*seen_begin=*/Value(),
                        /*seen_end=*/Value(), queries, keys,
                        /*position=*/Value(), /*first_key=*/Value(),
                        /*captures=*/statistic.drop_front(2), getTables(),
                        /*rows=*/ValueRange(), wrt.tableRows,
                        /*drows=*/ValueRange(), sums.dq, sums.dk, sums.dv,
                        sums.dcaptures, scaleAttr(), orientation, natural,
                        wrt.numbers,
                        shape.scoresFirst ? b.getUnitAttr() : UnitAttr(),
                        getNumScores()))
        ->getResults();
  ValueRange numbers = statistic.drop_front(4);
  size_t numCaptures = getNumbers().size();
  return addScore(
             OnlineAttnJVPGradOp::create(
                 b, ofQueries.q, ofKeys.k, ofKeys.v, ofQueries.tq, ofKeys.tk,
                 ofKeys.tv, ofQueries.dout, ofQueries.tdout, statistic[0],
                 statistic[1], statistic[2], statistic[3],
                 /*lo=*/Value(), /*hi=*/Value(), /*k0=*/Value(),
                 /*seen_begin=*/Value(), /*seen_end=*/Value(), queries, keys,
                 /*position=*/Value(), /*first_key=*/Value(),
                 /*captures=*/numbers.take_front(numCaptures),
                 getTablesAndTangents(), /*rows=*/ValueRange(),
                 /*tcaptures=*/numbers.drop_front(numCaptures), wrt.tableRows,
                 /*drows=*/ValueRange(), sums.dq, sums.dk, sums.dv,
                 sums.dcaptures, scaleAttr(), orientation, natural, wrt.numbers,
                 b.getDenseI64ArrayAttr(op.getWrtCaptures()), getNumScores()))
      ->getResults();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

ForTilesOp RoleEmitter::emitQueryGrad(const RoleShape &shape) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("dq", Axis::Queries, shape.tile);
  Value t = loop.getTile();
  RankedTensorType rows = rowsOf(op.getQ(), shape.tile, shape);
  QueryRows own = readQueryRows(t, shape.tile, shape);
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  ValueRange statistic = readStatistics(t, row);
  SmallVector<Value> inits = {fill(rows.getShape(), 0.0)};
  llvm::append_range(inits, zeroCaptures(t, row));
  StepCaptures wrt = getStepCaptures(Wrt::Others);
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), inits,
      [&](Value block, ValueRange sums) -> ValueRange {
        KeyRows other =
            readKeyRows(block, shape.block, shape, /*ofValues=*/true);
        return emitGradStep(shape, own, other, statistic, t, block, wrt,
                            {/*dq=*/sums[0], /*dk=*/Value(), /*dv=*/Value(),
                             /*dcaptures=*/sums.drop_front()});
      });
  write(blocks.getResult(0), op.getDestinations()[0], t, 0.0,
        /*isScaled=*/true);
  writeCaptures(blocks.getResults().drop_front(), t);
  return loop;
}

ForTilesOp RoleEmitter::emitKeyGrad(const RoleShape &shape, bool ofKeys,
                                    bool ofValues, bool ofQueries) {
  StringRef name = ofQueries            ? "dqkv"
                   : ofKeys && ofValues ? "dkv"
                   : ofKeys             ? "dk"
                                        : "dv";
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles(name, Axis::Keys, shape.tile);
  Value t = loop.getTile();
  RankedTensorType keys = rowsOf(op.getK(), shape.tile, shape);
  RankedTensorType values = rowsOf(op.getV(), shape.tile, shape);
  // Without dk, which needs dp, no product reads v.
  KeyRows own = readKeyRows(t, shape.tile, shape, /*ofValues=*/ofKeys);
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
        QueryRows other = readQueryRows(block, shape.block, shape);
        ValueRange statistic =
            readStatistics(block, statisticOf(shape.block, shape.orientation));
        Value part;
        if (ofQueries)
          part = fill(rowsOf(op.getQ(), shape.block, shape).getShape(), 0.0);
        ValueRange results =
            emitGradStep(shape, other, own, statistic, block, t, wrt,
                         {part, ofKeys ? sums.front() : Value(),
                          ofValues ? sums.back() : Value(),
                          /*dcaptures=*/ValueRange()});
        if (!ofQueries)
          return results;
        AddInOrderOp::create(b, results.front(), op.getDestinations()[0], block,
                             scaleAttr());
        return results.drop_front();
      });
  SmallVector<Value> gradients = op.getDestinations();
  if (ofKeys)
    write(blocks.getResults().front(), gradients[1], t, 0.0,
          /*isScaled=*/true);
  if (ofValues)
    write(blocks.getResults().back(), gradients[2], t, 0.0);
  return loop;
}

ForTilesOp RoleEmitter::emitSequenceGrad(const RoleShape &shape) {
  constexpr int64_t all = ShapedType::kDynamic;
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("dqkv", Axis::Sequences, all);
  Value t = loop.getTile();
  RankedTensorType rows = rowsOf(op.getQ(), all, shape);
  RankedTensorType keys = rowsOf(op.getK(), shape.block, shape);
  RankedTensorType values = rowsOf(op.getV(), shape.block, shape);
  RankedTensorType row = statisticOf(all, shape.orientation);
  QueryRows own = readQueryRows(t, all, shape);
  ValueRange statistic = readStatistics(t, row);
  Value size =
      SizeOp::create(b, b.getIndexType(), t, b.getI64IntegerAttr(shape.tile));
  SmallVector<Value> inits = {fill(rows.getShape(), 0.0, size)};
  llvm::append_range(inits, zeroCaptures(t, row, size));
  StepCaptures wrt = getStepCaptures(Wrt::All);
  SmallVector<Value> gradients = op.getDestinations();
  // dk and dv are results of the step between those that go on.
  SmallVector<Value> carried;
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), inits,
      [&](Value block, ValueRange sums) -> ValueRange {
        KeyRows other =
            readKeyRows(block, shape.block, shape, /*ofValues=*/true);
        clearTables(/*areOfKeys=*/true, block);
        ResultRange results =
            emitGradStep(shape, own, other, statistic, t, block, wrt,
                         {/*dq=*/sums[0],
                          /*dk=*/fill(keys.getShape(), 0.0),
                          /*dv=*/fill(values.getShape(), 0.0),
                          /*dcaptures=*/sums.drop_front()});
        // dq, dk, dv and the sums of captures.
        write(results[1], gradients[1], block, 0.0, /*isScaled=*/true);
        write(results[2], gradients[2], block, 0.0);
        carried = {results[0]};
        llvm::append_range(carried, results.drop_front(3));
        return carried;
      });
  write(blocks.getResult(0), gradients[0], t, 0.0, /*isScaled=*/true);
  writeCaptures(blocks.getResults().drop_front(), t);
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

void RoleEmitter::emitHeadGrads() {
  // Behind dq, dk and dv.
  if (op.getSink())
    emitHeadSum("dsink", sinkTerms, op.getDestinations()[3],
                /*isNegated=*/true);
  for (auto [number, terms, rows, gradient] :
       llvm::zip_equal(op.getWrtCaptures(), captureTerms, tableRows,
                       getCaptureGradients(op))) {
    std::string name = "dcapture" + std::to_string(number);
    if (terms)
      emitHeadSum(name, terms, gradient, /*isNegated=*/true);
    if (rows && rows != gradient)
      emitHeadSum(name, rows, gradient, /*isNegated=*/false);
  }
}

void RoleEmitter::allocateTableRows() {
  for (auto [number, gradient] :
       llvm::zip_equal(op.getWrtCaptures(), getCaptureGradients(op))) {
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

void RoleEmitter::writeCaptures(ValueRange gradients, Value tile) {
  for (auto [rows, terms, memory] :
       llvm::zip_equal(tableRows, captureTerms, getCaptureGradients(op))) {
    if (rows)
      continue;
    // What rows contribute is subtracted from a head's gradient.
    WriteOp::create(b, gradients.front(), terms ? terms : memory, tile,
                    b.getDenseF64ArrayAttr(0.0),
                    terms ? b.getF64FloatAttr(-1.0) : FloatAttr());
    gradients = gradients.drop_front();
  }
}

//===- RoleEmitter.cpp - The roles of an attention as tile loops ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleEmitter.h"

#include "ExtentChecks.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// What roles share
//===----------------------------------------------------------------------===//

RoleEmitter::RoleEmitter(AttentionOpInterface op, OpBuilder &builder)
    : op(op), b(op.getLoc(), builder), compute(op.getComputeType()),
      scale(changesScores(op.getScoreBody()) ? 1.0 : *op.getScaleValue()) {
  IndexBuilder index{b};
  auto dim = [&](Value memref, int64_t dim) {
    return b.createOrFold<memref::DimOp>(memref, dim);
  };
  // Without heads there is nothing to do, and nothing to divide by either.
  Value one = index.constant(1);
  Value kvHeads = index.max(dim(op.getK(), 1), one);
  Value group = index.max(index.div(dim(op.getQ(), 1), kvHeads), one);
  ExtentFault fault = emitExtentFault(b, op);
  batch = BatchOp::create(b, op.getCuQ(), op.getCuK(), op.getSequsedQ(),
                          op.getSequsedK(), op.getQOffset(), dim(op.getQ(), 0),
                          dim(op.getK(), 0), kvHeads, group, fault.rule,
                          fault.value, fault.bound, op.getMask());
}

TileType RoleEmitter::tileType(Axis axis, int64_t size, bool byHead) {
  return TileType::get(b.getContext(), axis, size, byHead);
}

RankedTensorType RoleEmitter::rowsOf(Value memory, int64_t rows,
                                     const RoleShape &shape) {
  int64_t columns = cast<ShapedType>(memory.getType()).getDimSize(2);
  return RankedTensorType::get({rows, static_cast<int64_t>(llvm::alignTo(
                                          columns, shape.columnMultiple))},
                               shape.factor);
}

RankedTensorType RoleEmitter::statisticOf(int64_t rows,
                                          Orientation orientation) {
  SmallVector<int64_t> shape = {rows, 1};
  if (orientation == Orientation::KQ)
    std::swap(shape[0], shape[1]);
  return RankedTensorType::get(shape, compute);
}

Value RoleEmitter::fill(ArrayRef<int64_t> shape, double value,
                        ValueRange sizes) {
  Value empty = tensor::EmptyOp::create(b, shape, compute, sizes);
  Value number = arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
  return linalg::FillOp::create(b, number, empty).getResult(0);
}

void RoleEmitter::write(ValueRange values, Value to, Value tile,
                        ArrayRef<double> otherwise, bool isScaled) {
  WriteOp::create(b, values, to, tile, b.getDenseF64ArrayAttr(otherwise),
                  isScaled ? scaleAttr() : FloatAttr());
}

ForTilesOp RoleEmitter::beginTiles(StringRef name, Axis axis, int64_t size) {
  auto loop = ForTilesOp::create(b, name, batch, tileType(axis, size));
  b.setInsertionPointToStart(loop.getBody());
  return loop;
}

ForBlocksOp
RoleEmitter::emitBlocks(Value tile, TileType block, ValueRange inits,
                        function_ref<ValueRange(Value, ValueRange)> body) {
  auto loop = ForBlocksOp::create(b, tile, block, inits);
  // The steps keep what the attention says of their arithmetic.
  Attribute degree = op->getAttr(kExp2DegreeAttrName);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange results = body(loop.getBlock(), loop.getIterArgs());
  if (degree)
    results.front().getDefiningOp()->setAttr(kExp2DegreeAttrName, degree);
  YieldOp::create(b, results);
  return loop;
}

/// Makes one operation of the product of a score with a scale and a sum that it
/// is a term of: the product is ours, and nobody asked for it to be rounded.
static void fuseScale(OpBuilder &b, arith::MulFOp scaled) {
  Value product = scaled.getResult();
  OpBuilder::InsertionGuard guard(b);
  for (Operation *user : llvm::make_early_inc_range(scaled->getUsers())) {
    if (!isa<arith::AddFOp, arith::SubFOp>(user) ||
        user->getOperand(0) == user->getOperand(1))
      continue;
    b.setInsertionPoint(user);
    bool isFirst = user->getOperand(0) == product;
    Value scale = scaled.getRhs(), term = user->getOperand(isFirst ? 1 : 0);
    if (isa<arith::SubFOp>(user)) {
      Value &negated = isFirst ? term : scale;
      negated = arith::NegFOp::create(b, user->getLoc(), negated);
    }
    user->getResult(0).replaceAllUsesWith(
        math::FmaOp::create(b, user->getLoc(), scaled.getLhs(), scale, term));
    user->erase();
  }
  if (scaled.use_empty())
    scaled.erase();
}

template <typename Step> Step RoleEmitter::addScore(Step step) {
  Block *score = op.getScoreBody();
  if (!score)
    return step;
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(score->getNumArguments(), op.getLoc());
  Block *body = b.createBlock(&step.getScore().front(), {},
                              score->getArgumentTypes(), locations);
  SmallVector<Value> arguments =
      llvm::to_vector_of<Value>(body->getArguments());
  arith::MulFOp scaled;
  if (changesScores(score)) {
    scaled = arith::MulFOp::create(
        b, arguments[Score],
        arith::ConstantOp::create(
            b, b.getFloatAttr(compute, *op.getScaleValue())));
    arguments[Score] = scaled;
  }
  YieldOp::create(b, cloneScoreBody(b, score, arguments));
  if (scaled)
    fuseScale(b, scaled);
  return step;
}

void RoleEmitter::emit(const Role &role) {
  auto attn = dyn_cast<AttnOp>(op.getOperation());
  auto grad = dyn_cast<AttnGradOp>(op.getOperation());
  auto emitLoop = [&]() -> ForTilesOp {
    switch (role.kind) {
    case RoleKind::Out:
      return emitOut(attn, role.shape);
    case RoleKind::Statistics:
      return emitStatistics(grad, role.shape);
    case RoleKind::QueryGrad:
      return emitQueryGrad(grad, role.shape);
    case RoleKind::KeyGrad:
      return emitKeyGrad(grad, role.shape, /*ofKeys=*/true, /*ofValues=*/false);
    case RoleKind::ValueGrad:
      return emitKeyGrad(grad, role.shape, /*ofKeys=*/false, /*ofValues=*/true);
    case RoleKind::KeyValueGrad:
      return emitKeyGrad(grad, role.shape, /*ofKeys=*/true, /*ofValues=*/true);
    case RoleKind::SequenceGrad:
      return emitSequenceGrad(grad, role.shape);
    }
    llvm_unreachable("unknown kind of role");
  };
  emitLoop()->setAttr(kScheduleAttrName, role.schedule);
}

void RoleEmitter::finish() {
  if (auto grad = dyn_cast<AttnGradOp>(op.getOperation()))
    emitHeadGrads(grad);
  SmallVector<Value> all = {statistics, sinkTerms};
  llvm::append_range(all, captureTerms);
  for (Value scratch : all)
    if (scratch)
      FreeRowsOp::create(b, scratch);
  for (Value scratch : ownTableRows)
    memref::DeallocOp::create(b, scratch);
}

SmallVector<Value> RoleEmitter::getCaptures(bool areTables) {
  SmallVector<Value> captures;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    if (isTable(op.getScoreBody(), number) == areTables)
      captures.push_back(capture);
  return captures;
}

//===----------------------------------------------------------------------===//
// out
//===----------------------------------------------------------------------===//

ForTilesOp RoleEmitter::emitOut(AttnOp attn, const RoleShape &shape) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("attn", Axis::Queries, shape.tile);
  Value t = loop.getTile();
  Value q = read(op.getQ(), t, rowsOf(op.getQ(), shape.tile, shape));
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  StepSizes sizes{};
  sizes.queries = shape.tile;
  sizes.valueHeadDim = rowsOf(op.getV(), shape.block, shape).getDimSize(1);
  auto acc =
      RankedTensorType::get(getAccTileShape(shape.orientation, sizes), compute);
  auto orientation = OrientationAttr::get(b.getContext(), shape.orientation);
  auto init = OnlineInitOp::create(b, acc, row, row, scaleAttr(), orientation);
  SmallVector<Value> captures;
  for (Value capture : getNumbers())
    captures.push_back(read(capture, t, row));
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), init.getResults(),
      [&](Value block, ValueRange state) -> ValueRange {
        Value k = read(op.getK(), block, rowsOf(op.getK(), shape.block, shape));
        Value v = read(op.getV(), block, rowsOf(op.getV(), shape.block, shape));
        auto step = OnlineAttnOp::create(
            b, q, k, v, /*lo=*/Value(), /*hi=*/Value(), /*k0=*/Value(),
            /*whole=*/Value(), t, block, /*position=*/Value(),
            /*first_key=*/Value(), captures, getTables(), /*rows=*/ValueRange(),
            state[0], state[1], state[2], scaleAttr(), orientation,
            getNumScores());
        return addScore(step).getResults();
      });
  Value sink;
  if (op.getSink())
    sink = read(op.getSink(), t, row);
  auto end = OnlineFinishOp::create(
      b, blocks.getResult(0), blocks.getResult(1), blocks.getResult(2), sink,
      scaleAttr(), orientation,
      shape.factor == compute ? UnitAttr() : b.getUnitAttr());
  write(end.getOut(), attn.getOutBuffer(), t, 0.0);
  write(end.getLse(), attn.getLseBuffer(), t, -kInfinity);
  return loop;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// The gradients of captures, in the order of `wrt_captures`.
static SmallVector<Value> getCaptureGradients(AttnGradOp grad) {
  SmallVector<Value> gradients;
  for (const ShapedByInputs &result :
       ArrayRef(grad.getShapedResults())
           .take_back(grad.getWrtCaptures().size()))
    gradients.push_back(result.value);
  return gradients;
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
  natural = naturalOf(shape.factor);
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles("delta", Axis::Queries, shape.tile);
  Value t = loop.getTile();
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  // As they are in memory: no product of tiles takes them.
  RoleShape stored = shape;
  stored.factor = op.getElementType();
  auto readRows = [&](Value memory) {
    return read(memory, t, rowsOf(memory, shape.tile, stored));
  };
  Value dout = readRows(grad.getDout()), out = readRows(grad.getOut());
  Value lse = read(grad.getLse(), t, row);
  Value dlse = grad.getDlse() ? read(grad.getDlse(), t, row) : Value();
  Value sink = op.getSink() ? read(op.getSink(), t, row) : Value();
  Value dot = RowDotOp::create(b, row, dout, out);
  auto values = OnlineStatisticsOp::create(b, dot, lse, dlse, sink, natural);
  // Rows that are not in use have no probability: one infinity alone would make
  // 0 * inf of the products with delta.
  SmallVector<Value> written = {values.getRowLse(), values.getDelta()};
  SmallVector<double> otherwise = {kInfinity, 0.0};
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
  ArrayRef<Value> rows = tableRows;
  for (int64_t number : op.getWrtCaptures()) {
    bool isWanted =
        which == Wrt::All ||
        isKeyTable(op.getScoreBody(), number) == (which == Wrt::TablesOfKeys);
    if (isWanted)
      numbers.push_back(number);
    if (!isTable(op.getScoreBody(), number))
      continue;
    if (isWanted)
      captures.tableRows.push_back(rows.front());
    rows = rows.drop_front();
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
  Value dout =
      read(grad.getDout(), t, rowsOf(grad.getDout(), shape.tile, shape));
  ValueRange statistic =
      readStatistics(t, statisticOf(shape.tile, shape.orientation));
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  SmallVector<Value> inits = {fill(rows.getShape(), 0.0)};
  llvm::append_range(inits, zeroCaptures(t, row));
  StepCaptures wrt = getStepCaptures(Wrt::Others);
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), inits,
      [&](Value block, ValueRange sums) -> ValueRange {
        Value k = read(op.getK(), block, rowsOf(op.getK(), shape.block, shape));
        Value v = read(op.getV(), block, rowsOf(op.getV(), shape.block, shape));
        auto step = OnlineAttnGradOp::create(
            b, q, k, v, dout, statistic[0], statistic[1], /*lo=*/Value(),
            /*hi=*/Value(), /*k0=*/Value(), /*whole=*/Value(), t, block,
            /*position=*/Value(), /*first_key=*/Value(),
            /*captures=*/statistic.drop_front(2), getTables(),
            /*rows=*/ValueRange(), wrt.tableRows, /*drows=*/ValueRange(),
            /*dq=*/sums[0], /*dk=*/Value(), /*dv=*/Value(),
            /*dcaptures=*/sums.drop_front(), scaleAttr(),
            OrientationAttr::get(b.getContext(), shape.orientation), natural,
            wrt.numbers, getNumScores());
        return addScore(step).getResults();
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
        Value q = read(op.getQ(), block, rowsOf(op.getQ(), shape.block, shape));
        Value dout = read(grad.getDout(), block,
                          rowsOf(grad.getDout(), shape.block, shape));
        ValueRange statistic =
            readStatistics(block, statisticOf(shape.block, shape.orientation));
        auto step = OnlineAttnGradOp::create(
            b, q, k, v, dout, statistic[0], statistic[1], /*lo=*/Value(),
            /*hi=*/Value(), /*k0=*/Value(), /*whole=*/Value(), block, t,
            /*position=*/Value(), /*first_key=*/Value(),
            /*captures=*/statistic.drop_front(2), getTables(),
            /*rows=*/ValueRange(), wrt.tableRows, /*drows=*/ValueRange(),
            /*dq=*/Value(), ofKeys ? sums.front() : Value(),
            ofValues ? sums.back() : Value(),
            /*dcaptures=*/ValueRange(), scaleAttr(),
            OrientationAttr::get(b.getContext(), shape.orientation), natural,
            wrt.numbers, getNumScores());
        return addScore(step).getResults();
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
  Value q = read(op.getQ(), t, rows);
  Value dout = read(grad.getDout(), t, rowsOf(grad.getDout(), all, shape));
  ValueRange statistic = readStatistics(t, statisticOf(all, shape.orientation));
  Value size =
      SizeOp::create(b, b.getIndexType(), t, b.getI64IntegerAttr(shape.tile));
  SmallVector<Value> inits = {fill(rows.getShape(), 0.0, size)};
  llvm::append_range(
      inits, zeroCaptures(t, statisticOf(all, shape.orientation), size));
  StepCaptures wrt = getStepCaptures(Wrt::All);
  // dk and dv are results of the step between those that go on.
  SmallVector<Value> carried;
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), inits,
      [&](Value block, ValueRange sums) -> ValueRange {
        Value k = read(op.getK(), block, keys);
        Value v = read(op.getV(), block, values);
        clearTables(/*areOfKeys=*/true, block);
        auto step = OnlineAttnGradOp::create(
            b, q, k, v, dout, statistic[0], statistic[1], /*lo=*/Value(),
            /*hi=*/Value(), /*k0=*/Value(), /*whole=*/Value(), t, block,
            /*position=*/Value(), /*first_key=*/Value(),
            /*captures=*/statistic.drop_front(2), getTables(),
            /*rows=*/ValueRange(), wrt.tableRows, /*drows=*/ValueRange(),
            /*dq=*/sums[0],
            /*dk=*/fill(keys.getShape(), 0.0),
            /*dv=*/fill(values.getShape(), 0.0),
            /*dcaptures=*/sums.drop_front(), scaleAttr(),
            OrientationAttr::get(b.getContext(), shape.orientation), natural,
            wrt.numbers, getNumScores());
        addScore(step);
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

ForTilesOp RoleEmitter::emitHeadGrad(StringRef name, Value terms,
                                     Value gradient) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = beginTiles(name, Axis::Heads, ShapedType::kDynamic);
  Value t = loop.getTile();
  auto sum = OnlineSinkGradOp::create(
      b, read(terms, t, statisticOf(ShapedType::kDynamic, Orientation::KQ)));
  write(sum.getDsink(), gradient, t, 0.0);
  return loop;
}

void RoleEmitter::emitHeadGrads(AttnGradOp grad) {
  if (op.getSink())
    emitHeadGrad("dsink", sinkTerms, grad.getDsink());
  ArrayRef<Value> rows = tableRows;
  for (auto [number, terms, gradient] : llvm::zip_equal(
           op.getWrtCaptures(), captureTerms, getCaptureGradients(grad))) {
    std::string name = "dcapture" + std::to_string(number);
    if (terms)
      emitHeadGrad(name, terms, gradient);
    if (!isTable(op.getScoreBody(), number))
      continue;
    if (rows.front() != gradient) {
      OpBuilder::InsertionGuard guard(b);
      auto loop = beginTiles(name, Axis::Heads, ShapedType::kDynamic);
      SumRowsOp::create(b, rows.front(), gradient, loop.getTile());
    }
    rows = rows.drop_front();
  }
}

void RoleEmitter::allocateTableRows(AttnGradOp grad) {
  for (auto [number, gradient] :
       llvm::zip_equal(op.getWrtCaptures(), getCaptureGradients(grad))) {
    if (!isTable(op.getScoreBody(), number))
      continue;
    auto type = cast<MemRefType>(gradient.getType());
    if (type.getRank() == 3 || isKeyTable(op.getScoreBody(), number)) {
      tableRows.push_back(gradient);
      continue;
    }
    OpFoldResult extents[] = {memref::getMixedSize(b, b.getLoc(), gradient, 0),
                              memref::getMixedSize(b, b.getLoc(), op.getQ(), 0),
                              memref::getMixedSize(b, b.getLoc(), gradient, 1)};
    auto [shape, sizes] = decomposeMixedValues(extents);
    Value rows = memref::AllocOp::create(
        b, MemRefType::get(shape, type.getElementType()), sizes);
    tableRows.push_back(rows);
    ownTableRows.push_back(rows);
  }
}

SmallVector<Value> RoleEmitter::zeroCaptures(Value tile, RankedTensorType type,
                                             ValueRange sizes) {
  SmallVector<Value> zeros;
  for (int64_t number : op.getWrtCaptures())
    if (!isTable(op.getScoreBody(), number))
      zeros.push_back(fill(type.getShape(), 0.0, sizes));
  clearTables(/*areOfKeys=*/false, tile);
  return zeros;
}

void RoleEmitter::clearTables(bool areOfKeys, Value tile) {
  ArrayRef<Value> rows = tableRows;
  for (int64_t number : op.getWrtCaptures()) {
    if (!isTable(op.getScoreBody(), number))
      continue;
    if (isKeyTable(op.getScoreBody(), number) == areOfKeys)
      ClearOp::create(b, rows.front(), tile);
    rows = rows.drop_front();
  }
}

void RoleEmitter::writeCaptures(AttnGradOp grad, ValueRange gradients,
                                Value tile) {
  for (auto [number, terms, memory] : llvm::zip_equal(
           op.getWrtCaptures(), captureTerms, getCaptureGradients(grad))) {
    if (isTable(op.getScoreBody(), number))
      continue;
    // A head's gradient is less what rows take off it.
    WriteOp::create(b, gradients.front(), terms ? terms : memory, tile,
                    b.getDenseF64ArrayAttr(0.0),
                    terms ? b.getF64FloatAttr(-1.0) : FloatAttr());
    gradients = gradients.drop_front();
  }
}

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
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What roles share
//===----------------------------------------------------------------------===//

RoleEmitter::RoleEmitter(AttentionOpInterface op, OpBuilder &builder)
    : op(op), b(op.getLoc(), builder), compute(op.getComputeType()),
      scale(changesScores(op.getScoreBody()) ? 1.0 : *op.getScaleValue()) {
  IndexBuilder index{b};
  // Without heads there is nothing to do, and nothing to divide by either.
  Value kvHeads = index.max(index.dim(op.getK(), getHeadsDim(op.getK())), 1);
  Value group = index.max(index.div(index.dim(op.getQ(), 1), kvHeads), 1);
  ExtentFault fault = emitExtentFault(b, op);
  KeyExtents keys = emitKeyExtents(b, op);
  kScale = emitScaleRows(op.getKScale(), op.getK());
  vScale = emitScaleRows(op.getVScale(), op.getV());
  batch = BatchOp::create(b, op.getCuQ(), op.getCuK(), op.getSequsedQ(),
                          op.getSequsedK(), op.getQOffset(), op.getBlockTable(),
                          keys.numPages, keys.pageRows, index.dim(op.getQ(), 0),
                          keys.rows, kvHeads, group, fault.rule, fault.value,
                          fault.bound, op.getMask());
}

TileType RoleEmitter::tileType(Axis axis, int64_t size, bool byHead) {
  return TileType::get(b.getContext(), axis, size, byHead);
}

RankedTensorType RoleEmitter::rowsOf(Value memory, int64_t rows,
                                     const RoleShape &shape) {
  int64_t columns = shaped(memory).getShape().back();
  return RankedTensorType::get({rows, static_cast<int64_t>(llvm::alignTo(
                                          columns, shape.columnMultiple))},
                               shape.factor);
}

RankedTensorType RoleEmitter::statisticOf(int64_t rows,
                                          Orientation orientation) {
  return RankedTensorType::get(getRowStatShape(orientation, rows), compute);
}

Value RoleEmitter::fill(ArrayRef<int64_t> shape, double value,
                        ValueRange sizes) {
  Value empty = tensor::EmptyOp::create(b, shape, compute, sizes);
  Value number = arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
  return linalg::FillOp::create(b, number, empty).getResult(0);
}

Value RoleEmitter::emitScaleRows(Value scale, Value rows) {
  if (!scale)
    return {};
  auto of = memref::ExtractStridedMetadataOp::create(b, scale);
  unsigned heads = getHeadsDim(rows), rank = shaped(scale).getRank();
  OpFoldResult one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes, strides;
  // Rows that share a number lie at one place.
  for (unsigned dim = 0; dim <= heads; ++dim) {
    sizes.push_back(memref::getMixedSize(b, b.getLoc(), rows, dim));
    if (dim == heads)
      strides.push_back(of.getStrides()[rank - 1]);
    else if (dim + 1 < rank)
      strides.push_back(of.getStrides()[dim]);
    else
      strides.push_back(b.getIndexAttr(0));
  }
  sizes.push_back(one);
  strides.push_back(one);
  return memref::ReinterpretCastOp::create(b, of.getBaseBuffer(),
                                           of.getOffset(), sizes, strides);
}

Value RoleEmitter::readScale(Value scale, Value keys, const RoleShape &shape) {
  if (!scale)
    return {};
  SmallVector<int64_t> extents = {shape.block, 1};
  if (shape.orientation == Orientation::QK)
    std::swap(extents[0], extents[1]);
  return read(scale, keys, RankedTensorType::get(extents, compute));
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
/// is a term of: the product is ours, and need not be rounded.
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

// For RoleEmitterGradients.cpp.
template OnlineAttnGradOp RoleEmitter::addScore(OnlineAttnGradOp);
template OnlineAttnJVPGradOp RoleEmitter::addScore(OnlineAttnJVPGradOp);

void RoleEmitter::emit(const Role &role) {
  auto emitLoop = [&]() -> ForTilesOp {
    switch (role.kind) {
    case RoleKind::Out:
      return emitOut(role.shape);
    case RoleKind::Statistics:
      return emitStatistics(role.shape);
    case RoleKind::InOrderGrad:
      return emitKeyGrad(role.shape, /*ofKeys=*/true, /*ofValues=*/true,
                         /*ofQueries=*/true);
    case RoleKind::QueryGrad:
      return emitQueryGrad(role.shape);
    case RoleKind::KeyGrad:
      return emitKeyGrad(role.shape, /*ofKeys=*/true, /*ofValues=*/false);
    case RoleKind::ValueGrad:
      return emitKeyGrad(role.shape, /*ofKeys=*/false, /*ofValues=*/true);
    case RoleKind::KeyValueGrad:
      return emitKeyGrad(role.shape, /*ofKeys=*/true, /*ofValues=*/true);
    case RoleKind::SequenceGrad:
      return emitSequenceGrad(role.shape);
    }
    llvm_unreachable("unknown kind of role");
  };
  emitLoop()->setAttr(kScheduleAttrName, role.schedule);
}

void RoleEmitter::finish() {
  if (op.isGradient())
    emitHeadGrads();
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

SmallVector<Value> RoleEmitter::getTangents(bool areTables) {
  SmallVector<Value> tangents;
  if (op.isTangent())
    for (auto [number, tangent] :
         llvm::zip_equal(op.getWrtCaptures(), op.getTangents().captures))
      if (isTable(op.getScoreBody(), number) == areTables)
        tangents.push_back(tangent);
  return tangents;
}

SmallVector<Value> RoleEmitter::getTablesAndTangents() {
  SmallVector<Value> tables = getTables();
  llvm::append_range(tables, getTangents(/*areTables=*/true));
  return tables;
}

//===----------------------------------------------------------------------===//
// out
//===----------------------------------------------------------------------===//

OnlineAttnOp RoleEmitter::emitStep(const RoleShape &shape, Value q,
                                   Value queries, Value keys,
                                   ValueRange captures, ValueRange state) {
  Value k = readRows(op.getK(), keys, shape.block, shape);
  Value v = readRows(op.getV(), keys, shape.block, shape);
  // In f16 a probability has no more room for a factor than its own bound.
  int64_t rescaleThreshold =
      shape.factor.isF16() && getFactor(op.getScoreBody())
          ? 0
          : shape.rescaleThreshold;
  Value ofK = readScale(kScale, keys, shape);
  Value ofV = readScale(vScale, keys, shape);
  return addScore(OnlineAttnOp::create(
      b, q, k, v, ofK, ofV, /*lo=*/Value(), /*hi=*/Value(), /*k0=*/Value(),
      /*seen_begin=*/Value(), /*seen_end=*/Value(), queries, keys,
      /*position=*/Value(), /*first_key=*/Value(), captures, getTables(),
      /*rows=*/ValueRange(), state[0], state[1], state[2], scaleAttr(),
      OrientationAttr::get(b.getContext(), shape.orientation),
      b.getI64IntegerAttr(rescaleThreshold), getNumScores()));
}

OnlineAttnJVPOp RoleEmitter::emitTangentStep(
    AttnJVPOp jvp, const RoleShape &shape, Value q, Value tq, Value queries,
    Value keys, ValueRange captures, ValueRange tcaptures, ValueRange state) {
  auto ofKeys = [&](Value memory) {
    return readRows(memory, keys, shape.block, shape);
  };
  Value k = ofKeys(op.getK()), v = ofKeys(op.getV());
  Value tk = ofKeys(jvp.getTk()), tv = ofKeys(jvp.getTv());
  return addScore(OnlineAttnJVPOp::create(
      b, q, k, v, tq, tk, tv, /*lo=*/Value(), /*hi=*/Value(), /*k0=*/Value(),
      /*seen_begin=*/Value(), /*seen_end=*/Value(), queries, keys,
      /*position=*/Value(), /*first_key=*/Value(), captures,
      getTablesAndTangents(), /*rows=*/ValueRange(), tcaptures, state[0],
      state[1], state[2], state[3], state[4],
      /*tl_rounded=*/state.size() > 5 ? state[5] : Value(), scaleAttr(),
      OrientationAttr::get(b.getContext(), shape.orientation),
      b.getDenseI64ArrayAttr(op.getWrtCaptures()), getNumScores()));
}

ForTilesOp RoleEmitter::emitOut(const RoleShape &shape) {
  OpBuilder::InsertionGuard guard(b);
  auto jvp = dyn_cast<AttnJVPOp>(op.getOperation());
  auto loop = beginTiles("attn", Axis::Queries, shape.tile);
  Value t = loop.getTile();
  auto ofQueries = [&](Value memory) {
    return readRows(memory, t, shape.tile, shape);
  };
  Value q = ofQueries(op.getQ());
  Value tq = jvp ? ofQueries(jvp.getTq()) : Value();
  RankedTensorType row = statisticOf(shape.tile, shape.orientation);
  int64_t valueHeadDim = rowsOf(op.getV(), shape.block, shape).getDimSize(1);
  auto acc = RankedTensorType::get(
      getAccTileShape(shape.orientation, shape.tile, valueHeadDim), compute);
  auto orientation = OrientationAttr::get(b.getContext(), shape.orientation);
  SmallVector<Type> tangents;
  if (jvp)
    tangents = {acc, row};
  // Tiles of some targets round weights to the type of rows in memory.
  if (jvp && getElementTypeOrSelf(op.getV()) != compute)
    tangents.push_back(row);
  auto init = OnlineInitOp::create(b, acc, row, row, tangents, scaleAttr(),
                                   orientation);
  SmallVector<Value> captures, tcaptures;
  for (Value capture : getNumbers())
    captures.push_back(read(capture, t, row));
  for (Value tangent : getNumberTangents())
    tcaptures.push_back(read(tangent, t, row));
  auto blocks = emitBlocks(
      t, tileType(Axis::Keys, shape.block), init.getResults(),
      [&](Value block, ValueRange state) -> ValueRange {
        if (jvp)
          return emitTangentStep(jvp, shape, q, tq, t, block, captures,
                                 tcaptures, state)
              .getResults();
        return emitStep(shape, q, t, block, captures, state).getResults();
      });
  Value sink, tsink;
  if (op.getSink())
    sink = read(op.getSink(), t, row);
  if (jvp && jvp.getTsink())
    tsink = read(jvp.getTsink(), t, row);
  ValueRange state = blocks.getResults();
  auto end = OnlineFinishOp::create(
      b, state[0], state[1], state[2], state.drop_front(3), sink, tsink,
      scaleAttr(), orientation,
      shape.factor == compute ? UnitAttr() : b.getUnitAttr());
  // out and lse, and their tangents behind them.
  double ofLse = -std::numeric_limits<double>::infinity();
  double otherwise[] = {0.0, ofLse, 0.0, 0.0};
  for (auto [value, memory, number] :
       llvm::zip(end.getResults(), op.getDestinations(), otherwise))
    write(value, memory, t, number);
  return loop;
}

//===- AttnDecomposer.cpp - Attention in plain linalg ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttnDecomposer.h"

#include "AttentionInterface.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

AttnDecomposer::AttnDecomposer(OpBuilder &builder, AttentionOpInterface op)
    : b(op.getLoc(), builder), op(op), compute(op.getComputeType()) {
  Block *given = op.getScoreBody();
  if (!given)
    return;
  scoreBody = &ownScore.emplaceBlock();
  for (BlockArgument argument : given->getArguments())
    scoreBody->addArgument(argument.getType(), argument.getLoc());
  // What listens to the builder need not know of a copy that is no part of the
  // function.
  OpBuilder own(op.getContext());
  own.setInsertionPointToStart(scoreBody);
  YieldOp::create(own, op.getLoc(),
                  cloneScoreBody(own, given, scoreBody->getArguments()));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<Value> AttnDecomposer::loop(Value end, ValueRange inits,
                                        LoopBody body) {
  auto build = [&](OpBuilder &builder, Location, Value iteration,
                   ValueRange values) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(builder.getInsertionBlock(),
                        builder.getInsertionPoint());
    scf::YieldOp::create(b, body(iteration, values));
  };
  return SmallVector<Value>(
      scf::ForOp::create(b, index(0), end, index(1), inits, build)
          .getResults());
}

SmallVector<Value> AttnDecomposer::loopOverSequences(ValueRange inits,
                                                     SequenceBody body) {
  Value entries = tensor::DimOp::create(b, op.getCuQ(), 0);
  return loop(sub(entries, index(1)), inits,
              [&](Value number, ValueRange values) {
                return body(loadSequence(number), values);
              });
}

//===----------------------------------------------------------------------===//
// The op's clauses and attributes
//===----------------------------------------------------------------------===//

Value AttnDecomposer::load(Value vector, Value position) {
  Value element = tensor::ExtractOp::create(b, vector, position);
  return arith::IndexCastOp::create(b, b.getIndexType(), element);
}

AttnDecomposer::Sequence AttnDecomposer::loadSequence(Value number) {
  Value next = arith::AddIOp::create(b, number, index(1));
  Sequence sequence;
  sequence.number = number;
  sequence.qRow = load(op.getCuQ(), number);
  sequence.kRow = op.isPaged() ? index(0) : load(op.getCuK(), number);
  sequence.qRows = op.getSequsedQ()
                       ? load(op.getSequsedQ(), number)
                       : sub(load(op.getCuQ(), next), sequence.qRow);
  sequence.kRows = op.getSequsedK()
                       ? load(op.getSequsedK(), number)
                       : sub(load(op.getCuK(), next), sequence.kRow);
  sequence.k = op.getK();
  sequence.v = op.getV();
  if (op.isPaged())
    for (Value *rows : {&sequence.k, &sequence.v})
      *rows = gatherPages(*rows, number, sequence.kRows);

  sequence.diagonal = op.getMask().getAlignment() == Alignment::BottomRight
                          ? sub(sequence.kRows, sequence.qRows)
                          : index(0);
  if (op.getQOffset()) {
    // An offset may be any integer, and so may a bound of the mask: no sum of
    // the two overflows 128 bits.
    Type wide = b.getIntegerType(128);
    auto widen = [&](Value value) -> Value {
      return arith::IndexCastOp::create(b, wide, value);
    };
    sequence.diagonal = arith::AddIOp::create(
        b, widen(sequence.diagonal), widen(load(op.getQOffset(), number)));
  }
  return sequence;
}

std::pair<Value, Value> AttnDecomposer::findInPages(ImplicitLocOpBuilder &b,
                                                    Value number, Value key) {
  // Outside of the body that `b` is in.
  Value page = tensor::DimOp::create(this->b, op.getK(), 1);
  Value slot = arith::DivUIOp::create(b, key, page);
  Value entry = tensor::ExtractOp::create(b, op.getBlockTable(),
                                          ValueRange{number, slot});
  return {arith::IndexCastOp::create(b, b.getIndexType(), entry),
          arith::RemUIOp::create(b, key, page)};
}

Value AttnDecomposer::gatherPages(Value paged, Value number, Value rows) {
  auto type = cast<RankedTensorType>(paged.getType());
  OpFoldResult heads = tensor::getMixedSize(b, b.getLoc(), paged, 2),
               columns = tensor::getMixedSize(b, b.getLoc(), paged, 3);
  Value init = tensor::EmptyOp::create(
      b, ArrayRef<OpFoldResult>{rows, heads, columns}, type.getElementType());
  return generic({}, init, {b.getMultiDimIdentityMap(3)},
                 [&](ImplicitLocOpBuilder &b, ValueRange) -> Value {
                   Value key = linalg::IndexOp::create(b, 0);
                   auto [page, row] = findInPages(b, number, key);
                   SmallVector<Value> at = {page, row,
                                            linalg::IndexOp::create(b, 1),
                                            linalg::IndexOp::create(b, 2)};
                   return tensor::ExtractOp::create(b, paged, at);
                 });
}

Value AttnDecomposer::loadScale() {
  if (std::optional<double> value = op.getScaleValue())
    return constant(compute, *value);
  // 1 / sqrt(head_dim). With an empty head_dim every score is an empty sum,
  // whatever the scale.
  Value dim = tensor::DimOp::create(b, op.getQ(), 2);
  dim = arith::MaxSIOp::create(b, dim, index(1));
  dim = arith::IndexCastOp::create(b, b.getI64Type(), dim);
  dim = arith::SIToFPOp::create(b, compute, dim);
  return arith::DivFOp::create(b, constant(compute, 1),
                               math::SqrtOp::create(b, dim));
}

Value AttnDecomposer::loadSink(Value head) {
  if (!op.getSink())
    return {};
  return toCompute(b, tensor::ExtractOp::create(b, op.getSink(), head));
}

/// An index in `type`, an integer type or index itself.
static Value castIndex(ImplicitLocOpBuilder &b, Value index, Type type) {
  return isa<IndexType>(type) ? index
                              : arith::IndexCastOp::create(b, type, index);
}

Value AttnDecomposer::visibleKeys(const Sequence &sequence) {
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value all = filled({sequence.qRows, sequence.kRows}, yes);
  if (op.getMask().isFull())
    return all;
  AffineMap identity = b.getMultiDimIdentityMap(2);
  return generic(
      {}, all, {identity}, [&](ImplicitLocOpBuilder &b, ValueRange args) {
        Value query = castIndex(b, linalg::IndexOp::create(b, 0),
                                sequence.diagonal.getType());
        Value position = arith::AddIOp::create(b, query, sequence.diagonal);
        Value key = linalg::IndexOp::create(b, 1);
        return op.getMask().emitIsVisible(b, position, key);
      });
}

SmallVector<Value> AttnDecomposer::loadCaptures(const Sequence &sequence,
                                                Value head) {
  SmallVector<Value> captures;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    captures.push_back(loadCapture(number, capture, sequence, head));
  return captures;
}

Value AttnDecomposer::loadCapture(unsigned number, Value capture,
                                  const Sequence &sequence, Value head) {
  if (isTable(scoreBody, number))
    return tableOf(number, capture, sequence, head);
  if (varlen::detail::isOfQueries(op, number))
    return vectorOf(capture, sequence.qRow, sequence.qRows, head);
  return tensor::ExtractOp::create(b, capture, head);
}

Value AttnDecomposer::tableOf(unsigned number, Value capture,
                              const Sequence &sequence, Value head) {
  auto type = cast<RankedTensorType>(capture.getType());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = {head}, sizes = {one};
  SmallVector<int64_t> shape;
  if (isKeyTable(scoreBody, number)) {
    offsets.push_back(sequence.kRow);
    sizes.push_back(sequence.kRows);
    return tensor::ExtractSliceOp::create(
        b, RankedTensorType::get({ShapedType::kDynamic}, compute), capture,
        offsets, sizes, SmallVector<OpFoldResult>{one, one});
  }
  if (varlen::detail::isOfQueries(op, number)) {
    offsets.push_back(sequence.qRow);
    sizes.push_back(sequence.qRows);
    shape.push_back(ShapedType::kDynamic);
  }
  offsets.push_back(zero);
  sizes.push_back(
      tensor::getMixedSize(b, b.getLoc(), capture, type.getRank() - 1));
  shape.push_back(type.getShape().back());
  return tensor::ExtractSliceOp::create(
      b, RankedTensorType::get(shape, compute), capture, offsets, sizes,
      SmallVector<OpFoldResult>(offsets.size(), one));
}

SmallVector<Value> AttnDecomposer::getVectors(ValueRange captures) {
  SmallVector<Value> vectors;
  for (auto [number, capture] : llvm::enumerate(captures))
    if (isa<RankedTensorType>(capture.getType()) && !isTable(scoreBody, number))
      vectors.push_back(capture);
  return vectors;
}

Value AttnDecomposer::clampIndex(OpBuilder &builder, Value table, Value index) {
  ImplicitLocOpBuilder b(index.getLoc(), builder);
  int64_t dim = cast<RankedTensorType>(table.getType()).getRank() - 1;
  Value end = getValueOrCreateConstantIndexOp(
      b, b.getLoc(), tensor::getMixedSize(b, b.getLoc(), table, dim));
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value last =
      arith::SubIOp::create(b, end, arith::ConstantIndexOp::create(b, 1));
  index = arith::IndexCastOp::create(b, b.getIndexType(), index);
  return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, index, zero),
                                last);
}

Value AttnDecomposer::lookUp(OpBuilder &builder, Value table, Value query,
                             Value index) {
  SmallVector<Value> at = {clampIndex(builder, table, index)};
  if (cast<RankedTensorType>(table.getType()).getRank() == 2)
    at.insert(at.begin(), query);
  return tensor::ExtractOp::create(builder, index.getLoc(), table, at);
}

/// A constant of the type of positions, index or i128. Without the sign an
/// attribute of i128 would be of the 64 bits.
static Value makePosition(ImplicitLocOpBuilder &b, Type type, int64_t value) {
  APInt bits(type.isIndex() ? IndexType::kInternalStorageBitWidth : 128, value,
             /*isSigned=*/true);
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, bits));
}

AttnDecomposer::Pair AttnDecomposer::getPair(ImplicitLocOpBuilder &b) {
  Value query = linalg::IndexOp::create(b, 0);
  return {query, linalg::IndexOp::create(b, 1)};
}

SmallVector<Value> AttnDecomposer::scoreArguments(ImplicitLocOpBuilder &b,
                                                  const Sequence &sequence,
                                                  const Pair &pair, Value score,
                                                  ValueRange captures,
                                                  ValueRange rows) {
  Type i32 = b.getI32Type();
  Type wide = sequence.diagonal.getType();
  Value query = arith::AddIOp::create(b, castIndex(b, pair.query, wide),
                                      sequence.diagonal);
  if (op.getQOffset()) {
    query = arith::MaxSIOp::create(b, query,
                                   makePosition(b, wide, -kFarthestPosition));
    query = arith::MinSIOp::create(b, query,
                                   makePosition(b, wide, kFarthestPosition));
  }
  query = wide.isIndex() ? arith::IndexCastOp::create(b, i32, query).getResult()
                         : arith::TruncIOp::create(b, i32, query).getResult();
  Value key = arith::IndexCastOp::create(b, i32, pair.key);
  SmallVector<Value> arguments = {score, query, key};
  for (auto [number, capture] : llvm::enumerate(captures)) {
    if (isTable(scoreBody, number)) {
      arguments.push_back(Value());
      continue;
    }
    bool isVector = isa<RankedTensorType>(capture.getType());
    arguments.push_back(isVector ? rows.front() : capture);
    rows = rows.drop_front(isVector ? 1 : 0);
  }
  return arguments;
}

Value AttnDecomposer::visibleKeys(const Sequence &sequence, Value visible,
                                  ValueRange captures) {
  if (!getVisible(scoreBody))
    return visible;
  SmallVector<Value> inputs = {visible};
  llvm::append_range(inputs, getVectors(captures));
  SmallVector<AffineMap> maps(inputs.size(), perRow());
  maps.front() = matrix();
  maps.push_back(matrix());
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value none = constant(compute, 0);
  return generic(inputs, filled({sequence.qRows, sequence.kRows}, yes), maps,
                 [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   // Which scores there are does not hide a key.
                   Pair pair = getPair(b);
                   SmallVector<Value> arguments = scoreArguments(
                       b, sequence, pair, none, captures, args.drop_front());
                   auto lookup = [&](OpBuilder &b, Location, unsigned capture,
                                     Value index) {
                     return lookUp(b, captures[capture], pair.query, index);
                   };
                   return arith::AndIOp::create(
                       b, args[0],
                       emitVisible(b, scoreBody, {arguments, lookup}));
                 });
}

Value AttnDecomposer::overScores(const Scores &scores,
                                 ArrayRef<PointInput> more, Value init,
                                 AffineMap resultMap, PointBody ofPoint) {
  SmallVector<Value> inputs = {scores.products};
  SmallVector<AffineMap> maps = {matrix()};
  for (const PointInput &input : more) {
    inputs.push_back(input.tensor);
    maps.push_back(input.map);
  }
  inputs.push_back(scores.visible);
  maps.push_back(matrix());
  SmallVector<Value> vectors = getVectors(scores.captures);
  llvm::append_range(inputs, vectors);
  maps.append(vectors.size(), perRow());
  maps.push_back(resultMap);
  return generic(
      inputs, init, maps,
      [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
        unsigned visible = 1 + more.size();
        Value score = arith::MulFOp::create(b, args[0], scale);
        Pair pair = getPair(b);
        SmallVector<Value> arguments = {score};
        if (scoreBody)
          arguments =
              scoreArguments(b, scores.sequence, pair, score, scores.captures,
                             args.drop_front(visible + 1));
        auto lookup = [&](OpBuilder &b, Location, unsigned capture,
                          Value index) {
          return lookUp(b, scores.captures[capture], pair.query, index);
        };
        Value value = ofPoint(b, {arguments, lookup},
                              args.slice(1, more.size()), args[visible]);
        return resultMap == matrix()
                   ? value
                   : arith::AddFOp::create(b, args.back(), value).getResult();
      });
}

Value AttnDecomposer::emitLogit(ImplicitLocOpBuilder &b,
                                const ScorePoint &point) {
  return scoreBody ? emitScore(b, scoreBody, point) : point.arguments[Score];
}

Value AttnDecomposer::multiplyByFactors(const Scores &scores, Value values) {
  if (!getFactor(scoreBody))
    return values;
  OpFoldResult rows = scores.sequence.qRows, keys = scores.sequence.kRows;
  return overScores(scores, {{values, matrix()}},
                    filled({rows, keys}, constant(compute, 0)), matrix(),
                    [&](ImplicitLocOpBuilder &b, const ScorePoint &point,
                        ValueRange value, Value) -> Value {
                      return arith::MulFOp::create(
                          b, value.front(), emitFactor(b, scoreBody, point));
                    });
}

AttnDecomposer::ScoreTangents
AttnDecomposer::loadScoreTangents(const Sequence &sequence, Value head,
                                  Value products) {
  ScoreTangents tangents = {products,
                            SmallVector<Value>(op.getCaptures().size())};
  for (auto [number, tangent] :
       llvm::zip_equal(op.getWrtCaptures(), op.getTangents().captures))
    tangents.captures[number] = loadCapture(number, tangent, sequence, head);
  return tangents;
}

SmallVector<AttnDecomposer::PointInput>
AttnDecomposer::getInputs(const ScoreTangents &tangents) {
  SmallVector<PointInput> inputs = {{tangents.products, matrix()}};
  for (auto [number, tangent] : llvm::enumerate(tangents.captures))
    if (tangent && isa<RankedTensorType>(tangent.getType()) &&
        !isTable(scoreBody, number))
      inputs.push_back({tangent, perRow()});
  return inputs;
}

SmallVector<Value> AttnDecomposer::withTangents(ImplicitLocOpBuilder &b,
                                                const ScoreTangents &tangents,
                                                ValueRange elements,
                                                Value query, TangentBody body) {
  SmallVector<Value> ofArguments = {
      arith::MulFOp::create(b, elements.front(), scale)};
  ValueRange ofVectors = elements.drop_front();
  if (scoreBody)
    ofArguments.resize(Captures);
  for (auto [number, tangent] : llvm::enumerate(tangents.captures)) {
    if (!tangent || isTable(scoreBody, number)) {
      ofArguments.push_back(Value());
      continue;
    }
    bool isVector = isa<RankedTensorType>(tangent.getType());
    ofArguments.push_back(isVector ? ofVectors.front() : tangent);
    ofVectors = ofVectors.drop_front(isVector ? 1 : 0);
  }
  auto lookup = [&](OpBuilder &b, Location, unsigned capture,
                    Value index) -> Value {
    Value table = tangents.captures[capture];
    return table ? lookUp(b, table, query, index) : Value();
  };
  return body({ofArguments, lookup});
}

Value AttnDecomposer::emitLogitTangents(const Scores &scores,
                                        const ScoreTangents &tangents) {
  Value zero = constant(compute, 0);
  auto body = [&](ImplicitLocOpBuilder &b, const ScorePoint &point,
                  ValueRange elements, Value visible) -> Value {
    auto emit = [&](const ScorePoint &ofPoint) -> SmallVector<Value> {
      return {scoreBody ? emitScoreJVP(b, b.getLoc(), scoreBody, point, ofPoint)
                        : ofPoint.arguments[Score]};
    };
    Value tangent =
        withTangents(b, tangents, elements, getPair(b).query, emit).front();
    // What a hidden point has may be infinite.
    return arith::SelectOp::create(b, visible, tangent, zero);
  };
  return overScores(
      scores, getInputs(tangents),
      filled({scores.sequence.qRows, scores.sequence.kRows}, zero), matrix(),
      body);
}

Value AttnDecomposer::groupSize() {
  Value queryHeads = tensor::DimOp::create(b, op.getQ(), 1);
  Value kvHeads = tensor::DimOp::create(b, op.getK(), getHeadsDim(op.getK()));
  return arith::DivSIOp::create(b, queryHeads, kvHeads);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

Value AttnDecomposer::rowsOf(Value packed, Value row, Value rows, Value head) {
  auto type = cast<RankedTensorType>(packed.getType());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), packed, 2);
  auto matrix = RankedTensorType::get(
      {ShapedType::kDynamic, type.getDimSize(2)}, type.getElementType());
  return tensor::ExtractSliceOp::create(
      b, matrix, packed, ArrayRef<OpFoldResult>{row, head, zero},
      ArrayRef<OpFoldResult>{rows, one, columns},
      ArrayRef<OpFoldResult>{one, one, one});
}

Value AttnDecomposer::insertRows(Value matrix, Value packed, Value row,
                                 Value rows, Value head) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  OpFoldResult columns = tensor::getMixedSize(b, b.getLoc(), packed, 2);
  return tensor::InsertSliceOp::create(
      b, matrix, packed, ArrayRef<OpFoldResult>{row, head, zero},
      ArrayRef<OpFoldResult>{rows, one, columns},
      ArrayRef<OpFoldResult>{one, one, one});
}

Value AttnDecomposer::dequantise(Value rows, Value scale,
                                 const Sequence &sequence, Value head) {
  if (!op.isQuantised())
    return rows;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), rows);
  return generic({rows}, filled(sizes, constant(compute, 0)),
                 {matrix(), matrix()},
                 [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   Value element = toCompute(b, args[0]);
                   if (!scale)
                     return element;
                   int64_t rank = shaped(scale).getRank();
                   SmallVector<Value> at = {head};
                   if (rank > 1 && op.isPaged()) {
                     Value key = linalg::IndexOp::create(b, 0);
                     auto [page, row] = findInPages(b, sequence.number, key);
                     at = {page, row, head};
                     if (rank == 2)
                       at = {page, head};
                   } else if (rank > 1) {
                     Value key = linalg::IndexOp::create(b, 0);
                     at = {arith::AddIOp::create(b, sequence.kRow, key), head};
                   }
                   return arith::MulFOp::create(
                       b, element, tensor::ExtractOp::create(b, scale, at));
                 });
}

Value AttnDecomposer::vectorOf(Value perHead, Value row, Value rows,
                               Value head) {
  OpFoldResult one = b.getIndexAttr(1);
  auto type = RankedTensorType::get(ShapedType::kDynamic, compute);
  return tensor::ExtractSliceOp::create(
      b, type, perHead, ArrayRef<OpFoldResult>{head, row},
      ArrayRef<OpFoldResult>{one, rows}, ArrayRef<OpFoldResult>{one, one});
}

Value AttnDecomposer::insertVector(Value vector, Value perHead, Value row,
                                   Value rows, Value head) {
  OpFoldResult one = b.getIndexAttr(1);
  return tensor::InsertSliceOp::create(
      b, vector, perHead, ArrayRef<OpFoldResult>{head, row},
      ArrayRef<OpFoldResult>{one, rows}, ArrayRef<OpFoldResult>{one, one});
}

Value AttnDecomposer::generic(ValueRange inputs, Value init,
                              ArrayRef<AffineMap> maps, Body body) {
  AffineMap result = maps.back();
  SmallVector<utils::IteratorType> iterators(result.getNumDims(),
                                             utils::IteratorType::reduction);
  for (AffineExpr expr : result.getResults())
    iterators[cast<AffineDimExpr>(expr).getPosition()] =
        utils::IteratorType::parallel;
  Region region;
  Block &block = region.emplaceBlock();
  for (Value input : inputs)
    block.addArgument(getElementTypeOrSelf(input), b.getLoc());
  block.addArgument(getElementTypeOrSelf(init), b.getLoc());
  // A block without a parent does not know its context.
  ImplicitLocOpBuilder inner(b.getLoc(), b.getContext());
  inner.setInsertionPointToStart(&block);
  linalg::YieldOp::create(inner, body(inner, block.getArguments()));
  // A derivative begins with the whole region that it is one of, once for each
  // capture and lookup, and needs a part of it.
  IRRewriter rewriter(b.getContext());
  (void)runRegionDCE(rewriter, region);
  auto generic = linalg::GenericOp::create(b, init.getType(), inputs, init,
                                           maps, iterators);
  generic.getRegion().takeBody(region);
  return generic.getResult(0);
}

Value AttnDecomposer::innerProducts(Value lhs, Value rhs, OpFoldResult rows,
                                    OpFoldResult columns) {
  return addInnerProducts(filled({rows, columns}, constant(compute, 0)), lhs,
                          rhs);
}

Value AttnDecomposer::addInnerProducts(Value init, Value lhs, Value rhs) {
  return generic({lhs, rhs}, init,
                 {map(3, {0, 2}), map(3, {1, 2}), map(3, {0, 1})},
                 [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   Value product = arith::MulFOp::create(
                       b, toCompute(b, args[0]), toCompute(b, args[1]));
                   return arith::AddFOp::create(b, args[2], product);
                 });
}

Value AttnDecomposer::addWeighted(Value init, Value weight, Value visible,
                                  Value values, bool overQueries) {
  // Dimensions: row of init, column of init, what is summed over.
  AffineMap weights = overQueries ? map(3, {2, 0}) : map(3, {0, 2});
  Value zero = constant(compute, 0);
  return generic({weight, visible, values}, init,
                 {weights, weights, map(3, {2, 1}), map(3, {0, 1})},
                 [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
                   Value product =
                       arith::MulFOp::create(b, args[0], toCompute(b, args[2]));
                   Value term =
                       arith::SelectOp::create(b, args[1], product, zero);
                   return arith::AddFOp::create(b, args[3], term);
                 });
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value AttnDecomposer::lowest() {
  return constant(compute, -std::numeric_limits<double>::infinity());
}

Value AttnDecomposer::filled(ArrayRef<OpFoldResult> sizes, Value value) {
  Value empty = tensor::EmptyOp::create(b, sizes, value.getType());
  return linalg::FillOp::create(b, value, empty).getResult(0);
}

Value AttnDecomposer::filledResult(unsigned number,
                                   ArrayRef<OpFoldResult> sizes, double value) {
  Value constant =
      this->constant(getElementTypeOrSelf(op->getResult(number)), value);
  SmallVector<Value> destinations = op.getDestinations();
  if (destinations.empty())
    return filled(sizes, constant);
  return linalg::FillOp::create(b, constant, destinations[number]).getResult(0);
}

Value AttnDecomposer::toCompute(OpBuilder &builder, Value value) {
  return convertScalarToDtype(builder, b.getLoc(), value, compute,
                              /*isUnsignedCast=*/false);
}

Value AttnDecomposer::toElement(OpBuilder &builder, Value value) {
  return convertScalarToDtype(builder, b.getLoc(), value, op.getElementType(),
                              /*isUnsignedCast=*/false);
}

SmallVector<Value> varlen::castToResultTypes(OpBuilder &builder, Operation *op,
                                             ArrayRef<Value> values) {
  SmallVector<Value> results;
  for (auto [value, result] : llvm::zip_equal(values, op->getResults())) {
    bool same = value.getType() == result.getType();
    results.push_back(same ? value
                           : tensor::CastOp::create(builder, op->getLoc(),
                                                    result.getType(), value)
                                 .getResult());
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Masks, pair by pair
//===----------------------------------------------------------------------===//

Value MaskAttr::emitIsVisible(ImplicitLocOpBuilder &b, Value position,
                              Value key) const {
  Type type = position.getType();
  Value ahead = arith::SubIOp::create(b, castIndex(b, key, type), position);
  Value visible = arith::ConstantOp::create(b, b.getBoolAttr(true));
  auto require = [&](arith::CmpIPredicate predicate, int64_t bound) {
    Value limit = makePosition(b, type, bound);
    Value holds = arith::CmpIOp::create(b, predicate, ahead, limit);
    visible = arith::AndIOp::create(b, visible, holds);
  };
  if (getLeft() >= 0)
    require(arith::CmpIPredicate::sge, -getLeft());
  if (getRight() >= 0)
    require(arith::CmpIPredicate::sle, getRight());
  return visible;
}

Value ChunkMaskAttr::emitIsVisible(ImplicitLocOpBuilder &b, Value position,
                                   Value key) const {
  // From its key on, and before the chunk of that ends.
  Type type = position.getType();
  Value size = arith::ConstantIndexOp::create(b, getSize());
  Value chunk =
      arith::MulIOp::create(b, arith::DivUIOp::create(b, key, size), size);
  Value end = arith::AddIOp::create(b, chunk, size);
  auto compare = [&](arith::CmpIPredicate predicate, Value row) -> Value {
    return arith::CmpIOp::create(b, predicate, position,
                                 castIndex(b, row, type));
  };
  return arith::AndIOp::create(b, compare(arith::CmpIPredicate::sge, key),
                               compare(arith::CmpIPredicate::slt, end));
}

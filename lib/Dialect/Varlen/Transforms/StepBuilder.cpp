//===- StepBuilder.cpp - Steps of attention as linalg ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepBuilder.h"

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/Extents.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

Value StepBuilder::bodyOfSum(ImplicitLocOpBuilder &inner, ValueRange args) {
  return arith::AddFOp::create(inner, args[1], args[0]);
}

AffineMap StepBuilder::tileMap(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < 2; ++dim) {
    // The key axis of a statistic; queries may be a single row, too.
    bool projected = type.getDimSize(dim) == 1 && dim == (kq ? 0 : 1);
    exprs.push_back(projected ? b.getAffineConstantExpr(0)
                              : b.getAffineDimExpr(dim));
  }
  return AffineMap::get(2, 0, exprs, b.getContext());
}

Value StepBuilder::empty(Value like, Type element) {
  return tensor::EmptyOp::create(b, getExtents(b, like), element);
}

Value StepBuilder::constant(double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(compute, value));
}

Value StepBuilder::fill(double value, Value init) {
  return linalg::FillOp::create(b, constant(value), init).getResult(0);
}

Value varlen::emitContract(ImplicitLocOpBuilder &b, Value lhs, Value rhs,
                           Value init, ArrayRef<unsigned> lhsDims,
                           ArrayRef<unsigned> rhsDims) {
  auto map = [&](ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(3, dims, b.getContext());
  };
  ArrayAttr maps =
      b.getAffineMapArrayAttr({map(lhsDims), map(rhsDims), map({0, 1})});
  return linalg::ContractOp::create(b, TypeRange{init.getType()},
                                    ValueRange{lhs, rhs}, ValueRange{init},
                                    maps)
      .getResult(0);
}

Value StepBuilder::elementwise(ValueRange inputs, Value init, Body body) {
  return elementwiseTiles(inputs, init,
                          [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                            return SmallVector<Value>{body(inner, args)};
                          })
      .front();
}

SmallVector<Value> StepBuilder::elementwiseTiles(ValueRange inputs,
                                                 ValueRange inits,
                                                 TilesBody body) {
  Region region;
  Block &block = region.emplaceBlock();
  for (Value input : inputs)
    block.addArgument(elementOf(input), b.getLoc());
  for (Value init : inits)
    block.addArgument(elementOf(init), b.getLoc());
  // A block without a parent does not know its context.
  ImplicitLocOpBuilder inner(b.getLoc(), b.getContext());
  inner.setInsertionPointToStart(&block);
  linalg::YieldOp::create(
      inner,
      body(inner, ValueRange(block.getArguments()).drop_back(inits.size())));
  // What no number is computed from would be kept in memory, or in registers,
  // for nothing.
  eraseDeadOps(block);
  SmallVector<Value> used;
  for (Value input : inputs) {
    BlockArgument argument = block.getArgument(used.size());
    if (argument.use_empty())
      block.eraseArgument(argument.getArgNumber());
    else
      used.push_back(input);
  }

  SmallVector<AffineMap> maps;
  for (Value input : used)
    maps.push_back(tileMap(input));
  for (Value init : inits)
    maps.push_back(tileMap(init));
  // A statistic is a tile of its own: one column (or row) per query.
  if (llvm::all_of(used, [&](Value input) {
        return cast<RankedTensorType>(input.getType()).getShape() ==
               cast<RankedTensorType>(inits.front().getType()).getShape();
      }))
    maps.assign(maps.size(), b.getMultiDimIdentityMap(2));
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(b, TypeRange(inits), used, inits,
                                           maps, iterators);
  generic.getRegion().takeBody(region);
  return SmallVector<Value>(generic.getResults());
}

Value StepBuilder::reduce(ValueRange inputs, Value init, Body combine) {
  SmallVector<AffineMap> maps(inputs.size(), b.getMultiDimIdentityMap(2));
  maps.push_back(tileMap(init));
  return emitGeneric(b, inputs, init, maps, combine);
}

Value StepBuilder::withDegree(Value exponential) {
  if (Attribute degree = op->getAttr(kExp2DegreeAttrName))
    exponential.getDefiningOp()->setAttr(kExp2DegreeAttrName, degree);
  return exponential;
}

Value StepBuilder::exp2(ImplicitLocOpBuilder &inner, Value x) {
  return withDegree(math::Exp2Op::create(inner, x));
}

Value StepBuilder::weight(ImplicitLocOpBuilder &inner, ValueRange args) {
  return withDegree(WeightOp::create(inner, args));
}

Value StepBuilder::negate(Value tile) {
  return elementwise({tile}, empty(tile, compute), bodyOf<arith::NegFOp>);
}

Value StepBuilder::scaleKeys(Value tile, Value scale, Value init) {
  if (!scale)
    return tile;
  AffineExpr zero = b.getAffineConstantExpr(0), rows = b.getAffineDimExpr(0),
             columns = b.getAffineDimExpr(1);
  AffineMap ofKeys = kq ? AffineMap::get(2, 0, {rows, zero}, b.getContext())
                        : AffineMap::get(2, 0, {zero, columns}, b.getContext());
  AffineMap all = b.getMultiDimIdentityMap(2);
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  auto multiply = [](OpBuilder &inner, Location loc, ValueRange args) {
    Value product = arith::MulFOp::create(inner, loc, args[0], args[1]);
    linalg::YieldOp::create(inner, loc, product);
  };
  return linalg::GenericOp::create(b, init.getType(), ValueRange{tile, scale},
                                   init, ArrayRef<AffineMap>{all, ofKeys, all},
                                   iterators, multiply)
      .getResult(0);
}

Value StepBuilder::round(Value tile, Value like) {
  Type narrow = elementOf(like);
  if (narrow == compute || isQuantisedElement(narrow))
    return tile;
  return elementwise(
      {tile}, empty(tile, narrow),
      [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        return arith::TruncFOp::create(inner, narrow, args[0]);
      });
}

Value StepBuilder::emptyScores(Value queries, Value keys) {
  OpFoldResult columns = getExtents(b, keys)[0];
  OpFoldResult rows = getExtents(b, queries)[0];
  SmallVector<OpFoldResult> sizes = {rows, columns};
  if (kq)
    std::swap(sizes[0], sizes[1]);
  return tensor::EmptyOp::create(b, sizes, compute);
}

Value StepBuilder::addProducts(Value queries, Value keys, Value scores) {
  // Loops are (rows, columns, depth) of the score tile.
  SmallVector<unsigned> queryDims = {0, 2}, keyDims = {1, 2};
  if (kq)
    std::swap(queryDims, keyDims);
  return kq ? contract(keys, queries, scores, keyDims, queryDims)
            : contract(queries, keys, scores, queryDims, keyDims);
}

Value StepBuilder::products(Value queries, Value keys, Value scores) {
  return addProducts(queries, keys, fill(0.0, scores));
}

Value StepBuilder::keyInBlock(ImplicitLocOpBuilder &inner) {
  Value key = linalg::IndexOp::create(inner, kq ? 0 : 1);
  return arith::IndexCastOp::create(inner, inner.getI32Type(), key);
}

Value StepBuilder::isAll(Value begin, Value end, Value tile) {
  IndexBuilder index{b};
  return index.both(index.lessEqual(begin, index.constant(0)),
                    index.lessEqual(emitExtent(b, tile, 0), end));
}

Value StepBuilder::hide(Value scores, Value lo, Value hi, Value k0, Value whole,
                        double hiddenValue, Value init) {
  Value hidden = constant(hiddenValue);
  return elementwise(
      {scores, lo, hi}, init,
      [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        // A limit that all queries share is a constant of the body.
        auto limitOf = [&](Value tile, Value element) -> Value {
          DenseElementsAttr limits;
          if (!matchPattern(tile, m_Constant(&limits)) || !limits.isSplat())
            return element;
          return arith::ConstantOp::create(inner,
                                           limits.getSplatValue<TypedAttr>());
        };
        Value key = linalg::IndexOp::create(inner, kq ? 0 : 1);
        return HideOp::create(inner, args[0], hidden, key, limitOf(lo, args[1]),
                              limitOf(hi, args[2]), k0, whole);
      });
}

SmallVector<Value> StepBuilder::overScores(const ScoreInputs &of,
                                           Value products, ValueRange more,
                                           ValueRange inits,
                                           ScoreTilesBody body) {
  SmallVector<Value> inputs = {products};
  llvm::append_range(inputs, more);
  if (of.position)
    inputs.push_back(of.position);
  llvm::append_range(inputs, of.captures);
  llvm::append_range(inputs, of.rows);
  return elementwiseTiles(
      inputs, inits, [&](ImplicitLocOpBuilder &inner, ValueRange args) {
        ValueRange ofMore = args.slice(1, more.size());
        ValueRange rest = args.drop_front(1 + more.size());
        // Without positions they are not read.
        Value query, key;
        if (of.position) {
          query = rest.front();
          rest = rest.drop_front();
          key = arith::AddIOp::create(inner, keyInBlock(inner), of.firstKey);
        } else {
          query = arith::ConstantOp::create(inner, inner.getI32IntegerAttr(0));
          key = query;
        }
        SmallVector<Value> arguments = {args.front(), query, key};
        size_t numTables = getTableArguments(of.region).size();
        ValueRange numbers = rest.take_front(of.captures.size()),
                   rows = rest.drop_front(of.captures.size());
        // Which of the tables a capture is.
        DenseMap<unsigned, size_t> tables;
        for (unsigned i = 0; i < of.captures.size() + numTables; ++i) {
          if (isTable(of.region, i)) {
            tables.insert({i, tables.size()});
            arguments.push_back(Value());
            continue;
          }
          arguments.push_back(numbers.front());
          numbers = numbers.drop_front();
        }
        auto gather = [&](OpBuilder &n, Location loc, size_t table,
                          Value index) -> Value {
          return GatherOp::create(n, loc, compute, of.tables[table],
                                  rows[table], index);
        };
        auto lookup = [&](OpBuilder &n, Location loc, unsigned capture,
                          Value index) {
          return gather(n, loc, tables.at(capture), index);
        };
        auto lookupBehind = [&](OpBuilder &n, Location loc, unsigned number,
                                Value index) {
          return gather(n, loc, numTables + number, index);
        };
        return body(inner, {arguments, lookup}, ofMore, lookupBehind);
      });
}

Value StepBuilder::multiply(ImplicitLocOpBuilder &inner, Value lhs, Value rhs) {
  return arith::MulFOp::create(inner, lhs, rhs);
}

SmallVector<Value> StepBuilder::withTangents(
    Block *region, ArrayRef<int64_t> wrtCaptures, const ScorePoint &point,
    ValueRange elements, TableLookup lookup,
    function_ref<SmallVector<Value>(const ScorePoint &)> body) {
  SmallVector<Value> tangents(point.arguments.size());
  tangents[Score] = elements.front();
  elements = elements.drop_front();
  // The numbers of the captures that are tables and have tangents.
  SmallVector<int64_t> tables;
  for (int64_t number : wrtCaptures) {
    if (isTable(region, number)) {
      tables.push_back(number);
      continue;
    }
    tangents[Captures + number] = elements.front();
    elements = elements.drop_front();
  }
  auto lookupTangent = [&](OpBuilder &n, Location loc, unsigned capture,
                           Value index) -> Value {
    auto *table = llvm::find(tables, capture);
    return table == tables.end()
               ? Value()
               : lookup(n, loc, table - tables.begin(), index);
  };
  return body({tangents, lookupTangent});
}

SmallVector<Value> StepBuilder::unlessHidden(ImplicitLocOpBuilder &inner,
                                             Block *region,
                                             const ScorePoint &point,
                                             ValueRange values, double hidden) {
  Value visible = emitVisible(inner, region, point);
  if (!visible)
    return SmallVector<Value>(values);
  Value otherwise =
      arith::ConstantOp::create(inner, inner.getFloatAttr(compute, hidden));
  return llvm::map_to_vector(values, [&](Value value) -> Value {
    return arith::SelectOp::create(inner, visible, value, otherwise);
  });
}

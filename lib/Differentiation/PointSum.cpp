//===- PointSum.cpp - Sums over an iteration space ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PointSum.h"

#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::varlen;

llvm::SmallBitVector varlen::getDims(AffineMap map) {
  llvm::SmallBitVector dims(map.getNumDims());
  for (AffineExpr expr : map.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      dims.set(dim.getPosition());
  return dims;
}

/// The type to add values of `type` up in.
static FloatType getSumType(Type type) {
  auto element = cast<FloatType>(type);
  return element.getWidth() < 32 ? Float32Type::get(type.getContext())
                                 : element;
}

/// `value` as a term of a sum: without a rounding that comes last.
static Value getTerm(OpBuilder &builder, Location loc, Value value,
                     FloatType type) {
  if (auto round = value.getDefiningOp<arith::TruncFOp>())
    if (round.getIn().getType() == type)
      return round.getIn();
  return convertScalarToDtype(builder, loc, value, type,
                              /*isUnsignedCast=*/false);
}

void varlen::dropUnused(DerivativeBuilder &b, SmallVectorImpl<Input> &inputs,
                        llvm::SmallBitVector bounded, Block &block) {
  SmallVector<Input> kept;
  llvm::BitVector unused(block.getNumArguments());
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (block.getArgument(i).use_empty())
      unused.set(i);
    else
      bounded |= getDims(input.map);
  }
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (unused.test(i)) {
      // Some operand must give a loop's extent; a shape is enough for that.
      llvm::SmallBitVector dims = getDims(input.map);
      dims.reset(bounded);
      if (dims.none())
        continue;
      bounded |= dims;
      unused.reset(i);
      input.value = b.emptyLike(input.value);
    }
    kept.push_back(input);
  }
  block.eraseArguments(unused);
  inputs.assign(kept);
}

FailureOr<Value> varlen::buildSum(
    VJPBuilder &b, ArrayRef<Input> allInputs, Value like, AffineMap map,
    llvm::function_ref<FailureOr<Value>(OpBuilder &, ValueRange)> make) {
  Location loc = b.getLoc();
  SmallVector<Input> inputs(allInputs);
  auto type = cast<RankedTensorType>(like.getType());
  // Every element is written once only if each loop is one of its dimensions
  // and each dimension is one of the loops.
  bool isSum = !map.isPermutation();
  Type sumType =
      isSum ? getSumType(type.getElementType()) : type.getElementType();

  Region region;
  Block &block = region.emplaceBlock();
  for (const Input &input : inputs)
    block.addArgument(getElementTypeOrSelf(input.value), loc);
  BlockArgument accumulator = block.addArgument(sumType, loc);
  OpBuilder builder(b.getContext());
  builder.setInsertionPointToEnd(&block);
  FailureOr<Value> value = make(builder, block.getArguments().drop_back());
  if (failed(value) || !*value)
    return value;
  Value yielded = *value;
  if (isSum)
    yielded = arith::AddFOp::create(
        builder, loc, accumulator,
        getTerm(builder, loc, yielded, cast<FloatType>(sumType)));
  linalg::YieldOp::create(builder, loc, yielded);
  eraseDeadOps(block);
  dropUnused(b, inputs, getDims(map), block);

  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    values.push_back(input.value);
    maps.push_back(input.map);
  }
  maps.push_back(map);
  SmallVector<utils::IteratorType> iterators;
  llvm::SmallBitVector dims = getDims(map);
  for (unsigned d = 0; d < map.getNumDims(); ++d)
    iterators.push_back(dims.test(d) ? utils::IteratorType::parallel
                                     : utils::IteratorType::reduction);
  Value init = b.emptyLike(like, sumType);
  if (isSum)
    init = b.zerosLike(init);
  auto sum = linalg::GenericOp::create(b, init.getType(), values, init, maps,
                                       iterators);
  sum.getRegion().takeBody(region);
  Value result = sum.getResult(0);
  if (sumType != type.getElementType())
    result = arith::TruncFOp::create(b, type, result);
  return result;
}

//===- VarlenShape.cpp - Shape functions of the varlen dialect ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// varlen.attn
//===----------------------------------------------------------------------===//

RankedTensorType varlen::inferOutType(ShapedType q, ShapedType v) {
  return RankedTensorType::get(
      {q.getDimSize(0), q.getDimSize(1), v.getShape().back()},
      q.getElementType());
}

RankedTensorType varlen::inferLseType(ShapedType q) {
  return RankedTensorType::get({q.getDimSize(1), q.getDimSize(0)},
                               getComputeType(q.getElementType()));
}

SmallVector<Type> varlen::inferGradientTypes(ShapedType q, ShapedType k,
                                             ShapedType v, bool hasSink,
                                             ValueRange captures,
                                             ArrayRef<int64_t> wrtCaptures) {
  SmallVector<Type> types;
  for (ShapedType input : {q, k, v})
    types.push_back(
        RankedTensorType::get(input.getShape(), input.getElementType()));
  if (hasSink)
    types.push_back(RankedTensorType::get(q.getDimSize(1),
                                          getComputeType(q.getElementType())));
  for (int64_t number : wrtCaptures)
    if (number >= 0 && number < static_cast<int64_t>(captures.size()))
      types.push_back(captures[number].getType());
  return types;
}

FloatType varlen::getComputeType(Type type) {
  if (type.isF64())
    return cast<FloatType>(type);
  return Float32Type::get(type.getContext());
}

//===----------------------------------------------------------------------===//
// varlen.online_attn, varlen.online_attn_grad
//===----------------------------------------------------------------------===//

SmallVector<int64_t> varlen::getAccTileShape(Orientation orientation,
                                             int64_t queries,
                                             int64_t valueHeadDim) {
  if (orientation == Orientation::QK)
    return {queries, valueHeadDim};
  return {valueHeadDim, queries};
}

SmallVector<int64_t> varlen::getRowStatShape(Orientation orientation,
                                             int64_t queries) {
  return getAccTileShape(orientation, queries, /*valueHeadDim=*/1);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>> varlen::getConstantIntegers(Value value) {
  DenseIntElementsAttr elements;
  if (!value || !matchPattern(value, m_Constant(&elements)))
    return std::nullopt;
  SmallVector<int64_t> integers;
  integers.reserve(elements.getNumElements());
  for (const APInt &integer : elements.getValues<APInt>())
    integers.push_back(integer.getSExtValue());
  return integers;
}

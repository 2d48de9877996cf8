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

SmallVector<int64_t> varlen::inferOutShape(ShapedType q, ShapedType v) {
  return {q.getDimSize(0), q.getDimSize(1), v.getDimSize(2)};
}

SmallVector<int64_t> varlen::inferLseShape(ShapedType q) {
  return {q.getDimSize(1), q.getDimSize(0)};
}

RankedTensorType varlen::inferOutType(ShapedType q, ShapedType v) {
  return RankedTensorType::get(inferOutShape(q, v), q.getElementType());
}

RankedTensorType varlen::inferLseType(ShapedType q) {
  return RankedTensorType::get(inferLseShape(q),
                               getComputeType(q.getElementType()));
}

SmallVector<RankedTensorType> varlen::inferGradientTypes(ShapedType q,
                                                         ShapedType k,
                                                         ShapedType v,
                                                         bool hasSink) {
  SmallVector<RankedTensorType> types;
  for (ShapedType input : {q, k, v})
    types.push_back(
        RankedTensorType::get(input.getShape(), input.getElementType()));
  if (hasSink)
    types.push_back(RankedTensorType::get(q.getDimSize(1),
                                          getComputeType(q.getElementType())));
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

SmallVector<int64_t> varlen::getQueryTileShape(const StepSizes &sizes) {
  return {sizes.queries, sizes.headDim};
}

SmallVector<int64_t> varlen::getKeyTileShape(const StepSizes &sizes) {
  return {sizes.keys, sizes.headDim};
}

SmallVector<int64_t> varlen::getValueTileShape(const StepSizes &sizes) {
  return {sizes.keys, sizes.valueHeadDim};
}

SmallVector<int64_t> varlen::getAccTileShape(Orientation orientation,
                                             const StepSizes &sizes) {
  if (orientation == Orientation::QK)
    return {sizes.queries, sizes.valueHeadDim};
  return {sizes.valueHeadDim, sizes.queries};
}

SmallVector<int64_t> varlen::getRowStatShape(Orientation orientation,
                                             const StepSizes &sizes) {
  if (orientation == Orientation::QK)
    return {sizes.queries, 1};
  return {1, sizes.queries};
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

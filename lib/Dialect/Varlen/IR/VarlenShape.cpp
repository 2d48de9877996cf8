//===- VarlenShape.cpp - Shape functions of the varlen dialect ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

SmallVector<int64_t> varlen::inferOutShape(ShapedType q, ShapedType v) {
  return {q.getDimSize(0), q.getDimSize(1), v.getDimSize(2)};
}

SmallVector<int64_t> varlen::inferLseShape(ShapedType q) {
  return {q.getDimSize(1), q.getDimSize(0)};
}

FloatType varlen::getComputeType(Type type) {
  if (type.isF64())
    return cast<FloatType>(type);
  return Float32Type::get(type.getContext());
}

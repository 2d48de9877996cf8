//===- TableOps.cpp - What score regions look up --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

LogicalResult TableType::verify(function_ref<InFlightDiagnostic()> error,
                                FloatType element) {
  if (!element.isF32() && !element.isF64())
    return error() << "expected numbers of f32 or f64, got " << element;
  return success();
}

LogicalResult SumRowsOp::verify() {
  if (getTile().getType().getAxis() != Axis::Heads)
    return emitOpError("expected a tile of heads, got ") << getTile().getType();
  MemRefType rows = getRows().getType(), sums = getSums().getType();
  int64_t shape[] = {rows.getDimSize(0), rows.getDimSize(2)};
  if (rows.getElementType() == sums.getElementType() &&
      succeeded(verifyCompatibleShape(sums.getShape(), shape)))
    return success();
  return emitOpError("expected sums compatible with ")
         << RankedTensorType::get(shape, rows.getElementType()) << ", got "
         << sums;
}

LogicalResult GatherOp::verify() {
  auto shapeOf = [](Value value) -> ArrayRef<int64_t> {
    auto vector = dyn_cast<VectorType>(value.getType());
    return vector ? vector.getShape() : ArrayRef<int64_t>();
  };
  if (getElementTypeOrSelf(getEntry()) != getTable().getType().getElementType())
    return emitOpError("expected entries of ")
           << getTable().getType().getElementType() << ", got "
           << getEntry().getType();
  if (shapeOf(getRow()) == shapeOf(getIndex()) &&
      shapeOf(getRow()) == shapeOf(getEntry()))
    return success();
  return emitOpError("expected a row and an index for each entry, got ")
         << getRow().getType() << " and " << getIndex().getType() << " for "
         << getEntry().getType();
}

LogicalResult ScatterAddOp::verify() {
  auto values = cast<RankedTensorType>(getValues().getType());
  if (values.getElementType() != getMemory().getType().getElementType())
    return emitOpError("expected values of ")
           << getMemory().getType().getElementType() << ", got "
           << values.getElementType();
  if (getIndex().getType().getShape() != values.getShape())
    return emitOpError("expected an index for each of the values, got ")
           << getIndex().getType() << " for " << values;
  ArrayRef<int64_t> rows = getRows().getType().getShape();
  int64_t column[] = {values.getDimSize(0), 1},
          row[] = {1, values.getDimSize(1)};
  if (rows == ArrayRef(column) || rows == ArrayRef(row))
    return success();
  return emitOpError("expected a row for each query, R x 1 or 1 x C of the ")
         << values << ", got " << getRows().getType();
}

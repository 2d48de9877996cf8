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

//===----------------------------------------------------------------------===//
// TableType
//===----------------------------------------------------------------------===//

LogicalResult TableType::verify(function_ref<InFlightDiagnostic()> error,
                                FloatType element, bool ofKeys) {
  if (!element.isF32() && !element.isF64())
    return error() << "expected numbers of f32 or f64, got " << element;
  return success();
}

Type TableType::parse(AsmParser &parser) {
  FloatType element;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseType(element))
    return {};
  bool ofKeys = succeeded(parser.parseOptionalComma());
  if ((ofKeys && parser.parseKeyword("keys")) || parser.parseGreater())
    return {};
  return parser.getChecked<TableType>(location, parser.getContext(), element,
                                      ofKeys);
}

void TableType::print(AsmPrinter &printer) const {
  printer << '<' << getElement() << (getOfKeys() ? ", keys>" : ">");
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult ClearOp::verify() {
  bool ofKeys = getTile().getType().getAxis() == Axis::Keys;
  if (getMemory().getType().getRank() == (ofKeys ? 2 : 3))
    return success();
  return emitOpError("expected memory of ")
         << (ofKeys ? "H x T at a tile of keys" : "H x T x M at a tile of rows")
         << ", got " << getMemory().getType();
}

LogicalResult SumRowsOp::verify() {
  if (getTile().getType().getAxis() != Axis::Heads)
    return emitOpError("expected a tile of heads, got ") << getTile().getType();
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  Type element;
  if (auto scratch = dyn_cast<RowsType>(getRows().getType())) {
    element = scratch.getElement();
    if (scratch.getColumns() != 1)
      return emitOpError("expected scratch with one value of each row, got ")
             << scratch;
  } else {
    auto table = cast<MemRefType>(getRows().getType());
    element = table.getElementType();
    shape = {table.getDimSize(0), table.getDimSize(2)};
  }
  MemRefType sums = getSums().getType();
  if (element == sums.getElementType() &&
      succeeded(verifyCompatibleShape(sums.getShape(), shape)))
    return success();
  return emitOpError("expected sums compatible with ")
         << RankedTensorType::get(shape, element) << ", got " << sums;
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

/// That `rows` has a row for each query of `values`.
static LogicalResult verifyRowsOf(Operation *op, Value tile, Value ofQueries) {
  auto values = cast<RankedTensorType>(tile.getType());
  auto type = cast<RankedTensorType>(ofQueries.getType());
  int64_t column[] = {values.getDimSize(0), 1},
          row[] = {1, values.getDimSize(1)};
  if (type.getShape() == ArrayRef(column) || type.getShape() == ArrayRef(row))
    return success();
  return op->emitOpError(
             "expected a row for each query, R x 1 or 1 x C of the ")
         << values << ", got " << type;
}

/// That `values` can be added to `memory`.
static LogicalResult verifySums(Operation *op, Value values, Value memory) {
  Type element = getElementTypeOrSelf(memory);
  if (getElementTypeOrSelf(values) == element)
    return success();
  return op->emitOpError("expected values of ")
         << element << ", got " << getElementTypeOrSelf(values);
}

LogicalResult AddKeysOp::verify() {
  if (failed(verifySums(*this, getValues(), getMemory())))
    return failure();
  return verifyRowsOf(*this, getValues(), getRows());
}

LogicalResult ScatterAddOp::verify() {
  auto values = cast<RankedTensorType>(getValues().getType());
  if (failed(verifySums(*this, getValues(), getMemory())))
    return failure();
  if (getIndex().getType().getShape() != values.getShape())
    return emitOpError("expected an index for each of the values, got ")
           << getIndex().getType() << " for " << values;
  return verifyRowsOf(*this, getValues(), getRows());
}

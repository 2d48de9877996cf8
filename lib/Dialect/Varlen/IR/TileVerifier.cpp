//===- TileVerifier.cpp - Checks of operations on tiles -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileVerifier.h"

#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::detail;

int64_t varlen::detail::getCommonExtent(ArrayRef<int64_t> extents) {
  int64_t common = ShapedType::kDynamic, most = 0;
  for (int64_t extent : extents)
    if (int64_t count = llvm::count(extents, extent);
        ShapedType::isStatic(extent) && count > most) {
      common = extent;
      most = count;
    }
  return common;
}

std::string varlen::detail::toString(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      shape, stream,
      [&](int64_t extent) {
        if (ShapedType::isDynamic(extent))
          stream << '?';
        else
          stream << extent;
      },
      " x ");
  return text;
}

LogicalResult varlen::detail::verifyScale(Operation *op, const APFloat &scale) {
  if (scale.isFinite() && !scale.isZero() && !scale.isNegative())
    return success();
  SmallString<16> text;
  scale.toString(text);
  return op->emitOpError("expected scale to be positive and finite, got ")
         << text;
}

LogicalResult varlen::detail::verifyElements(Operation *op,
                                             StringRef stateNames,
                                             ArrayRef<NamedValue> states,
                                             ArrayRef<NamedValue> inputs) {
  auto [stateName, state] = states.front();
  Type compute = elementOf(state);
  for (auto [name, tile] : states)
    if (Type type = elementOf(tile);
        type != compute || !(type.isF32() || type.isF64()))
      return op->emitOpError("expected ")
             << stateNames << " of one type, f32 or f64, got " << type
             << " for " << name;
  for (auto [name, tile] : inputs)
    if (Type type = elementOf(tile);
        type != compute && varlen::getComputeType(type) != compute)
      return op->emitOpError("expected ")
             << name << " of a type that accumulates in " << compute
             << ", the type of " << stateName << ", got " << type;
  return success();
}

LogicalResult varlen::detail::verifySameElement(Operation *op, NamedValue a,
                                                NamedValue b) {
  if (elementOf(a.value) == elementOf(b.value))
    return success();
  return op->emitOpError("expected ")
         << a.name << " and " << b.name << " of one element type, got "
         << elementOf(a.value) << " and " << elementOf(b.value);
}

LogicalResult varlen::detail::verifyTile(Operation *op, Orientation orientation,
                                         NamedValue tile, StringRef meaning,
                                         ArrayRef<int64_t> shape) {
  auto [name, value] = tile;
  if (!value ||
      succeeded(verifyCompatibleShape(shaped(value).getShape(), shape)))
    return success();
  return op->emitOpError("expected ")
         << name << " to be " << meaning << " = " << toString(shape)
         << " in orientation " << stringifyOrientation(orientation) << ", got "
         << value.getType();
}

LogicalResult varlen::detail::verifyRowStats(Operation *op,
                                             Orientation orientation,
                                             ArrayRef<NamedValue> tiles,
                                             int64_t queries) {
  StringRef meaning =
      orientation == Orientation::QK ? "queries x 1" : "1 x queries";
  for (NamedValue tile : tiles)
    if (failed(verifyTile(op, orientation, tile, meaning,
                          getRowStatShape(orientation, queries))))
      return failure();
  return success();
}

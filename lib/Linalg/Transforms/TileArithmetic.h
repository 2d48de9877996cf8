//===- TileArithmetic.h - Offsets and sizes of tiles ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_TILEARITHMETIC_H
#define VARLEN_LIB_LINALG_TRANSFORMS_TILEARITHMETIC_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// New memory as a tensor. An empty tensor would be one with another of its
/// shape after CSE, and the second result that is written to it a copy.
inline Value emitAlloc(ImplicitLocOpBuilder &b, ArrayRef<OpFoldResult> sizes,
                       Type element) {
  auto [shape, dynamic] = decomposeMixedValues(llvm::to_vector(sizes));
  return bufferization::AllocTensorOp::create(
      b, RankedTensorType::get(shape, element), dynamic);
}

/// Affine arithmetic on what may be constants, whose bounds upstream can
/// compute.
struct TileArithmetic {
  ImplicitLocOpBuilder &b;

  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, b.getLoc(), expr, operands);
  }
  OpFoldResult mul(OpFoldResult lhs, int64_t rhs) {
    return apply(b.getAffineSymbolExpr(0) * rhs, {lhs});
  }
  OpFoldResult sub(OpFoldResult lhs, OpFoldResult rhs) {
    return apply(b.getAffineSymbolExpr(0) - b.getAffineSymbolExpr(1),
                 {lhs, rhs});
  }
  OpFoldResult floorDiv(OpFoldResult lhs, int64_t rhs) {
    return apply(b.getAffineSymbolExpr(0).floorDiv(rhs), {lhs});
  }
  OpFoldResult ceilDiv(OpFoldResult lhs, int64_t rhs) {
    return apply(b.getAffineSymbolExpr(0).ceilDiv(rhs), {lhs});
  }
  OpFoldResult min(OpFoldResult lhs, OpFoldResult rhs) {
    return affine::makeComposedFoldedAffineMin(
        b, b.getLoc(), b.getMultiDimIdentityMap(2), {lhs, rhs});
  }
  /// The size of a tile that begins at `offset`, a multiple of `size`.
  OpFoldResult cut(int64_t size, OpFoldResult extent, OpFoldResult offset) {
    std::optional<int64_t> known = getConstantIntValue(extent);
    if (known && *known <= size)
      return extent;
    if (size == 1 || (known && *known % size == 0))
      return b.getIndexAttr(size);
    return min(b.getIndexAttr(size), sub(extent, offset));
  }
  Value value(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
  }
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_TILEARITHMETIC_H

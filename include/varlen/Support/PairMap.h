//===- PairMap.h - Where pairs of rows are ----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_PAIRMAP_H
#define VARLEN_SUPPORT_PAIRMAP_H

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/AffineMap.h"

namespace mlir::varlen {

/// Where a tile of pairs of rows has an element, its last dimension being the
/// row of the pair: (row, column) -> (row floordiv 2, column, row mod 2).
inline AffineMap getPairMap(MLIRContext *context) {
  AffineExpr row = getAffineDimExpr(0, context),
             column = getAffineDimExpr(1, context);
  return AffineMap::get(2, 0, {row.floorDiv(2), column, row % 2}, context);
}

/// All dimensions of so many, the last two as one: those of pairs of a row.
inline SmallVector<ReassociationIndices> getPairDims(int64_t rank) {
  SmallVector<ReassociationIndices> dims;
  for (int64_t dim = 0; dim < rank - 2; ++dim)
    dims.push_back({dim});
  dims.push_back({rank - 2, rank - 1});
  return dims;
}

inline bool isPairMap(AffineMap map) {
  return map == getPairMap(map.getContext());
}

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_PAIRMAP_H

//===- Extents.cpp - Extents of tiles as those of memory ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/Extents.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

SmallVector<OpFoldResult> varlen::getExtents(ImplicitLocOpBuilder &b,
                                             Value tile) {
  while (auto op = tile.getDefiningOp<DestinationStyleOpInterface>())
    tile = op.getTiedOpOperand(cast<OpResult>(tile))->get();
  if (auto read = tile.getDefiningOp<bufferization::ToTensorOp>())
    return memref::getMixedSizes(b, b.getLoc(), read.getBuffer());
  // A tensor.empty, a slice, or a tile of several copies.
  if (auto op = tile.getDefiningOp<ReifyRankedShapedTypeOpInterface>()) {
    FailureOr<SmallVector<OpFoldResult>> extents =
        op.reifyShapeOfResult(b, cast<OpResult>(tile).getResultNumber());
    if (succeeded(extents))
      return *extents;
  }
  return tensor::getMixedSizes(b, b.getLoc(), tile);
}

Value varlen::emitExtent(ImplicitLocOpBuilder &b, Value tile, int64_t dim) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(),
                                         getExtents(b, tile)[dim]);
}

//===- VarlenPlaceTiles.cpp - Where the tiles of a step lie ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One-shot bufferization gives each tile memory of its own extents, which is on
// the heap where these are dynamic, and copies what it may not write. Both are
// known better here.
//
//===----------------------------------------------------------------------===//

#include "EnclosingSchedule.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENPLACETILES
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Makes a tile with a dynamic number of rows a slice of one of kv_block rows.
static bool bound(tensor::EmptyOp empty, CPUScheduleAttr schedule) {
  RankedTensorType type = empty.getType();
  if (type.getRank() != 2 || !type.isDynamicDim(0) || type.isDynamicDim(1))
    return false;
  OpBuilder b(empty);
  int64_t shape[] = {schedule.getKvBlock(), type.getDimSize(1)};
  Value whole =
      tensor::EmptyOp::create(b, empty.getLoc(), shape, type.getElementType());
  SmallVector<OpFoldResult> offsets(2, b.getIndexAttr(0)),
      strides(2, b.getIndexAttr(1));
  Value slice = tensor::ExtractSliceOp::create(
      b, empty.getLoc(), type, whole, offsets, empty.getMixedSizes(), strides);
  empty.replaceAllUsesWith(slice);
  empty.erase();
  return true;
}

/// Whether a tile that is read from memory goes back there, by the only name
/// that the block has for it.
static bool isUpdated(bufferization::ToTensorOp tile) {
  bool isWritten = false;
  for (Operation *user : tile.getBuffer().getUsers()) {
    if (user->getBlock() != tile->getBlock() || user == tile)
      continue;
    auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(user);
    if (!write)
      return false;
    isWritten = true;
  }
  return isWritten;
}

namespace {
struct VarlenPlaceTiles : varlen::impl::VarlenPlaceTilesBase<VarlenPlaceTiles> {
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      auto empty = dyn_cast<tensor::EmptyOp>(op);
      auto tile = dyn_cast<bufferization::ToTensorOp>(op);
      if (!empty && !tile)
        return;
      CPUScheduleAttr schedule = getEnclosingSchedule(op);
      if (!schedule || schedule.getKv() == KVStorage::Pairs)
        return;
      if (empty) {
        numBounded += bound(empty, schedule);
      } else if (!tile.getWritable() && isUpdated(tile)) {
        tile.setWritable(true);
        ++numUpdated;
      }
    });
  }
};
} // namespace

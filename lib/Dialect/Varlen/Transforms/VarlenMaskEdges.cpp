//===- VarlenMaskEdges.cpp - Masks where something is hidden --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Limits do not fall from one column to the next, so the rows that all columns
// see follow each other: from the last column's first one to the first column's
// last one. A mask changes nothing in them.
//
//===----------------------------------------------------------------------===//

#include "ScoreBand.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENMASKEDGES
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// `count` rows of a tile from `begin` on masked, the others as they are.
static Value maskRows(ImplicitLocOpBuilder &b, linalg::GenericOp mask,
                      Value tile, Value begin, Value count) {
  auto type = cast<RankedTensorType>(tile.getType());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1),
               columns = b.getIndexAttr(type.getDimSize(1));
  SmallVector<OpFoldResult> offsets = {begin, zero}, sizes = {count, columns},
                            strides = {one, one};
  Value rows = tensor::ExtractSliceOp::create(b, tile, offsets, sizes, strides);
  rows = emitMaskOfRows(b, mask, rows, mask.getInputs()[1], mask.getInputs()[2],
                        begin);
  return tensor::InsertSliceOp::create(b, rows, tile, offsets,
                                       sizes, strides);
}

static void maskEdges(linalg::GenericOp op) {
  ScoreBand band = ScoreBand::get(op);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  IndexBuilder at{b};
  Value tile = op.getInputs()[0], zero = at.constant(0);
  int64_t last = cast<RankedTensorType>(tile.getType()).getDimSize(1) - 1;
  Value total = b.createOrFold<tensor::DimOp>(tile, zero);
  // In i32, through which bufferization does not look for bounds of slices,
  // which would take it most of its time.
  IndexBuilder in{b, b.getI32Type()};
  Value none = in.constant(0), all = in.cast(total);
  // Where nothing is hidden limits may be anything.
  auto getRow = [&](Value limits, int64_t column, Value ifWhole) {
    Value key = tensor::ExtractOp::create(
        b, limits, ValueRange{zero, at.constant(column)});
    Value row = in.sub(key, band.firstKey);
    return band.whole ? in.select(band.whole, ifWhole, row) : row;
  };
  auto clamp = [&](Value row, Value from) {
    return in.min(in.max(row, from), all);
  };
  Value first = clamp(getRow(band.lo, last, none), none);
  Value behind = clamp(getRow(band.hi, 0, all), first);
  Value begin = at.cast(first), end = at.cast(behind);
  Value rest = at.cast(in.sub(all, behind));
  tile = maskRows(b, op, tile, zero, begin);
  tile = maskRows(b, op, tile, end, rest);
  op->getResult(0).replaceAllUsesWith(tile);
  Operation *empty = op.getOutputs().front().getDefiningOp();
  op.erase();
  if (empty && isOpTriviallyDead(empty))
    empty->erase();
}

namespace {
struct VarlenMaskEdges : varlen::impl::VarlenMaskEdgesBase<VarlenMaskEdges> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> masks;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (isMaskOfKeys(op))
        masks.push_back(op);
    });
    llvm::for_each(masks, maskEdges);
    numMasks += masks.size();
  }
};
} // namespace

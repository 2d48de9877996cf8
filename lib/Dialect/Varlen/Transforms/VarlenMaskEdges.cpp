//===- VarlenMaskEdges.cpp - Masks where something is hidden --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask changes nothing in the rows that all columns see, which follow each
// other (see ScoreBand).
//
//===----------------------------------------------------------------------===//

#include "ScoreBand.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/Body.h"
#include "varlen/Dialect/Varlen/Utils/Extents.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"
#include "varlen/Dialect/Varlen/Utils/PairMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENMASKEDGES
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Rows of the loops of an operation.
struct Rows {
  Value begin, count;
};
} // namespace

/// Whether all operands can be cut into rows of the first loop.
static bool canCut(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() != 2)
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    return !map.isFunctionOfDim(0) || map.isIdentity() || isPairMap(map);
  });
}

namespace {
/// Writes an operation that hides something as one for the rows before those
/// that all columns see, one for these, and one for those behind them.
class EdgeMasker {
public:
  EdgeMasker(linalg::GenericOp op, const ScoreBand &band)
      : op(op), band(band), b(op.getLoc(), op), at{b} {}

  void run();

private:
  Value cut(OpOperand &operand, Value tile, const Rows &rows);
  void emit(const Rows &rows, bool isSeen);

  linalg::GenericOp op;
  ScoreBand band;
  ImplicitLocOpBuilder b;
  IndexBuilder at;
  /// The results so far.
  SmallVector<Value> results;
};
} // namespace

/// Rows of an operand; all of it if it has none.
Value EdgeMasker::cut(OpOperand &operand, Value tile, const Rows &rows) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isFunctionOfDim(0))
    return tile;
  auto half = [&](Value value) {
    IndexBuilder in{b, b.getI32Type()};
    return isPairMap(map) ? at.cast(in.div(in.cast(value), 2)) : value;
  };
  SmallVector<OpFoldResult> sizes = getExtents(b, tile),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            ones(sizes.size(), b.getIndexAttr(1));
  offsets[0] = half(rows.begin);
  sizes[0] = half(rows.count);
  return tensor::ExtractSliceOp::create(b, tile, offsets, sizes, ones);
}

void EdgeMasker::emit(const Rows &rows, bool isSeen) {
  auto part = cast<linalg::GenericOp>(b.clone(*op));
  if (isSeen) {
    for (auto hide : part.getBody()->getOps<HideOp>())
      hide.replaceAllUsesWith(hide.getScore());
    eraseDeadOps(*part.getBody());
    // What writes over what it reads has nothing to do.
    if (llvm::equal(part.getBody()->getTerminator()->getOperands(),
                    part.getRegionOutputArgs())) {
      part.erase();
      return;
    }
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(part);
  for (OpOperand *input : op.getDpsInputOperands())
    part->setOperand(input->getOperandNumber(),
                     cut(*input, input->get(), rows));
  SmallVector<Value> next;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    b.setInsertionPoint(part);
    Value slice = cut(init, results[number], rows);
    part->setOperand(init.getOperandNumber(), slice);
    Value result = part->getResult(number);
    result.setType(cast<RankedTensorType>(slice.getType()));
    if (slice != results[number]) {
      b.setInsertionPointAfter(part);
      auto from = slice.getDefiningOp<tensor::ExtractSliceOp>();
      result = tensor::InsertSliceOp::create(
          b, result, results[number], from.getMixedOffsets(),
          from.getMixedSizes(), from.getMixedStrides());
    }
    next.push_back(result);
  }
  results = next;
  moveIndices(b, part, rows.begin);
}

void EdgeMasker::run() {
  results = llvm::to_vector(op.getOutputs());
  OpOperand *tile = llvm::find_if(op->getOpOperands(), [&](OpOperand &operand) {
    return op.getMatchingIndexingMap(&operand).isIdentity();
  });
  int64_t last = cast<RankedTensorType>(band.lo.getType()).getDimSize(1) - 1;
  Value zero = at.constant(0);
  Value total = emitExtent(b, tile->get(), 0);
  // In i32, through which bufferization does not look for bounds of slices,
  // which would take it most of its time.
  IndexBuilder in{b, b.getI32Type()};
  Value none = in.constant(0), all = in.cast(total);
  auto [from, to] =
      band.emitRowsOfAll(b, zero, at.constant(last), /*numRows=*/all);
  auto clamp = [&](Value row) { return in.min(in.max(row, none), all); };
  // Pairs are of two rows.
  Value first = in.min(in.roundUp(clamp(from), kGranule), all);
  Value behind = in.max(in.roundDown(clamp(to), kGranule), first);
  if (band.whole)
    behind = in.select(band.whole, all, behind);
  Value begin = at.cast(first), end = at.cast(behind);
  emit({zero, begin}, /*isSeen=*/false);
  emit({begin, at.cast(in.sub(behind, first))}, /*isSeen=*/true);
  emit({end, at.cast(in.sub(all, behind))}, /*isSeen=*/false);
  op->replaceAllUsesWith(results);
  op.erase();
}

namespace {
struct VarlenMaskEdges : varlen::impl::VarlenMaskEdgesBase<VarlenMaskEdges> {
  void runOnOperation() override {
    SmallVector<std::pair<linalg::GenericOp, ScoreBand>> masks;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (!canCut(op))
        return;
      if (std::optional<ScoreBand> band = ScoreBand::get(op))
        masks.emplace_back(op, *band);
    });
    for (auto &[op, band] : masks)
      EdgeMasker(op, band).run();
    numMasks += masks.size();
  }
};
} // namespace

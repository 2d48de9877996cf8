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
#include "varlen/Dialect/Varlen/Utils/Body.h"
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
/// What a body hides by limits of columns.
struct Hiding {
  /// Limits as operands; see ScoreBand.
  Value lo, hi, firstKey, whole;
  /// What is hidden, and that or what is put in its place.
  SmallVector<std::pair<Value, Value>> values;
};

/// Rows of the loops of an operation.
struct Rows {
  Value begin, count;
};
} // namespace

/// The input that a value of a body is an element of, if its rows have the same
/// one.
static Value getColumns(linalg::GenericOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBody())
    return {};
  OpOperand *operand = op.getMatchingOpOperand(argument);
  if (!op.isDpsInput(operand) ||
      op.getMatchingIndexingMap(operand).isFunctionOfDim(0))
    return {};
  return operand->get();
}

/// What the body hides, in the form in which varlen-online-softmax writes it.
static FailureOr<Hiding> findHiding(linalg::GenericOp op) {
  auto isOutside = [&](Value value) {
    return value.getParentBlock() != op.getBody();
  };
  Hiding found;
  for (auto first : op.getBody()->getOps<arith::SelectOp>()) {
    auto before = first.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!before || before.getPredicate() != arith::CmpIPredicate::slt ||
        !first->hasOneUse())
      continue;
    auto second = dyn_cast<arith::SelectOp>(*first->user_begin());
    auto key = before.getLhs().getDefiningOp<arith::AddIOp>();
    if (!second || !key || second.getTrueValue() != first.getResult() ||
        second.getFalseValue() != first.getFalseValue() ||
        !isOutside(key.getRhs()))
      continue;
    auto after = second.getCondition().getDefiningOp<arith::CmpIOp>();
    auto cast = key.getLhs().getDefiningOp<arith::IndexCastOp>();
    auto row = cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : nullptr;
    if (!after || after.getPredicate() != arith::CmpIPredicate::sge ||
        after.getLhs() != key || !row || row.getDim() != 0)
      return failure();
    Hiding next = {getColumns(op, after.getRhs()),
                   getColumns(op, before.getRhs()),
                   key.getRhs(),
                   Value(),
                   {{first.getTrueValue(), second.getResult()}}};
    if (!next.lo || !next.hi)
      return failure();
    if (second->hasOneUse())
      if (auto third = dyn_cast<arith::SelectOp>(*second->user_begin());
          third && isOutside(third.getCondition()) &&
          third.getTrueValue() == first.getTrueValue()) {
        next.whole = third.getCondition();
        next.values.front().second = third.getResult();
      }
    auto getLimits = [](const Hiding &hiding) {
      return std::array{hiding.lo, hiding.hi, hiding.firstKey, hiding.whole};
    };
    if (found.values.empty())
      found = next;
    else if (getLimits(found) == getLimits(next))
      found.values.push_back(next.values.front());
    else
      return failure();
  }
  if (found.values.empty())
    return failure();
  return found;
}

/// Whether all operands can be cut into rows of the first loop.
static bool canCut(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() != 2)
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    return !map.isFunctionOfDim(0) || map.isIdentity() || isPairMap(map);
  });
}

static SmallVector<OpFoldResult> getOrigin(ImplicitLocOpBuilder &b,
                                           int64_t rank) {
  return SmallVector<OpFoldResult>(rank, b.getIndexAttr(0));
}

namespace {
/// Writes an operation that hides something as one for the rows before those
/// that all columns see, one for these, and one for those behind them.
class EdgeMasker {
public:
  EdgeMasker(linalg::GenericOp op, const Hiding &hiding)
      : op(op), hiding(hiding), b(op.getLoc(), op), at{b} {}

  void run();

private:
  Value cut(OpOperand &operand, Value tile, const Rows &rows,
            SmallVector<OpFoldResult> &offsets,
            SmallVector<OpFoldResult> &sizes);
  void emit(const Rows &rows, bool isSeen);

  linalg::GenericOp op;
  Hiding hiding;
  ImplicitLocOpBuilder b;
  IndexBuilder at;
  /// The results so far.
  SmallVector<Value> results;
};
} // namespace

/// Rows of an operand; all of it if it has none.
Value EdgeMasker::cut(OpOperand &operand, Value tile, const Rows &rows,
                      SmallVector<OpFoldResult> &offsets,
                      SmallVector<OpFoldResult> &sizes) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isFunctionOfDim(0))
    return tile;
  auto half = [&](Value value) {
    IndexBuilder in{b, b.getI32Type()};
    return isPairMap(map) ? at.cast(in.div(in.cast(value), in.constant(2)))
                          : value;
  };
  sizes = tensor::getMixedSizes(b, b.getLoc(), tile);
  offsets = getOrigin(b, sizes.size());
  offsets[0] = half(rows.begin);
  sizes[0] = half(rows.count);
  SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, tile, offsets, sizes, ones);
}

void EdgeMasker::emit(const Rows &rows, bool isSeen) {
  IRMapping map;
  auto part = cast<linalg::GenericOp>(b.clone(*op, map));
  part->removeAttr(kBandAttrName);
  if (isSeen) {
    for (auto [visible, result] : hiding.values)
      map.lookup(result).replaceAllUsesWith(map.lookup(visible));
    for (Operation &inner :
         llvm::make_early_inc_range(llvm::reverse(*part.getBody())))
      if (isOpTriviallyDead(&inner))
        inner.erase();
    // What writes over what it reads has nothing to do.
    if (llvm::equal(part.getBody()->getTerminator()->getOperands(),
                    part.getRegionOutputArgs())) {
      part.erase();
      return;
    }
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(part);
  SmallVector<OpFoldResult> offsets, sizes;
  for (OpOperand *input : op.getDpsInputOperands())
    part->setOperand(input->getOperandNumber(),
                     cut(*input, input->get(), rows, offsets, sizes));
  SmallVector<Value> next;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    b.setInsertionPoint(part);
    Value slice = cut(init, results[number], rows, offsets, sizes);
    part->setOperand(init.getOperandNumber(), slice);
    Value result = part->getResult(number);
    result.setType(cast<RankedTensorType>(slice.getType()));
    if (slice != results[number]) {
      b.setInsertionPointAfter(part);
      SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
      result = tensor::InsertSliceOp::create(b, result, results[number],
                                             offsets, sizes, ones);
    }
    next.push_back(result);
  }
  results = next;
  moveIndices(b, part, rows.begin);
}

void EdgeMasker::run() {
  results = llvm::to_vector(op.getOutputs());
  auto tile = llvm::find_if(op->getOpOperands(), [&](OpOperand &operand) {
    return op.getMatchingIndexingMap(&operand).isIdentity();
  });
  int64_t last = cast<RankedTensorType>(hiding.lo.getType()).getDimSize(1) - 1;
  Value zero = at.constant(0);
  Value total = b.createOrFold<tensor::DimOp>(tile->get(), zero);
  // In i32, through which bufferization does not look for bounds of slices,
  // which would take it most of its time.
  IndexBuilder in{b, b.getI32Type()};
  Value none = in.constant(0), all = in.cast(total);
  // Where nothing is hidden limits may be anything.
  auto getRow = [&](Value limits, int64_t column, Value ifWhole) {
    Value key = tensor::ExtractOp::create(
        b, limits, ValueRange{zero, at.constant(column)});
    Value row = in.sub(key, hiding.firstKey);
    return hiding.whole ? in.select(hiding.whole, ifWhole, row) : row;
  };
  auto clamp = [&](Value row, Value from) {
    return in.min(in.max(row, from), all);
  };
  // Pairs are of two rows.
  Value first =
      in.roundUp(clamp(getRow(hiding.lo, last, none), none), kGranule);
  first = in.min(first, all);
  Value behind = in.max(
      in.roundDown(clamp(getRow(hiding.hi, 0, all), none), kGranule), first);
  if (hiding.whole)
    behind = in.select(hiding.whole, all, behind);
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
    SmallVector<std::pair<linalg::GenericOp, Hiding>> masks;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (!canCut(op))
        return;
      if (FailureOr<Hiding> hiding = findHiding(op); succeeded(hiding))
        masks.emplace_back(op, *hiding);
    });
    for (auto &[op, hiding] : masks)
      EdgeMasker(op, hiding).run();
    numMasks += masks.size();
  }
};
} // namespace

//===- ContractionLoops.cpp - Loops around tiles of products --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionLoops.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Support/IndexBuilder.h"
#include "varlen/Support/Matrices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

/// What the second-level cache holds of a tile beside others.
static constexpr int64_t kTileBytes = 256 * 1024;

static bool hasSmallSize(MemRefType type) {
  return type.hasStaticShape() &&
         type.getNumElements() * type.getElementTypeBitWidth() / 8 <=
             kTileBytes;
}

/// Whether a matrix has a small size that is known, or all memory has that it
/// is a part of; of a panel, which is a part of many, that is what was
/// allocated.
static bool isSmall(Value matrix, bool isPanel) {
  auto type = dyn_cast<MemRefType>(matrix.getType());
  if (!type)
    return false;
  if (!isPanel && hasSmallSize(type))
    return true;
  Value memory = matrix;
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  auto whole = dyn_cast<MemRefType>(memory.getType());
  return whole && hasSmallSize(whole) &&
         (!isPanel || memory.getDefiningOp<memref::AllocOp>());
}

ContractionLoops::ContractionLoops(OpBuilder &builder, linalg::LinalgOp op,
                                   const ContractionForm &form,
                                   const CPUTarget &target)
    : op(op), form(form), target(target),
      element(cast<FloatType>(getElement(form.result))),
      b(op.getLoc(), builder) {}

SmallVector<Value> ContractionLoops::getIndices(OpOperand &operand) {
  SmallVector<Value> result;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
    result.push_back(indices[cast<AffineDimExpr>(expr).getPosition()]);
  return result;
}

bool ContractionLoops::isRightSmall(bool isPanel) {
  return isSmall(form.rhs->get(), isPanel);
}

int64_t ContractionLoops::getVectorsOfLine(int64_t lanes) {
  return std::max<int64_t>(getCacheLineElements(getElement(form.rhs)) / lanes,
                           1);
}

ContractionLoops::RightRow ContractionLoops::getRowAhead(Value row) {
  IndexBuilder index{b};
  Value memory = form.rhs->get();
  auto rows = memory.getDefiningOp<FollowedByOp>();
  if (!rows)
    return {memory, index.add(row, kRowsAhead)};
  // Not behind the rows that are known to follow, a page as long as this one.
  Value count = index.dim(memory, 0);
  Value ahead = index.add(row, index.min(count, kRowsAhead));
  Value isBehind = index.lessEqual(count, ahead);
  return {arith::SelectOp::create(b, isBehind, rows.getNext(), rows.getRows()),
          index.select(isBehind, index.sub(ahead, count), ahead)};
}

void ContractionLoops::prefetchRight(Value memory) {
  emitPrefetch(b, memory, getIndices(*form.rhs));
}

Value ContractionLoops::widen(Value factor) {
  Type from = getElementTypeOrSelf(factor.getType()), type = element;
  if (from == element)
    return factor;
  if (auto vector = dyn_cast<VectorType>(factor.getType()))
    type = vector.clone(element);
  if (isa<FloatType>(from))
    return arith::ExtFOp::create(b, type, factor);
  return arith::SIToFPOp::create(b, type, factor);
}

Value ContractionLoops::multiplyAdd(Value lhs, Value rhs, Value sum) {
  if (target.hasFMA)
    return vector::FMAOp::create(b, lhs, rhs, sum);
  return arith::AddFOp::create(b, sum, arith::MulFOp::create(b, lhs, rhs));
}

void ContractionLoops::emitOuter(ArrayRef<unsigned> dims) {
  if (dims.empty())
    return emitMatrix();
  IndexBuilder index{b};
  emitLoop(b, index.constant(0), extents[dims.front()], 1, [&](Value i) {
    indices[dims.front()] = i;
    emitOuter(dims.drop_front());
  });
}

void ContractionLoops::emit() {
  b.setInsertionPoint(op);
  for (Range range : op.createLoopRanges(b, op.getLoc()))
    extents.push_back(
        getValueOrCreateConstantIndexOp(b, op.getLoc(), range.size));
  indices.assign(extents.size(), Value());
  emitOuter(form.outer);
}

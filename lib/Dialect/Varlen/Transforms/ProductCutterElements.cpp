//===- ProductCutterElements.cpp - What is computed with products ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductCutter.h"
#include "varlen/Dialect/Varlen/Utils/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

bool varlen::isElementwise(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumLoops() != 2 ||
      op.getNumDpsInits() != 1 || !op.isAllParallelLoops())
    return false;
  AffineExpr column = getAffineDimExpr(1, op.getContext());
  return llvm::all_of(op.getIndexingMapsArray(), [&](AffineMap map) {
    return map.isIdentity() ||
           (map.getNumResults() == 2 && !map.isFunctionOfDim(0) &&
            map.getResult(1) == column);
  });
}

Value varlen::getOverwritten(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get().getType() == op.getResultTypes()[0] &&
        op.getMatchingIndexingMap(input).isIdentity())
      return input->get();
  return {};
}

bool varlen::reducesRows(linalg::GenericOp op) {
  return op.getNumLoops() == 2 && op.getNumReductionLoops() == 1 &&
         op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isIdentity() &&
         !op.getMatchingIndexingMap(op.getDpsInitOperand(0))
              .isFunctionOfDim(0) &&
         op.getBody()->getOperations().size() == 2;
}

bool varlen::isThere(Value value, Operation *op) {
  Operation *source = value ? value.getDefiningOp() : nullptr;
  return !source || source->getBlock() != op->getBlock() ||
         source->isBeforeInBlock(op);
}

linalg::GenericOp varlen::getReader(Value tile) {
  return tile.hasOneUse() ? dyn_cast<linalg::GenericOp>(*tile.user_begin())
                          : linalg::GenericOp();
}

bool varlen::isReadBy(Value tile, Operation *reader) {
  return llvm::all_of(tile.getUsers(),
                      [&](Operation *user) { return user == reader; });
}

/// Elementwise operations that make what sums begin with, or read the sums, and
/// nobody else does.
void ProductCutter::findNeighbours() {
  Value product = op->getResult(0);
  linalg::GenericOp reader = getReader(product);
  if (reader && isElementwise(reader) &&
      llvm::all_of(reader.getInputs(), [&](Value input) {
        return input == product || isThere(input, op);
      })) {
    Value tile = getOverwritten(reader);
    if (tile && tile != product)
      end = reader;
  }
  auto maker = op.getOutputs()[0].getDefiningOp<linalg::GenericOp>();
  if (!end && maker && isElementwise(maker) && getOverwritten(maker) &&
      isReadBy(maker->getResult(0), op))
    begin = maker;
}

namespace {
/// What makes the right factor of a product of scores, which is zero where they
/// are hidden: possibly rounded, and summed up.
struct Elements {
  linalg::GenericOp source, rounded, sum;

  bool find(linalg::ContractOp op);
};
} // namespace

bool Elements::find(linalg::ContractOp op) {
  rounded = op.getInputs()[1].getDefiningOp<linalg::GenericOp>();
  source = getUnrounded(op.getInputs()[1]);
  if (source == rounded)
    rounded = {};
  if (!isElementwise(source) || !getOverwritten(source) ||
      (rounded && !isElementwise(rounded)))
    return false;
  for (Operation *user : source->getUsers()) {
    if (user == op || user == rounded)
      continue;
    // A sum of rows, of which zeros may be left out.
    auto reader = dyn_cast<linalg::GenericOp>(user);
    if (sum || !reader || !reducesRows(reader) ||
        !isa<arith::AddFOp>(reader.getBody()->front()) ||
        !isThere(reader.getOutputs()[0], source))
      return false;
    sum = reader;
  }
  return !rounded || isReadBy(rounded->getResult(0), op);
}

/// The scores that a product reads are made of others for each of its two
/// vectors of columns apart, and only of the keys that it sees, which are those
/// that the product reads.
void ProductCutter::cutElements() {
  auto type = cast<RankedTensorType>(op.getInputs()[1].getType());
  int64_t lanes = schedule.getLanes();
  Elements elements;
  if (type.getDimSize(1) != 2 * lanes || !elements.find(op))
    return;
  linalg::GenericOp source = elements.source, rounded = elements.rounded,
                    sum = elements.sum;

  b.setInsertionPoint(source);
  Value scores = getOverwritten(source), tile = scores,
        total = sum ? sum.getOutputs()[0] : Value();
  depth = emitExtent(b, scores, 0);
  if (rounded)
    tile = tensor::EmptyOp::create(b, getExtents(b, scores),
                                   type.getElementType());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallPtrSet<Operation *, 4> parts;
  for (int64_t first : {int64_t(0), lanes}) {
    Value column = at.constant(first);
    RowRange keys = getKeysOf(column, lanes);
    SmallVector<OpFoldResult> offsets = {keys.begin, b.getIndexAttr(first)},
                              sizes = {getLength(keys), b.getIndexAttr(lanes)},
                              ones = {one, one};
    auto cut = [&](Value value) -> Value {
      auto part =
          tensor::ExtractSliceOp::create(b, value, offsets, sizes, ones);
      parts.insert(part);
      return part;
    };
    Value part = tensor::EmptyOp::create(
        b, sizes, getElementTypeOrSelf(scores.getType()));
    part = cloneAt(source, keys.begin, column, lanes, part, [&](Value input) {
      return cut(input == scores && !rounded ? tile : input);
    });
    auto cloneOnPart = [&](linalg::GenericOp op, Value init) {
      return cloneAt(op, keys.begin, column, lanes, init,
                     [&](Value) { return part; });
    };
    if (sum)
      total = insert(cloneOnPart(sum, slice(total, zero, column, 1, lanes)),
                     total, zero, column);
    if (rounded)
      part = cloneOnPart(rounded, cut(tile));
    auto next =
        tensor::InsertSliceOp::create(b, part, tile, offsets, sizes, ones);
    parts.insert(next);
    tile = next;
  }
  if (sum) {
    sum->getResult(0).replaceAllUsesWith(total);
    sum.erase();
  }
  linalg::GenericOp last = rounded ? rounded : source;
  last->getResult(0).replaceAllUsesWith(tile);
  if (rounded)
    rounded.erase();
  source.erase();
  b.setInsertionPoint(op);
  // Beside their parts, only what is reduced with the scores may be read: it is
  // in the loop over them.
  unsigned numOthers = llvm::count_if(scores.getUsers(), [&](Operation *user) {
    return !parts.contains(user);
  });
  if (numOthers <= 1)
    readInBand.insert(scores);
}

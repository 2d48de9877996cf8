//===- ProductCutterElements.cpp - What is computed with products ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductCutter.h"
#include "varlen/Dialect/Varlen/Utils/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

static bool isExtent(Operation *user) { return isa<tensor::DimOp>(user); }

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

/// Elementwise operations that make what sums begin with, or read the sums, and
/// nobody else does.
void ProductCutter::findNeighbours() {
  auto isThere = [&](Value value) {
    Operation *source = value.getDefiningOp();
    return !source || source->getBlock() != op->getBlock() ||
           source->isBeforeInBlock(op);
  };
  Value product = op->getResult(0);
  SmallVector<Operation *> readers;
  for (Operation *user : product.getUsers())
    if (!isExtent(user))
      readers.push_back(user);
  auto reader = readers.size() == 1
                    ? dyn_cast<linalg::GenericOp>(readers.front())
                    : linalg::GenericOp();
  if (reader && isElementwise(reader) &&
      llvm::all_of(reader.getInputs(), [&](Value input) {
        return input == product || isThere(input);
      })) {
    Value tile = getOverwritten(reader);
    if (tile && tile != product)
      end = reader;
  }
  auto maker = op.getOutputs()[0].getDefiningOp<linalg::GenericOp>();
  if (!end && maker && isElementwise(maker) && getOverwritten(maker) &&
      llvm::all_of(maker->getUsers(), [&](Operation *user) {
        return user == op || isExtent(user);
      }))
    begin = maker;
}

/// Whether an operation sums the rows of a tile up, so that zeros may be left
/// out.
static bool isSumOfRows(linalg::GenericOp op) {
  return op.getNumLoops() == 2 && op.getNumReductionLoops() == 1 &&
         op.getNumDpsInputs() == 1 && op.getNumDpsInits() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isIdentity() &&
         !op.getMatchingIndexingMap(op.getDpsInitOperand(0))
              .isFunctionOfDim(0) &&
         isa<arith::AddFOp>(op.getBody()->front()) &&
         op.getBody()->getOperations().size() == 2;
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
  source = rounded;
  if (rounded && rounded.getNumDpsInputs() == 1 && isElementwise(rounded) &&
      isa<arith::TruncFOp>(rounded.getBody()->front()))
    source = rounded.getInputs()[0].getDefiningOp<linalg::GenericOp>();
  if (source == rounded)
    rounded = {};
  if (!source || !source->hasAttr(kBandAttrName) || !isElementwise(source) ||
      !getOverwritten(source))
    return false;
  for (Operation *user : source->getUsers()) {
    if (user == op || user == rounded || isExtent(user))
      continue;
    auto reader = dyn_cast<linalg::GenericOp>(user);
    if (sum || !reader || !isSumOfRows(reader))
      return false;
    Operation *begin = reader.getOutputs()[0].getDefiningOp();
    if (begin && begin->getBlock() == op->getBlock() &&
        !begin->isBeforeInBlock(source))
      return false;
    sum = reader;
  }
  return !rounded || llvm::all_of(rounded->getUsers(), [&](Operation *user) {
    return user == op || isExtent(user);
  });
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
  depth = b.createOrFold<tensor::DimOp>(scores, at.constant(0));
  if (rounded)
    tile = tensor::EmptyOp::create(
        b, tensor::getMixedSizes(b, b.getLoc(), scores), type.getElementType());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallPtrSet<Operation *, 4> parts;
  for (int64_t first : {int64_t(0), lanes}) {
    RowRange keys = getKeysOf(at.constant(first), lanes);
    OpFoldResult column = b.getIndexAttr(first);
    SmallVector<OpFoldResult> offsets = {keys.begin, column},
                              sizes = {getLength(keys), b.getIndexAttr(lanes)},
                              ones = {one, one};
    auto cut = [&](Value value) -> Value {
      auto part =
          tensor::ExtractSliceOp::create(b, value, offsets, sizes, ones);
      parts.insert(part);
      return part;
    };
    auto clone = [&](linalg::GenericOp op, Value input, Value init) {
      IRMapping values;
      for (OpOperand *operand : op.getDpsInputOperands())
        if (!op.getMatchingIndexingMap(operand).isIdentity())
          values.map(operand->get(),
                     slice(operand->get(), zero, column, 1, lanes));
        else if (input)
          values.map(operand->get(), input);
        else
          values.map(operand->get(), cut(operand->get() == scores && !rounded
                                             ? tile
                                             : operand->get()));
      values.map(op.getOutputs()[0], init);
      auto part = cast<linalg::GenericOp>(b.clone(*op, values));
      part->getResult(0).setType(cast<RankedTensorType>(init.getType()));
      moveIndices(b, part, {keys.begin, at.constant(first)});
      return part->getResult(0);
    };
    Value part = clone(source, Value(),
                       tensor::EmptyOp::create(
                           b, sizes, getElementTypeOrSelf(scores.getType())));
    if (sum)
      total = insert(clone(sum, part, slice(total, zero, column, 1, lanes)),
                     total, zero, column);
    if (rounded)
      part = clone(rounded, part, cut(tile));
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
  if (rounded) {
    rounded.erase();
    // Its extents are left.
    source->getResult(0).replaceAllUsesWith(scores);
  }
  source.erase();
  b.setInsertionPoint(op);
  // Beside their parts, only what is reduced with the scores may be read: it is
  // in the loop over them.
  unsigned numOthers = llvm::count_if(scores.getUsers(), [&](Operation *user) {
    return !isExtent(user) && !parts.contains(user);
  });
  if (numOthers <= 1)
    readInBand.insert(scores);
}

//===- OnlineAttnTiling.cpp - Tiles of varlen.online_attn -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of a step is a step: some queries against some keys. Tiles of keys
// carry the state on, one after the other. Columns of v are no loop: each tile
// of them would need all scores again, and m and l have none.
//
//===----------------------------------------------------------------------===//

#include "TileSpan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Loops of the iteration domain.
enum Loop { Queries, Keys };
} // namespace

/// The dimension of the state and the limits that counts queries.
static int64_t getQueryDim(OnlineAttnOp op) {
  return op.getOrientation() == Orientation::QK ? 0 : 1;
}

SmallVector<utils::IteratorType> OnlineAttnOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::reduction};
}

SmallVector<Range> OnlineAttnOp::getIterationDomain(OpBuilder &b) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  OpFoldResult queries = tensor::getMixedSize(b, getLoc(), getQ(), 0);
  OpFoldResult keys = tensor::getMixedSize(b, getLoc(), getK(), 0);
  return {Range{zero, queries, one}, Range{zero, keys, one}};
}

FailureOr<TilingResult>
OnlineAttnOp::getTiledImplementation(OpBuilder &b,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes) {
  if (getQueries())
    return emitOpError("expected limits or nothing hidden for a step to be "
                       "tiled, got rows of a tile loop");
  Span queries{offsets[Queries], sizes[Queries]};
  Span keys{offsets[Keys], sizes[Keys]};
  TilingResult tiled;
  SmallVector<Value> operands(getOperands());
  auto slice = [&](OpOperand &operand, int64_t dim, const Span &span) {
    operands[operand.getOperandNumber()] =
        sliceDim(b, getLoc(), operand.get(), dim, span, tiled.generatedSlices);
  };
  slice(getQMutable(), 0, queries);
  slice(getKMutable(), 0, keys);
  slice(getVMutable(), 0, keys);
  int64_t queryDim = getQueryDim(*this);
  for (MutableOperandRange limit : {getLoMutable(), getHiMutable()})
    for (OpOperand &operand : limit)
      slice(operand, queryDim, queries);
  for (OpOperand &state : getDpsInitsMutable())
    slice(state, queryDim, queries);
  // Key 0 of a tile is another key of the block.
  for (OpOperand &first : getK0Mutable()) {
    if (isConstantIntValue(keys.offset, 0))
      continue;
    Value offset = getValueOrCreateConstantIndexOp(b, getLoc(), keys.offset);
    offset = arith::IndexCastOp::create(b, getLoc(), b.getI32Type(), offset);
    operands[first.getOperandNumber()] =
        arith::AddIOp::create(b, getLoc(), first.get(), offset);
  }
  SmallVector<Type> types;
  for (OpOperand &state : getDpsInitsMutable())
    types.push_back(operands[state.getOperandNumber()].getType());
  Operation *tile = mlir::clone(b, *this, types, operands);
  tiled.tiledOps.push_back(tile);
  llvm::append_range(tiled.tiledValues, tile->getResults());
  return tiled;
}

LogicalResult OnlineAttnOp::getResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  int64_t queryDim = getQueryDim(*this);
  resultOffsets.assign(2, b.getIndexAttr(0));
  resultSizes = tensor::getMixedSizes(b, getLoc(), getDpsInits()[resultNumber]);
  resultOffsets[queryDim] = offsets[Queries];
  resultSizes[queryDim] = sizes[Queries];
  return success();
}

LogicalResult OnlineAttnOp::getIterationDomainTileFromResultTile(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &iterDomainOffsets,
    SmallVectorImpl<OpFoldResult> &iterDomainSizes) {
  int64_t queryDim = getQueryDim(*this), other = 1 - queryDim;
  // Some columns of a row would cost as much as all of them.
  if (!isWhole({offsets[other], sizes[other]}, getDpsInits()[resultNumber],
               other))
    return failure();
  iterDomainOffsets.assign({offsets[queryDim], b.getIndexAttr(0)});
  iterDomainSizes.assign(
      {sizes[queryDim], tensor::getMixedSize(b, getLoc(), getK(), 0)});
  return success();
}

FailureOr<TilingResult>
OnlineAttnOp::generateResultTileValue(OpBuilder &b, unsigned resultNumber,
                                      ArrayRef<OpFoldResult> offsets,
                                      ArrayRef<OpFoldResult> sizes) {
  return tileResult(*this, b, resultNumber, offsets, sizes);
}

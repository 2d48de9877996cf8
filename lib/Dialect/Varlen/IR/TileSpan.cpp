//===- TileSpan.cpp - Ranges of heads and rows --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileSpan.h"

#include "AttentionInterface.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::varlen;

SmallVector<Range>
varlen::getDomain(OpBuilder &b, Location loc,
                  ArrayRef<std::pair<Value, int64_t>> extents) {
  SmallVector<Range> domain;
  for (auto [value, dim] : extents)
    domain.push_back({b.getIndexAttr(0),
                      tensor::getMixedSize(b, loc, value, dim),
                      b.getIndexAttr(1)});
  return domain;
}

bool varlen::isWhole(const Span &span, Value tensor, int64_t dim) {
  if (!isConstantIntValue(span.offset, 0))
    return false;
  int64_t extent = cast<ShapedType>(tensor.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(extent))
    return isConstantIntValue(span.size, extent);
  using Bounds = ValueBoundsConstraintSet;
  FailureOr<bool> equal =
      Bounds::areEqual(Bounds::Variable(span.size),
                       Bounds::Variable(tensor, std::optional<int64_t>(dim)));
  return succeeded(equal) && *equal;
}

/// Whether every result of `map` is a multiple of `factor`.
static bool areMultiplesOf(AffineMap map, ValueRange operands, int64_t factor) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> dims, symbols;
  for (auto [position, operand] : llvm::enumerate(operands)) {
    bool isDim = position < map.getNumDims();
    AffineExpr expr =
        isDim ? getAffineDimExpr(position, context)
              : getAffineSymbolExpr(position - map.getNumDims(), context);
    if (isMultipleOf(operand, factor))
      expr = expr * factor;
    (isDim ? dims : symbols).push_back(expr);
  }
  return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
    return expr.replaceDimsAndSymbols(dims, symbols).isMultipleOf(factor);
  });
}

bool varlen::isMultipleOf(OpFoldResult value, int64_t factor) {
  if (factor == 1)
    return true;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % factor == 0;
  auto dynamic = cast<Value>(value);
  if (auto argument = dyn_cast<BlockArgument>(dynamic)) {
    auto loop =
        dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
    if (!loop)
      return false;
    auto ivs = loop.getLoopInductionVars();
    auto lower = loop.getLoopLowerBounds(), steps = loop.getLoopSteps();
    if (!ivs || !lower || !steps)
      return false;
    const auto *iv = llvm::find(*ivs, dynamic);
    if (iv == ivs->end())
      return false;
    size_t position = iv - ivs->begin();
    return isMultipleOf((*lower)[position], factor) &&
           isMultipleOf((*steps)[position], factor);
  }
  if (auto op = dynamic.getDefiningOp<affine::AffineApplyOp>())
    return areMultiplesOf(op.getMap(), op.getOperands(), factor);
  if (auto op = dynamic.getDefiningOp<affine::AffineMinOp>())
    return areMultiplesOf(op.getMap(), op.getOperands(), factor);
  if (auto op = dynamic.getDefiningOp<affine::AffineMaxOp>())
    return areMultiplesOf(op.getMap(), op.getOperands(), factor);
  return false;
}

Value varlen::sliceDim(OpBuilder &b, Location loc, Value tensor, int64_t dim,
                       const Span &span, SmallVectorImpl<Operation *> &slices) {
  if (isWhole(span, tensor, dim))
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = span.offset;
  sizes[dim] = span.size;
  auto slice =
      tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes, strides);
  slices.push_back(slice);
  return slice;
}

FailureOr<Value> varlen::sliceAsResult(TilingInterface op, OpBuilder &b,
                                       unsigned resultNumber, Value tensor,
                                       ArrayRef<OpFoldResult> offsets,
                                       ArrayRef<OpFoldResult> sizes,
                                       SmallVectorImpl<Operation *> &slices) {
  SmallVector<OpFoldResult> partOffsets, partSizes;
  if (failed(op.getResultTilePosition(b, resultNumber, offsets, sizes,
                                      partOffsets, partSizes)))
    return failure();
  SmallVector<OpFoldResult> strides(partSizes.size(), b.getIndexAttr(1));
  auto slice = tensor::ExtractSliceOp::create(b, op.getLoc(), tensor,
                                              partOffsets, partSizes, strides);
  slices.push_back(slice);
  return slice.getResult();
}

void varlen::getOutTile(OpBuilder &b, Location loc, Value wide,
                        unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes,
                        SmallVectorImpl<OpFoldResult> &resultOffsets,
                        SmallVectorImpl<OpFoldResult> &resultSizes) {
  if (resultNumber != 0) {
    resultOffsets.assign({offsets[Heads], offsets[Rows]});
    resultSizes.assign({sizes[Heads], sizes[Rows]});
    return;
  }
  OpFoldResult width = tensor::getMixedSize(b, loc, wide, getColumnsDim(wide));
  resultOffsets.assign({offsets[Rows], offsets[Heads], b.getIndexAttr(0)});
  resultSizes.assign({sizes[Rows], sizes[Heads], width});
}

LogicalResult varlen::getOutDomainTile(
    Value wide, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  if (resultNumber == 0 &&
      !isWhole({offsets[2], sizes[2]}, wide, getColumnsDim(wide)))
    return failure();
  // lse is heads x rows, out rows x heads.
  unsigned heads = resultNumber == 0 ? 1 : 0, rows = 1 - heads;
  domainOffsets.assign({offsets[heads], offsets[rows]});
  domainSizes.assign({sizes[heads], sizes[rows]});
  return success();
}

FailureOr<TilingResult>
varlen::createTile(AttentionOpInterface op, OpBuilder &b,
                   ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                   ArrayRef<Type> types, ArrayRef<Value> inputs,
                   ValueRange captures, TilingResult tiled) {
  SmallVector<Value> destinations;
  for (auto [number, destination] : llvm::enumerate(op.getDestinations())) {
    FailureOr<Value> part =
        sliceAsResult(cast<TilingInterface>(*op), b, number, destination,
                      offsets, sizes, tiled.generatedSlices);
    if (failed(part))
      return failure();
    destinations.push_back(*part);
  }
  AttentionOpInterface tile = detail::createAttention(
      b, op,
      destinations.empty() ? TypeRange(types)
                           : TypeRange(ValueRange(destinations)),
      inputs, captures, destinations);
  tiled.tiledOps.push_back(tile);
  llvm::append_range(tiled.tiledValues, tile->getResults());
  return tiled;
}

FailureOr<TilingResult> mlir::varlen::tileResult(TilingInterface op,
                                                 OpBuilder &b,
                                                 unsigned resultNumber,
                                                 ArrayRef<OpFoldResult> offsets,
                                                 ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> tileOffsets, tileSizes;
  if (failed(op.getIterationDomainTileFromResultTile(
          b, resultNumber, offsets, sizes, tileOffsets, tileSizes)))
    return failure();
  FailureOr<TilingResult> tiled =
      op.getTiledImplementation(b, tileOffsets, tileSizes);
  if (succeeded(tiled))
    tiled->tiledValues = {tiled->tiledValues[resultNumber]};
  return tiled;
}

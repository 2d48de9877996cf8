//===- AttnGradTiling.cpp - Tiles of varlen.attn_grad
//----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of a gradient is a gradient: some kv heads, with the query heads of
// their groups. Rows stay whole: a part of the queries would give dq its rows,
// but of dk and dv a summand only.
//
//===----------------------------------------------------------------------===//

#include "TileSpan.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Results, in order.
enum Gradient { Dq, Dk, Dv, Dsink };
} // namespace

/// The number of query heads that share a kv head, if types know it.
static std::optional<int64_t> getGroupSize(AttnGradOp op) {
  int64_t queryHeads = op.getQueryHeads(), kvHeads = op.getKvHeads();
  if (ShapedType::isDynamic(queryHeads) || ShapedType::isDynamic(kvHeads))
    return std::nullopt;
  return queryHeads / kvHeads;
}

/// The query heads of the groups of some kv heads.
static Span findQueryHeads(ImplicitLocOpBuilder &b, AttnGradOp op,
                           const Span &kvHeads) {
  Location loc = b.getLoc();
  if (isWhole(kvHeads, op.getK(), 1))
    return {b.getIndexAttr(0), tensor::getMixedSize(b, loc, op.getQ(), 1)};
  if (std::optional<int64_t> group = getGroupSize(op)) {
    auto times = [&](OpFoldResult value) {
      return affine::makeComposedFoldedAffineApply(
          b, loc, b.getAffineDimExpr(0) * *group, {value});
    };
    return {times(kvHeads.offset), times(kvHeads.size)};
  }
  Value group = arith::DivUIOp::create(
      b, tensor::DimOp::create(b, op.getQ(), 1).getResult(),
      tensor::DimOp::create(b, op.getK(), 1).getResult());
  auto times = [&](OpFoldResult value) -> OpFoldResult {
    Value factor = getValueOrCreateConstantIndexOp(b, loc, value);
    return arith::MulIOp::create(b, factor, group).getResult();
  };
  return {times(kvHeads.offset), times(kvHeads.size)};
}

SmallVector<utils::IteratorType> AttnGradOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel};
}

SmallVector<Range> AttnGradOp::getIterationDomain(OpBuilder &b) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  return {Range{zero, tensor::getMixedSize(b, getLoc(), getK(), 1), one}};
}

FailureOr<TilingResult>
AttnGradOp::getTiledImplementation(OpBuilder &builder,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes) {
  if (isBufferized())
    return emitOpError("expected tensors to tile, got memrefs");
  ImplicitLocOpBuilder b(getLoc(), builder);
  Span kvHeads{offsets[0], sizes[0]};
  Span heads = findQueryHeads(b, *this, kvHeads);

  TilingResult tiled;
  auto slice = [&](Value tensor, int64_t dim, const Span &span) -> Value {
    if (!tensor)
      return {};
    return sliceDim(b, getLoc(), tensor, dim, span, tiled.generatedSlices);
  };
  Value dout = slice(getDout(), 1, heads), q = slice(getQ(), 1, heads);
  Value k = slice(getK(), 1, kvHeads), v = slice(getV(), 1, kvHeads);
  Value out = slice(getOut(), 1, heads), lse = slice(getLse(), 0, heads);
  Value dlse = slice(getDlse(), 0, heads), sink = slice(getSink(), 0, heads);

  auto type = [](Value value) { return cast<ShapedType>(value.getType()); };
  SmallVector<Type> types = llvm::to_vector_of<Type>(
      inferGradientTypes(type(q), type(k), type(v), sink != Value()));
  auto op = AttnGradOp::create(
      b, types, dout, q, k, v, out, lse, getCuQ(), getCuK(), dlse,
      getSequsedQ(), getSequsedK(), getQOffset(), sink,
      /*gradient_buffers=*/ValueRange(), getMaskAttr(), getScaleAttr());
  op->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  tiled.tiledOps.push_back(op);
  llvm::append_range(tiled.tiledValues, op.getResults());
  return tiled;
}

LogicalResult AttnGradOp::getResultTilePosition(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Span heads{offsets[0], sizes[0]};
  if (resultNumber == Dq || resultNumber == Dsink)
    heads = findQueryHeads(b, *this, heads);
  if (resultNumber == Dsink) {
    resultOffsets = {heads.offset};
    resultSizes = {heads.size};
    return success();
  }
  Value input = resultNumber == Dq   ? getQ()
                : resultNumber == Dk ? getK()
                                     : getV();
  resultOffsets.assign(3, b.getIndexAttr(0));
  resultSizes = tensor::getMixedSizes(b, getLoc(), input);
  resultOffsets[1] = heads.offset;
  resultSizes[1] = heads.size;
  return success();
}

LogicalResult AttnGradOp::getIterationDomainTileFromResultTile(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes,
    SmallVectorImpl<OpFoldResult> &iterDomainOffsets,
    SmallVectorImpl<OpFoldResult> &iterDomainSizes) {
  unsigned headDim = resultNumber == Dsink ? 0 : 1;
  // A part of the rows, or of a head's elements, would cost as much as all.
  Value result = getResult(resultNumber);
  for (unsigned dim = 0; dim < offsets.size(); ++dim)
    if (dim != headDim && !isWhole({offsets[dim], sizes[dim]}, result, dim))
      return failure();
  OpFoldResult offset = offsets[headDim], size = sizes[headDim];
  if (resultNumber == Dq || resultNumber == Dsink) {
    std::optional<int64_t> group = getGroupSize(*this);
    if (!group || !isMultipleOf(offset, *group) || !isMultipleOf(size, *group))
      return failure();
    AffineExpr perGroup = b.getAffineDimExpr(0).floorDiv(*group);
    for (OpFoldResult *value : {&offset, &size})
      *value = affine::makeComposedFoldedAffineApply(b, getLoc(), perGroup,
                                                     {*value});
  }
  iterDomainOffsets.assign({offset});
  iterDomainSizes.assign({size});
  return success();
}

FailureOr<TilingResult>
AttnGradOp::generateResultTileValue(OpBuilder &b, unsigned resultNumber,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes) {
  return tileResult(*this, b, resultNumber, offsets, sizes);
}

//===- AttnGradTiling.cpp - Tiles of varlen.attn_grad ---------------------===//
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

#include "AttentionInterface.h"
#include "TileSpan.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Results, in order; dsink and those of captures come last.
enum Gradient { Dq, Dk, Dv };
/// The first operands, in order.
enum Slot { Dout, Q, K, V };
} // namespace

/// Whether a result has a part for each query head.
static bool hasQueryHeads(unsigned resultNumber) {
  return resultNumber != Dk && resultNumber != Dv;
}

/// The dimension of a result that counts heads.
static unsigned getHeadAxis(unsigned resultNumber) {
  return resultNumber <= Dv ? 1 : 0;
}

/// The number of query heads that share a kv head, if types know it.
static std::optional<int64_t> getGroupSize(AttentionOpInterface op) {
  int64_t queryHeads = op.getQueryHeads(), kvHeads = op.getKvHeads();
  if (ShapedType::isDynamic(queryHeads) || ShapedType::isDynamic(kvHeads))
    return std::nullopt;
  return queryHeads / kvHeads;
}

/// The query heads of the groups of some kv heads.
static Span findQueryHeads(ImplicitLocOpBuilder &b, AttentionOpInterface op,
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

SmallVector<utils::IteratorType> varlen::detail::getGradLoops() {
  return {utils::IteratorType::parallel};
}

SmallVector<Range> varlen::detail::getGradDomain(AttentionOpInterface op,
                                                 OpBuilder &b) {
  return getDomain(b, op.getLoc(), {{op.getK(), 1}});
}

FailureOr<TilingResult> varlen::detail::tileGrad(AttentionOpInterface op,
                                                 OpBuilder &builder,
                                                 Offsets offsets, Sizes sizes) {
  if (op.isBufferized())
    return op->emitOpError("expected tensors to tile, got memrefs");
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  Span kvHeads{offsets[0], sizes[0]};
  Span heads = findQueryHeads(b, op, kvHeads);

  TilingResult tiled;
  // Packed tensors have their heads in dimension 1, what has a number for each
  // row and head in dimension 0. What counts sequences has none.
  SmallVector<Value> inputs = op.getInputSlots();
  for (auto [slot, input] : llvm::enumerate(inputs)) {
    if (!input || isa<IntegerType>(getElementTypeOrSelf(input.getType())))
      continue;
    int64_t dim = shaped(input).getRank() == 3 ? 1 : 0;
    input = sliceDim(b, op.getLoc(), input, dim,
                     slot == K || slot == V ? kvHeads : heads,
                     tiled.generatedSlices);
  }

  SmallVector<Value> captures =
      llvm::map_to_vector(op.getCaptures(), [&](Value capture) {
        return sliceDim(b, op.getLoc(), capture, 0, heads,
                        tiled.generatedSlices);
      });

  auto type = [&](Slot slot) { return shaped(inputs[slot]); };
  SmallVector<Type> types =
      inferGradientTypes(type(Q), type(K), type(V), op.getSink() != Value(),
                         captures, op.getWrtCaptures());
  return createTile(op, b, offsets, sizes, types, inputs, captures,
                    std::move(tiled));
}

LogicalResult varlen::detail::getGradResultTile(
    AttentionOpInterface op, OpBuilder &builder, unsigned resultNumber,
    Offsets offsets, Sizes sizes, SmallVectorImpl<OpFoldResult> &resultOffsets,
    SmallVectorImpl<OpFoldResult> &resultSizes) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  Span heads{offsets[0], sizes[0]};
  if (hasQueryHeads(resultNumber))
    heads = findQueryHeads(b, op, heads);
  // All extents are those of the result, but for its heads.
  ShapedByInputs result = op.getShapedResults()[resultNumber];
  resultOffsets.assign(result.extents.size(), b.getIndexAttr(0));
  resultSizes = llvm::map_to_vector(result.extents, [&](const ExtentOf &from) {
    return tensor::getMixedSize(b, op.getLoc(), from.source.value, from.dim);
  });
  unsigned headDim = getHeadAxis(resultNumber);
  resultOffsets[headDim] = heads.offset;
  resultSizes[headDim] = heads.size;
  return success();
}

LogicalResult varlen::detail::getGradDomainTile(
    AttentionOpInterface op, OpBuilder &b, unsigned resultNumber,
    Offsets offsets, Sizes sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  unsigned headDim = getHeadAxis(resultNumber);
  // A part of the rows, or of a head's elements, would cost as much as all.
  Value result = op->getResult(resultNumber);
  for (unsigned dim = 0; dim < offsets.size(); ++dim)
    if (dim != headDim && !isWhole({offsets[dim], sizes[dim]}, result, dim))
      return failure();
  OpFoldResult offset = offsets[headDim], size = sizes[headDim];
  if (hasQueryHeads(resultNumber)) {
    std::optional<int64_t> group = getGroupSize(op);
    if (!group || !isMultipleOf(offset, *group) || !isMultipleOf(size, *group))
      return failure();
    AffineExpr perGroup = b.getAffineDimExpr(0).floorDiv(*group);
    for (OpFoldResult *value : {&offset, &size})
      *value = affine::makeComposedFoldedAffineApply(b, op.getLoc(), perGroup,
                                                     {*value});
  }
  domainOffsets.assign({offset});
  domainSizes.assign({size});
  return success();
}

//===- AttnTiling.cpp - Tiles of varlen.attn ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of an attention is an attention: some query heads, with the key heads
// of their groups, and some rows of the packed queries, whatever sequences they
// belong to. The keys stay whole, so a tile needs no merging.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "TileSpan.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

/// A size or an offset, for a message.
static std::string describe(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::to_string(*constant);
  return "unknown";
}

/// The key heads of a tile of query heads: those of its whole groups, or the
/// one whose group holds the tile. Fails, with an error at the op, for a tile
/// that cuts a group elsewhere: its query heads would not be equally many per
/// key head.
static FailureOr<Span> findKvHeads(ImplicitLocOpBuilder &b,
                                   AttentionOpInterface op, const Span &heads) {
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  OpFoldResult all =
      tensor::getMixedSize(b, b.getLoc(), op.getK(), getHeadsDim(op.getK()));
  int64_t queryHeads = op.getQueryHeads(), kvHeads = op.getKvHeads();
  if (kvHeads == 1 || isWhole(heads, op.getQ(), 1))
    return Span{zero, all};

  if (ShapedType::isDynamic(queryHeads) || ShapedType::isDynamic(kvHeads)) {
    if (!isConstantIntValue(heads.size, 1)) {
      op->emitOpError("expected tiles of one head where the number of query "
                      "heads in a group is dynamic, got size ")
          << describe(heads.size);
      return failure();
    }
    Value total = tensor::DimOp::create(b, op.getQ(), 1);
    Value group = arith::DivUIOp::create(
        b, total, getValueOrCreateConstantIndexOp(b, b.getLoc(), all));
    Value head = getValueOrCreateConstantIndexOp(b, b.getLoc(), heads.offset);
    return Span{arith::DivUIOp::create(b, head, group).getResult(), one};
  }

  int64_t group = queryHeads / kvHeads;
  AffineExpr perGroup = b.getAffineDimExpr(0).floorDiv(group);
  auto divided = [&](OpFoldResult value) {
    return affine::makeComposedFoldedAffineApply(b, b.getLoc(), perGroup,
                                                 {value});
  };
  if (isMultipleOf(heads.offset, group) && isMultipleOf(heads.size, group))
    return Span{divided(heads.offset), divided(heads.size)};
  std::optional<int64_t> size = getConstantIntValue(heads.size);
  if (size && *size > 0 && group % *size == 0 &&
      isMultipleOf(heads.offset, *size))
    return Span{divided(heads.offset), one};

  op->emitOpError("expected tiles of heads that hold whole groups of ")
      << group << " query heads or divide one, got size "
      << describe(heads.size);
  return failure();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Maps integer vectors of one length to others; the body sees indices.
static SmallVector<Value> mapIntegers(
    ImplicitLocOpBuilder &b, ValueRange inputs, ArrayRef<Type> elements,
    function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)> body) {
  SmallVector<Value> inits;
  OpFoldResult length = tensor::getMixedSize(b, b.getLoc(), inputs[0], 0);
  for (Type element : elements)
    inits.push_back(tensor::EmptyOp::create(b, length, element));
  SmallVector<AffineMap> maps(inputs.size() + inits.size(),
                              b.getMultiDimIdentityMap(1));
  auto build = [&](OpBuilder &builder, Location loc, ValueRange args) {
    ImplicitLocOpBuilder inner(loc, builder);
    SmallVector<Value> indices, results;
    for (Value arg : args.take_front(inputs.size()))
      indices.push_back(
          arith::IndexCastOp::create(inner, inner.getIndexType(), arg));
    for (auto [value, element] :
         llvm::zip_equal(body(inner, indices), elements))
      results.push_back(arith::IndexCastOp::create(inner, element, value));
    linalg::YieldOp::create(inner, results);
  };
  auto generic = linalg::GenericOp::create(
      b, TypeRange(ValueRange(inits)), inputs, inits, maps,
      ArrayRef<utils::IteratorType>{utils::IteratorType::parallel}, build);
  return SmallVector<Value>(generic.getResults());
}

/// offset + shift in `type`. Any integer may be an offset, so the sum
/// saturates: beyond every key it does not matter where a row is.
static Value addOffset(ImplicitLocOpBuilder &b, Value offset, Value shift,
                       Type type) {
  bool narrow = type.isInteger(32);
  int64_t far = narrow ? std::numeric_limits<int32_t>::max() : int64_t(1) << 62;
  auto saturate = [&](Value value) -> Value {
    Value low = arith::ConstantIndexOp::create(b, -far);
    Value high = arith::ConstantIndexOp::create(b, far);
    return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, value, low),
                                  high);
  };
  if (narrow)
    return saturate(arith::AddIOp::create(b, offset, shift));
  return arith::AddIOp::create(b, saturate(offset), shift);
}

void varlen::detail::takeRowRange(ImplicitLocOpBuilder &b,
                                  AttentionOpInterface op,
                                  OpFoldResult firstRow, OpFoldResult numRows,
                                  Value &cuQ, Value &sequsedQ, Value &qOffset) {
  Value first = getValueOrCreateConstantIndexOp(b, b.getLoc(), firstRow);
  Value size = getValueOrCreateConstantIndexOp(b, b.getLoc(), numRows);
  // Row `row` of all, as a row of the tile or one of its two ends.
  auto clamp = [&](ImplicitLocOpBuilder &b, Value row) -> Value {
    Value zero = arith::ConstantIndexOp::create(b, 0);
    Value relative = arith::SubIOp::create(b, row, first);
    return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, relative, zero),
                                  size);
  };
  cuQ = mapIntegers(b, op.getCuQ(), getElementTypeOrSelf(op.getCuQ().getType()),
                    [&](ImplicitLocOpBuilder &b, ValueRange args) {
                      return SmallVector<Value>{clamp(b, args[0])};
                    })
            .front();

  MaskAttrInterface mask = op.getMask();
  // Without a mask or a score that asks for them positions do not matter.
  bool needsOffset = !mask.isFull() || readsPositions(op.getScoreBody());
  bool hasUsed = static_cast<bool>(sequsedQ);
  bool hasOffset = needsOffset && qOffset;
  if (!hasUsed && !needsOffset) {
    qOffset = {};
    return;
  }

  OpFoldResult entries = tensor::getMixedSize(b, b.getLoc(), op.getCuQ(), 0);
  OpFoldResult sequences = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), b.getAffineDimExpr(0) - 1, {entries});
  auto entriesFrom = [&](int64_t position) -> Value {
    OpFoldResult one = b.getIndexAttr(1), from = b.getIndexAttr(position);
    return tensor::ExtractSliceOp::create(b, op.getCuQ(), from, sequences, one);
  };
  SmallVector<Value> inputs{entriesFrom(0), entriesFrom(1)};
  SmallVector<Type> elements;
  if (hasUsed) {
    inputs.push_back(sequsedQ);
    elements.push_back(getElementTypeOrSelf(sequsedQ.getType()));
  }
  if (hasOffset)
    inputs.push_back(qOffset);
  if (needsOffset)
    elements.push_back(getElementTypeOrSelf(hasOffset ? qOffset.getType()
                                                      : op.getCuQ().getType()));

  auto body = [&](ImplicitLocOpBuilder &b, ValueRange args) {
    Value begin = args[0];
    Value used = hasUsed ? args[2]
                         : arith::SubIOp::create(b, args[1], begin).getResult();
    Value end = arith::AddIOp::create(b, begin, used);
    Value inTile = arith::SubIOp::create(b, clamp(b, end), clamp(b, begin));
    SmallVector<Value> results;
    if (hasUsed)
      results.push_back(inTile);
    if (!needsOffset)
      return results;
    // A row keeps its position: before the tile are `skipped` rows of its
    // sequence; a bottom-right mask is now aligned with the end of the rows in
    // the tile instead of the end of all.
    Value zero = arith::ConstantIndexOp::create(b, 0);
    Value skipped =
        arith::MaxSIOp::create(b, arith::SubIOp::create(b, first, begin), zero);
    Value shift = skipped;
    if (mask.getAlignment() == Alignment::BottomRight)
      shift = arith::SubIOp::create(
          b, arith::AddIOp::create(b, skipped, inTile), used);
    if (hasOffset)
      shift = addOffset(b, args.back(), shift, elements.back());
    results.push_back(shift);
    return results;
  };
  SmallVector<Value> results = mapIntegers(b, inputs, elements, body);
  if (hasUsed)
    sequsedQ = results.front();
  qOffset = needsOffset ? results.back() : Value();
}

//===----------------------------------------------------------------------===//
// TilingInterface
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> varlen::detail::getAttnLoops() {
  return SmallVector<utils::IteratorType>(NumOutLoops,
                                          utils::IteratorType::parallel);
}

SmallVector<Range> varlen::detail::getAttnDomain(AttentionOpInterface op,
                                                 OpBuilder &b) {
  return getDomain(b, op.getLoc(), {{op.getQ(), 1}, {op.getQ(), 0}});
}

FailureOr<TilingResult> varlen::detail::tileAttn(AttentionOpInterface op,
                                                 OpBuilder &builder,
                                                 Offsets offsets, Sizes sizes) {
  if (op.isBufferized())
    return op->emitOpError("expected tensors to tile, got memrefs");
  Location loc = op.getLoc();
  ImplicitLocOpBuilder b(loc, builder);
  Span heads{offsets[Heads], sizes[Heads]}, rows{offsets[Rows], sizes[Rows]};
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  FailureOr<Span> kvHeads = findKvHeads(b, op, heads);
  if (failed(kvHeads))
    return failure();

  TilingResult tiled;
  Value q = op.getQ();
  if (!isWhole(rows, q, 0) || !isWhole(heads, q, 1)) {
    OpFoldResult width = tensor::getMixedSize(b, loc, q, 2);
    auto slice = tensor::ExtractSliceOp::create(
        b, q, ArrayRef<OpFoldResult>{rows.offset, heads.offset, zero},
        ArrayRef<OpFoldResult>{rows.size, heads.size, width},
        ArrayRef<OpFoldResult>{one, one, one});
    tiled.generatedSlices.push_back(slice);
    q = slice;
  }
  auto sliceHeads = [&](Value rows) {
    return sliceDim(b, loc, rows, getHeadsDim(rows), *kvHeads,
                    tiled.generatedSlices);
  };
  Value k = sliceHeads(op.getK()), v = sliceHeads(op.getV());
  Value kScale = op.getKScale(), vScale = op.getVScale();
  for (Value *scale : {&kScale, &vScale})
    if (*scale)
      *scale = sliceDim(b, loc, *scale, shaped(*scale).getRank() - 1, *kvHeads,
                        tiled.generatedSlices);
  Value sink = op.getSink();
  if (sink)
    sink = sliceDim(b, loc, sink, 0, heads, tiled.generatedSlices);
  SmallVector<Value> captures;
  for (auto [number, capture] : llvm::enumerate(op.getCaptures())) {
    Value tile = sliceDim(b, loc, capture, 0, heads, tiled.generatedSlices);
    if (varlen::detail::isOfQueries(op, number))
      tile = sliceDim(b, loc, tile, 1, rows, tiled.generatedSlices);
    captures.push_back(tile);
  }

  Value cuQ = op.getCuQ(), sequsedQ = op.getSequsedQ(),
        qOffset = op.getQOffset();
  // A loop may have its bound from either.
  if (!isWhole(rows, op.getQ(), 0) && !isWhole(rows, op->getResult(0), 0))
    detail::takeRowRange(b, op, rows.offset, rows.size, cuQ, sequsedQ, qOffset);

  Type types[] = {inferOutType(shaped(q), shaped(v)), inferLseType(shaped(q))};
  Value inputs[] = {q,
                    k,
                    v,
                    cuQ,
                    op.getCuK(),
                    sequsedQ,
                    op.getSequsedK(),
                    qOffset,
                    sink,
                    op.getBlockTable(),
                    kScale,
                    vScale};
  return createTile(op, b, offsets, sizes, types, inputs, captures,
                    std::move(tiled));
}

LogicalResult varlen::detail::getAttnResultTile(
    AttentionOpInterface op, OpBuilder &b, unsigned resultNumber,
    Offsets offsets, Sizes sizes, SmallVectorImpl<OpFoldResult> &resultOffsets,
    SmallVectorImpl<OpFoldResult> &resultSizes) {
  getOutTile(b, op.getLoc(), op.getV(), resultNumber, offsets, sizes,
             resultOffsets, resultSizes);
  return success();
}

LogicalResult varlen::detail::getAttnDomainTile(
    AttentionOpInterface op, OpBuilder &, unsigned resultNumber,
    Offsets offsets, Sizes sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  return getOutDomainTile(op.getV(), resultNumber, offsets, sizes,
                          domainOffsets, domainSizes);
}

bool varlen::detail::isAttnResultTile(AttentionOpInterface op,
                                      unsigned resultNumber, Offsets offsets,
                                      Sizes sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  return succeeded(getOutDomainTile(op.getV(), resultNumber, offsets, sizes,
                                    domainOffsets, domainSizes));
}

LogicalResult varlen::detail::getAttnDomainTileOfQueries(
    AttentionOpInterface op, ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  // q comes first. A part of the keys has a part of each sum.
  if (operandNumbers.size() != 1 || operandNumbers[0] != 0)
    return failure();
  // q is rows x heads, as out is.
  return getOutDomainTile(op.getQ(), /*resultNumber=*/0, allOffsets[0],
                          allSizes[0], domainOffsets, domainSizes);
}

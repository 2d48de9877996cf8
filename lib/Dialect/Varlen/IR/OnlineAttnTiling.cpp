//===- OnlineAttnTiling.cpp - Tiles of varlen.online_attn -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of a step is a step: some queries against some keys. Tiles of keys
// carry the state on, one after the other, or have a state each, of which a
// varlen.online_merge makes one. Columns of v are no loop: each tile
// of them would need all scores again, and m and l have none.
//
//===----------------------------------------------------------------------===//

#include "TileSpan.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Loops of the iteration domain.
enum Loop { Queries, Keys };
} // namespace

SmallVector<utils::IteratorType> OnlineAttnOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::reduction};
}

SmallVector<Range> OnlineAttnOp::getIterationDomain(OpBuilder &b) {
  return getDomain(b, getLoc(), {{getQ(), 0}, {getK(), 0}});
}

/// The step on those queries and keys, on the state that `stateOf` makes of
/// each of its tiles; slices that it makes are added to its argument.
static FailureOr<TilingResult> tileStep(
    OnlineAttnOp op, OpBuilder &b, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes,
    function_ref<Value(OpOperand &, SmallVectorImpl<Operation *> &)> stateOf) {
  if (op.getQueries())
    return op.emitOpError("expected limits or nothing hidden for a step to be "
                          "tiled, got rows of a tile loop");
  Location loc = op.getLoc();
  Span queries{offsets[Queries], sizes[Queries]};
  Span keys{offsets[Keys], sizes[Keys]};
  TilingResult tiled;
  SmallVector<Value> operands(op->getOperands());
  auto slice = [&](OpOperand &operand, int64_t dim, const Span &span) {
    operands[operand.getOperandNumber()] =
        sliceDim(b, loc, operand.get(), dim, span, tiled.generatedSlices);
  };
  slice(op.getQMutable(), 0, queries);
  slice(op.getKMutable(), 0, keys);
  slice(op.getVMutable(), 0, keys);
  for (MutableOperandRange ofQueries :
       {op.getLoMutable(), op.getHiMutable(), op.getPositionMutable(),
        op.getCapturesMutable(), op.getRowsMutable()})
    for (OpOperand &operand : ofQueries)
      slice(operand, getQueriesDim(op.getOrientation()), queries);
  for (OpOperand *number : op.getKeyNumbers())
    slice(*number, 1 - getQueriesDim(op.getOrientation()), keys);
  SmallVector<Type> types;
  for (OpOperand &state : op.getDpsInitsMutable()) {
    Value &operand = operands[state.getOperandNumber()];
    operand = stateOf(state, tiled.generatedSlices);
    types.push_back(operand.getType());
  }
  if (!isConstantIntValue(keys.offset, 0)) {
    Value offset = getValueOrCreateConstantIndexOp(b, loc, keys.offset);
    for (MutableOperandRange seen :
         {op.getSeenBeginMutable(), op.getSeenEndMutable()})
      for (OpOperand &key : seen)
        operands[key.getOperandNumber()] =
            arith::SubIOp::create(b, loc, key.get(), offset);
  }
  // Key 0 of a tile is another key of the block.
  for (MutableOperandRange optional :
       {op.getK0Mutable(), op.getFirstKeyMutable()})
    for (OpOperand &first : optional) {
      if (isConstantIntValue(keys.offset, 0))
        continue;
      Value offset = getValueOrCreateConstantIndexOp(b, loc, keys.offset);
      offset = arith::IndexCastOp::create(b, loc, b.getI32Type(), offset);
      operands[first.getOperandNumber()] =
          arith::AddIOp::create(b, loc, first.get(), offset);
    }
  Operation *tile = mlir::clone(b, op, types, operands);
  tiled.tiledOps.push_back(tile);
  llvm::append_range(tiled.tiledValues, tile->getResults());
  return tiled;
}

FailureOr<TilingResult>
OnlineAttnOp::getTiledImplementation(OpBuilder &b,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes) {
  Span queries{offsets[Queries], sizes[Queries]};
  return tileStep(*this, b, offsets, sizes,
                  [&](OpOperand &state, SmallVectorImpl<Operation *> &slices) {
                    return sliceDim(b, getLoc(), state.get(),
                                    getQueriesDim(getOrientation()), queries,
                                    slices);
                  });
}

LogicalResult OnlineAttnOp::getResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  int64_t queryDim = getQueriesDim(getOrientation());
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
  int64_t queryDim = getQueriesDim(getOrientation()), other = 1 - queryDim;
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

//===----------------------------------------------------------------------===//
// Parts of the keys, side by side
//===----------------------------------------------------------------------===//

/// That parts are those of the outer loop: a state of each key of a tile would
/// not be one of this operation.
static LogicalResult checkParts(OnlineAttnOp op,
                                ReductionTilingStrategy strategy) {
  if (strategy == ReductionTilingStrategy::PartialReductionOuterParallel)
    return success();
  return op.emitOpError("expected parts of the keys that run in parallel, each "
                        "with a state, got a partial result for each key of a "
                        "tile");
}

/// One of the states that are stacked, or some queries of it.
static Value slicePart(OpBuilder &b, Location loc, Value states,
                       ArrayRef<OpFoldResult> offsets,
                       ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(states.getType());
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(ArrayRef(sizes).drop_front(), dynamic, shape);
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), states,
      offsets, sizes, strides);
}

FailureOr<SmallVector<Value>>
OnlineAttnOp::generateInitialTensorForPartialReduction(
    OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &) {
  auto compute = cast<FloatType>(getM().getType().getElementType());
  double scale = getScale().convertToDouble();
  SmallVector<Value> states;
  for (auto [init, number] : llvm::zip_equal(
           getDpsInits(), OnlineInitOp::getNumbers(scale, compute))) {
    SmallVector<OpFoldResult> shape = {sizes[Keys]};
    llvm::append_range(shape, tensor::getMixedSizes(b, loc, init));
    Value empty = tensor::EmptyOp::create(b, loc, shape, compute);
    Value value =
        arith::ConstantOp::create(b, loc, b.getFloatAttr(compute, number));
    states.push_back(linalg::FillOp::create(b, loc, value, empty).getResult(0));
  }
  return states;
}

LogicalResult OnlineAttnOp::getPartialResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ReductionTilingStrategy tilingStrategy,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &, ArrayRef<OpFoldResult> splitReductionIvs,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  if (failed(checkParts(*this, tilingStrategy)))
    return failure();
  // Upstream asks a copy of the operation whose destinations are all parts.
  int64_t queryDim = getQueriesDim(getOrientation()), other = 1 - queryDim;
  resultOffsets.assign(3, b.getIndexAttr(0));
  resultSizes.assign(3, b.getIndexAttr(1));
  resultOffsets[0] = splitReductionIvs.front();
  resultOffsets[1 + queryDim] = offsets[Queries];
  resultSizes[1 + queryDim] = sizes[Queries];
  if (resultNumber == 0)
    resultSizes[1 + other] = tensor::getMixedSize(b, getLoc(), getV(), 1);
  return success();
}

FailureOr<TilingResult> OnlineAttnOp::tileToPartialReduction(
    OpBuilder &b, Location loc, ReductionTilingStrategy tilingStrategy,
    ValueRange init, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, const SetVector<unsigned> &reductionDims,
    ArrayRef<OpFoldResult> splitReductionIvs) {
  if (failed(checkParts(*this, tilingStrategy)))
    return failure();
  unsigned number = 0;
  return tileStep(*this, b, offsets, sizes,
                  [&](OpOperand &, SmallVectorImpl<Operation *> &slices) {
                    SmallVector<OpFoldResult> at, extents;
                    (void)getPartialResultTilePosition(
                        b, number, tilingStrategy, offsets, sizes,
                        reductionDims, splitReductionIvs, at, extents);
                    Value part = slicePart(b, loc, init[number++], at, extents);
                    slices.push_back(part.getDefiningOp());
                    return part;
                  });
}

FailureOr<MergeResult>
OnlineAttnOp::mergeReductions(OpBuilder &b, Location loc,
                              ValueRange partialReduce,
                              const SetVector<unsigned> &) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value count = tensor::DimOp::create(b, loc, partialReduce.front(), zero);
  auto merge = [&](OpBuilder &nested, Location loc, Value number,
                   ValueRange state) {
    SmallVector<Value> operands(state);
    for (auto [all, one] : llvm::zip_equal(partialReduce, state)) {
      SmallVector<OpFoldResult> at(3, nested.getIndexAttr(0)),
          extents = tensor::getMixedSizes(nested, loc, one);
      at[0] = number;
      extents.insert(extents.begin(), nested.getIndexAttr(1));
      operands.push_back(slicePart(nested, loc, all, at, extents));
    }
    size_t count = state.size();
    Operation *both = createMerge(nested, ArrayRef(operands).take_front(count),
                                  ArrayRef(operands).drop_front(count));
    scf::YieldOp::create(nested, loc, both->getResults());
  };
  auto loop =
      scf::ForOp::create(b, loc, zero, count, one, getDpsInits(), merge);
  return MergeResult{{loop}, llvm::to_vector_of<Value>(loop.getResults())};
}

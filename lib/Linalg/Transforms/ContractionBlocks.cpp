//===- ContractionBlocks.cpp - Contractions in blocks of caches -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionBlocks.h"

#include "TileArithmetic.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/IndexBuilder.h"
#include "varlen/Support/PairMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

ContractionBlocks::ContractionBlocks(ImplicitLocOpBuilder &b,
                                     linalg::LinalgOp op,
                                     const ContractionForm &form,
                                     const CPUTarget &target)
    : b(b), op(op), form(form), sizes(getContractionTile(target)),
      panelWidth(sizes.vectors *
                 target.getLanes(getElementWidth(form.result) / 8)),
      depthStep(isBF16Product(form, target) ? 2 : 1),
      element(cast<FloatType>(
          getElement(depthStep == 1 ? form.result : form.rhs))) {
  AffineMap map = op.getMatchingIndexingMap(form.rhs);
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (dim != form.depth && dim != form.columns && map.isFunctionOfDim(dim))
      batch.push_back(dim);
  for (Range range : op.createLoopRanges(b, op.getLoc()))
    extents.push_back(range.size);
  // All of it if that is less than a block.
  depthBlock = sizes.depth * depthStep;
  std::optional<int64_t> depth = getConstantIntValue(extents[form.depth]);
  canBeOdd = !depth || *depth % 2;
  if (depth)
    depthBlock =
        std::min(depthBlock, static_cast<int64_t>(llvm::alignTo(
                                 std::max<int64_t>(*depth, 1), depthStep)));
}

/// A copy of a matrix with its elements in the type of sums; the maps are from
/// (depth, other) to the dimensions of each.
static Value emitCopy(ImplicitLocOpBuilder &b, Value source, AffineMap from,
                      Value target, AffineMap to) {
  // Which canonicalization would take for nothing as an operation of its maps.
  if (from == to)
    return linalg::CopyOp::create(b, source, target).getResult(0);
  return emitGeneric(b, source, target, {from, to},
                     [](ImplicitLocOpBuilder &inner, ValueRange x) {
                       return convertScalarToDtype(inner, inner.getLoc(), x[0],
                                                   x[1].getType(),
                                                   /*isUnsignedCast=*/false);
                     });
}

/// (depth, other) to the dimensions of the left or right factor, its other
/// loops left out.
static AffineMap getMatrixMap(linalg::LinalgOp op, OpOperand *operand,
                              unsigned depth, unsigned other) {
  SmallVector<AffineExpr> results;
  MLIRContext *context = op.getContext();
  for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    if (dim == depth || dim == other)
      results.push_back(getAffineDimExpr(dim == depth ? 0 : 1, context));
  }
  return AffineMap::get(2, 0, results, context);
}

/// Writes a tensor to the part of `whole` that begins at `offsets`.
static Value emitInsert(ImplicitLocOpBuilder &b, Value part, Value whole,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> extents) {
  SmallVector<OpFoldResult> ones(offsets.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, part, whole, offsets, extents, ones);
}

/// The part of `whole` that begins at `offsets`, without some of its dimensions
/// that are 1 if `type` is.
static Value emitExtract(ImplicitLocOpBuilder &b, Value whole,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> extents,
                         RankedTensorType type = {}) {
  SmallVector<OpFoldResult> ones(offsets.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, type, whole, offsets, extents, ones);
}

/// A matrix as pairs of its depth, (pair, other, 2); `from` is from (depth,
/// other) to the dimensions of the matrix. A depth that is odd, if it can be,
/// ends with a zero.
static Value emitPairs(ImplicitLocOpBuilder &b, Value source, AffineMap from,
                       OpFoldResult depth, OpFoldResult width, bool canBeOdd,
                       Value target) {
  TileArithmetic math{b};
  bool isDepthFirst = from.getDimPosition(0) == 0;
  OpFoldResult zero = b.getIndexAttr(0), two = b.getIndexAttr(2);
  OpFoldResult pairs = math.floorDiv(depth, 2);
  OpFoldResult whole = math.mul(pairs, 2);
  auto inOrder = [&](OpFoldResult ofDepth, OpFoldResult ofOther) {
    SmallVector<OpFoldResult> result = {ofDepth, ofOther};
    if (!isDepthFirst)
      std::swap(result[0], result[1]);
    return result;
  };
  auto emitCopyTo =
      [&](Value input, AffineMap read, OpFoldResult first, OpFoldResult count,
          function_ref<Value(ImplicitLocOpBuilder &, ValueRange)> body) {
        SmallVector<OpFoldResult> offsets = {first, zero, zero},
                                  extents = {count, width, two};
        Value part = emitExtract(b, target, offsets, extents);
        Value copied = emitGeneric(b, input, part,
                                   {read, b.getMultiDimIdentityMap(3)}, body);
        target = emitInsert(b, copied, target, offsets, extents);
      };
  MLIRContext *context = b.getContext();
  AffineExpr h, n, p;
  bindDims(context, h, n, p);

  Value even =
      emitExtract(b, source, inOrder(zero, zero), inOrder(whole, width));
  SmallVector<OpFoldResult> shape = {pairs, two};
  shape.insert(isDepthFirst ? shape.end() : shape.begin(), width);
  SmallVector<ReassociationIndices> dims = {{0, 1}, {2}};
  if (!isDepthFirst)
    dims = {{0}, {1, 2}};
  auto type = cast<RankedTensorType>(source.getType())
                  .clone(decomposeMixedValues(shape).first);
  Value expanded = tensor::ExpandShapeOp::create(b, type, even, dims, shape);
  emitCopyTo(expanded,
             isDepthFirst ? AffineMap::get(3, 0, {h, p, n}, context)
                          : AffineMap::get(3, 0, {n, h, p}, context),
             zero, pairs,
             [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });

  if (!canBeOdd)
    return target;
  OpFoldResult rest = math.sub(depth, whole);
  Value last =
      emitExtract(b, source, inOrder(whole, zero), inOrder(rest, width));
  emitCopyTo(
      last,
      isDepthFirst ? AffineMap::get(3, 0, {h, n}, context)
                   : AffineMap::get(3, 0, {n, h}, context),
      pairs, rest, [](ImplicitLocOpBuilder &inner, ValueRange x) {
        Value isThere =
            IndexBuilder{inner}.equal(linalg::IndexOp::create(inner, 2), 0);
        Value zero =
            arith::ConstantOp::create(inner, inner.getZeroAttr(x[0].getType()));
        return arith::SelectOp::create(inner, isThere, x[0], zero).getResult();
      });
  return target;
}

SmallVector<OpFoldResult> ContractionBlocks::getPanelShape(OpFoldResult depth,
                                                           OpFoldResult width) {
  SmallVector<OpFoldResult> shape = {
      TileArithmetic{b}.ceilDiv(depth, depthStep), width};
  if (depthStep > 1)
    shape.push_back(b.getIndexAttr(depthStep));
  return shape;
}

void ContractionBlocks::emitPanels() {
  TileArithmetic math{b};
  OpFoldResult columns = extents[form.columns], depth = extents[form.depth];
  // In the order in which tiles read them: all panels of a depth block.
  SmallVector<OpFoldResult> loops;
  for (unsigned dim : batch)
    loops.push_back(extents[dim]);
  loops.append(
      {math.ceilDiv(depth, depthBlock), math.ceilDiv(columns, panelWidth)});
  // What a panel has after its place: depth and columns, and pairs.
  SmallVector<OpFoldResult> shape = loops;
  shape.append(
      {b.getIndexAttr(depthBlock / depthStep), b.getIndexAttr(panelWidth)});
  if (depthStep > 1)
    shape.push_back(b.getIndexAttr(depthStep));
  Value memory = emitAlloc(b, shape, element);
  auto forall =
      scf::ForallOp::create(b, loops, ValueRange{memory}, std::nullopt);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forall.getBody());
  SmallVector<Value> indices = forall.getInductionVars();
  OpFoldResult column = math.mul(indices.back(), panelWidth);
  OpFoldResult first = math.mul(indices.end()[-2], depthBlock);
  OpFoldResult width = math.cut(panelWidth, columns, column);
  OpFoldResult size = math.cut(depthBlock, depth, first);
  // The panel where it is.
  SmallVector<OpFoldResult> offsets, lengths, kept;
  auto type = cast<RankedTensorType>(form.rhs->get().getType());
  AffineMap map = op.getMatchingIndexingMap(form.rhs);
  for (AffineExpr expr : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    if (const auto *place = llvm::find(batch, dim); place != batch.end()) {
      offsets.push_back(indices[place - batch.begin()]);
      lengths.push_back(b.getIndexAttr(1));
      continue;
    }
    offsets.push_back(dim == form.columns ? column : first);
    lengths.push_back(dim == form.columns ? width : size);
    kept.push_back(lengths.back());
  }
  Value source = emitExtract(b, form.rhs->get(), offsets, lengths,
                             type.clone(decomposeMixedValues(kept).first));
  // And where it will be.
  SmallVector<OpFoldResult> to(indices.begin(), indices.end());
  SmallVector<OpFoldResult> area(indices.size(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> panel = getPanelShape(size, width);
  to.append(panel.size(), b.getIndexAttr(0));
  area.append(panel);
  Value target = emitExtract(
      b, forall.getRegionIterArgs().front(), to, area,
      RankedTensorType::get(decomposeMixedValues(panel).first, element));
  AffineMap from = getMatrixMap(op, form.rhs, form.depth, form.columns);
  Value copied =
      depthStep > 1
          ? emitPairs(b, source, from, size, width, canBeOdd, target)
          : emitCopy(b, source, from, target, b.getMultiDimIdentityMap(2));
  SmallVector<OpFoldResult> ones(to.size(), b.getIndexAttr(1));
  b.setInsertionPointToStart(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(
      b, copied, forall.getRegionIterArgs().front(), to, area, ones);
  panels = forall.getResult(0);
}

/// The left factor's columns from `first` on, rows a fixed distance apart.
Value ContractionBlocks::emitLeftCopy(Value lhs, OpFoldResult rows,
                                      OpFoldResult first, OpFoldResult depth) {
  AffineMap map = getMatrixMap(op, form.lhs, form.depth, form.rows);
  OpFoldResult zero = b.getIndexAttr(0);
  SmallVector<OpFoldResult> shape = {b.getIndexAttr(sizes.blockRows),
                                     b.getIndexAttr(depthBlock)},
                            offsets = {zero, first}, lengths = {rows, depth};
  if (map.getDimPosition(0) == 0) {
    std::swap(shape[0], shape[1]);
    std::swap(offsets[0], offsets[1]);
    std::swap(lengths[0], lengths[1]);
  }
  Value block = emitAlloc(b, shape, element);
  Value target = emitExtract(b, block, {zero, zero}, lengths);
  Value source = emitExtract(b, lhs, offsets, lengths);
  return emitCopy(b, source, map, target, map);
}

/// The same in pairs: (row, pair, 2), or (pair, row, 2) where rows of the left
/// factor are along the depth.
Value ContractionBlocks::emitLeftPairs(Value lhs, OpFoldResult rows,
                                       OpFoldResult first, OpFoldResult depth) {
  TileArithmetic math{b};
  AffineMap map = getMatrixMap(op, form.lhs, form.depth, form.rows);
  OpFoldResult zero = b.getIndexAttr(0), two = b.getIndexAttr(2);
  OpFoldResult pairs = math.ceilDiv(depth, 2);
  if (map.getDimPosition(0) == 0) {
    Value block = emitAlloc(
        b,
        {b.getIndexAttr(depthBlock / 2), b.getIndexAttr(sizes.blockRows), two},
        element);
    Value target =
        emitExtract(b, block, {zero, zero, zero}, {pairs, rows, two});
    Value source = emitExtract(b, lhs, {first, zero}, {depth, rows});
    return emitPairs(b, source, map, depth, rows, canBeOdd, target);
  }
  // Neighbours are pairs already.
  Value block = emitAlloc(
      b, {b.getIndexAttr(sizes.blockRows), b.getIndexAttr(depthBlock)},
      element);
  Value target = emitExtract(b, block, {zero, zero}, {rows, depth});
  Value source = emitExtract(b, lhs, {zero, first}, {rows, depth});
  Value copied = linalg::CopyOp::create(b, source, target).getResult(0);
  block = emitInsert(b, copied, block, {zero, zero}, {rows, depth});
  if (canBeOdd) {
    OpFoldResult rest = math.sub(math.mul(pairs, 2), depth);
    Value end = emitExtract(b, block, {zero, depth}, {rows, rest});
    Value zeroElement = arith::ConstantOp::create(b, b.getZeroAttr(element));
    Value zeros = linalg::FillOp::create(b, zeroElement, end).getResult(0);
    block = emitInsert(b, zeros, block, {zero, depth}, {rows, rest});
  }
  auto type =
      RankedTensorType::get({sizes.blockRows, depthBlock / 2, 2}, element);
  Value expanded =
      tensor::ExpandShapeOp::create(b, type, block, getPairDims(/*rank=*/3));
  return emitExtract(b, expanded, {zero, zero, zero}, {rows, pairs, two});
}

Value ContractionBlocks::emitDepth(Value lhs, Value sum,
                                   ArrayRef<OpFoldResult> outer,
                                   OpFoldResult rows, OpFoldResult block) {
  TileArithmetic math{b};
  OpFoldResult first = math.mul(block, depthBlock);
  OpFoldResult depth = math.cut(depthBlock, extents[form.depth], first);
  Value left = depthStep > 1 ? emitLeftPairs(lhs, rows, first, depth)
                             : emitLeftCopy(lhs, rows, first, depth);
  OpFoldResult columns = extents[form.columns];
  MLIRContext *context = b.getContext();
  // (row, column, depth), and a pair's element.
  AffineExpr m, n, k, p;
  bindDims(context, m, n, k, p);
  AffineMap fromLeft = getMatrixMap(op, form.lhs, form.depth, form.rows);
  bool isTransposed = fromLeft.getDimPosition(0) == 0;
  SmallVector<AffineExpr> leftMap = {m, k};
  if (isTransposed)
    std::swap(leftMap[0], leftMap[1]);
  SmallVector<AffineExpr> rightMap = {k, n};
  unsigned numLoops = 3;
  if (depthStep > 1) {
    leftMap.push_back(p);
    rightMap.push_back(p);
    ++numLoops;
  }
  ArrayAttr maps =
      b.getAffineMapArrayAttr({AffineMap::get(numLoops, 0, leftMap, context),
                               AffineMap::get(numLoops, 0, rightMap, context),
                               AffineMap::get(numLoops, 0, {m, n}, context)});

  auto loop =
      scf::ForOp::create(b, math.value(b.getIndexAttr(0)),
                         math.value(math.ceilDiv(columns, panelWidth)),
                         math.value(b.getIndexAttr(1)), ValueRange{sum});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  OpFoldResult panel = loop.getInductionVar();
  OpFoldResult column = math.mul(panel, panelWidth);
  OpFoldResult width = math.cut(panelWidth, columns, column);
  SmallVector<OpFoldResult> offsets;
  for (unsigned dim : batch)
    offsets.push_back(outer[dim]);
  offsets.append({block, panel});
  SmallVector<OpFoldResult> lengths(offsets.size(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> shape = getPanelShape(depth, width);
  offsets.append(shape.size(), b.getIndexAttr(0));
  lengths.append(shape);
  Value right = emitExtract(
      b, panels, offsets, lengths,
      RankedTensorType::get(decomposeMixedValues(shape).first, element));
  Value sums = loop.getRegionIterArgs().front();
  SmallVector<OpFoldResult> at = {b.getIndexAttr(0), column},
                            area = {rows, width};
  Value tile = emitExtract(b, sums, at, area);
  Value next = linalg::ContractOp::create(b, TypeRange{tile.getType()},
                                          ValueRange{left, right},
                                          ValueRange{tile}, maps)
                   .getResult(0);
  scf::YieldOp::create(b, emitInsert(b, next, sums, at, area));
  return loop.getResult(0);
}

Value ContractionBlocks::emitTile(Value lhs, Value sum,
                                  ArrayRef<OpFoldResult> outer,
                                  OpFoldResult rows) {
  TileArithmetic math{b};
  OpFoldResult numBlocks = math.ceilDiv(extents[form.depth], depthBlock);
  if (isOneInteger(numBlocks))
    return emitDepth(lhs, sum, outer, rows, b.getIndexAttr(0));
  auto loop = scf::ForOp::create(
      b, math.value(b.getIndexAttr(0)), math.value(numBlocks),
      math.value(b.getIndexAttr(1)), ValueRange{sum});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value next = emitDepth(lhs, loop.getRegionIterArgs().front(), outer, rows,
                         loop.getInductionVar());
  scf::YieldOp::create(b, next);
  return loop.getResult(0);
}

//===- ContractionBlocks.cpp - Contractions in blocks of caches -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionBlocks.h"

#include "TileArithmetic.h"

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
                 target.getLanes(getElement(form.result).getWidth() / 8)) {
  AffineMap map = op.getMatchingIndexingMap(form.rhs);
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (dim != form.depth && dim != form.columns && map.isFunctionOfDim(dim))
      batch.push_back(dim);
  for (Range range : op.createLoopRanges(b, op.getLoc()))
    extents.push_back(range.size);
  // All of it if that is less than a block.
  depthBlock = sizes.depth;
  if (std::optional<int64_t> depth = getConstantIntValue(extents[form.depth]))
    depthBlock = std::min(depthBlock, std::max<int64_t>(*depth, 1));
}

OpFoldResult ContractionBlocks::getExtent(unsigned dim) { return extents[dim]; }

/// A copy of a matrix with its elements in the type of sums; the maps are from
/// (depth, other) to the dimensions of each.
static Value emitCopy(ImplicitLocOpBuilder &b, Value source, AffineMap from,
                      Value target, AffineMap to) {
  // Which canonicalization would take for nothing as an operation of its maps.
  if (from == to)
    return linalg::CopyOp::create(b, source, target).getResult(0);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, TypeRange{target.getType()}, ValueRange{source},
             ValueRange{target}, ArrayRef<AffineMap>{from, to}, loops,
             [&](OpBuilder &builder, Location loc, ValueRange arguments) {
               Value element = arguments.front();
               Type type = arguments.back().getType();
               if (element.getType() != type)
                 element = arith::ExtFOp::create(builder, loc, type, element);
               linalg::YieldOp::create(builder, loc, element);
             })
      .getResult(0);
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

void ContractionBlocks::emitPanels() {
  TileArithmetic math{b};
  OpFoldResult columns = getExtent(form.columns), depth = getExtent(form.depth);
  // In the order in which tiles read them: all panels of a depth block.
  SmallVector<OpFoldResult> loops;
  for (unsigned dim : batch)
    loops.push_back(getExtent(dim));
  loops.append(
      {math.ceilDiv(depth, depthBlock), math.ceilDiv(columns, panelWidth)});
  SmallVector<OpFoldResult> shape = loops;
  shape.append({b.getIndexAttr(depthBlock), b.getIndexAttr(panelWidth)});
  FloatType element = getElement(form.result);
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
  SmallVector<OpFoldResult> offsets, extents;
  SmallVector<int64_t> kept;
  auto type = cast<RankedTensorType>(form.rhs->get().getType());
  AffineMap map = op.getMatchingIndexingMap(form.rhs);
  for (AffineExpr expr : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    if (const auto *place = llvm::find(batch, dim); place != batch.end()) {
      offsets.push_back(indices[place - batch.begin()]);
      extents.push_back(b.getIndexAttr(1));
      continue;
    }
    offsets.push_back(dim == form.columns ? column : first);
    extents.push_back(dim == form.columns ? width : size);
    kept.push_back(getStaticSize(extents.back()));
  }
  SmallVector<OpFoldResult> ones(offsets.size(), b.getIndexAttr(1));
  Value source = tensor::ExtractSliceOp::create(
      b, RankedTensorType::get(kept, type.getElementType()), form.rhs->get(),
      offsets, extents, ones);
  // And where it will be.
  SmallVector<OpFoldResult> to(indices.begin(), indices.end());
  to.append(2, b.getIndexAttr(0));
  SmallVector<OpFoldResult> area(indices.size(), b.getIndexAttr(1));
  area.append({size, width});
  SmallVector<OpFoldResult> steps(to.size(), b.getIndexAttr(1));
  auto panelType = RankedTensorType::get(
      {getStaticSize(size), getStaticSize(width)}, element);
  Value target = tensor::ExtractSliceOp::create(
      b, panelType, forall.getRegionIterArgs().front(), to, area, steps);
  Value copied =
      emitCopy(b, source, getMatrixMap(op, form.rhs, form.depth, form.columns),
               target, b.getMultiDimIdentityMap(2));
  b.setInsertionPointToStart(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(
      b, copied, forall.getRegionIterArgs().front(), to, area, steps);
  panels = forall.getResult(0);
}

/// The left factor's columns from `first` on, rows a fixed distance apart.
Value ContractionBlocks::emitLeftCopy(Value lhs, OpFoldResult rows,
                                      OpFoldResult first, OpFoldResult depth) {
  AffineMap map = getMatrixMap(op, form.lhs, form.depth, form.rows);
  bool isTransposed = map.getDimPosition(0) == 0;
  SmallVector<int64_t> shape = {sizes.blockRows, depthBlock};
  SmallVector<OpFoldResult> offsets = {b.getIndexAttr(0), first};
  SmallVector<OpFoldResult> extents = {rows, depth};
  if (isTransposed) {
    std::swap(shape[0], shape[1]);
    std::swap(offsets[0], offsets[1]);
    std::swap(extents[0], extents[1]);
  }
  SmallVector<OpFoldResult> zeros(2, b.getIndexAttr(0)),
      ones(2, b.getIndexAttr(1));
  Value block = emitAlloc(b, getAsIndexOpFoldResult(b.getContext(), shape),
                          getElement(form.result));
  Value target = tensor::ExtractSliceOp::create(b, block, zeros, extents, ones);
  Value source = tensor::ExtractSliceOp::create(b, lhs, offsets, extents, ones);
  return emitCopy(b, source, map, target, map);
}

Value ContractionBlocks::emitDepth(Value lhs, Value sum,
                                   ArrayRef<OpFoldResult> outer,
                                   OpFoldResult rows, OpFoldResult block) {
  TileArithmetic math{b};
  OpFoldResult first = math.mul(block, depthBlock);
  OpFoldResult depth = math.cut(depthBlock, getExtent(form.depth), first);
  Value left = emitLeftCopy(lhs, rows, first, depth);
  OpFoldResult columns = getExtent(form.columns);
  MLIRContext *context = b.getContext();
  // (row, column, depth)
  AffineExpr m, n, k;
  bindDims(context, m, n, k);
  AffineMap fromLeft = getMatrixMap(op, form.lhs, form.depth, form.rows);
  bool isTransposed = fromLeft.getDimPosition(0) == 0;
  SmallVector<AffineExpr> leftMap = {m, k};
  if (isTransposed)
    std::swap(leftMap[0], leftMap[1]);
  ArrayAttr maps =
      b.getAffineMapArrayAttr({AffineMap::get(3, 0, leftMap, context),
                               AffineMap::get(3, 0, {k, n}, context),
                               AffineMap::get(3, 0, {m, n}, context)});

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
  SmallVector<OpFoldResult> extents(offsets.size(), b.getIndexAttr(1));
  offsets.append(2, b.getIndexAttr(0));
  extents.append({depth, width});
  SmallVector<OpFoldResult> ones(offsets.size(), b.getIndexAttr(1));
  auto panelType = RankedTensorType::get(
      {getStaticSize(depth), getStaticSize(width)}, getElement(form.result));
  Value right = tensor::ExtractSliceOp::create(b, panelType, panels, offsets,
                                               extents, ones);
  Value sums = loop.getRegionIterArgs().front();
  SmallVector<OpFoldResult> at = {b.getIndexAttr(0), column},
                            area = {rows, width};
  ones.resize(2);
  Value tile = tensor::ExtractSliceOp::create(b, sums, at, area, ones);
  Value next = linalg::ContractOp::create(b, TypeRange{tile.getType()},
                                          ValueRange{left, right},
                                          ValueRange{tile}, maps)
                   .getResult(0);
  Value inserted = tensor::InsertSliceOp::create(b, next, sums, at, area, ones);
  scf::YieldOp::create(b, inserted);
  return loop.getResult(0);
}

Value ContractionBlocks::emitTile(Value lhs, Value sum,
                                  ArrayRef<OpFoldResult> outer,
                                  OpFoldResult rows) {
  TileArithmetic math{b};
  OpFoldResult numBlocks = math.ceilDiv(getExtent(form.depth), depthBlock);
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

//===- ContractionKernel.cpp - A contraction on tensor cores --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionKernel.h"

#include "../KernelLaunch.h"
#include "LinalgKernel.h"
#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

/// The most rows and columns of a tile, and steps of a block.
static constexpr int64_t kTile = 64;
/// Rows of a warp, and what a tile's extents are multiples of.
static constexpr int64_t kWarpRows = 16;

/// The extent of a tile that covers `extent` without a rest, a power of two if
/// that is wanted; 0: none does.
static int64_t getTileExtent(int64_t extent, bool isPower = false) {
  if (ShapedType::isDynamic(extent) || extent == 0)
    return 0;
  for (int64_t size = kTile; size >= kWarpRows;
       size = isPower ? size / 2 : size - kWarpRows)
    if (extent % size == 0)
      return size;
  return 0;
}

//===----------------------------------------------------------------------===//
// What is contracted
//===----------------------------------------------------------------------===//

/// Finds which of two loops runs along contiguous memory of the operand.
bool ContractionKernel::findMatrix(Matrix &matrix, ArrayRef<unsigned> loops) {
  auto type = dyn_cast<MemRefType>(matrix.operand->get().getType());
  AffineMap map = op.getMatchingIndexingMap(matrix.operand);
  if (!type || !type.isLastDimUnitStride() || !map.isProjectedPermutation() ||
      map.getNumResults() < 2)
    return false;
  matrix.columnLoop = map.getDimPosition(map.getNumResults() - 1);
  if (!llvm::is_contained(loops, matrix.columnLoop))
    return false;
  matrix.rowLoop = matrix.columnLoop == loops[0] ? loops[1] : loops[0];
  return true;
}

bool ContractionKernel::plan() {
  if (!linalg::isaContractionOpInterface(op))
    return false;
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  if (failed(dims) || dims->m.size() != 1 || dims->n.size() != 1 ||
      dims->k.size() != 1)
    return false;
  auto getElement = [](OpOperand *operand) {
    return getElementTypeOrSelf(operand->get().getType());
  };
  lhs.operand = op.getDpsInputOperand(0);
  rhs.operand = op.getDpsInputOperand(1);
  result.operand = op.getDpsInitOperand(0);
  Type element = getElement(lhs.operand);
  if (element != getElement(rhs.operand) ||
      !(element.isF32() || element.isBF16() || element.isF16()) ||
      !getElement(result.operand).isF32())
    return false;
  batch.assign(dims->batch.begin(), dims->batch.end());
  m = dims->m.front();
  n = dims->n.front();
  k = dims->k.front();
  if (!findMatrix(result, {m, n}))
    return false;
  // Columns of the result are those of the right factor.
  if (result.columnLoop == m) {
    std::swap(m, n);
    std::swap(lhs.operand, rhs.operand);
  }
  if (!findMatrix(lhs, {m, k}) || !findMatrix(rhs, {n, k}))
    return false;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  // A left factor that is transposed wants a power of two of warps.
  tileM =
      lhs.columnLoop == m ? getTileExtent(ranges[m], /*isPower=*/true) : kTile;
  tileN = getTileExtent(ranges[n]);
  tileK = lhs.columnLoop == k || rhs.columnLoop == k ? getTileExtent(ranges[k])
                                                     : kTile;
  auto getExtent = [&](unsigned loop) {
    return loop == m ? tileM : loop == n ? tileN : tileK;
  };
  for (Matrix *matrix : {&lhs, &rhs, &result}) {
    matrix->rows = getExtent(matrix->rowLoop);
    matrix->columns = getExtent(matrix->columnLoop);
  }
  return tileM != 0 && tileN != 0 && tileK != 0;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value ContractionKernel::emitView(const Matrix &matrix) {
  Value memory = matrix.operand->get();
  AffineMap map = op.getMatchingIndexingMap(matrix.operand);
  // The matrix of this index in the batch.
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<int64_t> shape;
  auto type = cast<MemRefType>(memory.getType());
  for (unsigned d = 0; d < map.getNumResults(); ++d) {
    unsigned loop = map.getDimPosition(d);
    const auto *place = llvm::find(batch, loop);
    if (place != batch.end()) {
      offsets.push_back(at[place - batch.begin()]);
      sizes.push_back(b.getIndexAttr(1));
      continue;
    }
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(type.isDynamicDim(d)
                        ? OpFoldResult(extents[loop])
                        : OpFoldResult(b.getIndexAttr(type.getDimSize(d))));
    shape.push_back(type.getDimSize(d));
  }
  if (shape.size() != map.getNumResults()) {
    SmallVector<OpFoldResult> ones(offsets.size(), b.getIndexAttr(1));
    MemRefType reduced = memref::SubViewOp::inferRankReducedResultType(
        shape, type, offsets, sizes, ones);
    memory =
        memref::SubViewOp::create(b, reduced, memory, offsets, sizes, ones);
  }
  int64_t heads = shape[1] / matrix.columns;
  SmallVector<OpFoldResult> expanded = {
      ShapedType::isDynamic(shape[0]) ? OpFoldResult(extents[matrix.rowLoop])
                                      : OpFoldResult(b.getIndexAttr(shape[0])),
      b.getIndexAttr(heads), b.getIndexAttr(matrix.columns)};
  return memref::ExpandShapeOp::create(
      b, ArrayRef<int64_t>{shape[0], heads, matrix.columns}, memory,
      ArrayRef<ReassociationIndices>{{0}, {1, 2}}, expanded);
}

RankedTensorType ContractionKernel::getTileType(const Matrix &matrix) {
  return RankedTensorType::get(
      {matrix.rows, matrix.columns},
      getElementTypeOrSelf(matrix.operand->get().getType()));
}

kernel::RowsOperands ContractionKernel::rowsOf(const Matrix &matrix,
                                               Value block) {
  auto getTile = [&](unsigned loop) {
    return loop == m ? at[batch.size()] : loop == n ? at.back() : block;
  };
  Value first = index.mul(getTile(matrix.rowLoop), matrix.rows);
  return {index.constant(0), getTile(matrix.columnLoop), first,
          index.constant(1), index.sub(extents[matrix.rowLoop], first)};
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

Value ContractionKernel::emitStart() {
  RankedTensorType type = getTileType(result);
  if (start) {
    Value empty = tensor::EmptyOp::create(b, type.getShape(), b.getF32Type());
    return linalg::FillOp::create(b, start, empty).getResult(0);
  }
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
  return kernel::LoadOp::create(b, TypeRange{type}, result.memory,
                                rowsOf(result), zero)
      .getResult(0);
}

Value ContractionKernel::emitProduct(ValueRange slot, Value sum) {
  MLIRContext *context = b.getContext();
  AffineExpr ofM = getAffineDimExpr(0, context),
             ofN = getAffineDimExpr(1, context),
             ofK = getAffineDimExpr(2, context);
  SmallVector<Value> tiles;
  SmallVector<AffineMap> maps;
  for (const Matrix *matrix : {&lhs, &rhs}) {
    RankedTensorType type = getTileType(*matrix);
    size_t planes = kernel::getSharedTileTypes(type).size();
    tiles.push_back(
        kernel::TileOp::create(b, type, slot.take_front(planes)).getResult());
    slot = slot.drop_front(planes);
    AffineExpr outer = matrix == &lhs ? ofM : ofN;
    maps.push_back(matrix->columnLoop == k
                       ? AffineMap::get(3, 0, {outer, ofK}, context)
                       : AffineMap::get(3, 0, {ofK, outer}, context));
  }
  maps.push_back(AffineMap::get(3, 0, {ofM, ofN}, context));
  return linalg::ContractOp::create(b, TypeRange{sum.getType()}, tiles,
                                    ValueRange{sum},
                                    b.getAffineMapArrayAttr(maps))
      .getResult(0);
}

void ContractionKernel::emitTile() {
  for (Matrix *matrix : {&lhs, &rhs, &result})
    matrix->memory = emitView(*matrix);
  SmallVector<MemRefType> slot = kernel::getSharedTileTypes(getTileType(lhs));
  size_t planes = slot.size();
  llvm::append_range(slot, kernel::getSharedTileTypes(getTileType(rhs)));
  // f32 goes through registers to its planes: nothing is in flight for long.
  int64_t stages = planes == 1 ? 3 : 2;
  Value ring = kernel::RingOp::create(
      b, kernel::RingType::get(b.getContext(), slot), stages);
  IndexBuilder narrow{b, b.getI32Type()};
  Value total = narrow.cast(index.ceilDiv(extents[k], tileK));
  auto fetch = [&](Value i) {
    emitIf(b, narrow.less(i, total), [&] {
      auto memory = kernel::RingAcquireOp::create(b, ring, i);
      Value block = index.cast(i);
      kernel::CopyOp::create(b, lhs.memory, rowsOf(lhs, block),
                             memory.getResults().take_front(planes));
      kernel::CopyOp::create(b, rhs.memory, rowsOf(rhs, block),
                             memory.getResults().drop_front(planes));
    });
    kernel::RingCommitOp::create(b, ring);
  };
  for (int64_t i = 0; i < stages - 1; ++i)
    fetch(narrow.constant(i));
  Value sum =
      emitLoop(b, narrow.constant(0), total, narrow.constant(1), emitStart(),
               [&](Value i, ValueRange carried) {
                 auto memory =
                     kernel::RingWaitOp::create(b, ring, i, stages - 2);
                 fetch(narrow.add(i, stages - 1));
                 Value next = emitProduct(memory.getResults(), carried.front());
                 kernel::RingReleaseOp::create(b, ring, i);
                 return Values{next};
               })
          .front();
  kernel::StoreOp::create(b, sum, result.memory, rowsOf(result));
}

void ContractionKernel::emit(const Twine &name) {
  for (const Range &range : op.createLoopRanges(b, b.getLoc()))
    extents.push_back(
        getValueOrCreateConstantIndexOp(b, b.getLoc(), range.size));
  auto tiles = llvm::map_to_vector(
      batch, [&](unsigned loop) -> Value { return extents[loop]; });
  tiles.push_back(index.ceilDiv(extents[m], tileM));
  tiles.push_back(index.ceilDiv(extents[n], tileN));
  Value count = index.constant(1);
  for (Value extent : tiles)
    count = index.mul(count, extent);
  emitLaunch(b, name, count, tileM / kWarpRows * kernel::kWarpLanes,
             [&](Value block, Value, Value) {
               at = emitDelinearize(index, block, tiles);
               emitTile();
             });
}

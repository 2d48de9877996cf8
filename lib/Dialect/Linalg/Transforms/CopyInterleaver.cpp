//===- CopyInterleaver.cpp - Copies of rows to pairs ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyInterleaver.h"

#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CastInterfaces.h"

using namespace mlir;
using namespace mlir::varlen;

/// All dimensions of a memref but the last two, and those as one.
static SmallVector<ReassociationIndices> getRowsOfPairs(int64_t rank) {
  SmallVector<ReassociationIndices> dims;
  for (int64_t dim = 0; dim < rank - 2; ++dim)
    dims.push_back({dim});
  dims.push_back({rank - 2, rank - 1});
  return dims;
}

bool CopyInterleaver::canEmit() {
  if (!op.hasPureBufferSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumParallelLoops() != op.getNumLoops())
    return false;
  OpOperand *input = op.getDpsInputOperand(0), *init = op.getDpsInitOperand(0);
  auto from = dyn_cast<MemRefType>(input->get().getType());
  auto to = dyn_cast<MemRefType>(init->get().getType());
  if (!from || !to || to.getRank() < 2 || to.getRank() != from.getRank() ||
      to.getRank() != op.getNumLoops() || to.getShape().back() != 2 ||
      !to.getElementType().isIntOrFloat() ||
      to.getElementTypeBitWidth() % 8 != 0 || !from.isLastDimUnitStride() ||
      !to.isLastDimUnitStride() ||
      !memref::CollapseShapeOp::isGuaranteedCollapsible(
          to, getRowsOfPairs(to.getRank())))
    return false;
  AffineMap read = op.getMatchingIndexingMap(input),
            written = op.getMatchingIndexingMap(init);
  if (!read.isPermutation() || !written.isPermutation() ||
      read.getResults().back() !=
          written.getResult(written.getNumResults() - 2))
    return false;
  // Also one that rounds.
  if (!op.getMatchingBlockArgument(init).use_empty())
    return false;
  BlockArgument argument = op.getMatchingBlockArgument(input);
  Operation &yield = *op.getBlock()->getTerminator();
  if (yield.getOperand(0) == argument)
    return true;
  auto cast = yield.getOperand(0).getDefiningOp<CastOpInterface>();
  return cast && op.getBlock()->getOperations().size() == 2 &&
         cast->getOperand(0) == argument;
}

/// The result's elements for a vector of the source.
Value CopyInterleaver::convert(Value source) {
  Operation &first = op.getBlock()->front();
  if (first.hasTrait<OpTrait::IsTerminator>())
    return source;
  Type type = cast<VectorType>(source.getType())
                  .clone(getElementTypeOrSelf(result.getType()));
  return b
      .create(first.getLoc(), first.getName().getIdentifier(), source, type,
              first.getAttrs())
      ->getResult(0);
}

SmallVector<Value> CopyInterleaver::getSourceIndices(int64_t pair,
                                                     Value column) {
  SmallVector<Value> at;
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (AffineExpr expr :
       op.getMatchingIndexingMap(op.getDpsInputOperand(0)).getResults()) {
    unsigned place = *written.getResultPosition(expr);
    at.push_back(place < outer    ? indices[place]
                 : place == outer ? column
                                  : IndexBuilder{b}.constant(pair));
  }
  return at;
}

void CopyInterleaver::emitPairs() {
  IndexBuilder index{b};
  Value source = op.getDpsInputOperand(0)->get();
  Value columns = linalg::createOrFoldDimOp(
      b, b.getLoc(), op.getDpsInitOperand(0)->get(), outer);
  Type element = cast<MemRefType>(source.getType()).getElementType();
  int64_t lanes = target.getLanes(element.getIntOrFloatBitWidth() / 8);
  Value whole = index.roundDown(columns, lanes);
  auto emitColumns = [&](Value column, int64_t count) {
    auto load = [&](int64_t pair) {
      return convert(vector::LoadOp::create(b, VectorType::get({count}, element),
                                            source,
                                            getSourceIndices(pair, column)));
    };
    SmallVector<Value> at(indices);
    at.push_back(index.mul(column, 2));
    vector::StoreOp::create(
        b, vector::InterleaveOp::create(b, load(0), load(1)), result, at);
  };
  emitLoop(b, index.constant(0), whole, lanes,
           [&](Value column) { emitColumns(column, lanes); });
  emitLoop(b, whole, columns, 1,
           [&](Value column) { emitColumns(column, 1); });
}

void CopyInterleaver::emitLoops(unsigned dim) {
  if (dim == outer)
    return emitPairs();
  Value extent = linalg::createOrFoldDimOp(b, b.getLoc(),
                                           op.getDpsInitOperand(0)->get(), dim);
  emitLoop(b, IndexBuilder{b}.constant(0), extent, 1, [&](Value i) {
    indices.push_back(i);
    emitLoops(dim + 1);
    indices.pop_back();
  });
}

void CopyInterleaver::emit() {
  b.setInsertionPoint(op);
  Value memory = op.getDpsInitOperand(0)->get();
  int64_t rank = cast<MemRefType>(memory.getType()).getRank();
  result = memref::CollapseShapeOp::create(b, memory, getRowsOfPairs(rank));
  outer = rank - 2;
  emitLoops(0);
}

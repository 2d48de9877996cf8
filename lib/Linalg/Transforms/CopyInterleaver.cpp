//===- CopyInterleaver.cpp - Copies of rows to pairs ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyInterleaver.h"

#include "CopyTransposer.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"
#include "varlen/Support/PairMap.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

bool CopyInterleaver::canEmit() {
  if (!isPermutingCopy(op) || op.getNumLoops() < 2)
    return false;
  OpOperand *init = op.getDpsInitOperand(0);
  auto to = cast<MemRefType>(init->get().getType());
  AffineMap read = op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
            written = op.getMatchingIndexingMap(init);
  return to.getShape().back() == 2 &&
         memref::CollapseShapeOp::isGuaranteedCollapsible(
             to, getPairDims(to.getRank())) &&
         read.getResults().back() ==
             written.getResult(written.getNumResults() - 2);
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
  auto type = VectorType::get({lanes}, element);
  Value whole = index.roundDown(columns, lanes);
  SmallVector<Value> at(indices);
  at.push_back(Value());
  emitLoop(b, index.constant(0), whole, lanes, [&](Value column) {
    auto load = [&](int64_t pair) {
      return vector::LoadOp::create(b, type, source,
                                    getSourceIndices(pair, column));
    };
    at.back() = index.mul(column, 2);
    vector::StoreOp::create(
        b, vector::InterleaveOp::create(b, load(0), load(1)), result, at);
  });
  emitLoop(b, whole, columns, 1, [&](Value column) {
    for (int64_t pair = 0; pair < 2; ++pair) {
      at.back() = index.add(index.mul(column, 2), pair);
      memref::StoreOp::create(
          b, memref::LoadOp::create(b, source, getSourceIndices(pair, column)),
          result, at);
    }
  });
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
  result = memref::CollapseShapeOp::create(b, memory, getPairDims(rank));
  outer = rank - 2;
  emitLoops(0);
}

//===- LoopVectorizerReads.cpp - Elements at places that a body computes --===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a body captures and reads by memref.load, as gathers do: rows of a table
// are vectors of its memory, any other elements are read one by one. Checks of
// the places, which generate-runtime-verification makes, are there for whole
// vectors.
//
//===----------------------------------------------------------------------===//

#include "LoopVectorizer.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

LogicalResult LoopVectorizer::checkRead(memref::LoadOp load,
                                        std::string &reason) {
  if (!isVectorElement(load.getType())) {
    reason = "elements that are no whole bytes";
    return failure();
  }
  if (llvm::is_contained(op.getDpsInits(), load.getMemRef())) {
    reason = "'memref.load' reads a result";
    return failure();
  }
  reads.push_back(load);
  return success();
}

LoopVectorizer::Access LoopVectorizer::getAccess(memref::LoadOp load,
                                                 unsigned dim) {
  auto varies = [&](Value index) { return variesAlong(op, index, dim); };
  if (llvm::none_of(load.getIndices(), varies))
    return Access::Invariant;
  auto last = load.getIndices().back().getDefiningOp<linalg::IndexOp>();
  bool isRow = last && last.getDim() == dim &&
               load.getMemRefType().isLastDimUnitStride() &&
               llvm::none_of(load.getIndices().drop_back(), varies);
  return isRow ? Access::Contiguous : Access::Strided;
}

/// Whether a read may be of a place that is none in lanes that are not there,
/// which are then steps of their own.
bool LoopVectorizer::hasReadsOfLanes() {
  return llvm::any_of(reads, [&](memref::LoadOp load) {
    return getAccess(load, vectorDim) != Access::Contiguous;
  });
}

Value LoopVectorizer::emitRead(memref::LoadOp load, const IRMapping &map,
                               Value offset, int64_t lanes, Value mask) {
  SmallVector<Value> at;
  for (Value index : load.getIndices())
    at.push_back(map.lookupOrDefault(index));
  Value memory = load.getMemRef();
  switch (getAccess(load, vectorDim)) {
  case Access::Invariant:
    return memref::LoadOp::create(b, memory, at);
  case Access::Contiguous:
    at.back() = offset;
    return emitLoad(memory, at, lanes, mask);
  case Access::Strided:
    break;
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    SmallVector<Value> place;
    for (Value index : at)
      place.push_back(isa<VectorType>(index.getType())
                          ? vector::ExtractOp::create(b, index, lane)
                          : index);
    elements.push_back(memref::LoadOp::create(b, memory, place));
  }
  return vector::FromElementsOp::create(
      b, VectorType::get({lanes}, load.getType()), elements);
}

/// That a condition holds in all lanes that are there.
void LoopVectorizer::emitAssert(cf::AssertOp source, const IRMapping &map,
                                int64_t lanes, Value mask) {
  Value condition = map.lookupOrDefault(source.getArg());
  if (mask || isa<VectorType>(condition.getType())) {
    condition = emitSplat(condition, lanes);
    if (mask) {
      Value all = emitSplat(b.getBoolAttr(true), lanes);
      Value isMissing = arith::XOrIOp::create(b, mask, all);
      condition = arith::OrIOp::create(b, condition, isMissing);
    }
    condition =
        vector::ReductionOp::create(b, vector::CombiningKind::AND, condition);
  }
  cf::AssertOp::create(b, condition, source.getMsgAttr());
}

//===- HeadSums.cpp - Loops over heads on a CPU ---------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadSums.h"

#include "CPUTileBuilder.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"
#include "varlen/Support/ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

/// The sum of the terms of `rows` rows in their order, or its negation.
static Value emitTotal(ImplicitLocOpBuilder &b, SumRowsOp op, Value rows,
                       Value none, function_ref<Value(Value)> termOf) {
  IndexBuilder index{b};
  Value sum =
      emitSum(b, index.constant(0), rows, index.constant(1), none, termOf);
  if (!op.getNegated())
    return sum;
  return arith::SubFOp::create(b, none, sum);
}

void varlen::emitScratchSums(OpBuilder &builder, SumRowsOp op, Value heads,
                             Value rows, const RowScratch &scratch) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  IndexBuilder index{b};
  Value terms = scratch.memory.front();
  emitForall(b, heads, [&](Value head) {
    Value none =
        arith::ConstantOp::create(b, b.getFloatAttr(elementOf(terms), 0.0));
    Value total = emitTotal(b, op, rows, none, [&](Value row) -> Value {
      return memref::LoadOp::create(
          b, terms, RowMap::placeByKvHead(index, row, head, scratch.group));
    });
    memref::StoreOp::create(b, total, op.getSums(), head);
  });
}

void varlen::emitTableSums(OpBuilder &builder, SumRowsOp op, Value heads,
                           Value rows, int64_t lanes) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  IndexBuilder index{b};
  Value memory = op.getRows(), sums = op.getSums();
  Value zero = index.constant(0);
  Value entries = index.dim(memory, 2);
  Value parts = index.ceilDiv(entries, lanes);
  emitForall(b, index.mul(heads, parts), [&](Value item) {
    Value head = index.div(item, parts);
    Value first = index.mul(index.rem(item, parts), lanes);
    Value count = index.min(index.sub(entries, first), lanes);
    auto type = VectorType::get({lanes}, elementOf(memory));
    Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
    Value mask = vector::CreateMaskOp::create(b, type.clone(b.getI1Type()),
                                              ValueRange{count});
    Value total = emitTotal(b, op, rows, none, [&](Value row) -> Value {
      return vector::MaskedLoadOp::create(
          b, type, memory, ValueRange{head, row, first}, mask, none);
    });
    Value scratch = memref::AllocOp::create(
        b, MemRefType::get({lanes}, type.getElementType()));
    vector::StoreOp::create(b, total, scratch, zero);
    emitLoop(b, zero, count, 1, [&](Value lane) {
      memref::StoreOp::create(b, memref::LoadOp::create(b, scratch, lane), sums,
                              ValueRange{head, index.add(first, lane)});
    });
  });
}

//===- HeadSums.cpp - Loops over heads on a CPU ---------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadSums.h"

#include "CPUTileMemory.h"
#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// dsink
//===----------------------------------------------------------------------===//

void varlen::emitSinkGrad(OpBuilder &builder, const SinkGrad &parts,
                          Value heads, Value rows, const RowScratch &scratch) {
  ImplicitLocOpBuilder b(parts.gradients.getLoc(), builder);
  IndexBuilder index{b};
  Value terms = scratch.memory.front();
  emitForall(b, heads, [&](Value head) {
    Value none =
        arith::ConstantOp::create(b, b.getFloatAttr(elementOf(terms), 0.0));
    Value sum = emitSum(
        b, index.constant(0), rows, index.constant(1), none,
        [&](Value row) -> Value {
          return memref::LoadOp::create(
              b, terms, RowMap::placeByKvHead(index, row, head, scratch.group));
        });
    Value gradient = arith::SubFOp::create(b, none, sum);
    memref::StoreOp::create(b, gradient, parts.gradients, head);
  });
}

//===----------------------------------------------------------------------===//
// Gradients of tables of heads
//===----------------------------------------------------------------------===//

void varlen::emitSumRows(OpBuilder &builder, SumRowsOp op, Value heads,
                         Value rows, int64_t lanes) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  IndexBuilder index{b};
  Value memory = op.getRows(), sums = op.getSums();
  Value zero = index.constant(0), one = index.constant(1);
  Value entries = index.dim(memory, 2);
  Value parts = index.ceilDiv(entries, lanes);
  emitForall(b, index.mul(heads, parts), [&](Value item) {
    Value head = index.div(item, parts);
    Value first = index.mul(index.rem(item, parts), lanes);
    Value count = index.min(index.sub(entries, first), lanes);
    auto type =
        VectorType::get({lanes}, op.getRows().getType().getElementType());
    Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
    Value mask = vector::CreateMaskOp::create(b, type.clone(b.getI1Type()),
                                              ValueRange{count});
    Value total = emitSum(b, zero, rows, one, none, [&](Value row) -> Value {
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

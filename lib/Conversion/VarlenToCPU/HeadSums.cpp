//===- HeadSums.cpp - Loops over heads on a CPU ---------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadSums.h"

#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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
  OpBuilder::InsertionGuard guard(b);
  Value terms = scratch.memory.front();
  Type compute = cast<MemRefType>(terms.getType()).getElementType();
  auto work = scf::ForallOp::create(b, ArrayRef<OpFoldResult>{heads},
                                    ValueRange{}, std::nullopt);
  b.setInsertionPointToStart(work.getBody());
  Value head = work.getInductionVar(0);
  Value none = arith::ConstantOp::create(b, b.getFloatAttr(compute, 0.0));
  Value sum = emitSum(
      b, index.constant(0), rows, index.constant(1), none,
      [&](Value row) -> Value {
        return memref::LoadOp::create(
            b, terms, RowMap::placeByKvHead(index, row, head, scratch.group));
      });
  Value gradient = arith::SubFOp::create(b, none, sum);
  memref::StoreOp::create(b, gradient, parts.gradients, head);
}

//===----------------------------------------------------------------------===//
// Gradients of tables of heads
//===----------------------------------------------------------------------===//

void varlen::emitSumRows(OpBuilder &builder, SumRowsOp op, Value heads,
                         Value rows, int64_t lanes) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  IndexBuilder index{b};
  OpBuilder::InsertionGuard guard(b);
  Value memory = op.getRows(), sums = op.getSums();
  Value zero = index.constant(0), one = index.constant(1);
  Value entries = b.createOrFold<memref::DimOp>(memory, 2);
  Value parts = index.ceilDiv(entries, lanes);
  auto work =
      scf::ForallOp::create(b, ArrayRef<OpFoldResult>{index.mul(heads, parts)},
                            ValueRange{}, std::nullopt);
  b.setInsertionPointToStart(work.getBody());
  Value item = work.getInductionVar(0);
  Value head = index.div(item, parts);
  Value first = index.mul(index.rem(item, parts), lanes);
  Value count = index.min(index.sub(entries, first), index.constant(lanes));
  auto type = VectorType::get({lanes}, op.getRows().getType().getElementType());
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
}

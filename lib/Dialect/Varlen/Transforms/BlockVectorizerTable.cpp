//===- BlockVectorizerTable.cpp - Sums to rows of a table -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Columns are queries, each of which has a row of the table to itself: a vector
// of them adds to as many places, and the keys of a query come one after the
// other. Of a table of keys the queries of a head share the row: a vector adds
// one sum for each of its heads.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"
#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

void BlockVectorizer::emitScatterAdd(ScatterAddOp op) {
  IndexBuilder at{b};
  Value memory = emitFlatTable(at, op.getMemory()), zero = index(0);
  Vectors tableRows = statistic(op.getRows()), masks;
  Value none = constantVector(b.getI64IntegerAttr(kNoTableRow));
  for (Value row : tableRows)
    masks.push_back(
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, row, none));
  Value values = find(op.getValues(), TileOrder::Rows);
  Value indices = find(op.getIndex(), TileOrder::Rows);
  auto type = vectorType(cast<MemRefType>(values.getType()).getElementType());
  Value zeros = constantVector(b.getZeroAttr(type.getElementType()));
  Value rows =
      getValueOrCreateConstantIndexOp(b, b.getLoc(), rowsOf(op.getValues()));
  varlen::emitLoop(b, zero, rows, 1, [&](Value row) {
    for (auto [n, tableRow] : llvm::enumerate(tableRows)) {
      Value offset =
          emitTableOffset(at, op.getMemory(), tableRow, load(indices, row, n));
      Value sum = vector::GatherOp::create(b, type, memory, zero, offset,
                                           masks[n], zeros);
      sum = arith::AddFOp::create(b, sum, load(values, row, n));
      vector::ScatterOp::create(b, /*result=*/Type(), memory, zero, offset,
                                masks[n], sum);
    }
  });
}

void BlockVectorizer::emitAddKeys(AddKeysOp op) {
  IndexBuilder at{b};
  Value memory = emitFlatTable(at, op.getMemory()), zero = index(0);
  Vectors tableRows = statistic(op.getRows());
  Value values = find(op.getValues(), TileOrder::Rows);
  auto type = vectorType(cast<MemRefType>(values.getType()).getElementType());
  Value zeros = constantVector(b.getZeroAttr(type.getElementType()));
  Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(kNoTableRow));
  // Those that the memory has.
  Value keys = at.min(
      getValueOrCreateConstantIndexOp(b, b.getLoc(), rowsOf(op.getValues())),
      at.sub(b.createOrFold<memref::DimOp>(op.getMemory(), 1),
             at.cast(op.getFirstKey())));
  int64_t lanes = schedule.getLanes();
  Value lastLane = constantVector(b.getI64IntegerAttr(lanes));
  Value numbers =
      vector::StepOp::create(b, VectorType::get({lanes}, b.getIndexType()));
  numbers = arith::IndexCastOp::create(b, vectorType(b.getI64Type()), numbers);
  auto equal = [&](Value lhs, Value rhs) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lhs, rhs);
  };
  for (unsigned n = 0; n < tableRows.size(); ++n) {
    Value own = tableRows[n];
    // The first lane of each head is there for all of them.
    varlen::emitLoop(b, zero, index(lanes), 1, [&](Value lane) {
      Value row = vector::ExtractOp::create(b, own, OpFoldResult(lane));
      Value same = equal(own, broadcast(row));
      Value first = vector::ReductionOp::create(
          b, vector::CombiningKind::MINSI,
          arith::SelectOp::create(b, same, numbers, lastLane));
      Value isFirst = equal(at.cast(first), lane);
      Value isOne =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, row, none);
      emitIf(b, arith::AndIOp::create(b, isFirst, isOne), [&] {
        varlen::emitLoop(b, zero, keys, 1, [&](Value key) {
          Value x =
              arith::SelectOp::create(b, same, load(values, key, n), zeros);
          Value sum = vector::ReductionOp::create(
              b, vector::CombiningKind::ADD, x, arith::FastMathFlags::reassoc);
          Value entry = arith::AddIOp::create(
              b, op.getFirstKey(),
              arith::IndexCastOp::create(b, b.getI32Type(), key));
          Value place =
              at.cast(emitTableOffset(at, op.getMemory(), row, entry));
          Value before = memref::LoadOp::create(b, memory, place);
          memref::StoreOp::create(b, arith::AddFOp::create(b, before, sum),
                                  memory, place);
        });
      });
    });
  }
}

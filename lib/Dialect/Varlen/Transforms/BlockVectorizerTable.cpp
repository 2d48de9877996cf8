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
// other.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
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

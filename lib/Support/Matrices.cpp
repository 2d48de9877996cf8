//===- Matrices.cpp - Matrices in memory ----------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/Matrices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

Value varlen::emitPart(ImplicitLocOpBuilder &b, Value matrix, OpFoldResult row,
                       OpFoldResult column, OpFoldResult rows,
                       OpFoldResult columns) {
  OpFoldResult one = b.getIndexAttr(1);
  return memref::SubViewOp::create(b, matrix, {row, column}, {rows, columns},
                                   {one, one});
}

Value varlen::emitRows(ImplicitLocOpBuilder &b, Value matrix, OpFoldResult row,
                       OpFoldResult rows) {
  return emitPart(b, matrix, row, b.getIndexAttr(0), rows,
                  b.getIndexAttr(innerSize(matrix)));
}

Value varlen::emitAllocation(ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape,
                             Type element, ValueRange sizes) {
  return memref::AllocOp::create(b, MemRefType::get(shape, element), sizes,
                                 /*alignment=*/b.getI64IntegerAttr(64));
}

void varlen::emitFill(ImplicitLocOpBuilder &b, double number, Value memory) {
  Type element = elementOf(memory);
  assert((isa<FloatType>(element) || number == 0) &&
         "integers are filled with 0");
  TypedAttr attribute = b.getZeroAttr(element);
  if (number != 0)
    attribute = b.getFloatAttr(element, number);
  Value constant = arith::ConstantOp::create(b, attribute);
  linalg::FillOp::create(b, constant, memory);
}

void varlen::emitPrefetch(ImplicitLocOpBuilder &b, Value memory,
                          ValueRange at) {
  // The first-level cache has room for fewer, and for fewer misses.
  constexpr unsigned secondLevel = 2;
  memref::PrefetchOp::create(b, memory, at, /*isWrite=*/false, secondLevel,
                             /*isDataCache=*/true);
}

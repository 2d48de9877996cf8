//===- RowLocator.cpp - Where the rows of a clause are --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowLocator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

static Value divide(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::DivUIOp>(lhs, rhs);
}

static Value remainder(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::RemUIOp>(lhs, rhs);
}

static Value add(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::AddIOp>(lhs, rhs);
}

static Value multiply(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return b.createOrFold<arith::MulIOp>(lhs, rhs);
}

RowPlace kernel::locateRow(ImplicitLocOpBuilder &b, RowsOperands rows,
                           Value i) {
  auto i64 = [&](Value index) {
    return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
  };
  Value pair = add(b, i64(rows.first), i), group = i64(rows.group);
  Value row = divide(b, pair, group), member = remainder(b, pair, group);
  row = add(b, i64(rows.row), row);
  Value head = multiply(b, i64(rows.head), group);
  return {row, add(b, head, member)};
}

RowLocator::RowLocator(ThreadBuilder &b, RowsOperands rows)
    : b(b), rows(rows), isGrouped(!isConstantIntValue(rows.group, 1)) {
  if (!isGrouped) {
    first = {add(b, rows.row, rows.first), rows.head};
    return;
  }
  auto toI32 = [&](Value value) {
    return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), value);
  };
  first.row = add(b, rows.row, divide(b, rows.first, rows.group));
  first.head = multiply(b, rows.head, rows.group);
  place = toI32(remainder(b, rows.first, rows.group));
  group = toI32(rows.group);
}

Value RowLocator::exists(Value i) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.toIndex(i),
                               rows.valid);
}

RowPlace RowLocator::locate(Value i, int64_t distance) {
  // Last, so that it ends up in the address as a constant.
  if (!isGrouped) {
    Value constant = arith::ConstantIndexOp::create(b, distance);
    return {add(b, add(b, first.row, b.toIndex(i)), constant), first.head};
  }
  Value pair = b.add(place, b.add(i, distance));
  return {add(b, first.row, b.toIndex(divide(b, pair, group))),
          add(b, first.head, b.toIndex(remainder(b, pair, group)))};
}

//===- IndexBuilder.cpp - Arithmetic on index values ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

Value IndexBuilder::constant(int64_t value) {
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}
Value IndexBuilder::add(Value lhs, Value rhs) {
  return b.createOrFold<arith::AddIOp>(lhs, rhs);
}
Value IndexBuilder::sub(Value lhs, Value rhs) {
  return b.createOrFold<arith::SubIOp>(lhs, rhs);
}
Value IndexBuilder::mul(Value lhs, Value rhs) {
  return b.createOrFold<arith::MulIOp>(lhs, rhs);
}
Value IndexBuilder::min(Value lhs, Value rhs) {
  return b.createOrFold<arith::MinSIOp>(lhs, rhs);
}
Value IndexBuilder::max(Value lhs, Value rhs) {
  return b.createOrFold<arith::MaxSIOp>(lhs, rhs);
}
Value IndexBuilder::div(Value lhs, Value rhs) {
  return b.createOrFold<arith::DivUIOp>(lhs, rhs);
}
Value IndexBuilder::rem(Value lhs, Value rhs) {
  return b.createOrFold<arith::RemUIOp>(lhs, rhs);
}
Value IndexBuilder::ceilDiv(Value lhs, Value rhs) {
  return div(add(lhs, sub(rhs, 1)), rhs);
}
Value IndexBuilder::floorDiv(Value lhs, int64_t rhs) {
  Value quotient = b.createOrFold<arith::DivSIOp>(lhs, constant(rhs));
  return select(less(lhs, mul(quotient, rhs)), add(quotient, -1), quotient);
}
Value IndexBuilder::roundUp(Value lhs, int64_t multiple) {
  return mul(ceilDiv(lhs, multiple), multiple);
}

/// How far arithmetic is looked at: every operation doubles it.
static constexpr int kMaxDepth = 8;

/// Whether arithmetic says that a value is a multiple of a power of two.
static bool isMultiple(Value value, int64_t multiple, int depth = 0) {
  if (multiple == 1)
    return true;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % multiple == 0;
  Operation *op = value.getDefiningOp();
  if (!llvm::isPowerOf2_64(multiple) || !op || depth == kMaxDepth)
    return false;
  auto isOf = [&](unsigned operand, int64_t multiple) {
    return isMultiple(op->getOperand(operand), multiple, depth + 1);
  };
  if (isa<arith::IndexCastOp>(op))
    return isOf(0, multiple);
  if (isa<arith::SelectOp>(op))
    return isOf(1, multiple) && isOf(2, multiple);
  if (isa<arith::MulIOp>(op))
    return isOf(0, multiple) || isOf(1, multiple);
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return isOf(0, multiple) && isOf(1, multiple);
  if (isa<arith::DivUIOp>(op))
    if (std::optional<int64_t> by = getConstantIntValue(op->getOperand(1)))
      return *by > 0 && isOf(0, multiple * *by);
  return false;
}

Value IndexBuilder::roundDown(Value lhs, int64_t multiple) {
  if (isMultiple(lhs, multiple))
    return lhs;
  return mul(div(lhs, multiple), multiple);
}
Value IndexBuilder::select(Value condition, Value then, Value otherwise) {
  return b.createOrFold<arith::SelectOp>(condition, then, otherwise);
}
Value IndexBuilder::less(Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, lhs, rhs);
}
Value IndexBuilder::lessEqual(Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle, lhs, rhs);
}
Value IndexBuilder::equal(Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, lhs, rhs);
}
Value IndexBuilder::notEqual(Value lhs, Value rhs) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, lhs, rhs);
}
Value IndexBuilder::both(Value lhs, Value rhs) {
  return b.createOrFold<arith::AndIOp>(lhs, rhs);
}
Value IndexBuilder::either(Value lhs, Value rhs) {
  return b.createOrFold<arith::OrIOp>(lhs, rhs);
}
Value IndexBuilder::cast(Value integer) {
  if (integer.getType() == type)
    return integer;
  if (isa<IndexType>(type) || isa<IndexType>(integer.getType()))
    return b.createOrFold<arith::IndexCastOp>(type, integer);
  if (integer.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return b.createOrFold<arith::ExtSIOp>(type, integer);
  return b.createOrFold<arith::TruncIOp>(type, integer);
}
Value IndexBuilder::dim(Value memref, int64_t d) {
  return cast(b.createOrFold<memref::DimOp>(memref, d));
}
Value IndexBuilder::load(Value memref, ValueRange indices) {
  return cast(memref::LoadOp::create(b, memref, indices));
}

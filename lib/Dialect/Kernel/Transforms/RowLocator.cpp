//===- RowLocator.cpp - Where the rows of a clause are --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowLocator.h"

#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

bool kernel::areRowsAligned(MemRefType mem, int64_t elements) {
  auto isMultiple = [&](int64_t distance) {
    return ShapedType::isStatic(distance) && distance % elements == 0;
  };
  // A dynamic head count times a whole head_dim is whole, too: what identity
  // layouts do not say, their innermost extent does.
  if (mem.getLayout().isIdentity())
    return isMultiple(mem.getDimSize(2));
  auto [strides, offset] = mem.getStridesAndOffset();
  return llvm::all_of(ArrayRef{offset, strides[0], strides[1]}, isMultiple);
}

RowPlace kernel::locateRow(ImplicitLocOpBuilder &b, RowsOperands rows,
                           Value i) {
  IndexBuilder wide{b, b.getI64Type()};
  Value pair = wide.add(wide.cast(rows.first), i);
  Value group = wide.cast(rows.group);
  Value row = wide.div(pair, group), member = wide.rem(pair, group);
  row = wide.add(wide.cast(rows.row), row);
  Value head = wide.mul(wide.cast(rows.head), group);
  return {row, wide.add(head, member)};
}

RowLocator::RowLocator(ThreadBuilder &b, RowsOperands rows)
    : b(b), rows(rows), isGrouped(!isConstantIntValue(rows.group, 1)) {
  IndexBuilder index{b}, narrow{b, b.getI32Type()};
  if (!isGrouped) {
    first = {index.add(rows.row, rows.first), rows.head};
    return;
  }
  first.row = index.add(rows.row, index.div(rows.first, rows.group));
  first.head = index.mul(rows.head, rows.group);
  place = narrow.cast(index.rem(rows.first, rows.group));
  group = narrow.cast(rows.group);
}

Value RowLocator::exists(Value i) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, b.toIndex(i),
                               rows.valid);
}

RowPlace RowLocator::locate(Value i, int64_t distance) {
  IndexBuilder index{b}, narrow{b, b.getI32Type()};
  // Last, so that it ends up in the address as a constant.
  if (!isGrouped) {
    Value constant = index.constant(distance);
    return {index.add(index.add(first.row, b.toIndex(i)), constant),
            first.head};
  }
  Value pair = b.add(place, b.add(i, distance));
  return {index.add(first.row, b.toIndex(narrow.div(pair, group))),
          index.add(first.head, b.toIndex(narrow.rem(pair, group)))};
}

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

#include <limits>

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
    return isMultiple(mem.getShape().back());
  auto [strides, offset] = mem.getStridesAndOffset();
  return isMultiple(offset) &&
         llvm::all_of(ArrayRef(strides).drop_back(), isMultiple);
}

/// The page and the row in it, both i64, of that row of a sequence. The table
/// may have changed since it was checked: what is no page becomes one.
static std::pair<Value, Value> locateInPages(ImplicitLocOpBuilder &b,
                                             RowsOperands rows, Value pages,
                                             Value row) {
  IndexBuilder wide{b, b.getI64Type()}, narrow{b, b.getI32Type()}, index{b};
  // Rows of a sequence have 32 bits, in which a division is short.
  Value pageRows = narrow.cast(
      wide.min(wide.dim(pages, 1), std::numeric_limits<int32_t>::max()));
  Value number = narrow.cast(row);
  // A row that does not exist may be past the last entry.
  Value last = index.sub(index.dim(rows.table, 1), 1);
  Value column = index.min(index.cast(narrow.div(number, pageRows)), last);
  Value entry = wide.load(rows.table, ValueRange{rows.row, column});
  Value page = wide.min(wide.max(entry, 0), wide.sub(wide.dim(pages, 0), 1));
  return {page, wide.cast(narrow.rem(number, pageRows))};
}

SmallVector<Value> kernel::locateRow(ImplicitLocOpBuilder &b, RowsOperands rows,
                                     Value mem, Value i) {
  IndexBuilder wide{b, b.getI64Type()};
  Value pair = wide.add(wide.cast(rows.first), i);
  Value group = wide.cast(rows.group);
  Value row = wide.div(pair, group), member = wide.rem(pair, group);
  Value head = wide.add(wide.mul(wide.cast(rows.head), group), member);
  if (!rows.table)
    return {wide.add(wide.cast(rows.row), row), head};
  auto [page, inPage] = locateInPages(b, rows, mem, row);
  return {page, inPage, head};
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

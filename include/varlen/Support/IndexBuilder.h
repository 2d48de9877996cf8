//===- IndexBuilder.h - Arithmetic on index values --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_INDEXBUILDER_H
#define VARLEN_SUPPORT_INDEXBUILDER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// Arithmetic on index values, or on integers of `type`, folded where the
/// operands are constants.
struct IndexBuilder {
  ImplicitLocOpBuilder &b;
  Type type = b.getIndexType();

  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value add(Value lhs, int64_t rhs) { return add(lhs, constant(rhs)); }
  Value sub(Value lhs, Value rhs);
  Value sub(Value lhs, int64_t rhs) { return sub(lhs, constant(rhs)); }
  Value sub(int64_t lhs, Value rhs) { return sub(constant(lhs), rhs); }
  Value mul(Value lhs, Value rhs);
  Value mul(Value lhs, int64_t rhs) { return mul(lhs, constant(rhs)); }
  Value min(Value lhs, Value rhs);
  Value min(Value lhs, int64_t rhs) { return min(lhs, constant(rhs)); }
  Value max(Value lhs, Value rhs);
  Value max(Value lhs, int64_t rhs) { return max(lhs, constant(rhs)); }
  Value max(int64_t lhs, Value rhs) { return max(constant(lhs), rhs); }
  /// Quotient and remainder of non-negative values.
  Value div(Value lhs, Value rhs);
  Value div(Value lhs, int64_t rhs) { return div(lhs, constant(rhs)); }
  Value rem(Value lhs, Value rhs);
  Value rem(Value lhs, int64_t rhs) { return rem(lhs, constant(rhs)); }
  Value ceilDiv(Value lhs, int64_t rhs) { return ceilDiv(lhs, constant(rhs)); }
  Value ceilDiv(Value lhs, Value rhs);
  /// Rounded down, of any value by a positive one.
  Value floorDiv(Value lhs, int64_t rhs);
  Value roundUp(Value lhs, int64_t multiple);
  Value roundDown(Value lhs, int64_t multiple);
  Value select(Value condition, Value then, Value otherwise);
  /// Signed comparisons.
  Value less(Value lhs, Value rhs);
  Value less(Value lhs, int64_t rhs) { return less(lhs, constant(rhs)); }
  Value less(int64_t lhs, Value rhs) { return less(constant(lhs), rhs); }
  Value lessEqual(Value lhs, Value rhs);
  Value lessEqual(Value lhs, int64_t rhs) {
    return lessEqual(lhs, constant(rhs));
  }
  Value lessEqual(int64_t lhs, Value rhs) {
    return lessEqual(constant(lhs), rhs);
  }
  Value equal(Value lhs, Value rhs);
  Value equal(Value lhs, int64_t rhs) { return equal(lhs, constant(rhs)); }
  Value notEqual(Value lhs, Value rhs);
  Value notEqual(Value lhs, int64_t rhs) {
    return notEqual(lhs, constant(rhs));
  }
  /// Of conditions.
  Value both(Value lhs, Value rhs);
  Value either(Value lhs, Value rhs);
  /// To `type`, from an index or integer of any width.
  Value cast(Value integer);
  /// An extent of a memref, cast.
  Value dim(Value memref, int64_t d);
  /// memref[indices], cast.
  Value load(Value memref, ValueRange indices);
};

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_INDEXBUILDER_H

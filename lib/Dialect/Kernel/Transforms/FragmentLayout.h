//===- FragmentLayout.h - Where the elements of a fragment are --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DIALECT_KERNEL_TRANSFORMS_FRAGMENTLAYOUT_H
#define LIB_DIALECT_KERNEL_TRANSFORMS_FRAGMENTLAYOUT_H

#include "varlen/Dialect/Kernel/IR/SharedTile.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen::kernel {

/// How many warps share the tiles of a kernel, from its block size and its
/// roles; complains if that size is not known, or not one row of whole warps.
FailureOr<int64_t> getWarps(gpu::GPUFuncOp kernel);

/// Arithmetic on i32, folded where operands are constant, and a thread's
/// numbers.
class ThreadBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value constant(int64_t value);
  Value add(Value lhs, Value rhs);
  Value add(Value lhs, int64_t rhs);
  Value mul(Value lhs, int64_t rhs);
  /// Quotient and remainder of non-negative values.
  Value div(Value lhs, int64_t rhs);
  Value rem(Value lhs, int64_t rhs);
  Value bitAnd(Value lhs, int64_t rhs);
  Value bitXor(Value lhs, Value rhs);
  Value bitXor(Value lhs, int64_t rhs);
  Value shiftRight(Value lhs, int64_t rhs);
  Value toIndex(Value value);

  /// The number of the thread within its CTA, and its two parts.
  Value thread();
  Value lane();
  Value warp();

  /// Row of element [0, *, 0, *] of a fragment, and column of [*, 0, *, 0]. The
  /// others lie at constant distances: 16 * warps for the first position, 8 for
  /// the second and the third, 1 for the last.
  Value firstRow();
  Value firstColumn();
  /// Whether the thread is the first of the four that share its rows.
  Value isFirstOfRow();

  /// Row (dim 0) or column (dim 1) of all elements of a fragment of `shape`, as
  /// the projection that they depend on, of type i32.
  Value coordinates(unsigned dim, ArrayRef<int64_t> shape, int64_t warps);
};

/// Whether it is a fragment of 16 bits, which only contractions take.
bool isFactor(Type type);

/// Emits the reduction of each row of a fragment, R x 1: first of the columns
/// that a thread has, then of the four lanes that share the row, all of which
/// get it.
Value reduceRows(ThreadBuilder &b, Value fragment,
                 gpu::AllReduceOperation operation);
/// The second part, of the values of rows in any shape; the result is of
/// `type`.
Value reduceLanes(ThreadBuilder &b, Value values,
                  gpu::AllReduceOperation operation, VectorType type);

} // namespace mlir::varlen::kernel

#endif // LIB_DIALECT_KERNEL_TRANSFORMS_FRAGMENTLAYOUT_H

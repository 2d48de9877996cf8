//===- HiddenColumns.h - varlen.hide on fragments ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LIB_DIALECT_KERNEL_TRANSFORMS_HIDDENCOLUMNS_H
#define LIB_DIALECT_KERNEL_TRANSFORMS_HIDDENCOLUMNS_H

#include "FragmentLayout.h"

namespace mlir::varlen::kernel {

/// What hides columns of a fragment: the operands of a varlen.hide whose keys
/// are columns, on fragments. Limits are i32, or fragments of rows of it.
struct ColumnLimits {
  /// The columns from `lo` to `hi` are visible; null if none is before the
  /// first.
  Value lo, hi;
  /// The key of column 0; and whether all are visible, or null.
  Value k0, whole;
};

/// Emits `scores`, a fragment R x C, with `hidden`, a number, where a column is
/// hidden. Where there are many, the columns of a thread are bits of a word for
/// each row: a comparison with each limit in each column takes two instructions
/// a limit, a bit one seventh (R2P of the machine).
Value emitHiddenColumns(ThreadBuilder &b, Value scores, Value hidden,
                        const ColumnLimits &limits);

} // namespace mlir::varlen::kernel

#endif // LIB_DIALECT_KERNEL_TRANSFORMS_HIDDENCOLUMNS_H

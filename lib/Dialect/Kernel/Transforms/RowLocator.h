//===- RowLocator.h - Where the rows of a clause are ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that takes a rows clause apart: row p of a tile is pair
// first + p of a sequence, the row and head of which follow from the number of
// heads in a group, and the page of which from a table.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_KERNEL_TRANSFORMS_ROWLOCATOR_H
#define VARLEN_LIB_DIALECT_KERNEL_TRANSFORMS_ROWLOCATOR_H

#include "FragmentLayout.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

namespace mlir::varlen::kernel {

/// A row of memory of T x H x D.
struct RowPlace {
  Value row, head;
};

/// Whether every row of memory T x H x D, or of pages, starts at a multiple of
/// `elements`. Memory with the identity layout starts where it was allocated.
bool areRowsAligned(MemRefType mem, int64_t elements);

/// The indices of row `i` of the clause in memory, T x H x D or in pages, but
/// for the column, all of type i64: for few rows, or rows of a loop that has no
/// registers for what they share.
SmallVector<Value> locateRow(ImplicitLocOpBuilder &b, RowsOperands rows,
                             Value mem, Value i);

/// Locates several rows of a clause without pages. What they share is computed
/// once, in 64 bits; what differs takes 32, a division among it.
class RowLocator {
public:
  RowLocator(ThreadBuilder &b, RowsOperands rows);

  /// Whether row `i` (i32) exists.
  Value exists(Value i);
  /// Where row `i + distance` is, of type index, if it exists.
  RowPlace locate(Value i, int64_t distance = 0);

private:
  ThreadBuilder &b;
  RowsOperands rows;
  bool isGrouped;
  RowPlace first;
  /// The first pair's place in its group, and the size of that, of type i32.
  Value place, group;
};

} // namespace mlir::varlen::kernel

#endif // VARLEN_LIB_DIALECT_KERNEL_TRANSFORMS_ROWLOCATOR_H

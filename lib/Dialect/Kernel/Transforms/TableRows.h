//===- TableRows.h - Sums to rows of a table, of fragments ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_KERNEL_TRANSFORMS_TABLEROWS_H
#define VARLEN_LIB_DIALECT_KERNEL_TRANSFORMS_TABLEROWS_H

#include "FragmentLayout.h"

namespace mlir::varlen::kernel {

/// Emits a `varlen.scatter_add` of fragments: `values` and `index` of a tile
/// R x C, and `rows`, the projection R x 1, to `memory`. Among the four lanes
/// that share two rows, the first two add the numbers of a row each, which the
/// others hand to them. So whatever is added to a row of memory is added by one
/// thread, in the order of columns: there is nothing to wait for.
void emitScatterAdd(ThreadBuilder &b, Value values, Value index, Value memory,
                    Value rows);

/// Emits a `varlen.add_keys` of a fragment: `values` of a tile, keys x queries,
/// to one row of `memory`. Among the four lanes that share two keys, all of
/// which have their sums, the first two add one each: what a key has is added
/// by one thread.
void emitAddKeys(ThreadBuilder &b, Value values, Value memory, Value row,
                 Value firstKey, int64_t warps);

} // namespace mlir::varlen::kernel

#endif // VARLEN_LIB_DIALECT_KERNEL_TRANSFORMS_TABLEROWS_H

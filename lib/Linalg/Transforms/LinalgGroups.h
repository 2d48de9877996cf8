//===- LinalgGroups.h - Operations that share a loop over tiles -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-tile-linalg: decides which operations are computed tile by
// tile in one loop. Changes no IR.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_LINALGGROUPS_H
#define VARLEN_LIB_LINALG_TRANSFORMS_LINALGGROUPS_H

#include "ContractionForm.h"
#include "varlen/Target/CPUTarget.h"

#include "llvm/ADT/MapVector.h"

#include <memory>

namespace mlir::varlen {

/// Operations whose tiles are computed together: a root, and what only
/// operations of the group read. All loops of the group are loops of each
/// operation, so nothing is computed twice.
struct LinalgGroup {
  linalg::LinalgOp root;
  /// Extents of a tile along the loops of the group.
  SmallVector<int64_t> sizes;
  /// For each operation, from the root up, which of its loops those are.
  llvm::MapVector<Operation *, SmallVector<unsigned>> loops;
  /// The contractions that are computed in blocks.
  llvm::MapVector<Operation *, ContractionForm> contractions;
  /// Operations that a contraction reads, at any distance.
  llvm::SmallPtrSet<Operation *, 4> factors;

  bool contains(Operation *op) const { return loops.contains(op); }

  /// Producers first.
  SmallVector<Operation *> getOperations() const {
    SmallVector<Operation *> ops;
    for (auto &entry : loops)
      ops.push_back(entry.first);
    llvm::sort(ops, [](Operation *lhs, Operation *rhs) {
      return lhs->isBeforeInBlock(rhs);
    });
    return ops;
  }
};

/// As many rows of a left factor are too few to copy the right one for: tiles
/// are of columns then, and read it where it is.
int64_t getFewRows(const ContractionForm &form, const CPUTarget &target);

/// Whether a contraction of few rows has such tiles. Whether it does or not, it
/// adds up in the order of the contracted loop, so a row's result does not
/// depend on how many there are.
bool canHaveColumnTiles(linalg::LinalgOp op, const ContractionForm &form);

/// The groups of a block, the last one first. Contractions whose number of rows
/// is not known have few if `hasFewRows`.
SmallVector<std::unique_ptr<LinalgGroup>>
findGroups(Block &block, const CPUTarget &target, bool hasFewRows);

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_LINALGGROUPS_H

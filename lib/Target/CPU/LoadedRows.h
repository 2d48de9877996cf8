//===- LoadedRows.h - Tiles of rows where they are --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-expand-rows.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_TARGET_CPU_LOADEDROWS_H
#define VARLEN_LIB_TARGET_CPU_LOADEDROWS_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// Makes a tile one of a view of memory, and erases `load`. Where rows are in
/// pages, operations of linalg that read the tile do so page by page; the
/// others read a copy in scratch.
LogicalResult expandLoadedRows(LoadRowsOp load);

} // namespace mlir::varlen

#endif // VARLEN_LIB_TARGET_CPU_LOADEDROWS_H

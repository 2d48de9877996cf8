//===- Extents.h - Extents of tiles as those of memory ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_EXTENTS_H
#define VARLEN_SUPPORT_EXTENTS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// The extents of a tile: of one that is computed those of the memory, or of
/// the `tensor.empty`, that it began with. So nothing reads a computed tile for
/// its extents, where passes count readers.
SmallVector<OpFoldResult> getExtents(ImplicitLocOpBuilder &b, Value tile);
/// One of them.
Value emitExtent(ImplicitLocOpBuilder &b, Value tile, int64_t dim);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_EXTENTS_H

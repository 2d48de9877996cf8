//===- CPUTileOrder.h - How a tile lies in memory ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product reads its left factor by scalars and its right factor by vectors of
// columns; a dot product of pairs wants two neighbours of the reduction side by
// side. So a tile may lie in memory in another order than its own, or in
// several orders at once, a copy for each use. Tiling says so with casts from
// memory to what it means; varlen-vectorize-tiles takes the copy that a product
// needs.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_CPUTILEORDER_H
#define VARLEN_DIALECT_VARLEN_UTILS_CPUTILEORDER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// Where element (r, c) of a tile lies.
enum class TileOrder {
  Rows,        // [r][c]
  Columns,     // [c][r]
  RowPairs,    // [r / 2][2 c + r % 2]
  ColumnPairs, // [c / 2][2 r + c % 2]
};

/// A tile in memory.
struct TileCopy {
  TileOrder order;
  Value memref;
};

/// The tensor that `copies`, each of the same rows x columns, are copies of;
/// the first says how many rows there are.
Value emitTile(ImplicitLocOpBuilder &b, ArrayRef<TileCopy> copies);

/// The copies behind `buffer`, what a bufferization.to_tensor reads.
SmallVector<TileCopy> getTileCopies(Value buffer);

/// The extents of a memref that holds a rows x columns tile in this order.
SmallVector<int64_t> getTileMemoryShape(TileOrder order, int64_t rows,
                                        int64_t columns);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_CPUTILEORDER_H

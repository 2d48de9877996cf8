//===- TileLoop.h - What a tile loop is converted with ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOP_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOP_H

#include "WorkTiles.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::varlen {

/// What a tile loop is converted with.
struct TileLoopContext {
  GPUBatch batch;
  /// The list of the tiles of the loop, and its number among the loops over it.
  GPUWorkTiles work;
  int64_t number;
  /// The memory of `varlen.rows`: Hq x rows x values, with room to read on past
  /// the last row.
  const IRMapping &scratch;
};

/// Emits the kernel of a loop over heads. Fails, with an error, if it is not
/// one sum.
LogicalResult convertHeadSums(ImplicitLocOpBuilder &b, ForTilesOp loop,
                              const TileLoopContext &context);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOP_H

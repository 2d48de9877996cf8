//===- TileLoop.h - A loop over tiles and its steps -------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_TILELOOP_H
#define VARLEN_CONVERSION_VARLENTOCPU_TILELOOP_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// A loop over tiles, or one form of it, with its loop over blocks of keys with
/// one step, both null if there is none; and the loop over parts that this is
/// in, if it is in one.
struct TileLoop {
  ForTilesOp tiles;
  /// The operations of a tile, and the tile that they are at.
  Block *body = nullptr;
  Value tile;
  /// The orientation of its step.
  Orientation orientation = Orientation::KQ;
  ForPartsOp parts;
  ForBlocksOp blocks;
  StepOpInterface step;

  /// The queries of a tile at most.
  int64_t getSize() { return cast<TileType>(tile.getType()).getSize(); }
  /// Between what a tile does before its blocks and after them.
  Operation *getOuter() {
    return parts ? parts.getOperation() : blocks.getOperation();
  }
};

/// The forms of a loop over tiles.
struct TileLoopForms {
  TileLoop many;
  /// For few queries, if it has such a form (`varlen.if_few`).
  std::optional<TileLoop> few;
};

/// Verifies each operation of `tiles`, a loop over queries or over sequences,
/// as a CPU converts it with that schedule.
FailureOr<TileLoopForms> verifyTileLoop(ForTilesOp tiles,
                                        CPUScheduleAttr schedule);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_TILELOOP_H

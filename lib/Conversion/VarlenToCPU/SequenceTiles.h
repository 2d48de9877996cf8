//===- SequenceTiles.h - The parts of a loop over sequences -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILES_H
#define VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILES_H

#include "varlen/Dialect/Varlen/IR/Varlen.h"

namespace mlir::varlen {

/// A loop over sequences that own dq, dk and dv.
struct SequenceTiles {
  ForTilesOp tiles;
  ForBlocksOp blocks;
  OnlineAttnGradOp step;
  /// Of lse, delta and captures.
  ReadOp statistics;
  /// dq at the tile, dk and dv at the block.
  WriteOp dq, dk, dv;
  /// Of the gradients of captures, at the tile.
  SmallVector<WriteOp> dcaptures;
  /// Of rows of the gradients of tables at the tile, and of those of tables of
  /// keys at the block.
  SmallVector<ClearOp> clears, keyClears;
};

/// The parts of `tiles`; or an error, if it is of a form that is not known on a
/// CPU with that schedule.
FailureOr<SequenceTiles> findSequenceTiles(ForTilesOp tiles,
                                           CPUScheduleAttr schedule);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOCPU_SEQUENCETILES_H

//===- ContractionBlocks.h - Contractions in blocks of caches ---*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-tile-linalg. The right factor of a contraction is copied once,
// in panels as wide as the vectors of a tile of the result in registers; a
// block of the left factor is copied by each thread (Goto and van de Geijn,
// 2008). Both then lie contiguous in memory: rows that are a power of two apart
// fall into the same few sets of a cache. Where an instruction multiplies pairs
// of bf16, both are copied as such pairs.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONBLOCKS_H
#define VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONBLOCKS_H

#include "ContractionForm.h"
#include "varlen/Target/Tiles.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

class ContractionBlocks {
public:
  ContractionBlocks(ImplicitLocOpBuilder &b, linalg::LinalgOp op,
                    const ContractionForm &form, const CPUTarget &target);

  /// Copies the right factor, before the loop over tiles of the result.
  void emitPanels();

  /// A tile of so many rows of the result: `lhs` and `sum` are tiles of the
  /// left factor and of what is added to, `outer` has the indices of the other
  /// loops.
  Value emitTile(Value lhs, Value sum, ArrayRef<OpFoldResult> outer,
                 OpFoldResult rows);

private:
  Value emitDepth(Value lhs, Value sum, ArrayRef<OpFoldResult> outer,
                  OpFoldResult rows, OpFoldResult block);
  Value emitLeftCopy(Value lhs, OpFoldResult rows, OpFoldResult first,
                     OpFoldResult depth);
  Value emitLeftPairs(Value lhs, OpFoldResult rows, OpFoldResult first,
                      OpFoldResult depth);
  SmallVector<OpFoldResult> getPanelShape(OpFoldResult depth,
                                          OpFoldResult width);

  ImplicitLocOpBuilder &b;
  linalg::LinalgOp op;
  ContractionForm form;
  ContractionTile sizes;
  int64_t panelWidth, depthBlock;
  /// Elements of the contracted loop that a product takes, a dimension of what
  /// is copied if they are more than one; whether its extent may be odd; and
  /// the type of copies.
  int64_t depthStep;
  bool canBeOdd;
  FloatType element;
  /// Loops that the right factor has besides the contracted one and columns.
  SmallVector<unsigned> batch;
  SmallVector<OpFoldResult> extents;
  /// batch x blocks x panels x depthBlock / depthStep x panelWidth (x
  /// depthStep).
  Value panels;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONBLOCKS_H

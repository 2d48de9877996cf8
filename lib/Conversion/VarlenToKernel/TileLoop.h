//===- TileLoop.h - What a tile loop is converted with ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOP_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOP_H

#include "../KernelLaunch.h"
#include "../SequenceRows.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::varlen {

/// The states of parts of keys, in global memory: of row r of a part that is
/// item i, in row i x `pairs` + r.
struct GPUPartStates {
  /// For each value of a state that has columns, rows x 1 x columns; null for
  /// the others.
  SmallVector<Value> tiles;
  /// The values with one number a row, side by side: 1 x rows x values.
  Value numbers;
};

/// Sums that tiles of keys share, of blocks of queries, in global memory:
/// numbers of each block and head, and a counter for each of its warps.
struct GPUOrderedSums {
  Value sums, counters;
};

/// What a tile loop is converted with.
struct TileLoopContext {
  BatchOp batch;
  /// How many sequences it has.
  Value sequences;
  /// The list of the tiles of the loop, null while there is none, and its
  /// number among the loops over it.
  ListTilesOp list;
  int64_t number;
  /// The memory of `varlen.rows`: Hq x rows x values, with room to read on past
  /// the last row.
  const IRMapping &scratch;
  /// If the loop has parts, and is not only looked at.
  const GPUPartStates *states = nullptr;
  /// If tiles of the loop add up what blocks of queries get, and where. Another
  /// loop, before it, clears the counters.
  const GPUOrderedSums *sums = nullptr;
  Value cleared = {};
};

/// A tile of a list, of one kv head.
struct TileEntry {
  Value sequence, tile, kvHead;
};

/// What the kernel of a loop is called: the function, and the loop's name.
std::string getKernelName(ForTilesOp loop);

/// The parts that the keys of a loop's tiles are in; nothing if it has none.
std::optional<KeyParts> getKeyParts(ForTilesOp loop);

/// What the tiles of a loop add up in their order; null if they do not.
AddInOrderOp getOrderedSum(ForTilesOp loop);

/// Emits the kernel of a loop over heads. Fails, with an error, if it is not
/// one sum.
LogicalResult convertHeadSums(ImplicitLocOpBuilder &b, ForTilesOp loop,
                              const TileLoopContext &context);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOP_H

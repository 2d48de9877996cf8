//===- WorkTiles.h - The work tiles of a batch, on a GPU -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_WORKTILES_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_WORKTILES_H

#include "../KernelLaunch.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

namespace mlir::varlen {

/// A batch as host code sees it: the operation, and how many sequences it has.
struct GPUBatch {
  BatchOp op;
  Value sequences;
};

/// In which parts the keys of a sequence with few queries are: each is an item
/// of its own. A sequence is one of these whatever the rest of the batch is.
struct KeyParts {
  /// Keys of a part, and pairs of a query and a head of the group that are few.
  int64_t keys, pairs;

  bool operator==(const KeyParts &other) const {
    return keys == other.keys && pairs == other.pairs;
  }
  /// How many parts segment `s` has, which has so many pairs, and keys in use:
  /// 1 if its keys are not in parts.
  Value emitCount(IndexBuilder &index, Value s, Value sequences,
                  Value pairsOfSegment, Value keysOfSegment) const;
};

/// A list in device memory, most work first. Row i < count[0] is (sequence,
/// tile within the sequence), or (sequence, part) if the sequence has parts,
/// each of its one tile; those of a sequence follow each other, the last one
/// first if they are tiles of queries. Sequence N stands for the rows past the
/// last sequence. The list is the same for every kv head, and so long that its
/// extent bounds the count for any cu_seqlens.
struct GPUWorkTiles {
  /// memref<?x2xi32>.
  Value list;
  /// memref<(1 + N)xi64>: how many rows there are, -1 if cu_seqlens or seqused
  /// is bad; and for each of N loops how many items its CTAs have taken, 0 at
  /// first.
  Value count;
  /// memref<?xi32>: in which row the first part of a sequence that has parts
  /// is; null if none can have any.
  Value firstParts;
};

/// A tile of a list, of one kv head.
struct TileEntry {
  Value sequence, tile, kvHead;
};

/// How much work the tiles of a list are.
struct TileWeights {
  /// Whether that differs between kv heads.
  bool byHead;
  /// Emits it, an i32, for a tile that has a row in memory, in a kernel: all
  /// lanes of a warp are there for one tile.
  function_ref<Value(const TileEntry &)> emit;
};

/// The bounds of the rows of sequence `s` in packed memory; those of s = N are
/// cu[N] and `end`. cu is not empty.
struct PackedRows {
  Value begin, end;
};
PackedRows emitPackedRows(IndexBuilder &index, Value cu, Value s, Value end);

/// The same of the keys of a sequence; in pages, those that its pages have room
/// for, from 0 on.
PackedRows emitKeyRows(IndexBuilder &index, BatchOp batch, Value s);

/// Emits a search: the first position of [lo, hi) of which `isBefore` does not
/// hold, or hi. It holds of no position behind one of which it does not.
/// Positions are of the type of `lo`.
Value emitSearch(ImplicitLocOpBuilder &b, Value lo, Value hi,
                 function_ref<Value(Value)> isBefore);

/// used[s], or `otherwise` if there is no such element or no `used`.
Value emitUsed(IndexBuilder &index, Value used, Value s, Value sequences,
               Value otherwise);

/// What the kernel of a loop is called: the function, and the loop's name.
std::string getKernelName(ForTilesOp loop);

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_WORKTILES_H

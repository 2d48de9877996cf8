//===- TileBuilder.h - What kernels of tile loops share --------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_TILEBUILDER_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_TILEBUILDER_H

#include "WorkTiles.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {

/// Emits the parts that kernels of tile loops have in common. Such a kernel is
/// persistent: each CTA takes tiles from a list until it is through, and meets
/// blocks of the other side, those that the mask cuts first, then those wholly
/// inside, in one pipeline of copies.
class TileBuilder {
public:
  TileBuilder(ImplicitLocOpBuilder &b, ForTilesOp loop,
              GPUScheduleAttr schedule, const GPUBatch &batch)
      : loop(loop), schedule(schedule), b(b), index{b},
        narrow{b, b.getI32Type()}, tileRows(loop.getTileType().getSize()),
        batch(batch.op), sequences(batch.sequences),
        group(this->batch.getGroup()) {}

protected:
  /// The rows of a sequence in memory, and those in use.
  struct Sequence {
    Value qRow, qRows, qUsed;
    Value kRow, kRows, kUsed;
    SequenceMask mask;
  };
  /// The blocks that a tile meets, in the order of iterations: `left` masked
  /// ones, then those up to number `masked` on the other side, then the others,
  /// up to `total`. Iteration i visits block i plus the base of its part. These
  /// are alive in the inner loop, where registers are scarce: 32 bits each.
  struct Blocks {
    Value left, masked, total, leftBase, rightBase, insideBase;
  };
  /// A tile of the loop, decoded: rows of one sequence and kv head.
  struct Tile {
    Sequence sequence;
    Value kvHead;
    /// The first row, or pair; those of the tile in memory, and in use.
    Value first, rows, usedRows;
  };
  /// The values that loops over blocks carry.
  using State = SmallVector<Value>;
  /// The copies of iteration i to its slot of a ring. It is past the masked
  /// iterations, or may be among them.
  using Fetch = function_ref<void(unsigned number, Value i, bool masked,
                                  ValueRange slot)>;
  /// Starts what the step of iteration i reads of no slot.
  using Read = function_ref<void(Value i, bool masked)>;
  /// The step of iteration i on its slots.
  using Step = function_ref<State(Value i, bool masked, ValueRange slot,
                                  ValueRange state)>;
  struct Pipeline {
    ArrayRef<Value> rings;
    Value masked, total;
    /// Whether the warps of the calling thread have a row in use, without which
    /// they only copy; null if they take all steps.
    Value hasRows;
    Fetch fetch;
    Read read;
    Step step;
  };
  /// The pairs of the sequence and kv head of a tile.
  RowMap pairsOf(const Tile &tile) {
    return {tile.sequence.qRow, tile.kvHead, group};
  }
  using PositionBody =
      function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, Value)>;

  /// The tile of that number of all kv heads.
  TileEntry decodeEntry(const GPUWorkTiles &work, Value entry);
  Sequence decodeSequence(Value s);
  /// A tile of queries, and the keys that its rows see.
  std::pair<Tile, MaskRange<Value>> decodeQueries(const TileEntry &entry);
  Blocks getBlocks(const MaskRange<Value> &range, int64_t size);
  /// The first row of the block of iteration i.
  Value blockStart(const Blocks &blocks, Value i, bool masked, int64_t size);
  /// How many rows of the block at `start` are in use, of `used` or, if it is
  /// not masked, all: it may be more than the block has.
  Value rowsOfBlock(Value used, Value start, int64_t size, bool masked);
  /// Fetches the slot of ring `number` for iteration i, if there is one.
  void emitFetch(const Pipeline &pipeline, unsigned number, Value i,
                 bool masked);
  /// Starts the pipeline of a tile: `prologue` copies what all steps read.
  void emitPrefetch(const Pipeline &pipeline, function_ref<void()> prologue);
  State emitSteps(const Pipeline &pipeline, State state);
  /// One loop of these: the iterations from one to another.
  State emitStepLoop(const Pipeline &pipeline, bool masked, Value from,
                     Value to, const State &state);
  /// Whether the warpgroup of the calling thread has a row in use of the tile;
  /// null if all wait for each other in any case.
  Value emitHasRows(const Tile &tile);
  /// The items of a CTA, of `count`. Those that meet blocks differ in length,
  /// in no order that a CTA could count on: each CTA takes the next one when it
  /// is through. The others are of one length: every `grid`-th.
  void emitItems(Value block, Value grid, Value count,
                 function_ref<void(Value)> emitTile);
  /// The kernel: `prepare` emits what comes before all tiles, `emitTile` the
  /// work of an entry.
  LogicalResult emitPersistent(const GPUWorkTiles &work,
                               function_ref<void()> prepare,
                               function_ref<void(Value)> emitTile);
  /// So many values, of i32 unless `type` is another, of `extent` rows (dim 0)
  /// or columns (dim 1), R x 1 or 1 x C: the body gets the index of one.
  SmallVector<Value> perPosition(unsigned dim, int64_t extent, unsigned count,
                                 PositionBody body, Type type = {});
  /// One of them.
  Value perPosition(unsigned dim, int64_t extent,
                    function_ref<Value(IndexBuilder &, Value)> body,
                    Type type = {});
  /// Blocks whose copies are under way while one is read.
  int64_t getBlocksAhead() const {
    return schedule.getStages() - 1 - schedule.getSlack();
  }
  Value constant(Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }

  ForTilesOp loop;
  GPUScheduleAttr schedule;
  ImplicitLocOpBuilder &b;
  IndexBuilder index, narrow;
  /// The item taken last, in shared memory; null if no tile meets blocks.
  Value taken;
  /// Rows of a tile.
  int64_t tileRows;
  BatchOp batch;
  Value sequences, group;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_TILEBUILDER_H

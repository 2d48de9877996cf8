//===- GPUTileBuilder.h - What kernels of attention share -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUTILEBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUTILEBUILDER_H

#include "GPUWorkTiles.h"
#include "IndexBuilder.h"
#include "MaskWindow.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Runtime/Runtime.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {

/// Emits the parts that kernels of an attention and of its gradients have in
/// common. Such a kernel is persistent: each CTA takes tiles from a list until
/// it is through, and meets blocks of the other side, those that the mask cuts
/// first, then those wholly inside, in one pipeline of copies.
class GPUTileBuilder {
public:
  GPUTileBuilder(ImplicitLocOpBuilder &b, AttentionOpInterface op,
                 GPUScheduleAttr schedule, const GPUBatch &batch)
      : op(op), schedule(schedule), b(b), index{b}, narrow{b, b.getI32Type()},
        element(op.getElementType()), compute(op.getComputeType()),
        blockM(schedule.getBlockM()), blockN(schedule.getKvBlock()),
        stages(schedule.getStages()),
        qkColumns(llvm::alignTo(op.getHeadDim(), 16)),
        vColumns(llvm::alignTo(op.getValueHeadDim(), 16)),
        scale(*op.getScaleValue()), batch(batch) {}

protected:
  /// The rows of a sequence in memory, and those in use.
  struct Sequence {
    Value qRow, qRows, qUsed;
    Value kRow, kRows, kUsed;
    MaskWindow window;
  };
  /// The blocks that a tile meets, in the order of iterations: `left` masked
  /// ones, then those up to number `masked` on the other side, then the others,
  /// up to `total`. Iteration i visits block i plus the base of its part. These
  /// are alive in the inner loop, where registers are scarce: 32 bits each.
  struct Blocks {
    Value left, masked, total, leftBase, rightBase, insideBase;
  };
  /// A tile of queries: block_m (query row, head of the group) pairs of one
  /// sequence and kv head, and the kv blocks that it meets.
  struct QueryTile {
    Sequence sequence;
    Value kvHead;
    /// The first pair; pairs of the tile in memory, and those in use.
    Value first, rows, usedRows;
    Blocks blocks;
  };
  /// The values that loops over blocks carry.
  using State = SmallVector<Value>;
  /// The copies of iteration i to its slot. It is past the masked iterations,
  /// or may be among them.
  using Fetch = function_ref<void(Value i, bool masked, ValueRange slot)>;
  /// The step of iteration i on its slot.
  using Step = function_ref<State(Value i, bool masked, ValueRange slot,
                                  ValueRange state)>;
  struct Pipeline {
    Value ring, masked, total;
    Fetch fetch;
    Step step;
  };
  using ElementBody = function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                      Value, ValueRange)>;

  /// An entry of a list of tiles, which every kv head has.
  struct Entry {
    Value sequence, tile, kvHead;
  };
  Entry decodeEntry(const GPUWorkTiles &work, Value entry);
  Sequence decodeSequence(Value s);
  QueryTile decodeQueryTile(const GPUWorkTiles &work, Value entry);
  Blocks getBlocks(const MaskRange &range, int64_t size);
  /// The first row of the block of iteration i.
  Value blockStart(const Blocks &blocks, Value i, bool masked, int64_t size);
  /// How many rows of the block at `start` are in use, of `used` or, if it is
  /// not masked, all: it may be more than the block has.
  Value rowsOfBlock(Value used, Value start, int64_t size, bool masked);
  /// The first key that each pair of the tile sees, and the one after the last,
  /// as R x 1.
  SmallVector<Value> getLimits(const QueryTile &tile);

  /// The copies of the keys and values that a tile of queries meets in
  /// iteration i, to the two tiles of a slot.
  void emitFetchKeys(const QueryTile &tile, Value i, bool masked,
                     ValueRange slot);
  /// Fetches the slot of iteration i, if there is one.
  void emitFetch(const Pipeline &pipeline, Value i, bool masked);
  /// Starts the pipeline of a tile: `prologue` copies what all steps read.
  void emitPrefetch(const Pipeline &pipeline, function_ref<void()> prologue);
  State emitSteps(const Pipeline &pipeline, State state);
  /// The kernel, called `name`: `prepare` emits what comes before all tiles,
  /// `emitTile` the work of an entry.
  LogicalResult emitPersistent(const Twine &name, const GPUWorkTiles &work,
                               function_ref<void()> prepare,
                               function_ref<void(Value)> emitTile);

  /// Results R x 1 (dim 0) or 1 x C (dim 1) of that extent; the body gets the
  /// index of the row or column and the inputs' values.
  SmallVector<Value> perPosition(unsigned dim, int64_t extent,
                                 ValueRange inputs, ArrayRef<Type> types,
                                 ElementBody body);
  Value fill(double value, int64_t rows, int64_t columns);
  Value constant(OpBuilder &builder, Location loc, double value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getFloatAttr(compute, value));
  }
  void emitIf(Value condition, function_ref<void()> body);
  /// The pairs of a tile in memory.
  kernel::RowsOperands rowsOf(const QueryTile &tile, Value valid) {
    return {tile.sequence.qRow, tile.kvHead, tile.first, batch.group, valid};
  }
  /// A shared tile as a value.
  Value tileOf(ValueRange memory, int64_t rows, int64_t columns);
  /// Tiles in shared memory: the planes of one, in the order of memory.
  SmallVector<MemRefType> sharedTypes(int64_t rows, int64_t columns);
  int64_t planes() { return element.isF32() ? kernel::kPlanes : 1; }
  SmallVector<Value> allocate(int64_t rows, int64_t columns);
  /// A ring whose slots have a tile of each kind, `rows` high.
  Value allocateRing(int64_t rows, ArrayRef<int64_t> columns);
  /// The planes of tile `number` of a slot.
  ValueRange ofSlot(ValueRange slot, int64_t number) {
    return slot.slice(number * planes(), planes());
  }

  AttentionOpInterface op;
  GPUScheduleAttr schedule;
  ImplicitLocOpBuilder &b;
  IndexBuilder index, narrow;
  FloatType element, compute;
  int64_t blockM, blockN, stages, qkColumns, vColumns;
  double scale;
  GPUBatch batch;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_GPUTILEBUILDER_H

//===- TileLoopConverter.h - A tile loop as a kernel ------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOPCONVERTER_H
#define VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOPCONVERTER_H

#include "CaptureRanges.h"
#include "TileLoop.h"
#include "varlen/Dialect/Varlen/Utils/RowMap.h"
#include "varlen/Dialect/Varlen/Utils/SequenceMask.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {

/// Emits the kernel of a loop, which is persistent: each CTA takes tiles from a
/// list until it is through. Rows that are read at a tile for its loop over
/// blocks are copied to shared memory before that, those of a block to a slot
/// of a ring, stages ahead; what is used outside of that loop, and numbers of
/// rows, are loaded where they are. The loop over blocks, if there is one,
/// becomes two in one pipeline of copies: blocks that the mask or the end of a
/// sequence cuts, on which steps have limits, then the others. Nothing here
/// depends on what the tiles own.
class TileLoopConverter {
public:
  TileLoopConverter(ImplicitLocOpBuilder &b, ForTilesOp loop,
                    GPUScheduleAttr schedule, const TileLoopContext &context)
      : b(b), index{b}, narrow{b, b.getI32Type()}, loop(loop),
        schedule(schedule), context(context), batch(context.batch),
        sequences(context.sequences), list(context.list),
        group(batch.getGroup()), tileRows(loop.getTileType().getSize()),
        ofQueries(loop.getTileType().getAxis() == Axis::Queries),
        keyParts(getKeyParts(loop)), orderedSum(getOrderedSum(loop)) {}

  /// Whether the loop is of a form that a kernel has, which the others expect.
  LogicalResult verify();
  /// The kernel, at the builder's place.
  LogicalResult emit();

  /// Whether the blocks that a tile visits differ between kv heads; nothing if
  /// the mask alone says which these are, or if a score region does by numbers
  /// that are not there before other loops of the batch have run.
  std::optional<bool> weighsByHead();
  /// Emits how many blocks a tile visits then, of all heads of its group, an
  /// i32: all lanes of a warp are here, and have the result.
  Value emitWeight(const TileEntry &entry);

private:
  /// The rows of a sequence in memory, and those in use. `kRow` of keys in
  /// pages is the row of the block table.
  struct Sequence {
    Value qRow, qRows, qUsed;
    Value kRow, kRows, kUsed;
    SequenceMask mask;
  };
  /// The blocks that a tile visits, in the order of iterations: `left` masked
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
    /// Which part of its keys this is, and of how many; null if the loop has
    /// none.
    Value part, parts;
    /// The number of its sequence, and its own among the tiles of that one.
    Value number, tile;
  };
  /// The rows of a block.
  struct BlockRows {
    Value row, head, first;
  };
  /// Which of the blocks that a tile of keys visits its neighbours visit, too:
  /// the next tile those from `next` on, the one before those up to `previous`.
  /// And its turn, at any of them. i32 all.
  struct Turns {
    Value next, previous, turn;
  };
  /// How many iterations there are for all heads of a tile.
  struct Pipeline {
    Value masked, total;
    /// Whether the warps of the calling thread have a row in use, without which
    /// they only copy; null if they take all steps.
    Value hasRows;
  };

  LogicalResult verifyParts();
  LogicalResult verifyBlocks();
  LogicalResult verifyStep(StepOpInterface step);
  /// The score region of the step; null if there is none.
  Block *getScore() { return step ? step.getScoreBody() : nullptr; }

  // Tiles and blocks.
  /// So many values, of i32 unless `type` is another, of `extent` rows (dim 0)
  /// or columns (dim 1), R x 1 or 1 x C: the body gets the index of one.
  Values perPosition(unsigned dim, int64_t extent, unsigned count,
                     function_ref<Values(ImplicitLocOpBuilder &, Value)> body,
                     Type type = {});
  /// One of them.
  Value perPosition(unsigned dim, int64_t extent,
                    function_ref<Value(IndexBuilder &, Value)> body,
                    Type type = {});
  /// The pairs of the sequence and kv head of a tile.
  RowMap pairsOf(const Tile &tile) {
    return {tile.sequence.qRow, tile.kvHead, group};
  }
  Sequence decodeSequence(Value s);
  /// The sequence without the queries at its ends that see no key: a
  /// probability of 0 does not hide a NaN that they have.
  Sequence dropBlindQueries(Sequence sequence);
  /// The tile of that number of all kv heads.
  TileEntry decodeEntry(Value entry);
  Tile decode(const TileEntry &entry);
  Tile decodeQueries(const TileEntry &entry);
  Tile decodeKeys(const TileEntry &entry);
  /// Sets the rows of a tile of keys of its sequence, from row `first` on.
  void setKeyRows(Tile &tile, Value first);
  /// The range of the other side that rows of the tile visit.
  MaskRange<Value> getVisitedRows();
  Blocks getBlocks(const MaskRange<Value> &range);
  /// The first row of the block of iteration i of a head, which is past the
  /// masked iterations, or may be among them.
  Value blockStart(Value i, bool masked);
  BlockRows getBlockRows(Value i, bool masked);
  /// The keys that each query sees: of the tile, R x 1, or of a block, relative
  /// to the first key of the tile, 1 x C.
  SmallVector<Value> getTileLimits();
  /// Where queries of the tile, or of a block, are among the keys.
  Value getTilePositions();
  Value getBlockPositions(Value q0);
  SmallVector<Value> getBlockLimits(Value q0);
  /// The rows of queries of the tile, or of a block, in a table.
  Value getTileTableRows(Value table);
  Value getBlockTableRows(Value table, const BlockRows &rows);
  /// The same of a table that is summed: a query that is not in use has none.
  Value getTileGradientRows(Value table);
  /// The row of a table of keys: all queries of a block are of one head. Those
  /// that are not in use see nothing.
  Value getBlockGradientRow(Value table, const BlockRows &rows);

  // Sums that tiles share, in TileLoopOrder.cpp.

  /// Whether tiles wait for others: items are then taken in the order of the
  /// list, the first one of a CTA, too.
  bool isOrdered() { return static_cast<bool>(orderedSum); }
  Turns getTurns();
  /// Adds what the step of iteration i has for its block.
  void emitAddInOrder(AddInOrderOp add, Value i, bool masked);

  // The pipeline, in TileLoopPipeline.cpp.
  /// Blocks whose copies are under way while one is read.
  int64_t getBlocksAhead() const {
    return schedule.getStages() - 1 - schedule.getSlack();
  }
  /// Whether the keys of each block are in one page, as types say.
  bool isBlockInPage(ReadOp read);
  /// Copies the block of iteration i to its slot of ring `number`.
  void emitCopies(unsigned number, Value i, bool masked, ValueRange slot);
  /// The same if there is such an iteration.
  void emitFetch(unsigned number, Value i, bool masked);
  /// The number of the slot of iteration i: those of a tile follow each other
  /// from `base` on.
  Value getPosition(Value i) { return base ? narrow.add(base, i) : i; }
  /// Sets which blocks the tile visits.
  void emitPipeline(const MaskRange<Value> &range);
  /// Starts the pipeline of a tile: copies what all steps read, and the first
  /// blocks.
  void emitPrefetch();
  Values emitSteps(const Values &state);
  /// One loop of these: the iterations from one to another, without the steps
  /// if `onlyCopies`.
  Values emitStepLoop(bool masked, Value from, Value to, const Values &state,
                      bool onlyCopies = false);
  /// Whether the warpgroup of the calling thread has a row in use of the tile;
  /// null if all wait for each other in any case.
  Value emitHasRows();
  /// Whether the number of items is in shared memory: only the end of an item
  /// needs it, and a register would be kept for it through all steps. Not where
  /// copies go through registers (f32, quantised rows): of those kernels ptxas
  /// spills more then.
  bool sharesCount();
  /// Sets the counters of a later loop to 0, by all threads of the kernel.
  void emitClearCounters(Value block, Value grid, Value thread);
  /// The items of a CTA, of `count`. Items that visit blocks differ in length,
  /// in no order that a CTA could count on: each CTA takes the next one when it
  /// is through. The others are of one length: every `grid`-th.
  void emitItems(Value block, Value grid, Value count);
  /// Takes the next item, whose number is there behind the next barrier.
  void emitTake();
  Value emitTaken(Value grid);

  // Parts of the keys, in TileLoopParts.cpp.

  /// Sets the part of a tile that is entry `number` of its sequence; the number
  /// of the tile.
  Value decodePart(Tile &tile, Value s, Value number);
  /// The keys of `range` that are in the part of the tile.
  MaskRange<Value> clipToPart(MaskRange<Value> range);
  /// Where the state of item `entry` is.
  kernel::RowsOperands getStateRows(Value entry);
  void emitStoreState(Value entry);
  Values emitLoadState(Value entry);
  /// A kernel that merges the states of each tile in parts, and ends it.
  void emitMergeKernel(Value ctas);

  // The body.
  void emitTile(Value entry);
  /// An operation of the tile's body, for item `entry`.
  void emitOp(Operation *op, Value entry);
  /// The loop over blocks.
  void emitBlocks(Value entry);
  /// What an iteration reads of its block that no slot has.
  void emitBlockLoads(Value i, bool masked);
  /// Whether it reads that before it waits for its slot, which leaves it in
  /// registers for longer. There are none to spare where rows of f32 are in
  /// registers on their way to a slot, and beside a score region.
  bool readsEarly() { return !element.isF32() && !getScore(); }
  /// The step of iteration i on its slots.
  Values emitStep(Value i, bool masked, ValueRange slot, ValueRange state);
  /// The step of an iteration of which some keys are visible; without
  /// `hidesKeys` the score region hides none.
  Values emitSeenStep(Value i, bool masked, bool hidesKeys, ValueRange slot,
                      ValueRange state);
  void cloneStep(Value i, bool masked, bool hidesKeys);
  /// What the score region hides of iteration i, as far as it says so.
  BlockVisibility getVisibility(Value i, bool masked);
  /// The same of `count` rows from row `first` on, both i32, whose captures
  /// and lookups have those ranges.
  BlockVisibility getVisibility(Value first, Value count,
                                ArrayRef<NumberRange> captures,
                                ArrayRef<NumberRange> lookups);
  /// Positions of the queries and of the keys of the tile and such a block.
  NumberRange getQueryRange(Value first, Value count);
  NumberRange getKeyRange(Value first, Value count);
  /// The blocks of `range` between the first and the last that may be visible:
  /// others are not even copied.
  MaskRange<Value> dropHiddenBlocks(MaskRange<Value> range);
  /// How many rows of the block from row `first` on are in use.
  Value getUsedRows(Value first);
  /// The ranges of the captures that this depends on, null of others, over the
  /// queries of the tile or of a block.
  SmallVector<NumberRange> getCaptureRanges(const kernel::RowsOperands &rows,
                                            int64_t size, Readers readers);
  /// The ranges of lookups in tables of keys that this depends on, of a tile of
  /// queries, null of others, and of a block of keys as well. A tile of keys
  /// has none: its kernels have no registers left.
  SmallVector<NumberRange> getTileLookupRanges();
  SmallVector<NumberRange> getLookupRanges(Value first, Value count);
  /// The range of the numbers at some positions, at most `size`, of all heads
  /// of the group.
  NumberRange getLookupRange(LookupOp lookup, NumberRange positions,
                             int64_t size, Readers readers);
  /// The memory of the table of a lookup.
  Value getTable(LookupOp lookup);
  /// Sets those of a tile of queries.
  void readTileRanges();
  /// Who reads the numbers of a block. Blocks that are weighed are a lane's.
  Readers getBlockReaders() {
    return isWeighing ? Readers::Lanes : Readers::Warps;
  }
  /// Loads rows, or numbers of them, from memory to registers.
  void emitLoad(ReadOp read, kernel::RowsOperands rows);
  /// Loads the scales of quantised keys or values of a block; 0 behind the last
  /// key in use.
  void emitScales(ReadOp read, const BlockRows &rows, bool masked);
  /// A float times a factor, if there is one.
  static Value emitScaled(ImplicitLocOpBuilder &b, Value x,
                          std::optional<APFloat> factor);
  Value emitStored(WriteOp write, unsigned number, Type to);
  void emitWrite(WriteOp write);
  /// Zeros in what a table has of all rows of the tile, by all threads.
  void emitClear(ClearOp clear);
  /// The first rows of the tile, so many.
  kernel::RowsOperands rowsOf(Value valid) {
    return {ofQueries ? tile.sequence.qRow : tile.sequence.kRow, tile.kvHead,
            tile.first, ofQueries ? group : index.constant(1), valid};
  }

  // Roles, in TileLoopRoles.cpp.

  /// Slots of the ring of items: the rows of a tile take much memory, and those
  /// of the next one arrive while results of this one are written.
  static constexpr int64_t kItemStages = 1;
  /// Whether warps of their own copy.
  bool hasRoles() { return blocks && schedule.getProducers() > 0; }
  /// The memory that tensor maps of rows in memory are of, and how many rows
  /// their boxes have: those that producers copy by maps, if they do.
  SmallVector<std::pair<Value, int64_t>> getMaps();
  /// Memory for the tensor maps of all CTAs, of which there are no more than
  /// `ctas` from then on; null if there are none.
  Value emitMapMemory(Value &ctas);
  void emitMaps(Value block);
  /// The items of a CTA, copied by some of its warps while others compute.
  void emitRoles(Value block, Value grid, Value count);
  void emitProducer(Value block, Value grid, Value count);
  void emitConsumer(Value count);
  /// Gives the steps of a tile the rows of its item.
  void emitShareItem();
  /// Copies blocks from `from` on, and the others of all heads.
  void emitFetchFrom(int64_t from);
  /// Sends the number of an item, and the rows that all its steps read.
  void emitSendItem(Value item, Value turn, bool hasRows);
  /// Where a count of slots of rings of `stages` goes on behind `count` more.
  Value emitAdvance(Value position, Value count, int64_t stages) {
    return narrow.rem(narrow.add(position, count), narrow.constant(2 * stages));
  }

  // Shared memory.
  /// Planes of an f32 tile, whose sum it is.
  int64_t planes() { return element.isF32() ? kernel::kPlanes : 1; }
  void allocate();
  void mapShared(ReadOp read, ValueRange memory) {
    map.map(read.getResult(0),
            kernel::TileOp::create(b, read.getResult(0).getType(), memory)
                .getResult());
  }
  /// The planes of tile `number` of a slot.
  ValueRange ofSlot(ValueRange slot, int64_t number) {
    return slot.slice(number * planes(), planes());
  }

  Value constant(Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }

  ImplicitLocOpBuilder &b;
  IndexBuilder index, narrow;
  ForTilesOp loop;
  GPUScheduleAttr schedule;
  const TileLoopContext &context;
  BatchOp batch;
  Value sequences;
  ListTilesOp list;
  Value group;
  /// Rows of a tile.
  int64_t tileRows;
  bool ofQueries;
  /// The element type of rows in shared memory.
  FloatType element;
  std::optional<KeyParts> keyParts;
  /// Null if there are none.
  ForPartsOp parts;
  ForBlocksOp blocks;
  /// The step of the loop over blocks; null if there is none.
  StepOpInterface step;
  /// Null if there is none.
  AddInOrderOp orderedSum;
  int64_t blockSize;
  /// Reads of rows to shared memory, at the tile and at a block.
  SmallVector<ReadOp> tileReads, blockReads;

  /// One for all reads at a block, or one for each.
  SmallVector<Value> rings;
  /// With roles, that of items: the rows that all steps read, and a number.
  Value items;
  /// What a kernel with roles has tensor maps of, from `getMaps`, and the
  /// memory of these; null if there are none.
  SmallVector<std::pair<Value, int64_t>> maps;
  Value mapMemory;
  /// With roles, where the slots of a tile begin, and those of its item.
  Value base, turn;
  DenseMap<Operation *, SmallVector<Value>> shared;
  /// The item taken last, in shared memory, and the number of items if it
  /// `sharesCount`; null if no tile visits blocks.
  Value taken;
  /// The tile, decoded again behind its loops: registers are scarce in them.
  Tile tile;
  Blocks visited;
  Turns turns;
  Pipeline pipeline;
  SmallVector<Value> limits;
  Value positions;
  /// For a tile of queries.
  SmallVector<NumberRange> tileRanges, tileLookupRanges;
  SmallVector<Value> queryTableRows, gradientTableRows;
  /// Whether blocks are counted before any loop of the batch has run.
  bool isWeighing = false;
  /// From values of the loop to those of the kernel.
  IRMapping map;
};

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_VARLENTOKERNEL_TILELOOPCONVERTER_H

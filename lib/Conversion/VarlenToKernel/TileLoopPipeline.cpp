//===- TileLoopPipeline.cpp - The kernel of a tile loop -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The items of a CTA, and the pipeline of copies and steps of each.
//
//===----------------------------------------------------------------------===//

#include "TileLoopConverter.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void TileLoopConverter::emitCopies(unsigned number, Value i, bool masked,
                                   ValueRange slot) {
  BlockRows rows = getBlockRows(i, masked);
  Value used = ofQueries ? tile.sequence.kUsed : tile.sequence.qUsed;
  // Those in use from the first row on, maybe more than the block has.
  Value valid =
      masked ? index.sub(used, rows.first) : index.constant(blockSize);
  MutableArrayRef<ReadOp> reads = blockReads;
  if (rings.size() > 1)
    reads = reads.slice(number, 1);
  for (auto [place, read] : llvm::enumerate(reads)) {
    auto copy = kernel::CopyOp::create(b, read.getSource(),
                                       {rows.row, rows.head, rows.first,
                                        index.constant(1), valid,
                                        batch.getBlockTable()},
                                       ofSlot(slot, place));
    copy.setOnePage(isBlockInPage(read));
  }
}

bool TileLoopConverter::isBlockInPage(ReadOp read) {
  auto type = cast<MemRefType>(read.getSource().getType());
  // Blocks begin at multiples of their size.
  return batch.getBlockTable() && type.getDimSize(1) > 0 &&
         type.getDimSize(1) % blockSize == 0;
}

void TileLoopConverter::emitFetch(unsigned number, Value i, bool masked) {
  emitIf(b, narrow.less(i, pipeline.total), [&] {
    auto slot = kernel::RingAcquireOp::create(b, rings[number], getPosition(i));
    emitCopies(number, i, masked, slot.getResults());
  });
  kernel::RingCommitOp::create(b, rings[number]);
}

void TileLoopConverter::emitPipeline(const MaskRange<Value> &range) {
  readTileRanges();
  visited = getBlocks(dropHiddenBlocks(range));
  Value heads = ofQueries ? narrow.constant(1) : narrow.cast(group);
  pipeline = {narrow.mul(visited.masked, heads),
              narrow.mul(visited.total, heads), /*hasRows=*/Value()};
}

void TileLoopConverter::emitPrefetch() {
  // Either way all have read the number of this item before the next is taken.
  emitIf(
      b, narrow.less(0, pipeline.total),
      [&] {
        kernel::RingRestartOp::create(b, rings);
        for (ReadOp read : tileReads)
          kernel::CopyOp::create(b, read.getSource(), rowsOf(tile.usedRows),
                                 shared[read]);
        for (int64_t i = 0; i < getBlocksAhead(); ++i)
          for (unsigned ring = 0; ring < rings.size(); ++ring)
            emitFetch(ring, narrow.constant(i), /*masked=*/true);
      },
      [&] { gpu::BarrierOp::create(b); });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Value TileLoopConverter::emitHasRows() {
  constexpr int64_t kWarpgroup = 4 * kernel::kWarpLanes;
  int64_t groups = schedule.getWarps() * kernel::kWarpLanes / kWarpgroup;
  // Rows of a tile that are 16 for each warp follow each other.
  if (!schedule.getTiles().areWarpsApart() || groups < 2 ||
      tileRows != 16 * schedule.getWarps())
    return {};
  Value thread = narrow.cast(gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value group = narrow.div(thread, kWarpgroup);
  // Of one lane: a branch on it is one of the whole warp.
  group = gpu::ShuffleOp::create(b, group, narrow.constant(0),
                                 narrow.constant(kernel::kWarpLanes),
                                 gpu::ShuffleMode::IDX)
              .getShuffleResult();
  Value first = narrow.mul(group, tileRows / groups);
  return narrow.less(first, narrow.cast(tile.usedRows));
}

Values TileLoopConverter::emitStepLoop(bool masked, Value from, Value to,
                                       const Values &state, bool onlyCopies) {
  int64_t ahead = getBlocksAhead();
  // Commits of all rings take turns.
  int64_t younger = std::min(static_cast<int64_t>(rings.size()) * ahead,
                             schedule.getStages()) -
                    1;
  return llvm::to_vector(emitLoop(
      b, getPosition(from), getPosition(to), narrow.constant(1), state,
      [&](Value position, ValueRange carried) {
        Value i = base ? narrow.sub(position, base) : position;
        // In flight while the slots are waited for.
        if (!onlyCopies && readsEarly())
          emitBlockLoads(i, masked);
        Values slots;
        for (auto [number, ring] : llvm::enumerate(rings)) {
          auto slot = kernel::RingWaitOp::create(b, ring, position, younger);
          slot.setWhole(!masked && mapMemory);
          llvm::append_range(slots, slot.getResults());
          if (!hasRoles())
            emitFetch(number, narrow.add(i, ahead), masked);
        }
        Values result =
            onlyCopies ? Values(carried) : emitStep(i, masked, slots, carried);
        for (Value ring : rings)
          kernel::RingReleaseOp::create(b, ring, position);
        return result;
      }));
}

Values TileLoopConverter::emitSteps(const Values &state) {
  Value zero = narrow.constant(0);
  auto compute = [&] {
    Values before = emitStepLoop(/*masked=*/true, zero, pipeline.masked, state);
    return emitStepLoop(/*masked=*/false, pipeline.masked, pipeline.total,
                        before);
  };
  if (!pipeline.hasRows)
    return compute();
  return Values(emitChoice(b, pipeline.hasRows, compute, [&] {
    emitStepLoop(/*masked=*/true, zero, pipeline.total, /*state=*/{},
                 /*onlyCopies=*/true);
    return state;
  }));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void TileLoopConverter::emitTake() {
  kernel::TakeOp::create(b, list.getCount(), index.constant(1 + context.number),
                         taken);
}

Value TileLoopConverter::emitTaken(Value grid) {
  Value number = narrow.load(taken, index.constant(0));
  return isOrdered() ? number : narrow.add(grid, number);
}

bool TileLoopConverter::sharesCount() {
  return !hasRoles() && llvm::all_of(blockReads, [](ReadOp read) {
    Type inMemory = getElementTypeOrSelf(read.getSource().getType());
    return inMemory.getIntOrFloatBitWidth() == 16;
  });
}

void TileLoopConverter::emitItems(Value block, Value grid, Value count) {
  if (!taken) {
    emitLoop(b, block, count, grid, [&](Value item) { emitTile(item); });
    return;
  }
  bool isShared = sharesCount();
  Values first = {block};
  if (isOrdered()) {
    // No CTA need run beside those before it.
    emitTake();
    gpu::BarrierOp::create(b);
    first = {emitTaken(grid)};
  }
  if (isShared) {
    // It is beside the number that is taken. Barriers of the first item come
    // between this and the first load.
    Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    emitIf(b, index.equal(thread, 0), [&] {
      Value number = IndexBuilder{b, b.getI64Type()}.cast(count);
      memref::StoreOp::create(b, number, taken, ValueRange{index.constant(1)});
    });
    first.push_back(count);
  }
  auto isItem = [&](ValueRange state) {
    return narrow.less(state[0], isShared ? state[1] : count);
  };
  auto emitItem = [&](ValueRange state) {
    emitTile(state[0]);
    gpu::BarrierOp::create(b);
    Values next = {emitTaken(grid)};
    if (isShared)
      next.push_back(narrow.load(taken, index.constant(1)));
    return next;
  };
  emitWhile(b, first, isItem, emitItem);
}

void TileLoopConverter::emitClearCounters(Value block, Value grid,
                                          Value thread) {
  int64_t threads = schedule.getWarps() * kernel::kWarpLanes;
  Value first = index.add(index.mul(block, threads), thread);
  Value zero = narrow.constant(0);
  emitLoop(
      b, first, index.dim(context.cleared, 0), index.mul(grid, threads),
      [&](Value i) { memref::StoreOp::create(b, zero, context.cleared, i); });
}

LogicalResult TileLoopConverter::emit() {
  FailureOr<func::FuncOp> multiprocessors = getRuntimeFunction(
      loop->getParentOfType<ModuleOp>(), loop, "varlen_gpu_multiprocessors",
      b.getFunctionType({}, b.getI64Type()));
  if (failed(multiprocessors))
    return failure();
  Value processors = index.cast(
      func::CallOp::create(b, *multiprocessors, ValueRange{}).getResult(0));
  Value ctas =
      index.min(index.mul(processors, schedule.getCtas()),
                index.mul(index.dim(list.getList(), 0), batch.getKvHeads()));
  // Entries have 32 bits, as no memory has room for the rows of more.
  int64_t warps =
      schedule.getWarps() + (hasRoles() ? schedule.getProducers() : 0);
  mapMemory = emitMapMemory(ctas);
  emitLaunch(b, getKernelName(loop), index.max(ctas, 1),
             warps * kernel::kWarpLanes,
             [&](Value block, Value grid, Value thread) {
               if (context.cleared)
                 emitClearCounters(block, grid, thread);
               if (blocks)
                 allocate();
               Value entries = index.load(list.getCount(), index.constant(0));
               Value count = index.mul(entries, batch.getKvHeads());
               auto emit = hasRoles() ? &TileLoopConverter::emitRoles
                                      : &TileLoopConverter::emitItems;
               (this->*emit)(narrow.cast(block), narrow.cast(grid),
                             narrow.cast(count));
             });
  if (mapMemory)
    memref::DeallocOp::create(b, mapMemory);
  if (parts)
    emitMergeKernel(index.mul(processors, schedule.getCtas()));
  return success();
}

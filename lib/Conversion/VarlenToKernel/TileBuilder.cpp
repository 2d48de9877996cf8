//===- TileBuilder.cpp - What kernels of tile loops share ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

#include "varlen/Dialect/Varlen/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

SmallVector<Value> TileBuilder::perPosition(unsigned dim, int64_t extent,
                                            unsigned count, PositionBody body,
                                            Type type) {
  // One generic a result: a fragment conversion wants it so, and what they
  // share is common to both afterwards.
  int64_t shape[] = {1, 1};
  shape[dim] = extent;
  SmallVector<Value> results;
  for (unsigned number = 0; number < count; ++number) {
    Value empty =
        tensor::EmptyOp::create(b, shape, type ? type : b.getI32Type());
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(2)};
    SmallVector<utils::IteratorType> iterators(2,
                                               utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        b, TypeRange{empty.getType()}, ValueRange{}, ValueRange{empty}, maps,
        iterators, [&](OpBuilder &nested, Location loc, ValueRange) {
          ImplicitLocOpBuilder inner(loc, nested);
          Value position = linalg::IndexOp::create(inner, dim);
          linalg::YieldOp::create(inner, body(inner, position)[number]);
        });
    results.push_back(generic.getResult(0));
  }
  return results;
}

Value TileBuilder::perPosition(unsigned dim, int64_t extent,
                               function_ref<Value(IndexBuilder &, Value)> body,
                               Type type) {
  auto only = [&](ImplicitLocOpBuilder &inner, Value position) {
    IndexBuilder at{inner};
    return SmallVector<Value>{body(at, position)};
  };
  return perPosition(dim, extent, 1, only, type).front();
}

//===----------------------------------------------------------------------===//
// Sequences and their masks
//===----------------------------------------------------------------------===//

TileBuilder::Sequence TileBuilder::decodeSequence(Value s) {
  // The rows past the last sequence are no queries: as none is in use, none of
  // them sees a key, and no query sees the keys there.
  PackedRows q = emitPackedRows(index, batch.getCuQ(), s, batch.getTq());
  PackedRows k = emitPackedRows(index, batch.getCuK(), s, batch.getTk());
  Value zero = index.constant(0);
  auto used = [&](Value list, Value rows) {
    return emitUsed(index, list, s, sequences, rows);
  };
  Sequence sequence;
  sequence.qRow = q.begin;
  sequence.qRows = index.sub(q.end, q.begin);
  sequence.qUsed =
      index.select(index.less(s, sequences),
                   used(batch.getSequsedQ(), sequence.qRows), zero);
  sequence.kRow = k.begin;
  sequence.kRows = index.sub(k.end, k.begin);
  sequence.kUsed = used(batch.getSequsedK(), sequence.kRows);
  Position offset;
  if (batch.getQOffset())
    offset = emitUsed(index, batch.getQOffset(), s, sequences, zero);
  sequence.mask = SequenceMask(index, batch.getMask(), sequence.qUsed,
                               sequence.kUsed, offset);
  return sequence;
}

TileBuilder::Blocks TileBuilder::getBlocks(const MaskRange<Value> &range,
                                           int64_t size) {
  // Counts of blocks are not negative.
  auto atLeast = [&](Value value, Value lo) {
    return isConstantIntValue(lo, 0) ? value : index.max(value, lo);
  };
  Value first = index.div(range.begin, index.constant(size));
  Value past = atLeast(index.ceilDiv(range.end, size), first);
  // A tile whose range is empty visits no block; one that begins at 0 is empty
  // only if it ends there.
  if (!isConstantIntValue(range.begin, 0))
    past = index.select(index.less(range.begin, range.end), past, first);
  auto within = [&](Value value, Value lo) {
    return atLeast(index.min(value, past), lo);
  };
  // Blocks that every row meets whole.
  Value inside = isConstantIntValue(range.wholeBegin, 0)
                     ? first
                     : within(index.ceilDiv(range.wholeBegin, size), first);
  Value right = within(index.div(range.wholeEnd, index.constant(size)), inside);

  Value left = index.sub(inside, first);
  Value masked = index.add(left, index.sub(past, right));
  return {narrow.cast(left),
          narrow.cast(masked),
          narrow.cast(index.sub(past, first)),
          narrow.cast(first),
          narrow.cast(index.sub(right, left)),
          narrow.cast(index.sub(inside, masked))};
}

Value TileBuilder::blockStart(const Blocks &blocks, Value i, bool masked,
                              int64_t size) {
  Value base = blocks.insideBase;
  if (masked)
    base = narrow.select(
        narrow.less(i, blocks.left), blocks.leftBase,
        narrow.select(narrow.less(i, blocks.masked), blocks.rightBase, base));
  return narrow.mul(narrow.add(base, i), size);
}

Value TileBuilder::rowsOfBlock(Value used, Value start, int64_t size,
                               bool masked) {
  return masked ? index.sub(used, start) : index.constant(size);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

TileEntry TileBuilder::decodeEntry(const GPUWorkTiles &work, Value entry) {
  Value kvHeads = narrow.cast(batch.getKvHeads());
  Value number = index.cast(narrow.div(entry, kvHeads));
  return {index.load(work.list, {number, index.constant(0)}),
          index.load(work.list, {number, index.constant(1)}),
          index.cast(narrow.rem(entry, kvHeads))};
}

std::pair<TileBuilder::Tile, MaskRange<Value>>
TileBuilder::decodeQueries(const TileEntry &entry) {
  Tile tile;
  tile.sequence = decodeSequence(entry.sequence);
  tile.kvHead = entry.kvHead;
  tile.first = index.mul(entry.tile, tileRows);
  Value zero = index.constant(0);
  RowMap pairs = pairsOf(tile);
  auto pairsBefore = [&](Value query) {
    return index.sub(pairs.firstPair(index, query), tile.first);
  };
  tile.rows =
      index.min(pairsBefore(tile.sequence.qRows), index.constant(tileRows));
  tile.usedRows =
      index.min(index.max(pairsBefore(tile.sequence.qUsed), zero), tile.rows);

  // Bounds grow with the position of a row, so the first and the last row of
  // the tile bound those of all.
  Value last =
      index.sub(index.add(tile.first, tile.usedRows), index.constant(1));
  MaskRange<Value> keys = tile.sequence.mask.emitKeysOf(
      index, pairs.query(index, tile.first), pairs.query(index, last),
      tile.sequence.kUsed);
  // Not even a row: no key.
  keys.end = index.select(index.less(zero, tile.usedRows), keys.end, zero);
  return {tile, keys};
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

void TileBuilder::emitFetch(const Pipeline &pipeline, unsigned number, Value i,
                            bool masked) {
  Value ring = pipeline.rings[number];
  emitIf(b, narrow.less(i, pipeline.total), [&] {
    auto slot = kernel::RingAcquireOp::create(b, ring, i);
    pipeline.fetch(number, i, masked, slot.getResults());
  });
  kernel::RingCommitOp::create(b, ring);
}

void TileBuilder::emitPrefetch(const Pipeline &pipeline,
                               function_ref<void()> prologue) {
  // Either way all have read the number of this item before the next is taken.
  emitIf(
      b, narrow.less(narrow.constant(0), pipeline.total),
      [&] {
        for (Value ring : pipeline.rings)
          kernel::RingRestartOp::create(b, ring);
        prologue();
        for (int64_t i = 0; i < getBlocksAhead(); ++i)
          for (unsigned ring = 0; ring < pipeline.rings.size(); ++ring)
            emitFetch(pipeline, ring, narrow.constant(i), /*masked=*/true);
      },
      [&] { gpu::BarrierOp::create(b); });
}

Value TileBuilder::emitHasRows(const Tile &tile) {
  constexpr int64_t kThreads = 128;
  int64_t groups = schedule.getWarps() * 32 / kThreads;
  // Rows of a tile that are 16 for each warp follow each other.
  if ((schedule.getSlack() == 0 && schedule.getRings() == 1) || groups < 2 ||
      tileRows != 16 * schedule.getWarps())
    return {};
  Value thread = narrow.cast(gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value group = narrow.div(thread, narrow.constant(kThreads));
  // Of one lane: a branch on it is one of the whole warp.
  group = gpu::ShuffleOp::create(b, group, narrow.constant(0),
                                 narrow.constant(32), gpu::ShuffleMode::IDX)
              .getShuffleResult();
  Value first = narrow.mul(group, narrow.constant(tileRows / groups));
  return narrow.less(first, narrow.cast(tile.usedRows));
}

TileBuilder::State TileBuilder::emitStepLoop(const Pipeline &pipeline,
                                             bool masked, Value from, Value to,
                                             const State &state) {
  int64_t ahead = getBlocksAhead();
  // Commits of all rings take turns.
  int64_t younger =
      std::min(static_cast<int64_t>(pipeline.rings.size()) * ahead,
               schedule.getStages()) -
      1;
  return llvm::to_vector(emitLoop(
      b, from, to, narrow.constant(1), state, [&](Value i, ValueRange carried) {
        // In flight while the slots are waited for.
        pipeline.read(i, masked);
        SmallVector<Value> slots;
        for (auto [number, ring] : llvm::enumerate(pipeline.rings)) {
          auto slot = kernel::RingWaitOp::create(b, ring, i, younger);
          llvm::append_range(slots, slot.getResults());
          emitFetch(pipeline, number, narrow.add(i, ahead), masked);
        }
        State result = pipeline.step(i, masked, slots, carried);
        for (Value ring : pipeline.rings)
          kernel::RingReleaseOp::create(b, ring, i);
        return result;
      }));
}

TileBuilder::State TileBuilder::emitSteps(const Pipeline &pipeline,
                                          State state) {
  Value zero = narrow.constant(0);
  auto compute = [&] {
    State before =
        emitStepLoop(pipeline, /*masked=*/true, zero, pipeline.masked, state);
    return emitStepLoop(pipeline, /*masked=*/false, pipeline.masked,
                        pipeline.total, before);
  };
  if (!pipeline.hasRows)
    return compute();
  auto readNothing = [](Value, bool) {};
  auto keep = [](Value, bool, ValueRange, ValueRange carried) {
    return State(carried);
  };
  Pipeline copies = pipeline;
  copies.read = readNothing;
  copies.step = keep;
  return State(emitChoice(b, pipeline.hasRows, compute, [&] {
    emitStepLoop(copies, /*masked=*/true, zero, pipeline.total, State());
    return state;
  }));
}

void TileBuilder::emitItems(Value block, Value grid, Value count,
                            function_ref<void(Value)> emitTile) {
  if (!taken)
    return emitLoop(b, block, count, grid, emitTile);
  auto isItem = [&](ValueRange item) { return narrow.less(item[0], count); };
  auto emitItem = [&](ValueRange item) {
    emitTile(item[0]);
    gpu::BarrierOp::create(b);
    return Values{narrow.add(grid, narrow.load(taken, index.constant(0)))};
  };
  emitWhile(b, block, isItem, emitItem);
}

LogicalResult TileBuilder::emitPersistent(const GPUWorkTiles &work,
                                          function_ref<void()> prepare,
                                          function_ref<void(Value)> emitTile) {
  FailureOr<func::FuncOp> multiprocessors = getRuntimeFunction(
      loop->getParentOfType<ModuleOp>(), loop, "varlen_gpu_multiprocessors",
      b.getFunctionType({}, b.getI64Type()));
  if (failed(multiprocessors))
    return failure();
  Value processors = index.cast(
      func::CallOp::create(b, *multiprocessors, ValueRange{}).getResult(0));
  Value entries = b.createOrFold<memref::DimOp>(work.list, index.constant(0));
  Value blocks = index.min(index.mul(processors, schedule.getCtas()),
                           index.mul(entries, batch.getKvHeads()));
  // Entries have 32 bits, as no memory has room for the rows of more.
  emitLaunch(b, getKernelName(loop), index.max(blocks, index.constant(1)),
             schedule.getWarps() * 32, [&](Value block, Value grid, Value) {
               prepare();
               Value count =
                   index.mul(index.load(work.count, index.constant(0)),
                             batch.getKvHeads());
               emitItems(narrow.cast(block), narrow.cast(grid),
                         narrow.cast(count), emitTile);
             });
  return success();
}

//===- GPUTileBuilder.cpp - What kernels of attention share ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUTileBuilder.h"

#include "varlen/Dialect/Varlen/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

void GPUTileBuilder::emitIf(Value condition, function_ref<void()> body) {
  scf::IfOp::create(b, condition, [&](OpBuilder &nested, Location) {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(nested.saveInsertionPoint());
    body();
    scf::YieldOp::create(b);
  });
}

Value GPUTileBuilder::fill(double value, int64_t rows, int64_t columns) {
  Value empty =
      tensor::EmptyOp::create(b, ArrayRef<int64_t>{rows, columns}, compute);
  return linalg::FillOp::create(b, constant(b, b.getLoc(), value), empty)
      .getResult(0);
}

SmallVector<Value> GPUTileBuilder::perPosition(unsigned dim, int64_t extent,
                                               ValueRange inputs,
                                               ArrayRef<Type> types,
                                               ElementBody body) {
  // One generic a result: a fragment conversion wants it so, and what they
  // share is common to both afterwards.
  int64_t shape[] = {1, 1};
  shape[dim] = extent;
  SmallVector<Value> results;
  for (auto [number, type] : llvm::enumerate(types)) {
    Value empty = tensor::EmptyOp::create(b, shape, type);
    SmallVector<AffineMap> maps(inputs.size() + 1, b.getMultiDimIdentityMap(2));
    SmallVector<utils::IteratorType> iterators(2,
                                               utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        b, TypeRange{empty.getType()}, inputs, ValueRange{empty}, maps,
        iterators,
        [&, number = number](OpBuilder &nested, Location loc,
                             ValueRange arguments) {
          Value position = linalg::IndexOp::create(nested, loc, dim);
          linalg::YieldOp::create(
              nested, loc,
              body(nested, loc, position, arguments.drop_back())[number]);
        });
    results.push_back(generic.getResult(0));
  }
  return results;
}

Value GPUTileBuilder::tileOf(ValueRange memory, int64_t rows, int64_t columns) {
  return kernel::TileOp::create(
      b, RankedTensorType::get({rows, columns}, element), memory);
}

SmallVector<MemRefType> GPUTileBuilder::sharedTypes(int64_t rows,
                                                    int64_t columns) {
  Type shared = element.isF32() ? b.getBF16Type() : Type(element);
  return SmallVector<MemRefType>(
      planes(), kernel::getSharedTileType(rows, columns, shared));
}

SmallVector<Value> GPUTileBuilder::allocate(int64_t rows, int64_t columns) {
  SmallVector<Value> memory;
  for (MemRefType type : sharedTypes(rows, columns))
    memory.push_back(kernel::AllocOp::create(b, type));
  return memory;
}

Value GPUTileBuilder::allocateRing(int64_t rows, ArrayRef<int64_t> columns) {
  SmallVector<MemRefType> slot;
  for (int64_t count : columns)
    llvm::append_range(slot, sharedTypes(rows, count));
  return kernel::RingOp::create(b, kernel::RingType::get(b.getContext(), slot),
                                stages);
}

//===----------------------------------------------------------------------===//
// Sequences and their masks
//===----------------------------------------------------------------------===//

GPUTileBuilder::Sequence GPUTileBuilder::decodeSequence(Value s) {
  // The rows past the last sequence are no queries: as none is in use, none of
  // them sees a key, and no query sees the keys there.
  PackedRows q = emitPackedRows(index, op.getCuQ(), s, batch.tq);
  PackedRows k = emitPackedRows(index, op.getCuK(), s, batch.tk);
  Value zero = index.constant(0);
  auto used = [&](Value list, Value rows) {
    return emitUsed(index, list, s, batch.sequences, rows);
  };
  Sequence sequence;
  sequence.qRow = q.begin;
  sequence.qRows = index.sub(q.end, q.begin);
  sequence.qUsed = index.select(index.less(s, batch.sequences),
                                used(op.getSequsedQ(), sequence.qRows), zero);
  sequence.kRow = k.begin;
  sequence.kRows = index.sub(k.end, k.begin);
  sequence.kUsed = used(op.getSequsedK(), sequence.kRows);
  Value offset;
  if (op.getQOffset())
    offset = emitUsed(index, op.getQOffset(), s, batch.sequences, zero);
  sequence.window = emitMaskWindow(index, op.getMask(), sequence.qUsed,
                                   sequence.kUsed, offset);
  return sequence;
}

GPUTileBuilder::Blocks GPUTileBuilder::getBlocks(const MaskRange &range,
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

Value GPUTileBuilder::blockStart(const Blocks &blocks, Value i, bool masked,
                                 int64_t size) {
  Value base = blocks.insideBase;
  if (masked)
    base = narrow.select(
        narrow.less(i, blocks.left), blocks.leftBase,
        narrow.select(narrow.less(i, blocks.masked), blocks.rightBase, base));
  return narrow.mul(narrow.add(base, i), size);
}

Value GPUTileBuilder::rowsOfBlock(Value used, Value start, int64_t size,
                                  bool masked) {
  return masked ? index.sub(used, start) : index.constant(size);
}

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

GPUTileBuilder::Entry GPUTileBuilder::decodeEntry(const GPUWorkTiles &work,
                                                  Value entry) {
  Value kvHeads = narrow.cast(batch.kvHeads);
  Value number = index.cast(narrow.div(entry, kvHeads));
  return {index.load(work.list, {number, index.constant(0)}),
          index.load(work.list, {number, index.constant(1)}),
          index.cast(narrow.rem(entry, kvHeads))};
}

GPUTileBuilder::QueryTile
GPUTileBuilder::decodeQueryTile(const GPUWorkTiles &work, Value entry) {
  Entry decoded = decodeEntry(work, entry);
  QueryTile tile;
  tile.sequence = decodeSequence(decoded.sequence);
  tile.kvHead = decoded.kvHead;
  tile.first = index.mul(decoded.tile, blockM);
  Value zero = index.constant(0);
  auto pairs = [&](Value rows) {
    return index.sub(index.mul(rows, batch.group), tile.first);
  };
  tile.rows = index.min(pairs(tile.sequence.qRows), index.constant(blockM));
  tile.usedRows =
      index.min(index.max(pairs(tile.sequence.qUsed), zero), tile.rows);

  // Bounds grow with the position of a row, so the first and the last row of
  // the tile bound those of all.
  Value last =
      index.sub(index.add(tile.first, tile.usedRows), index.constant(1));
  MaskRange keys = emitKeysOf(
      index, tile.sequence.window, index.div(tile.first, batch.group),
      index.div(last, batch.group), tile.sequence.kUsed);
  // Not even a row: no key.
  keys.end = index.select(index.less(zero, tile.usedRows), keys.end, zero);
  tile.blocks = getBlocks(keys, blockN);
  return tile;
}

SmallVector<Value> GPUTileBuilder::getLimits(const QueryTile &tile) {
  Type i32 = b.getI32Type();
  return perPosition(
      0, blockM, {}, {i32, i32},
      [&](OpBuilder &nested, Location loc, Value row, ValueRange) {
        ImplicitLocOpBuilder inner(loc, nested);
        IndexBuilder at{inner};
        Value pair = at.add(tile.first, row);
        Value query = at.div(pair, batch.group);
        MaskRange keys = emitKeysOf(at, tile.sequence.window, query, query,
                                    tile.sequence.kUsed);
        auto narrow = [&](Value key) -> Value {
          return arith::IndexCastOp::create(nested, loc, i32, key);
        };
        return SmallVector<Value>{narrow(keys.begin), narrow(keys.end)};
      });
}

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

void GPUTileBuilder::emitFetchKeys(const QueryTile &tile, Value i, bool masked,
                                   ValueRange slot) {
  Value k0 = index.cast(blockStart(tile.blocks, i, masked, blockN));
  kernel::RowsOperands rows = {
      tile.sequence.kRow, tile.kvHead, k0, index.constant(1),
      rowsOfBlock(tile.sequence.kUsed, k0, blockN, masked)};
  kernel::CopyOp::create(b, op.getK(), rows, ofSlot(slot, 0));
  kernel::CopyOp::create(b, op.getV(), rows, ofSlot(slot, 1));
}

void GPUTileBuilder::emitFetch(const Pipeline &pipeline, Value i, bool masked) {
  emitIf(narrow.less(i, pipeline.total), [&] {
    auto slot = kernel::RingAcquireOp::create(b, pipeline.ring, i);
    pipeline.fetch(i, masked, slot.getResults());
  });
  kernel::RingCommitOp::create(b, pipeline.ring);
}

void GPUTileBuilder::emitPrefetch(const Pipeline &pipeline,
                                  function_ref<void()> prologue) {
  emitIf(narrow.less(narrow.constant(0), pipeline.total), [&] {
    // The tile before may still be read.
    gpu::BarrierOp::create(b);
    prologue();
    for (int64_t i = 0; i < stages - 1; ++i)
      emitFetch(pipeline, narrow.constant(i), /*masked=*/true);
  });
}

GPUTileBuilder::State GPUTileBuilder::emitSteps(const Pipeline &pipeline,
                                                State state) {
  for (bool masked : {true, false}) {
    auto loop = scf::ForOp::create(
        b, masked ? narrow.constant(0) : pipeline.masked,
        masked ? pipeline.masked : pipeline.total, narrow.constant(1), state,
        [&](OpBuilder &, Location, Value i, ValueRange carried) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(i.getParentBlock());
          auto slot =
              kernel::RingWaitOp::create(b, pipeline.ring, i, stages - 2);
          emitFetch(pipeline, narrow.add(i, stages - 1), masked);
          State result = pipeline.step(i, masked, slot.getResults(), carried);
          kernel::RingReleaseOp::create(b, pipeline.ring, i);
          scf::YieldOp::create(b, result);
        });
    state = llvm::to_vector_of<Value>(loop.getResults());
  }
  return state;
}

LogicalResult
GPUTileBuilder::emitPersistent(const Twine &name, const GPUWorkTiles &work,
                               function_ref<void()> prepare,
                               function_ref<void(Value)> emitTile) {
  FailureOr<func::FuncOp> multiprocessors = getRuntimeFunction(
      op->getParentOfType<ModuleOp>(), op, "varlen_gpu_multiprocessors",
      b.getFunctionType({}, b.getI64Type()));
  if (failed(multiprocessors))
    return failure();
  Value processors = index.cast(
      func::CallOp::create(b, *multiprocessors, ValueRange{}).getResult(0));
  Value entries = b.createOrFold<memref::DimOp>(work.list, index.constant(0));
  Value blocks = index.min(index.mul(processors, schedule.getCtas()),
                           index.mul(entries, batch.kvHeads));
  // Entries have 32 bits, as no memory has room for the rows of more.
  emitLaunch(
      b, name, index.max(blocks, index.constant(1)), schedule.getWarps() * 32,
      [&](Value block, Value grid, Value) {
        prepare();
        Value count =
            index.mul(index.load(work.count, index.constant(0)), batch.kvHeads);
        scf::ForOp::create(b, narrow.cast(block), narrow.cast(count),
                           narrow.cast(grid), ValueRange{},
                           [&](OpBuilder &, Location, Value entry, ValueRange) {
                             OpBuilder::InsertionGuard guard(b);
                             b.setInsertionPointToEnd(entry.getParentBlock());
                             emitTile(entry);
                             scf::YieldOp::create(b);
                           });
      });
  return success();
}

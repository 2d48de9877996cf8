//===- TileLoop.cpp - The body of a tile loop in its kernel ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoopConverter.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

std::string varlen::getKernelName(ForTilesOp loop) {
  return (loop->getParentOfType<func::FuncOp>().getName() + "_" +
          loop.getName())
      .str();
}

//===----------------------------------------------------------------------===//
// What can be converted
//===----------------------------------------------------------------------===//

/// Whether a read is of a number for each row: one of rows of one column is if
/// rows are columns of its result.
static bool isOfNumbers(ReadOp read) {
  auto type = cast<RankedTensorType>(read.getResult(0).getType());
  return !read.isOfVectors() || type.getDimSize(0) == 1;
}

/// That rows of that type are on a GPU what they are in memory, or have all of
/// the numbers that quantised rows have there.
static LogicalResult verifyElement(ReadOp read, Type element) {
  auto type = cast<RankedTensorType>(read.getResult(0).getType());
  Type inMemory = cast<MemRefType>(read.getSource().getType()).getElementType();
  if (element.isF64() || type.getElementType() != element ||
      (inMemory != element && !isQuantisedElement(inMemory)))
    return read.emitOpError("expected rows of one element type, f16, bf16 or "
                            "f32, as they are in memory, got ")
           << read.getSource().getType() << " as " << type;
  return success();
}

/// The same of rows in shared memory, which has to be able to hold them.
static LogicalResult verifyShared(ReadOp read, Type element) {
  if (failed(verifyElement(read, element)))
    return failure();
  auto type = cast<RankedTensorType>(read.getResult(0).getType());
  if (!llvm::all_of(kernel::getSharedTileTypes(type), kernel::isSharedTile))
    return read.emitOpError("expected a multiple of 8 rows, of less than 2^31 "
                            "bytes, in shared memory, got ")
           << type;
  return success();
}

/// That all numbers of rows that are not in use are one.
static LogicalResult verifyNumbers(ReadOp read) {
  if (!read.getOtherwise() || llvm::all_equal(*read.getOtherwise()))
    return success();
  return read.emitOpError("expected one number for rows that are not in use, "
                          "got several");
}

LogicalResult TileLoopConverter::verify() {
  for (Operation &op : *loop.getBody()) {
    if (isa<ForBlocksOp, ForPartsOp>(op)) {
      if (blocks)
        return op.emitOpError("expected one loop over blocks for each tile");
      parts = dyn_cast<ForPartsOp>(op);
      blocks = parts ? parts.getLoop() : cast<ForBlocksOp>(op);
    } else if (auto clear = dyn_cast<ClearOp>(op)) {
      // Before the barrier that the first block is waited for with.
      if (blocks || clear.getTile() != loop.getTile())
        return clear.emitOpError("expected the tile of its loop, before the "
                                 "loop over blocks");
    } else if (!isPure(&op) && !isa<ReadOp, WriteOp, YieldOp>(op)) {
      return op.emitOpError("is not known to tile loops on a GPU");
    }
  }
  if (parts && failed(verifyParts()))
    return failure();
  if (blocks && failed(verifyBlocks()))
    return failure();
  for (ReadOp read : loop.getBody()->getOps<ReadOp>()) {
    if (isOfNumbers(read))
      continue;
    // Shared memory is read by steps.
    auto isInBlocks = [&](Operation *user) {
      return blocks && blocks->isProperAncestor(user);
    };
    if (llvm::none_of(read->getUsers(), isInBlocks)) {
      if (failed(verifyElement(
              read, getElementTypeOrSelf(read.getSource().getType()))))
        return failure();
      continue;
    }
    for (Operation *user : read->getUsers())
      if (!isInBlocks(user))
        return user->emitOpError("expected rows of a tile to be used in its "
                                 "loop over blocks or outside of it, got both");
    tileReads.push_back(read);
  }
  for (ReadOp read : llvm::concat<ReadOp>(tileReads, blockReads))
    if (failed(verifyShared(read, element)))
      return failure();
  WalkResult result = loop.walk([&](Operation *op) {
    return WalkResult(
        TypeSwitch<Operation *, LogicalResult>(op)
            .Case([&](StepOpInterface step) { return verifyStep(step); })
            .Case([&](ReadOp read) { return verifyNumbers(read); })
            .Default(success()));
  });
  return failure(result.wasInterrupted());
}

LogicalResult TileLoopConverter::verifyBlocks() {
  blockSize = blocks.getBlockType().getSize();
  if (ofQueries == blocks.getBlockType().getByHead())
    return blocks.emitOpError("expected blocks of keys, or of queries by_head");
  for (Operation &op : *blocks.getBody()) {
    if (auto other = dyn_cast<StepOpInterface>(op)) {
      if (step)
        return other->emitOpError("expected one step in a loop over blocks");
      step = other;
    }
    auto read = dyn_cast<ReadOp>(op);
    if (read ? read.getTile() != blocks.getBlock()
             : !isPure(&op) && &op != orderedSum &&
                   !isa<YieldOp, StepOpInterface>(op))
      return op.emitOpError("expected reads of the block and steps in a loop "
                            "over blocks on a GPU");
    if (read && !isOfNumbers(read))
      blockReads.push_back(read);
  }
  if (blockReads.empty())
    return blocks.emitOpError("expected reads of the rows of a block, got "
                              "none");
  element = cast<FloatType>(
      getElementTypeOrSelf(blockReads.front().getResult(0).getType()));
  return success();
}

LogicalResult TileLoopConverter::verifyStep(StepOpInterface step) {
  if (blocks) {
    Value queries = loop.getTile(), keys = blocks.getBlock();
    if (!ofQueries)
      std::swap(queries, keys);
    if (step.getQueries() == queries && step.getKeys() == keys)
      return success();
  }
  return step->emitOpError("expected a step at the tile and the block of its "
                           "loops");
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void TileLoopConverter::allocate() {
  auto typesOf = [&](ReadOp read) {
    return kernel::getSharedTileTypes(
        cast<RankedTensorType>(read.getResult(0).getType()));
  };
  SmallVector<MemRefType> ofTile, slot;
  for (ReadOp read : tileReads)
    llvm::append_range(ofTile, typesOf(read));
  if (!hasRoles())
    for (ReadOp read : tileReads)
      for (MemRefType type : typesOf(read))
        shared[read].push_back(kernel::AllocOp::create(b, type));
  auto addRing = [&] {
    rings.push_back(kernel::RingOp::create(
        b, kernel::RingType::get(b.getContext(), slot), schedule.getStages(),
        schedule.getSlack(), schedule.getLag()));
    slot.clear();
  };
  for (ReadOp read : blockReads) {
    llvm::append_range(slot, typesOf(read));
    if (schedule.getRings() > 1)
      addRing();
  }
  if (!slot.empty())
    addRing();
  if (hasRoles()) {
    ofTile.push_back(kernel::getSharedNumbersType(1, b.getI32Type()));
    items =
        kernel::RingOp::create(b, kernel::RingType::get(b.getContext(), ofTile),
                               kItemStages, /*slack=*/0,
                               /*lag=*/0);
  }
  taken = kernel::AllocOp::create(
      b, kernel::getSharedNumbersType(sharesCount() ? 2 : 1, b.getI64Type()));
}

//===----------------------------------------------------------------------===//
// Numbers of rows, and writes
//===----------------------------------------------------------------------===//

void TileLoopConverter::emitLoad(ReadOp read, kernel::RowsOperands rows) {
  Value memory = context.scratch.lookupOrDefault(read.getSource());
  auto type = cast<MemRefType>(memory.getType());
  // A number for each head is there for whatever row.
  if (type.getRank() == 1)
    rows.row = index.constant(0);
  double otherwise = read.getOtherwise() ? read.getOtherwise()->front() : 0.0;
  auto load =
      kernel::LoadOp::create(b, read.getResultTypes(), memory, rows,
                             constant(type.getElementType(), otherwise));
  map.map(read.getResults(), load.getResults());
}

void TileLoopConverter::emitScales(ReadOp read, const BlockRows &rows,
                                   bool masked) {
  Value memory = read.getSource();
  bool isPaged = static_cast<bool>(batch.getBlockTable());
  if (!isPaged) {
    auto of = memref::ExtractStridedMetadataOp::create(b, memory);
    SmallVector<OpFoldResult> sizes = of.getConstifiedMixedSizes(),
                              strides = of.getConstifiedMixedStrides();
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
    memory = memref::ReinterpretCastOp::create(
        b, of.getBaseBuffer(), of.getConstifiedMixedOffset(), sizes, strides);
  }
  Value valid = masked ? index.sub(tile.sequence.kUsed, rows.first)
                       : index.constant(blockSize);
  Type type = getElementTypeOrSelf(memory.getType());
  auto load =
      kernel::LoadOp::create(b, read.getResultTypes(), memory,
                             {rows.row, rows.head, rows.first,
                              index.constant(1), valid, batch.getBlockTable()},
                             constant(type, 0.0));
  load.setOnePage(isBlockInPage(read));
  map.map(read.getResults(), load.getResults());
}

/// The value as `write` stores it: what rows that are not in use have
/// accumulated may be NaN.
Value TileLoopConverter::emitScaled(ImplicitLocOpBuilder &b, Value x,
                                    std::optional<APFloat> factor) {
  if (!factor)
    return x;
  Value constant = arith::ConstantOp::create(
      b, b.getFloatAttr(x.getType(), factor->convertToDouble()));
  return arith::MulFOp::create(b, x, constant);
}

Value TileLoopConverter::emitStored(WriteOp write, unsigned number, Type to) {
  Value value = map.lookup(write.getValues()[number]);
  auto type = cast<RankedTensorType>(value.getType());
  Type from = type.getElementType();
  double otherwise = write.getOtherwise()[number];
  Value empty = tensor::EmptyOp::create(b, type.getShape(), to);
  auto stored = emitElementwise(
      b, value, empty, [&](ImplicitLocOpBuilder &inner, ValueRange arguments) {
        Value row = linalg::IndexOp::create(inner, 0);
        Value isUsed = IndexBuilder{inner}.less(row, tile.usedRows);
        Value x = emitScaled(inner, arguments[0], write.getFactor());
        Value unused = arith::ConstantOp::create(
            inner, inner.getFloatAttr(from, otherwise));
        x = arith::SelectOp::create(inner, isUsed, x, unused);
        if (to != from)
          x = arith::TruncFOp::create(inner, to, x);
        return Values{x};
      });
  return stored.getResult(0);
}

void TileLoopConverter::emitWrite(WriteOp write) {
  Value memory = context.scratch.lookupOrDefault(write.getDestination());
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  SmallVector<Value> stored;
  for (unsigned i = 0; i < write.getValues().size(); ++i)
    stored.push_back(emitStored(write, i, element));
  kernel::StoreOp::create(b, stored, memory, rowsOf(tile.rows));
}

/// A row to a warp, or a key to a thread: neighbouring lanes write neighbouring
/// entries.
void TileLoopConverter::emitClear(ClearOp clear) {
  Value memory = clear.getMemory();
  auto type = cast<MemRefType>(memory.getType());
  Value zero = constant(type.getElementType(), 0.0);
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  if (!ofQueries) {
    Value first = index.add(tile.sequence.kRow, tile.first);
    emitLoop(b, index.constant(0), group, 1, [&](Value member) {
      Value head = pairsOf(tile).headOf(index, member);
      emitLoop(b, thread, tile.rows, schedule.getWarps() * kernel::kWarpLanes,
               [&](Value key) {
                 memref::StoreOp::create(
                     b, zero, memory, ValueRange{head, index.add(first, key)});
               });
    });
    return;
  }
  Value entries = index.dim(memory, 2);
  Value warp = index.div(thread, kernel::kWarpLanes);
  Value lane = index.rem(thread, kernel::kWarpLanes);
  RowMap pairs = pairsOf(tile);
  emitLoop(b, warp, tile.rows, schedule.getWarps(), [&](Value row) {
    Value pair = index.add(tile.first, row);
    Value head = pairs.head(index, pair), query = pairs.row(index, pair);
    emitLoop(b, lane, entries, kernel::kWarpLanes, [&](Value entry) {
      memref::StoreOp::create(b, zero, memory, ValueRange{head, query, entry});
    });
  });
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

void TileLoopConverter::cloneStep(Value i, bool masked, bool hidesKeys) {
  StepInputs inputs;
  if (masked) {
    SmallVector<Value> bounds =
        ofQueries ? limits : getBlockLimits(getBlockRows(i, masked).first);
    inputs.lo = bounds[0];
    inputs.hi = bounds[1];
    inputs.k0 = ofQueries ? blockStart(i, masked) : narrow.constant(0);
  }
  if (readsPositions(step.getScoreBody())) {
    inputs.position = ofQueries
                          ? positions
                          : getBlockPositions(getBlockRows(i, masked).first);
    inputs.firstKey =
        ofQueries ? blockStart(i, masked) : narrow.cast(tile.first);
  }
  auto emitView = [&](Value table, BlockArgument argument) {
    return emitTableView(index, table, argument, tile.sequence.kRow,
                         tile.sequence.kUsed);
  };
  for (auto [table, argument] :
       llvm::zip_equal(step.getTables(), step.getTableArguments())) {
    inputs.tables.push_back(emitView(table, argument));
    if (!ofQueries)
      inputs.rows.push_back(getBlockTableRows(table, getBlockRows(i, masked)));
  }
  for (auto [table, argument] :
       llvm::zip_equal(step.getTableGradients(), step.getGradientTables())) {
    inputs.dtables.push_back(emitView(table, argument));
    if (!ofQueries)
      inputs.drows.push_back(
          getBlockGradientRow(table, getBlockRows(i, masked)));
  }
  if (ofQueries) {
    inputs.rows = queryTableRows;
    inputs.drows = gradientTableRows;
  }
  auto operands = llvm::map_to_vector(step->getOperands(), [&](Value operand) {
    return map.lookupOrDefault(operand);
  });
  StepOpInterface copy = step.cloneOnTiles(b, operands, inputs);
  map.map(step->getResults(), copy->getResults());
  if (!hidesKeys)
    copy.getScoreBody()->getTerminator()->eraseOperand(1);
}

Values TileLoopConverter::emitStep(Value i, bool masked, ValueRange slot,
                                   ValueRange state) {
  BlockVisibility visibility = getVisibility(i, masked);
  // Few blocks are cut by the mask as well: they have one step.
  auto emit = [&] {
    if (masked || !visibility.mayBeHidden)
      return emitSeenStep(i, masked, /*hidesKeys=*/true, slot, state);
    return Values(emitChoice(
        b, visibility.mayBeHidden,
        [&] {
          return emitSeenStep(i, masked, /*hidesKeys=*/true, slot, state);
        },
        [&] {
          return emitSeenStep(i, masked, /*hidesKeys=*/false, slot, state);
        }));
  };
  if (!visibility.mayBeVisible)
    return emit();
  return Values(emitChoice(b, visibility.mayBeVisible, emit,
                           [&] { return Values(state); }));
}

Values TileLoopConverter::emitSeenStep(Value i, bool masked, bool hidesKeys,
                                       ValueRange slot, ValueRange state) {
  map.map(blocks.getIterArgs(), state);
  // Views, next to what they are for.
  for (ReadOp read : tileReads)
    mapShared(read, shared[read]);
  for (auto [number, read] : llvm::enumerate(blockReads))
    mapShared(read, ofSlot(slot, number));
  if (!readsEarly())
    emitBlockLoads(i, masked);
  for (Operation &op : blocks.getBody()->without_terminator())
    TypeSwitch<Operation *>(&op)
        .Case([](ReadOp) {})
        .Case([&](StepOpInterface) { cloneStep(i, masked, hidesKeys); })
        .Case([&](AddInOrderOp add) { emitAddInOrder(add, i, masked); })
        .Default([&](Operation *other) {
          // A copy of a region has arguments of its own each time.
          IRMapping own = map;
          map.map(other->getResults(), b.clone(*other, own)->getResults());
        });
  return llvm::map_to_vector(blocks.getYielded(),
                             [&](Value value) { return map.lookup(value); });
}

void TileLoopConverter::emitBlockLoads(Value i, bool masked) {
  for (ReadOp read : blocks.getBody()->getOps<ReadOp>()) {
    if (!isOfNumbers(read))
      continue;
    BlockRows rows = getBlockRows(i, masked);
    if (read.isOfVectors()) {
      emitScales(read, rows, masked);
      continue;
    }
    // Scratch has rows to read on in, whatever the sequence has.
    emitLoad(read, {rows.row, rows.head, rows.first, index.constant(1),
                    index.constant(blockSize)});
  }
}

void TileLoopConverter::emitTile(Value entry) {
  tile = decode(decodeEntry(entry));
  MaskRange<Value> range;
  if (blocks)
    range = getVisitedRows();
  for (ClearOp clear : loop.getBody()->getOps<ClearOp>())
    emitClear(clear);
  // Without roles the first block's barrier is between these zeros and what is
  // added to them.
  if (hasRoles() && !loop.getBody()->getOps<ClearOp>().empty())
    gpu::BarrierOp::create(b);
  if (isOrdered())
    turns = getTurns();
  if (blocks) {
    emitPipeline(range);
    pipeline.hasRows = emitHasRows();
    if (hasRoles())
      emitShareItem();
    else
      emitPrefetch();
  }
  auto ops = loop.getBody()->without_terminator();
  if (!parts) {
    for (Operation &op : ops)
      emitOp(&op, entry);
    return;
  }
  auto end = std::next(Block::iterator(parts));
  for (Operation &op : llvm::make_range(ops.begin(), end))
    emitOp(&op, entry);
  emitIf(
      b, index.equal(tile.parts, 1),
      [&] {
        for (Operation &op : llvm::make_range(end, ops.end()))
          emitOp(&op, entry);
      },
      [&] { emitStoreState(entry); });
}

void TileLoopConverter::emitOp(Operation *op, Value entry) {
  TypeSwitch<Operation *>(op)
      .Case([&](ReadOp read) {
        if (!shared.contains(read))
          emitLoad(read, rowsOf(tile.usedRows));
      })
      .Case([&](WriteOp write) { emitWrite(write); })
      .Case([](ClearOp) {})
      .Case([&](ForBlocksOp) { emitBlocks(entry); })
      .Case([&](ForPartsOp) {
        for (Operation &inner : parts.getBody()->without_terminator())
          emitOp(&inner, entry);
        for (auto [result, value] :
             llvm::zip_equal(parts.getStates(), blocks.getResults()))
          map.map(result, map.lookup(value));
      })
      .Default([&](Operation *other) { b.clone(*other, map); });
}

void TileLoopConverter::emitBlocks(Value entry) {
  if (ofQueries) {
    limits = getTileLimits();
    if (readsPositions(getScore()))
      positions = getTilePositions();
    if (step) {
      for (Value table : step.getTables())
        queryTableRows.push_back(getTileTableRows(table));
      for (Value table : step.getTableGradients())
        gradientTableRows.push_back(getTileGradientRows(table));
    }
  }
  auto state =
      llvm::map_to_vector(blocks.getInits(), [&](Value value) -> Value {
        return map.lookup(value);
      });
  map.map(blocks.getResults(), emitSteps(state));
  if (hasRoles())
    kernel::RingReleaseOp::create(b, items, turn);
  else
    // What the tile writes hides the latency.
    emitTake();
  tile = decode(decodeEntry(entry));
}

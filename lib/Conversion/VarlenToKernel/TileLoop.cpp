//===- TileLoop.cpp - Tile loops as persistent kernels --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoop.h"

#include "TileLoopConverter.h"
#include "WarpReduction.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What can be converted
//===----------------------------------------------------------------------===//

/// That rows of that type are on a GPU what they are in memory.
static LogicalResult verifyElement(ReadOp read, Type element) {
  auto type = cast<RankedTensorType>(read.getResult(0).getType());
  if (element.isF64() || type.getElementType() != element ||
      cast<MemRefType>(read.getSource().getType()).getElementType() != element)
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
  // Planes of f32 have 16 bits, too.
  Type narrow =
      element.isF32() ? BFloat16Type::get(read.getContext()) : element;
  if (!kernel::isSharedTile(kernel::getSharedTileType(
          type.getDimSize(0), type.getDimSize(1), narrow)))
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
    if (auto next = dyn_cast<ForBlocksOp>(op)) {
      if (blocks)
        return next.emitOpError("expected one loop over blocks for each tile");
      blocks = next;
    } else if (auto clear = dyn_cast<ClearOp>(op)) {
      // Before the barrier that the first block is waited for with.
      if (blocks || clear.getTile() != loop.getTile())
        return clear.emitOpError("expected the tile of its loop, before the "
                                 "loop over blocks");
    } else if (!isPure(&op) && !isa<ReadOp, WriteOp, YieldOp>(op)) {
      return op.emitOpError("is not known to tile loops on a GPU");
    }
  }
  if (blocks && failed(verifyBlocks()))
    return failure();
  for (ReadOp read : loop.getBody()->getOps<ReadOp>()) {
    if (!read.isOfVectors())
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
             : !isPure(&op) && !isa<YieldOp, StepOpInterface>(op))
      return op.emitOpError("expected reads of the block and steps in a loop "
                            "over blocks on a GPU");
    if (read && read.isOfVectors())
      blockReads.push_back(read);
  }
  if (blockReads.empty())
    return blocks.emitOpError("expected reads of the rows of a block, got "
                              "none");
  element =
      cast<FloatType>(cast<MemRefType>(blockReads.front().getSource().getType())
                          .getElementType());
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

SmallVector<MemRefType> TileLoopConverter::sharedTypes(RankedTensorType tile) {
  Type type = element.isF32() ? b.getBF16Type() : Type(element);
  return SmallVector<MemRefType>(
      planes(),
      kernel::getSharedTileType(tile.getDimSize(0), tile.getDimSize(1), type));
}

void TileLoopConverter::allocate() {
  auto typesOf = [&](ReadOp read) {
    return sharedTypes(cast<RankedTensorType>(read.getResult(0).getType()));
  };
  for (ReadOp read : tileReads)
    for (MemRefType type : typesOf(read))
      shared[read].push_back(kernel::AllocOp::create(b, type));
  SmallVector<MemRefType> slot;
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
  auto space = gpu::AddressSpaceAttr::get(
      b.getContext(), gpu::GPUDialect::getWorkgroupAddressSpace());
  taken = kernel::AllocOp::create(
      b, MemRefType::get({1}, b.getI64Type(), AffineMap(), space));
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

/// The value as `write` stores it: what rows that are not in use have
/// accumulated may be NaN.
Value TileLoopConverter::emitStored(WriteOp write, unsigned number, Type to) {
  Value value = map.lookup(write.getValues()[number]);
  auto type = cast<RankedTensorType>(value.getType());
  Type from = type.getElementType();
  double otherwise = write.getOtherwise()[number];
  Value empty = tensor::EmptyOp::create(b, type.getShape(), to);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(2));
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  auto stored = linalg::GenericOp::create(
      b, TypeRange{empty.getType()}, ValueRange{value}, ValueRange{empty}, maps,
      iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        auto constant = [&](double value) -> Value {
          return arith::ConstantOp::create(nested, loc,
                                           nested.getFloatAttr(from, value));
        };
        Value row = linalg::IndexOp::create(nested, loc, 0);
        Value isUsed = arith::CmpIOp::create(
            nested, loc, arith::CmpIPredicate::slt, row, tile.usedRows);
        Value x = arguments[0];
        if (auto factor = write.getFactor())
          x = arith::MulFOp::create(nested, loc, x,
                                    constant(factor->convertToDouble()));
        x = arith::SelectOp::create(nested, loc, isUsed, x,
                                    constant(otherwise));
        if (to != from)
          x = arith::TruncFOp::create(nested, loc, to, x);
        linalg::YieldOp::create(nested, loc, x);
      });
  return stored.getResult(0);
}

void TileLoopConverter::emitWrite(WriteOp write) {
  Value memory = context.scratch.lookupOrDefault(write.getDestination());
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  SmallVector<Value> stored;
  for (unsigned i = 0; i < write.getValues().size(); ++i)
    stored.push_back(emitStored(write, i, element));
  kernel::StoreOp::create(b, stored, memory, rowsOf(tile, tile.rows));
}

/// A row to a warp, or a key to a thread: neighbouring lanes write neighbouring
/// entries.
void TileLoopConverter::emitClear(ClearOp clear) {
  Value memory = clear.getMemory();
  auto type = cast<MemRefType>(memory.getType());
  Value zero = constant(type.getElementType(), 0.0);
  Value lanes = index.constant(kWarpLanes);
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  if (!ofQueries) {
    Value first = index.add(tile.sequence.kRow, tile.first);
    emitLoop(b, index.constant(0), group, 1, [&](Value member) {
      Value head = pairsOf(tile).headOf(index, member);
      emitLoop(b, thread, tile.rows, schedule.getWarps() * kWarpLanes,
               [&](Value key) {
                 memref::StoreOp::create(
                     b, zero, memory, ValueRange{head, index.add(first, key)});
               });
    });
    return;
  }
  Value entries = b.createOrFold<memref::DimOp>(memory, 2);
  Value warp = index.div(thread, lanes), lane = index.rem(thread, lanes);
  RowMap pairs = pairsOf(tile);
  emitLoop(b, warp, tile.rows, schedule.getWarps(), [&](Value row) {
    Value pair = index.add(tile.first, row);
    Value head = pairs.head(index, pair), query = pairs.row(index, pair);
    emitLoop(b, lane, entries, kWarpLanes, [&](Value entry) {
      memref::StoreOp::create(b, zero, memory, ValueRange{head, query, entry});
    });
  });
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

void TileLoopConverter::emitStep(Value i, bool masked, bool hidesKeys) {
  StepInputs inputs;
  if (masked) {
    SmallVector<Value> bounds =
        ofQueries ? limits : getBlockLimits(getBlockRows(i, masked).first);
    inputs.lo = bounds[0];
    inputs.hi = bounds[1];
    inputs.k0 = ofQueries ? blockStart(visited, i, masked, blockSize)
                          : narrow.constant(0);
  }
  if (readsPositions(step.getScoreBody())) {
    inputs.position = ofQueries
                          ? positions
                          : getBlockPositions(getBlockRows(i, masked).first);
    inputs.firstKey = ofQueries ? blockStart(visited, i, masked, blockSize)
                                : narrow.cast(tile.first);
  }
  auto emitView = [&](Value table, BlockArgument argument) {
    return isOfKeys(argument)
               ? emitKeyTableView(index, table, tile.sequence.kRow,
                                  tile.sequence.kUsed)
               : emitTableView(index, table);
  };
  for (auto [table, argument] : llvm::zip_equal(
           step.getTables(), getTableArguments(step.getScoreBody()))) {
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

TileBuilder::State TileLoopConverter::emitStep(Value i, bool masked,
                                               ValueRange slot,
                                               ValueRange state) {
  BlockVisibility visibility = getVisibility(i, masked);
  // Few blocks are cut by the mask as well: they have one step.
  auto emit = [&] {
    if (masked || !visibility.mayBeHidden)
      return emitSeenStep(i, masked, /*hidesKeys=*/true, slot, state);
    return State(emitChoice(
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
  return State(emitChoice(b, visibility.mayBeVisible, emit,
                          [&] { return State(state); }));
}

TileBuilder::State TileLoopConverter::emitSeenStep(Value i, bool masked,
                                                   bool hidesKeys,
                                                   ValueRange slot,
                                                   ValueRange state) {
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
        .Case([&](StepOpInterface) { emitStep(i, masked, hidesKeys); })
        .Default([&](Operation *other) { b.clone(*other, map); });
  return llvm::map_to_vector(blocks.getYielded(),
                             [&](Value value) { return map.lookup(value); });
}

void TileLoopConverter::emitBlockLoads(Value i, bool masked) {
  for (ReadOp read : blocks.getBody()->getOps<ReadOp>()) {
    if (read.isOfVectors())
      continue;
    // Scratch has rows to read on in, whatever the sequence has.
    BlockRows rows = getBlockRows(i, masked);
    emitLoad(read, {rows.row, rows.head, rows.first, index.constant(1),
                    index.constant(blockSize)});
  }
}

void TileLoopConverter::emitTile(Value entry) {
  MaskRange<Value> met;
  std::tie(tile, met) = decode(decodeEntry(context.work, entry));
  for (ClearOp clear : loop.getBody()->getOps<ClearOp>())
    emitClear(clear);
  std::optional<Pipeline> pipeline;
  auto fetch = [&](unsigned number, Value i, bool masked, ValueRange slot) {
    BlockRows rows = getBlockRows(i, masked);
    Value used = ofQueries ? tile.sequence.kUsed : tile.sequence.qUsed;
    Value valid = rowsOfBlock(used, rows.first, blockSize, masked);
    MutableArrayRef<ReadOp> reads = blockReads;
    if (rings.size() > 1)
      reads = reads.slice(number, 1);
    for (auto [place, read] : llvm::enumerate(reads))
      kernel::CopyOp::create(
          b, read.getSource(),
          {rows.row, rows.head, rows.first, index.constant(1), valid},
          ofSlot(slot, place));
  };
  auto read = [&](Value i, bool masked) {
    if (readsEarly())
      emitBlockLoads(i, masked);
  };
  auto meet = [&](Value i, bool masked, ValueRange slot, ValueRange state) {
    return emitStep(i, masked, slot, state);
  };
  if (blocks) {
    readTileRanges();
    visited = getBlocks(dropHiddenBlocks(met), blockSize);
    Value heads = ofQueries ? narrow.constant(1) : narrow.cast(group);
    pipeline.emplace(Pipeline{rings, narrow.mul(visited.masked, heads),
                              narrow.mul(visited.total, heads),
                              emitHasRows(tile), fetch, read, meet});
    emitPrefetch(*pipeline, [&] {
      for (ReadOp read : tileReads)
        kernel::CopyOp::create(b, read.getSource(), rowsOf(tile, tile.usedRows),
                               shared[read]);
    });
  }
  for (Operation &op : loop.getBody()->without_terminator())
    TypeSwitch<Operation *>(&op)
        .Case([&](ReadOp read) {
          if (!shared.contains(read))
            emitLoad(read, rowsOf(tile, tile.usedRows));
        })
        .Case([&](WriteOp write) { emitWrite(write); })
        .Case([](ClearOp) {})
        .Case([&](ForBlocksOp) {
          if (ofQueries)
            limits = getTileLimits();
          if (ofQueries && readsPositions(getScore()))
            positions = getTilePositions();
          queryTableRows.clear();
          if (ofQueries && step)
            for (Value table : step.getTables())
              queryTableRows.push_back(getTileTableRows(table));
          gradientTableRows.clear();
          if (ofQueries && step)
            for (Value table : step.getTableGradients())
              gradientTableRows.push_back(getTileGradientRows(table));
          State state =
              llvm::map_to_vector(blocks.getInits(), [&](Value value) {
                return map.lookup(value);
              });
          map.map(blocks.getResults(), emitSteps(*pipeline, state));
          // What the tile writes hides the latency.
          kernel::TakeOp::create(b, context.work.count,
                                 index.constant(1 + context.number), taken);
          tile = decode(decodeEntry(context.work, entry)).first;
        })
        .Default([&](Operation *other) { b.clone(*other, map); });
}

LogicalResult TileLoopConverter::emit() {
  return emitPersistent(
      context.work,
      [&] {
        if (blocks)
          allocate();
      },
      [&](Value entry) { emitTile(entry); });
}

LogicalResult varlen::convertTileLoop(ImplicitLocOpBuilder &b, ForTilesOp loop,
                                      GPUScheduleAttr schedule,
                                      const TileLoopContext &context) {
  TileLoopConverter converter(b, loop, schedule, context);
  if (failed(converter.verify()))
    return failure();
  return converter.emit();
}

//===- TileLoopRoles.cpp - Producers and consumers of a tile loop ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some warps of a CTA copy, the others compute. Producers decide which items
// there are: they take numbers, and send each with the rows that all steps of
// the tile read. The count of slots goes on from item to item, so that blocks
// of the next one are copied while results of this one are written.
//
//===----------------------------------------------------------------------===//

#include "TileLoopConverter.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// More than any chip has that makes tensor maps.
static constexpr int64_t kMaxMultiprocessors = 256;

SmallVector<std::pair<Value, int64_t>> TileLoopConverter::getMaps() {
  llvm::SetVector<std::pair<Value, int64_t>> maps;
  // A box begins at a row of 32 bits.
  auto isOf32Bits = [](Value list) {
    return !list || getElementTypeOrSelf(list.getType()).isInteger(32);
  };
  if (!hasRoles() || schedule.getMaps() == 0 || !isOf32Bits(batch.getCuQ()) ||
      !isOf32Bits(batch.getCuK()))
    return {};
  auto add = [&](ArrayRef<ReadOp> reads, int64_t rows) {
    for (ReadOp read : reads) {
      auto type = cast<MemRefType>(read.getSource().getType());
      // Rows in pages are found one by one, and other ones converted.
      if (type.getRank() == 3 && type.getElementTypeBitWidth() == 16)
        maps.insert({read.getSource(), rows});
    }
  };
  add(tileReads, tileRows);
  add(blockReads, blockSize);
  return maps.takeVector();
}

Value TileLoopConverter::emitMapMemory(Value &ctas) {
  maps = getMaps();
  if (maps.empty())
    return {};
  // No device has to be asked for its size.
  int64_t most = kMaxMultiprocessors * schedule.getCtas();
  ctas = index.min(ctas, most);
  return memref::AllocOp::create(
      b, MemRefType::get({most * static_cast<int64_t>(maps.size()),
                          kernel::kTensorMapBytes},
                         b.getI8Type()));
}

void TileLoopConverter::emitMaps(Value block) {
  for (auto [number, map] : llvm::enumerate(maps)) {
    Value i =
        index.add(index.mul(block, static_cast<int64_t>(maps.size())), number);
    kernel::TensorMapOp::create(b, map.first, mapMemory, i, map.second);
  }
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

void TileLoopConverter::emitRoles(Value block, Value grid, Value count) {
  // Rings are made before anyone uses them.
  gpu::BarrierOp::create(b);
  IntegerAttr consumer, producer;
  if (auto registers = getRoleRegisters(schedule.getTiles())) {
    consumer = b.getI64IntegerAttr(registers->consumers);
    producer = b.getI64IntegerAttr(registers->producers);
  }
  auto roles = kernel::RolesOp::create(
      b, schedule.getWarps(), schedule.getProducers(), consumer, producer);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&roles.getProducing().front());
  emitMaps(index.cast(block));
  emitProducer(block, grid, count);
  b.setInsertionPointToStart(&roles.getConsuming().front());
  emitConsumer(count);
}

//===----------------------------------------------------------------------===//
// Producers
//===----------------------------------------------------------------------===//

void TileLoopConverter::emitFetchFrom(int64_t from) {
  emitLoop(b, narrow.constant(from), pipeline.total, narrow.constant(1),
           [&](Value i) {
             for (auto [number, ring] : llvm::enumerate(rings)) {
               auto slot =
                   kernel::RingAcquireOp::create(b, ring, getPosition(i));
               emitCopies(number, i, /*masked=*/true, slot.getResults());
               kernel::RingCommitOp::create(b, ring);
             }
           });
}

void TileLoopConverter::emitSendItem(Value item, Value turn, bool hasRows) {
  auto slot = kernel::RingAcquireOp::create(b, items, turn);
  ValueRange memory = slot.getResults();
  kernel::PutOp::create(b, item, memory.back());
  for (ReadOp read : tileReads) {
    if (!hasRows)
      break;
    kernel::CopyOp::create(b, read.getSource(), rowsOf(tile.usedRows),
                           memory.take_front(planes()));
    memory = memory.drop_front(planes());
  }
  kernel::RingCommitOp::create(b, items);
}

void TileLoopConverter::emitProducer(Value block, Value grid, Value count) {
  Value zero = narrow.constant(0), one = narrow.constant(1);
  auto isItem = [&](ValueRange carried) {
    return narrow.less(carried[0], count);
  };
  auto emitItem = [&](ValueRange carried) {
    Value item = carried[0];
    turn = carried[1];
    base = carried[2];
    tile = decode(decodeEntry(item));
    emitPipeline(getVisitedRows());
    // The copies hide its latency.
    emitTake();
    // As many as are free before the item in front is through with its rows,
    // which leave the slot of the next one at its end.
    int64_t first = schedule.getStages() - 1;
    for (int64_t i = 0; i < first; ++i)
      for (unsigned ring = 0; ring < rings.size(); ++ring)
        emitFetch(ring, narrow.constant(i), /*masked=*/true);
    emitSendItem(item, turn, /*hasRows=*/true);
    emitFetchFrom(first);
    gpu::BarrierOp::create(b);
    Value next = emitTaken(grid);
    // All have read it before the next is stored.
    gpu::BarrierOp::create(b);
    return Values{next, emitAdvance(turn, one, kItemStages),
                  emitAdvance(base, pipeline.total, schedule.getStages())};
  };
  ValueRange last = emitWhile(b, {block, zero, zero}, isItem, emitItem);
  // One that is none, after which there is no other.
  emitSendItem(last[0], last[1], /*hasRows=*/false);
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

void TileLoopConverter::emitShareItem() {
  ValueRange memory = kernel::RingSlotOp::create(b, items, turn).getResults();
  for (auto [number, read] : llvm::enumerate(tileReads))
    shared[read] = llvm::to_vector(ofSlot(memory, number));
}

void TileLoopConverter::emitConsumer(Value count) {
  Value zero = narrow.constant(0), one = narrow.constant(1);
  auto emitNumber = [&](ValueRange slot) {
    return narrow.load(slot.back(), index.constant(0));
  };
  auto isItem = [&](ValueRange carried) {
    auto slot = kernel::RingWaitOp::create(b, items, carried[0], /*younger=*/0);
    return narrow.less(emitNumber(slot.getResults()), count);
  };
  auto emitItem = [&](ValueRange carried) {
    turn = carried[0];
    base = carried[1];
    auto slot = kernel::RingSlotOp::create(b, items, turn);
    emitTile(emitNumber(slot.getResults()));
    return Values{emitAdvance(turn, one, kItemStages),
                  emitAdvance(base, pipeline.total, schedule.getStages())};
  };
  emitWhile(b, {zero, zero}, isItem, emitItem);
}

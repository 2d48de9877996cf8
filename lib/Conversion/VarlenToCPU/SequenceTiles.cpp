//===- SequenceTiles.cpp - The parts of a loop over sequences -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SequenceTiles.h"

#include "QueryLoop.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
class SequenceTilesFinder {
public:
  SequenceTilesFinder(ForTilesOp tiles, CPUScheduleAttr schedule)
      : schedule(schedule) {
    found.tiles = tiles;
  }

  FailureOr<SequenceTiles> find();

private:
  LogicalResult findOps();
  LogicalResult checkStep();
  LogicalResult checkSums();
  /// The write of a sum at `tile`, its only use.
  LogicalResult findWrite(WriteOp &write, Value sum, StringRef name,
                          Value tile);

  CPUScheduleAttr schedule;
  SequenceTiles found;
};
} // namespace

LogicalResult SequenceTilesFinder::findOps() {
  ForTilesOp tiles = found.tiles;
  for (Operation &op : *tiles.getBody())
    if (auto blocks = dyn_cast<ForBlocksOp>(op); blocks && !found.blocks)
      found.blocks = blocks;
    else if (auto clear = dyn_cast<ClearOp>(op);
             clear && clear.getTile() == tiles.getTile() && !found.blocks)
      found.clears.push_back(clear);
    else if (!isPure(&op) && !isa<ReadOp, WriteOp, YieldOp>(op))
      return op.emitOpError("is not known to loops over sequences on a CPU");
  if (!found.blocks || found.blocks.getTile() != tiles.getTile())
    return tiles.emitOpError("expected one loop over the blocks of each "
                             "sequence");
  if (int64_t size = found.blocks.getBlockType().getSize();
      size != schedule.getKvBlock())
    return found.blocks.emitOpError("expected blocks of ")
           << schedule.getKvBlock() << " keys, the kv_block of the schedule, "
           << "got " << size;
  for (Operation &op : *found.blocks.getBody())
    if (auto step = dyn_cast<OnlineAttnGradOp>(op); step && !found.step)
      found.step = step;
    else if (auto clear = dyn_cast<ClearOp>(op);
             clear && clear.getTile() == found.blocks.getBlock() && !found.step)
      found.keyClears.push_back(clear);
    else if (!isPure(&op) && !isa<ReadOp, WriteOp, YieldOp>(op))
      return op.emitOpError("is not known to blocks of sequences on a CPU");
  if (!found.step)
    return found.blocks.emitOpError("expected one varlen.online_attn_grad, got "
                                    "none");
  return success();
}

LogicalResult SequenceTilesFinder::checkStep() {
  OnlineAttnGradOp step = found.step;
  Value tile = found.tiles.getTile();
  if (step.getQueries() != tile || step.getKeys() != found.blocks.getBlock())
    return step.emitOpError("expected a step at the sequence and the block of "
                            "its loops");
  if (!step.getDq() || !step.getDk() || !step.getDv())
    return step.emitOpError("expected all three gradients of a sequence");
  if (failed(verifyFactors(step, {schedule, schedule.getLanes()})))
    return failure();
  found.statistics = findStatisticsRead(step, tile);
  if (!found.statistics)
    return step.emitOpError("expected lse, delta and captures that are read "
                            "from varlen.rows at the sequence");
  SmallVector<Value> ofQueries, ofKeys;
  for (auto [memory, table] :
       llvm::zip_equal(step.getDtables(), step.getGradientTables()))
    (isOfKeys(table) ? ofKeys : ofQueries).push_back(memory);
  auto areCleared = [](ArrayRef<ClearOp> clears, ArrayRef<Value> tables) {
    return llvm::equal(clears, tables, [](ClearOp clear, Value table) {
      return clear.getMemory() == table;
    });
  };
  if (!areCleared(found.clears, ofQueries) ||
      !areCleared(found.keyClears, ofKeys))
    return step.emitOpError("expected dtables that varlen.clear begins with at "
                            "the sequence, those of keys at the block");
  return verifyTables(step, found.tiles);
}

LogicalResult SequenceTilesFinder::findWrite(WriteOp &write, Value sum,
                                             StringRef name, Value tile) {
  if (sum.hasOneUse())
    write = dyn_cast<WriteOp>(*sum.getUsers().begin());
  auto memref = write ? dyn_cast<MemRefType>(write.getDestination().getType())
                      : MemRefType();
  if (memref && memref.getRank() == 3 && write.getTile() == tile &&
      write.getOtherwise().front() == 0)
    return success();
  return found.step.emitOpError("expected ")
         << name << " to go to memory of T x H x D, 0 otherwise, at the "
         << (tile == found.tiles.getTile() ? "sequence" : "block");
}

/// Whether a sum starts from 0.
static bool isZero(Value init) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
}

LogicalResult SequenceTilesFinder::checkSums() {
  ForBlocksOp blocks = found.blocks;
  OnlineAttnGradOp step = found.step;
  // dq comes first, then the gradients of captures.
  SmallVector<Value> sums = {step.getDq()}, results = {step.getDqOut()};
  llvm::append_range(sums, step.getDcaptures());
  llvm::append_range(results, step.getDcapturesOut());
  if (ValueRange(blocks.getIterArgs()) != ValueRange(sums) ||
      ValueRange(blocks.getYielded()) != ValueRange(results) ||
      !llvm::all_of(results, [](Value sum) { return sum.hasOneUse(); }))
    return blocks.emitOpError("expected dq and dcaptures of the step, and "
                              "nothing else, to go from block to block");
  SmallVector<Value> inits(blocks.getInits());
  llvm::append_range(inits, ValueRange{step.getDk(), step.getDv()});
  for (Value init : inits)
    if (!isZero(init))
      return step.emitOpError("expected sums that start from linalg.fill of 0");
  auto empty = blocks.getInits()[0]
                   .getDefiningOp<linalg::FillOp>()
                   .getOutputs()[0]
                   .getDefiningOp<tensor::EmptyOp>();
  auto size = empty && empty.getDynamicSizes().size() == 1
                  ? empty.getDynamicSizes()[0].getDefiningOp<SizeOp>()
                  : SizeOp();
  if (!size || size.getTile() != found.tiles.getTile() ||
      size.getMultiple() != static_cast<uint64_t>(schedule.getPanelSize()))
    return blocks.emitOpError("expected as many rows of dq as varlen.size of "
                              "the sequence says, in multiples of ")
           << schedule.getPanelSize();
  Value tile = found.tiles.getTile(), block = blocks.getBlock();
  for (Value sum : blocks.getResults().drop_front()) {
    auto write = sum.hasOneUse() ? dyn_cast<WriteOp>(*sum.getUsers().begin())
                                 : WriteOp();
    if (!write || write.getTile() != tile)
      return step.emitOpError("expected gradients of captures to be written at "
                              "the sequence");
    found.dcaptures.push_back(write);
  }
  if (failed(findWrite(found.dq, blocks.getResult(0), "dq", tile)) ||
      failed(findWrite(found.dk, step.getDkOut(), "dk", block)) ||
      failed(findWrite(found.dv, step.getDvOut(), "dv", block)))
    return failure();
  return success();
}

FailureOr<SequenceTiles> SequenceTilesFinder::find() {
  if (failed(findOps()) || failed(checkStep()) || failed(checkSums()))
    return failure();
  return found;
}

FailureOr<SequenceTiles> varlen::findSequenceTiles(ForTilesOp tiles,
                                                   CPUScheduleAttr schedule) {
  return SequenceTilesFinder(tiles, schedule).find();
}

//===- GPUSchedules.cpp - Tile sizes for GPUs from a table ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUSchedules.h"

#include "varlen/Dialect/Kernel/IR/SharedTile.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// A row of a schedule table: what suits head sizes up to `headDim` and masks
/// with up to `sides` bounds, for each of which a tile keeps limits in
/// registers. The first row that fits those and the shared memory of the target
/// is taken.
struct GPURow {
  int64_t headDim, sides;
  int64_t warps, blockM, kvBlock, stages, ctas;
  /// Of gradients of keys: whether dk and dv have a kernel each.
  bool apart = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

// None of these spills at the sizes of test/Integration/gpu-schedules.py. Of
// all multiples of 8 with four masks a few do, 4 to 104 bytes: f32 at 56, 176
// and 240, and gradients of 16 bits with a window where head_dim is no multiple
// of 16. f32 takes three planes of shared memory for a tile, six products for
// one and registers for all of these.

// Two 16-row tiles to a warp read each operand B once for both, where the
// accumulators leave registers for that.
static constexpr GPURow attnTable[] = {
    {64, 1, 4, 128, 64, 2, 2},  {64, 2, 4, 128, 48, 2, 2},
    {64, 2, 4, 64, 32, 2, 2},   {128, 2, 4, 64, 64, 2, 2},
    {128, 2, 4, 64, 32, 2, 1},  {256, 2, 8, 128, 32, 2, 1},
    {256, 2, 8, 128, 16, 2, 1}, {256, 2, 4, 64, 16, 2, 1},
};
static constexpr GPURow attnTableF32[] = {
    {64, 2, 4, 64, 32, 2, 2},  {128, 2, 4, 64, 32, 2, 1},
    {128, 2, 4, 64, 16, 2, 1}, {192, 2, 4, 64, 16, 2, 1},
    {256, 2, 2, 32, 16, 2, 1}, {256, 2, 1, 16, 16, 2, 1},
};

// A tile has its queries and their dout in shared memory.
static constexpr GPURow dqTable[] = {
    {64, 2, 4, 64, 64, 2, 2},  {128, 1, 4, 64, 32, 2, 2},
    {128, 2, 4, 64, 16, 2, 2}, {256, 2, 8, 128, 16, 2, 1},
    {256, 2, 4, 64, 16, 2, 1},
};
static constexpr GPURow dqTableF32[] = {
    {64, 1, 4, 64, 32, 2, 1},  {64, 2, 4, 64, 16, 2, 1},
    {128, 1, 4, 64, 16, 2, 1}, {128, 2, 2, 32, 16, 2, 1},
    {256, 2, 2, 32, 16, 2, 1}, {256, 2, 1, 16, 16, 2, 1},
};

// A tile has its keys and values in shared memory, and dk and dv in registers
// where both fit.
static constexpr GPURow dkTable[] = {
    {64, 1, 4, 64, 64, 2, 2},         {64, 2, 4, 32, 64, 2, 2},
    {128, 0, 4, 32, 64, 2, 2},        {128, 2, 4, 16, 64, 2, 2},
    {256, 2, 8, 16, 128, 2, 1, true}, {256, 2, 4, 16, 64, 2, 1, true},
};
static constexpr GPURow dkTableF32[] = {
    {64, 2, 4, 16, 64, 2, 1},        {128, 2, 4, 16, 64, 2, 1, true},
    {192, 2, 2, 16, 32, 2, 1, true}, {256, 2, 2, 16, 32, 2, 1, true},
    {256, 2, 1, 16, 16, 2, 1, true},
};

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {
/// What a table is searched for.
class Chooser {
public:
  Chooser(AttentionOpInterface op, const GPUTarget &gpu) : op(op), gpu(gpu) {}

  /// What owns a tile, and what for: those of out have q in shared memory, the
  /// others two tensors.
  enum class Tiles { QueriesForOut, QueriesForDq, KeysForDk };
  const GPURow *find(ArrayRef<GPURow> table, Tiles tiles) const;
  GPUScheduleAttr getAttr(const GPURow &row) const {
    return GPUScheduleAttr::get(op.getContext(), row.warps, row.blockM,
                                row.kvBlock, row.stages, row.ctas);
  }
  int64_t getHeadDim() const {
    return std::max(op.getHeadDim(), op.getValueHeadDim());
  }
  bool isF32() const { return op.getElementType().isF32(); }

private:
  /// Bytes of shared memory of a CTA: a tile and `stages` blocks, each in whole
  /// slabs of columns.
  int64_t getSharedBytes(const GPURow &row, Tiles tiles) const;

  mutable AttentionOpInterface op;
  const GPUTarget &gpu;
};
} // namespace

int64_t Chooser::getSharedBytes(const GPURow &row, Tiles tiles) const {
  int64_t qk = llvm::alignTo(op.getHeadDim(), kernel::kSlabColumns);
  int64_t v = llvm::alignTo(op.getValueHeadDim(), kernel::kSlabColumns);
  int64_t bytes = 2 * (isF32() ? kernel::kPlanes : 1);
  bool ofKeys = tiles == Tiles::KeysForDk;
  int64_t tile = ofKeys ? row.kvBlock : row.blockM;
  int64_t block = ofKeys ? row.blockM : row.kvBlock;
  int64_t columns = tiles == Tiles::QueriesForOut ? qk : qk + v;
  return bytes * (tile * columns + row.stages * block * (qk + v));
}

const GPURow *Chooser::find(ArrayRef<GPURow> table, Tiles tiles) const {
  int64_t sides =
      (op.getMask().getLeft() >= 0) + (op.getMask().getRight() >= 0);
  const GPURow *row = llvm::find_if(table, [&](const GPURow &candidate) {
    return getHeadDim() <= candidate.headDim && sides <= candidate.sides &&
           getSharedBytes(candidate, tiles) <= gpu.sharedBytes;
  });
  return row == table.end() ? nullptr : row;
}

static Attribute chooseForAttn(const Chooser &chooser) {
  const GPURow *row = chooser.find(chooser.isF32() ? ArrayRef(attnTableF32)
                                                   : ArrayRef(attnTable),
                                   Chooser::Tiles::QueriesForOut);
  return row ? chooser.getAttr(*row) : Attribute();
}

static Attribute chooseForGrad(const Chooser &chooser, MLIRContext *context) {
  const GPURow *dq =
      chooser.find(chooser.isF32() ? ArrayRef(dqTableF32) : ArrayRef(dqTable),
                   Chooser::Tiles::QueriesForDq);
  const GPURow *dk =
      chooser.find(chooser.isF32() ? ArrayRef(dkTableF32) : ArrayRef(dkTable),
                   Chooser::Tiles::KeysForDk);
  if (!dq || !dk)
    return {};
  GPUScheduleAttr keys = chooser.getAttr(*dk);
  return GPUGradScheduleAttr::get(context, chooser.getAttr(*dq), keys,
                                  dk->apart ? keys : GPUScheduleAttr());
}

bool varlen::assignGPUSchedule(AttentionOpInterface op, const GPUTarget &gpu) {
  if (op.getElementType().isF64()) {
    op->emitRemark("no tiles for f64, which ")
        << gpu.name << " has no kernel for; a CPU target has";
    return false;
  }
  Chooser chooser(op, gpu);
  Attribute schedule = isa<AttnGradOp>(*op)
                           ? chooseForGrad(chooser, op.getContext())
                           : chooseForAttn(chooser);
  if (!schedule) {
    op->emitRemark("no tiles for head_dim ")
        << chooser.getHeadDim() << " in " << gpu.sharedBytes
        << " bytes of shared memory of " << gpu.name << "; a CPU target has";
    return false;
  }
  op->setAttr(kScheduleAttrName, schedule);
  return true;
}

//===- VarlenAssignSchedule.cpp - Tile sizes from a table -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Target/CPUTarget.h"
#include "varlen/Target/GPUTarget.h"

#include "mlir/IR/Builders.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENASSIGNSCHEDULE
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// CPU
//===----------------------------------------------------------------------===//

namespace {
/// A row of the schedule table: what suits a CPU with this many vector
/// registers of this size. The last row that the target satisfies is taken.
struct CPURow {
  int64_t vectorBytes, vectorRegisters;
  int64_t vectors, rows, panels, kvBlock;
};
} // namespace

// rows x vectors accumulators, `vectors` columns and one broadcast scalar fit
// the registers. A panel reuses a kv block too little, so the block is copied
// once for several panels.
static constexpr CPURow cpuTable[] = {
    {16, 16, 3, 4, 8, 128},
    {16, 32, 4, 4, 6, 128},
    {32, 16, 3, 4, 16, 128},
    {64, 32, 2, 8, 24, 128},
};

static void assignForCPU(AttnOp op, const CPUTarget &cpu) {
  const CPURow *row = &cpuTable[0];
  for (const CPURow &candidate : cpuTable)
    if (candidate.vectorBytes <= cpu.vectorBytes &&
        candidate.vectorRegisters <= cpu.vectorRegisters)
      row = &candidate;
  FloatType element = op.getElementType();
  int64_t lanes = cpu.getLanes(op.getComputeType().getWidth() / 8);
  bool pairs = element.isBF16() && cpu.hasBF16Dot && op.getHeadDim() % 2 == 0;
  MLIRContext *context = op.getContext();
  op->setAttr(kScheduleAttrName,
              CPUScheduleAttr::get(context, lanes, row->vectors, row->rows,
                                   row->panels, row->kvBlock,
                                   pairs ? KVStorage::Pairs : KVStorage::Copy));
  // The exponential need not be more exact than the type it is rounded to.
  // f64 has one polynomial only.
  if (!element.isF64())
    op->setAttr("varlen.exp2_degree",
                IntegerAttr::get(IntegerType::get(context, 64),
                                 element.isF32() ? 5 : 4));
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

namespace {
/// A row of the schedule table: what suits head sizes up to `headDim` and masks
/// with up to `sides` bounds, for each of which a tile keeps limits in
/// registers. The first row that fits those and the shared memory of the target
/// is taken.
struct GPURow {
  int64_t headDim, sides;
  int64_t warps, blockM, kvBlock, stages, ctas;
};
} // namespace

// Two 16-row tiles to a warp read each operand B once for both, where the
// accumulators leave registers for that. None of these spills, and none of
// those for f32 up to head_dim 128, see test/Integration/gpu-schedules.py.
static constexpr GPURow gpuTable[] = {
    {64, 1, 4, 128, 64, 2, 2},  {64, 2, 4, 128, 48, 2, 2},
    {64, 2, 4, 64, 32, 2, 2},   {128, 2, 4, 64, 64, 2, 2},
    {128, 2, 4, 64, 32, 2, 1},  {256, 2, 8, 128, 32, 2, 1},
    {256, 2, 8, 128, 16, 2, 1}, {256, 2, 4, 64, 16, 2, 1},
};

// f32 takes three planes of shared memory for a tile, six products for one and
// registers for all of these.
static constexpr GPURow gpuTableF32[] = {
    {64, 2, 4, 64, 32, 2, 2},  {128, 2, 4, 64, 32, 2, 1},
    {128, 2, 4, 64, 16, 2, 1}, {192, 2, 4, 64, 16, 2, 1},
    {256, 2, 2, 32, 16, 2, 1},
};

/// Bytes of shared memory of a CTA: one tile of queries and `stages` kv blocks,
/// each in whole slabs of columns.
static int64_t getSharedBytes(const GPURow &row, AttnOp op) {
  int64_t qk = llvm::alignTo(op.getHeadDim(), kernel::kSlabColumns);
  int64_t v = llvm::alignTo(op.getValueHeadDim(), kernel::kSlabColumns);
  int64_t bytes = 2 * (op.getElementType().isF32() ? kernel::kPlanes : 1);
  return bytes * (row.blockM * qk + row.stages * row.kvBlock * (qk + v));
}

static bool assignForGPU(AttnOp op, const GPUTarget &gpu) {
  if (op.getElementType().isF64()) {
    op.emitRemark("no tiles for f64, which ")
        << gpu.name << " has no kernel for; a CPU target has";
    return false;
  }
  int64_t headDim = std::max(op.getHeadDim(), op.getValueHeadDim());
  int64_t sides =
      (op.getMask().getLeft() >= 0) + (op.getMask().getRight() >= 0);
  ArrayRef<GPURow> table(gpuTable);
  if (op.getElementType().isF32())
    table = gpuTableF32;
  const GPURow *row = llvm::find_if(table, [&](const GPURow &candidate) {
    return headDim <= candidate.headDim && sides <= candidate.sides &&
           getSharedBytes(candidate, op) <= gpu.sharedBytes;
  });
  if (row == table.end()) {
    op.emitRemark("no tiles for head_dim ")
        << headDim << " in " << gpu.sharedBytes << " bytes of shared memory of "
        << gpu.name << "; a CPU target has";
    return false;
  }
  op->setAttr(kScheduleAttrName,
              GPUScheduleAttr::get(op.getContext(), row->warps, row->blockM,
                                   row->kvBlock, row->stages, row->ctas));
  return true;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct VarlenAssignSchedule
    : varlen::impl::VarlenAssignScheduleBase<VarlenAssignSchedule> {
  using VarlenAssignScheduleBase::VarlenAssignScheduleBase;
  void runOnOperation() override;
};
} // namespace

void VarlenAssignSchedule::runOnOperation() {
  const GPUTarget *gpu = chip.empty() ? nullptr : lookupGPUTarget(chip);
  const CPUTarget *cpu = chip.empty() ? lookupCPUTarget(target) : nullptr;
  if (!cpu && !gpu) {
    InFlightDiagnostic error = emitError(getOperation()->getLoc());
    if (chip.empty())
      error << "expected target to be one of " << getCPUTargetNames()
            << ", got " << target;
    else
      error << "expected chip to be one of " << getGPUTargetNames() << ", got "
            << chip;
    return signalPassFailure();
  }
  getOperation()->walk([&](AttnOp op) {
    if (op->hasAttr(kScheduleAttrName))
      return;
    if (ShapedType::isDynamic(op.getHeadDim()) ||
        ShapedType::isDynamic(op.getValueHeadDim())) {
      op.emitRemark("no tiles for a dynamic head_dim; ")
          << (gpu ? "a GPU has no kernel for it, a CPU target has"
                  : "it is decomposed instead");
      ++numMissed;
      return;
    }
    if (gpu && !assignForGPU(op, *gpu)) {
      ++numMissed;
      return;
    }
    if (cpu)
      assignForCPU(op, *cpu);
    ++numAssigned;
  });
}

//===- VarlenAssignSchedule.cpp - Tile sizes from a table -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUSchedules.h"
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
    {64, 32, 2, 8, 24, 256},
};

// The gradients of a kv block are summed over panels one at a time, from copies
// of everything; tiles of gradients are as wide as head_dim, so `vectors`
// divides the usual ones. The size of the registers makes no difference.
static constexpr CPURow cpuGradTable[] = {
    {16, 16, 3, 4, 1, 128},
    {16, 32, 4, 4, 1, 128},
};

/// Gives `op`, whose head sizes are static, the schedule that suits the target;
/// false, with a remark that says what happens instead, if there is none.
static bool assignForCPU(AttentionOpInterface op, const CPUTarget &cpu) {
  int64_t headDim = std::max(op.getHeadDim(), op.getValueHeadDim());
  if (headDim > kMaxHeadDim) {
    op->emitRemark("no tiles for head_dim ")
        << headDim << ", which is more than " << kMaxHeadDim
        << "; it is decomposed instead";
    return false;
  }
  bool isGrad = isa<AttnGradOp>(op);
  ArrayRef<CPURow> table(cpuTable);
  if (isGrad)
    table = cpuGradTable;
  const CPURow *row = &table[0];
  for (const CPURow &candidate : table)
    if (candidate.vectorBytes <= cpu.vectorBytes &&
        candidate.vectorRegisters <= cpu.vectorRegisters)
      row = &candidate;
  FloatType element = op.getElementType();
  int64_t lanes = cpu.getLanes(op.getComputeType().getWidth() / 8);
  bool pairs = element.isBF16() && cpu.hasBF16Dot && op.getHeadDim() % 2 == 0 &&
               (!isGrad || op.getValueHeadDim() % 2 == 0);
  MLIRContext *context = op->getContext();
  op->setAttr(kScheduleAttrName,
              CPUScheduleAttr::get(context, lanes, row->vectors, row->rows,
                                   row->panels, row->kvBlock,
                                   pairs ? KVStorage::Pairs : KVStorage::Copy));
  // The exponential need not be more exact than the type it is rounded to.
  // f64 has one polynomial only.
  if (!element.isF64())
    op->setAttr(kExp2DegreeAttrName,
                IntegerAttr::get(IntegerType::get(context, 64),
                                 element.isF32() ? 5 : 4));
  return true;
}

/// That a schedule which the op has already is one for this kind of target.
static LogicalResult verifySchedule(AttentionOpInterface op, bool isGPU) {
  Attribute schedule = op->getAttr(kScheduleAttrName);
  if (isa<CPUScheduleAttr>(schedule) != isGPU)
    return success();
  return op->emitOpError("expected a schedule for a ")
         << (isGPU ? "GPU" : "CPU") << ", got " << schedule;
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
  WalkResult result = getOperation()->walk([&](AttentionOpInterface op) {
    if (op->hasAttr(kScheduleAttrName))
      return WalkResult(verifySchedule(op, gpu != nullptr));
    if (varlen::detail::hasDynamicHeadDim(op)) {
      op->emitRemark("no tiles for a dynamic head_dim; ")
          << (gpu ? "a GPU has no kernel for it, a CPU target has"
                  : "it is decomposed instead");
      ++numMissed;
      return WalkResult::advance();
    }
    if (gpu ? assignGPUSchedule(op, *gpu) : assignForCPU(op, *cpu))
      ++numAssigned;
    else
      ++numMissed;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}

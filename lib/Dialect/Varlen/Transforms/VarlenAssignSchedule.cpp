//===- VarlenAssignSchedule.cpp - Tile sizes from a table -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Dialect/Varlen/Utils/ScoreIntervals.h"
#include "varlen/Target/TargetOption.h"
#include "varlen/Target/Tiles.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENASSIGNSCHEDULE
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// CPU
//===----------------------------------------------------------------------===//

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
  bool isGrad = op.isGradient();
  CPUTiles tiles = getCPUTiles(cpu, isGrad);
  FloatType element = op.getElementType();
  int64_t lanes = cpu.getLanes(op.getComputeType().getWidth() / 8);
  bool pairs = element.isBF16() && cpu.hasBF16Dot && op.getHeadDim() % 2 == 0 &&
               (!isGrad || op.getValueHeadDim() % 2 == 0);
  MLIRContext *context = op->getContext();
  op->setAttr(kScheduleAttrName,
              CPUScheduleAttr::get(context, lanes, tiles.vectors, tiles.rows,
                                   tiles.panels, tiles.kvBlock,
                                   pairs ? KVStorage::Pairs : KVStorage::Copy,
                                   kPartBlocks, kFewPartBlocks));
  // The exponential need not be more exact than the type it is rounded to.
  // f64 has one polynomial only.
  if (!element.isF64())
    op->setAttr(kExp2DegreeAttrName,
                IntegerAttr::get(IntegerType::get(context, 64),
                                 element.isF32() ? 5 : 4));
  return true;
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

/// The schedule that suits the target; null if there is none.
static Attribute chooseForGPU(AttentionOpInterface op, const GPUTarget &gpu) {
  auto lookup = [&](GPUTileOwner owner) {
    return lookupGPUTiles(gpu, op.getGPUTileNeeds(owner));
  };
  MLIRContext *context = op->getContext();
  if (!op.isGradient()) {
    const GPUTiles *tiles = lookup(GPUTileOwner::Queries);
    return tiles ? GPUScheduleAttr::get(context, *tiles) : Attribute();
  }
  const GPUTiles *dq = lookup(GPUTileOwner::QueryGradients);
  const GPUTiles *dk = lookup(GPUTileOwner::KeyValueGradients);
  if (!dq || !dk)
    return {};
  auto keys = GPUScheduleAttr::get(context, *dk);
  return GPUGradScheduleAttr::get(context, GPUScheduleAttr::get(context, *dq),
                                  keys, dk->apart ? keys : GPUScheduleAttr());
}

/// As assignForCPU.
static bool assignForGPU(AttentionOpInterface op, const GPUTarget &gpu) {
  if (op.getElementType().isF64()) {
    op->emitRemark("no tiles for f64, which ")
        << gpu.name << " has no kernel for; a CPU target has";
    return false;
  }
  Attribute schedule = chooseForGPU(op, gpu);
  if (!schedule) {
    InFlightDiagnostic remark = op->emitRemark("no tiles for ");
    if (op.isTangent())
      remark << (op.isGradient() ? "gradients of " : "") << "tangents of "
             << op.getElementType() << " with ";
    remark << "head_dim " << std::max(op.getHeadDim(), op.getValueHeadDim())
           << " in " << (op.isTangent() ? "the registers and " : "")
           << gpu.sharedBytes << " bytes of shared memory of " << gpu.name
           << "; a CPU target has";
    return false;
  }
  op->setAttr(kScheduleAttrName, schedule);
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
  const CPUTarget *cpu =
      chip.empty() ? getCPUTargetOrError(getOperation(), target) : nullptr;
  if (!gpu && !chip.empty())
    emitError(getOperation()->getLoc())
        << "expected chip to be one of " << getGPUTargetNames() << ", got "
        << chip;
  if (!cpu && !gpu)
    return signalPassFailure();
  IRRewriter rewriter(&getContext());
  WalkResult result = getOperation()->walk([&](AttentionOpInterface op) {
    // Tiles follow the mask.
    if (absorbVisible(op, rewriter))
      op = dropIdentityScore(op, rewriter);
    if (Operation *unknown = findUnknownVisibility(
            op.getScoreBody(), /*hasLookups=*/gpu && !op.isGradient()))
      op->emitRemark("blocks of hidden keys may be visited: intervals know "
                     "nothing of '")
          << unknown->getName() << "', which says whether a key is visible";
    if (auto schedule =
            op->getAttrOfType<ScheduleAttrInterface>(kScheduleAttrName))
      return WalkResult(
          schedule.verifyFitsTarget(op, gpu ? Target(gpu) : Target(cpu)));
    if (op.hasDynamicHeadDim()) {
      op->emitRemark("no tiles for a dynamic head_dim; ")
          << (gpu ? "a GPU has no kernel for it, a CPU target has"
                  : "it is decomposed instead");
      ++numMissed;
      return WalkResult::advance();
    }
    if (gpu ? assignForGPU(op, *gpu) : assignForCPU(op, *cpu))
      ++numAssigned;
    else
      ++numMissed;
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}

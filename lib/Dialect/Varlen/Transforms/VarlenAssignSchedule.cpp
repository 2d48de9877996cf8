//===- VarlenAssignSchedule.cpp - Tile sizes from a table -----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Target/CPUTarget.h"

#include "mlir/IR/Builders.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENASSIGNSCHEDULE
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// A row of the schedule table: what suits a CPU with this many vector
/// registers of this size. The last row that the target satisfies is taken.
struct ScheduleRow {
  int64_t vectorBytes, vectorRegisters;
  int64_t vectors, rows, panels, kvBlock;
  KVStorage kv;
};

// rows x vectors accumulators, `vectors` columns and one broadcast scalar fill
// the registers. With few lanes a panel reuses a kv block too little, so the
// block is copied once for several panels.
constexpr ScheduleRow table[] = {
    {16, 16, 3, 4, 8, 128, KVStorage::Copy},
    {16, 32, 4, 4, 6, 128, KVStorage::Copy},
    {32, 16, 3, 4, 16, 128, KVStorage::Copy},
    {64, 32, 3, 8, 1, 256, KVStorage::InPlace},
};

struct VarlenAssignSchedule
    : varlen::impl::VarlenAssignScheduleBase<VarlenAssignSchedule> {
  using VarlenAssignScheduleBase::VarlenAssignScheduleBase;
  void runOnOperation() override;
};

} // namespace

void VarlenAssignSchedule::runOnOperation() {
  const CPUTarget *cpu = lookupCPUTarget(target);
  if (!cpu) {
    emitError(getOperation()->getLoc())
        << "expected target to be one of " << getCPUTargetNames() << ", got "
        << target;
    return signalPassFailure();
  }
  const ScheduleRow *row = &table[0];
  for (const ScheduleRow &candidate : table)
    if (candidate.vectorBytes <= cpu->vectorBytes &&
        candidate.vectorRegisters <= cpu->vectorRegisters)
      row = &candidate;

  getOperation()->walk([&](AttnOp op) {
    if (op->hasAttr(CPUScheduleAttr::kName))
      return;
    if (ShapedType::isDynamic(op.getHeadDim()) ||
        ShapedType::isDynamic(op.getValueHeadDim())) {
      op.emitRemark(
          "no tiles for a dynamic head_dim; it is decomposed instead");
      ++numMissed;
      return;
    }
    FloatType element = op.getElementType();
    int64_t lanes = cpu->getLanes(op.getComputeType().getWidth() / 8);
    // 16-bit inputs are converted as they are copied, once for more panels.
    bool converted = element != op.getComputeType();
    bool pairs =
        element.isBF16() && cpu->hasBF16Dot && op.getHeadDim() % 2 == 0;
    op->setAttr(CPUScheduleAttr::kName,
                CPUScheduleAttr::get(
                    &getContext(), lanes, row->vectors, row->rows,
                    converted ? std::max<int64_t>(row->panels, 4) : row->panels,
                    row->kvBlock,
                    pairs       ? KVStorage::Pairs
                    : converted ? KVStorage::Copy
                                : row->kv));
    // The exponential need not be more exact than the type it is rounded to.
    // f64 has one polynomial only.
    if (!element.isF64())
      op->setAttr("varlen.exp2_degree",
                  IntegerAttr::get(IntegerType::get(&getContext(), 64),
                                   element.isF32() ? 5 : 4));
    ++numAssigned;
  });
}

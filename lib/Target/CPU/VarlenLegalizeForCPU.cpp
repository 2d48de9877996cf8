//===- VarlenLegalizeForCPU.cpp - Arithmetic that a CPU has ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM legalizes all of it, too: by calls of compiler-rt or libm for each lane,
// or by three instructions for one.
//
//===----------------------------------------------------------------------===//

#include "LegalizeForCPU.h"
#include "varlen/Target/CPU/Passes.h"
#include "varlen/Target/TargetOption.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENLEGALIZEFORCPU
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// As two operations, of which each rounds.
template <typename OpTy>
static LogicalResult expandFMA(OpTy op, PatternRewriter &rewriter) {
  Value product = arith::MulFOp::create(rewriter, op.getLoc(),
                                        op->getOperand(0), op->getOperand(1));
  rewriter.replaceOpWithNewOp<arith::AddFOp>(op, product, op->getOperand(2));
  return success();
}

namespace {

struct VarlenLegalizeForCPU
    : varlen::impl::VarlenLegalizeForCPUBase<VarlenLegalizeForCPU> {
  using VarlenLegalizeForCPUBase::VarlenLegalizeForCPUBase;

  void runOnOperation() override {
    const CPUTarget *cpu = getCPUTargetOrError(getOperation(), target);
    if (!cpu)
      return signalPassFailure();
    // Before conversions are expanded one by one.
    expandPairs(getOperation(), *cpu);
    if (failed(expandNarrowFloats(getOperation(), *cpu)))
      return signalPassFailure();
    // Of types that libm has.
    if (failed(callLibm(getOperation())))
      return signalPassFailure();
    // AArch64 has an instruction for each maximum and minimum.
    if (cpu->arch == llvm::Triple::x86_64)
      expandMinMax(getOperation());
    if (!cpu->hasFMA) {
      RewritePatternSet patterns(&getContext());
      patterns.add(expandFMA<math::FmaOp>);
      patterns.add(expandFMA<vector::FMAOp>);
      walkAndApplyPatterns(getOperation(), std::move(patterns));
    }
  }
};

} // namespace

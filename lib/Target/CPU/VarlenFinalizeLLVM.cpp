//===- VarlenFinalizeLLVM.cpp - Last step before LLVM IR ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Target/CPU/Passes.h"
#include "varlen/Target/CPUTarget.h"
#include "varlen/Target/TargetOption.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENFINALIZELLVM
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// The operation of the user's program that a leftover stands for: casts are
/// there because something next to them was not converted.
static Operation *getCulprit(Operation *op) {
  auto cast = dyn_cast<UnrealizedConversionCastOp>(op);
  if (!cast)
    return op;
  auto isLeftover = [](Operation *other) {
    return other && !isa<LLVM::LLVMDialect>(other->getDialect()) &&
           !isa<UnrealizedConversionCastOp>(other);
  };
  for (Value input : cast.getInputs())
    if (isLeftover(input.getDefiningOp()))
      return input.getDefiningOp();
  for (Operation *user : cast->getUsers())
    if (isLeftover(user))
      return user;
  return op;
}

/// Refuses a function that has features which are not among those of the
/// target: its code may use them, and LLVM ends the process where they are
/// missing.
static LogicalResult checkFeatures(LLVM::LLVMFuncOp function,
                                   LLVM::TargetFeaturesAttr features,
                                   StringRef target) {
  LLVM::TargetFeaturesAttr given = function.getTargetFeaturesAttr();
  if (!given)
    return success();
  for (StringAttr feature : given.getFeatures())
    if (feature.getValue().starts_with("+") && !features.contains(feature))
      return function.emitOpError("expected features of the target ")
             << target << ", for which code is made, got " << feature;
  return success();
}

namespace {

struct VarlenFinalizeLLVM
    : varlen::impl::VarlenFinalizeLLVMBase<VarlenFinalizeLLVM> {
  using VarlenFinalizeLLVMBase::VarlenFinalizeLLVMBase;

  void runOnOperation() override {
    const CPUTarget *cpu = getCPUTargetOrError(getOperation(), target);
    if (!cpu)
      return signalPassFailure();
    WalkResult clean = getOperation().walk([&](Operation *op) {
      // Upstream's conversions of arith.extf and arith.truncf hand these flags
      // on as an attribute of arith, which mlir-translate does not know.
      if (isa<LLVM::FPExtOp, LLVM::FPTruncOp>(op))
        op->removeAttr("fastmath");
      if (op == getOperation() || isa<LLVM::LLVMDialect>(op->getDialect()))
        return WalkResult::advance();
      Operation *culprit = getCulprit(op);
      InFlightDiagnostic error = culprit->emitError()
                                 << "has no lowering to LLVM: '"
                                 << culprit->getName()
                                 << "' is left at the end of the pipeline";
      if (isa<AttentionOpInterface>(culprit) &&
          !culprit->hasAttr(kScheduleAttrName))
        error << "; expected a " << kScheduleAttrName
              << ", which varlen-assign-schedule puts there, or "
                 "varlen-decompose-attn while it was on tensors";
      return WalkResult::interrupt();
    });
    if (clean.wasInterrupted())
      return signalPassFailure();

    CodegenNames names = getCodegenNames(*cpu);
    Builder b(&getContext());
    auto features =
        LLVM::TargetFeaturesAttr::get(&getContext(), names.features);
    getOperation()->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                            b.getStringAttr(names.triple));
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      if (function.isExternal())
        continue;
      if (failed(checkFeatures(function, features, cpu->name)))
        return signalPassFailure();
      function.setTargetCpu(names.cpu);
      function.setTuneCpu(names.tuneCPU);
      function.setTargetFeaturesAttr(features);
    }
  }
};

} // namespace

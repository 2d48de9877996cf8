//===- VarlenConvertPrints.cpp - Calls of functions that print ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/CPU/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENCONVERTPRINTS
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;

namespace {

struct VarlenConvertPrints
    : varlen::impl::VarlenConvertPrintsBase<VarlenConvertPrints> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk(
        [](vector::PrintOp) { return WalkResult::interrupt(); });
    if (!result.wasInterrupted())
      return;
    OpPassManager conversion(ModuleOp::getOperationName());
    conversion.addPass(createConvertVectorToLLVMPass());
    if (failed(runPipeline(conversion, getOperation())))
      signalPassFailure();
  }
};

} // namespace

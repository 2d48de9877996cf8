//===- VarlenCheckHostCode.cpp - No host access to device memory ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENCHECKHOSTCODE
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Whether `op` reads or writes memory, by itself.
static bool accesses(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return effects && (effects.hasEffect<MemoryEffects::Read>() ||
                     effects.hasEffect<MemoryEffects::Write>());
}

namespace {

struct VarlenCheckHostCode
    : varlen::impl::VarlenCheckHostCodeBase<VarlenCheckHostCode> {
  void runOnOperation() override {
    WalkResult result =
        getOperation().walk<WalkOrder::PreOrder>([](Operation *op) {
          // Kernels; and launches, whose effects are those of their bodies.
          if (isa<gpu::LaunchOp, gpu::GPUModuleOp>(op))
            return WalkResult::skip();
          if (isa<func::CallOp, func::FuncOp>(op))
            return WalkResult::advance();
          if (auto attn = dyn_cast<AttnOp>(op)) {
            attn.emitOpError("has no kernel for this GPU");
            return WalkResult::interrupt();
          }
          if (!accesses(op))
            return WalkResult::advance();
          op->emitOpError("would access device memory on the host; for a GPU, "
                          "expected functions of varlen.attn only");
          return WalkResult::interrupt();
        });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

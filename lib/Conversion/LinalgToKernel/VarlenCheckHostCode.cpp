//===- VarlenCheckHostCode.cpp - No host access to device memory ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostMemory.h"
#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENCHECKHOSTCODE
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Whether `op` reads or writes device memory, by itself.
static bool accesses(Operation *op) {
  // Its effect is to stop.
  if (isa<cf::AssertOp>(op))
    return false;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return false;
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  return llvm::any_of(effects, [](const MemoryEffects::EffectInstance &effect) {
    Value memory = effect.getValue();
    return isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect()) &&
           !(memory && isa<MemRefType>(memory.getType()) &&
             isHostMemory(memory));
  });
}

/// Whether host code does no more with the memory than to read it.
static bool isReadByHost(Value memory) {
  return llvm::all_of(memory.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (user->getParentOfType<gpu::LaunchOp>())
      return false;
    if (auto reshape = dyn_cast<memref::ReshapeOp>(user))
      return use == reshape.getShapeMutable();
    if (auto cast = dyn_cast<memref::CastOp>(user))
      return isReadByHost(cast);
    return isa<memref::LoadOp, memref::DimOp>(user);
  });
}

/// Tiling leaves what has no schedule.
static WalkResult refuse(AttentionOpInterface op) {
  StringRef schedule =
      op.isGradient() ? GPUGradScheduleAttr::name : GPUScheduleAttr::name;
  return WalkResult(
      op.emitOpError("has no kernel: expected a #")
      << schedule << " under " << kScheduleAttrName
      << ", which varlen-assign-schedule puts there if the chip has tiles for "
         "it");
}

namespace {

struct VarlenCheckHostCode
    : varlen::impl::VarlenCheckHostCodeBase<VarlenCheckHostCode> {
  void runOnOperation() override {
    WalkResult result =
        getOperation().walk<WalkOrder::PreOrder>([](Operation *op) {
          // Kernels; and launches, whose effects are those of their bodies.
          if (isa<gpu::LaunchOp, gpu::GPUModuleOp>(op))
            return op->walk(refuse).wasInterrupted() ? WalkResult::interrupt()
                                                     : WalkResult::skip();
          if (isa<func::CallOp, func::FuncOp>(op))
            return WalkResult::advance();
          if (auto attn = dyn_cast<AttentionOpInterface>(op))
            return refuse(attn);
          if (auto global = dyn_cast<memref::GetGlobalOp>(op)) {
            if (isReadByHost(global))
              return WalkResult::advance();
            return WalkResult(op->emitOpError(
                "is memory of the host, which kernels cannot access: expected "
                "constants that only linalg and loops read"));
          }
          if (!accesses(op))
            return WalkResult::advance();
          return WalkResult(op->emitOpError(
              isa<memref::LoadOp>(op)
                  ? "would read device memory on the host, which does not wait "
                    "for the device: expected what it reads to be used in "
                    "kernels only, and results to be tensors"
                  : "would access device memory on the host, and no kernel is "
                    "made of it: expected varlen operations, linalg, and loops "
                    "of loads and stores"));
        });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

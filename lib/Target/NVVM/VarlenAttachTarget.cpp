//===- VarlenAttachTarget.cpp - The chip that kernels are for -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/GPUTarget.h"
#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVM/NVVM/Utils.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENATTACHTARGET
#include "varlen/Target/NVVM/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Lets a kernel have as many registers as one CTA of its size can. Without a
/// limit ptxas makes one of its own, for more CTAs at once, and would rather
/// spill than go beyond.
static void limitRegisters(LLVM::LLVMFuncOp kernel) {
  StringRef limit = NVVM::NVVMDialect::getMaxnregAttrName();
  auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getMaxntidAttrName());
  if (!threads || kernel->hasAttr(limit))
    return;
  int64_t count = llvm::product_of(threads.asArrayRef(), int64_t{1});
  // Warps get registers 8 to a thread at a time, and a thread at most 255.
  int64_t registers = llvm::alignDown(kMultiprocessorRegisters / count, 8);
  kernel->setAttr(
      limit, Builder(kernel.getContext())
                 .getI32IntegerAttr(std::clamp<int64_t>(registers, 16, 255)));
}

/// What was said of a loop of scf is found on a branch now, under the name that
/// kept it there; on LLVM's branches it is a property.
static void annotateLoops(LLVM::LLVMFuncOp kernel) {
  constexpr StringLiteral name("llvm.loop_annotation");
  kernel.walk([&](Operation *op) {
    auto annotation = op->getAttrOfType<LLVM::LoopAnnotationAttr>(name);
    if (!annotation)
      return;
    op->removeAttr(name);
    if (auto branch = dyn_cast<LLVM::BrOp>(op))
      branch.setLoopAnnotationAttr(annotation);
    else if (auto branch = dyn_cast<LLVM::CondBrOp>(op))
      branch.setLoopAnnotationAttr(annotation);
  });
}

/// An operation that makes a tensor map, or null.
static Operation *findTensorMap(ModuleOp module) {
  LLVM::CallIntrinsicOp found;
  module.walk([&](LLVM::CallIntrinsicOp call) {
    if (!call.getIntrin().starts_with("llvm.nvvm.tensormap."))
      return WalkResult::advance();
    found = call;
    return WalkResult::interrupt();
  });
  return found;
}

/// A function of libdevice that a kernel calls, or null.
static LLVM::LLVMFuncOp findLibdeviceCall(ModuleOp module) {
  LLVM::LLVMFuncOp found;
  module.walk([&](LLVM::LLVMFuncOp function) {
    if (!function.isExternal() || !function.getName().starts_with("__nv_"))
      return WalkResult::advance();
    found = function;
    return WalkResult::interrupt();
  });
  return found;
}

/// gpu-module-to-binary links libdevice whether or not it is used, if the
/// environment names a toolkit, and complains at length where there is none.
static LogicalResult checkToolkit(ModuleOp module) {
  SmallString<128> path(NVVM::getCUDAToolkitPath());
  LLVM::LLVMFuncOp called = findLibdeviceCall(module);
  if (path.empty() && !called)
    return success();
  if (path.empty())
    return emitError(module.getLoc(), "expected CUDA_ROOT, CUDA_HOME or "
                                      "CUDA_PATH to name a CUDA toolkit, "
                                      "whose libdevice has '")
           << called.getName() << "', found none";
  llvm::sys::path::append(path, "nvvm", "libdevice", "libdevice.10.bc");
  if (llvm::sys::fs::is_regular_file(path))
    return success();
  InFlightDiagnostic error = emitError(module.getLoc(), "expected ");
  error << path
        << " in the CUDA toolkit that CUDA_ROOT, CUDA_HOME or "
           "CUDA_PATH names, found none";
  if (!called)
    error << "; PTX needs no toolkit";
  return error;
}

namespace {

struct VarlenAttachTarget
    : varlen::impl::VarlenAttachTargetBase<VarlenAttachTarget> {
  using VarlenAttachTargetBase::VarlenAttachTargetBase;

  void runOnOperation() override {
    const GPUTarget *gpu = lookupGPUTarget(chip);
    if (!gpu) {
      emitError(getOperation().getLoc())
          << "expected chip to be one of " << getGPUTargetNames() << ", got "
          << chip;
      return signalPassFailure();
    }
    // LLVM aborts on an instruction that its version of PTX lacks.
    if (ptx < gpu->minPTX || ptx > kNewestPTX) {
      emitError(getOperation().getLoc())
          << "expected ptx from " << gpu->minPTX << " to " << kNewestPTX
          << " for " << chip << " (10 times the version), got "
          << ptx.getValue();
      return signalPassFailure();
    }
    if (ptx < kMinMapPTX)
      if (Operation *op = findTensorMap(getOperation())) {
        op->emitError("expected ptx of at least ")
            << kMinMapPTX << " (10 times the version) for a kernel that makes "
            << "tensor maps, got " << ptx.getValue();
        return signalPassFailure();
      }
    if (needsToolkit && failed(checkToolkit(getOperation())))
      return signalPassFailure();
    Builder b(&getContext());
    auto target = NVVM::NVVMTargetAttr::get(&getContext(), /*optLevel=*/3,
                                            "nvptx64-nvidia-cuda", chip,
                                            "+ptx" + std::to_string(ptx));
    getOperation().walk([&](gpu::GPUModuleOp module) {
      module.setTargetsAttr(b.getArrayAttr(target));
      for (auto kernel : module.getOps<LLVM::LLVMFuncOp>()) {
        limitRegisters(kernel);
        annotateLoops(kernel);
      }
    });
  }
};

} // namespace

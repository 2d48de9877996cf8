//===- VarlenWaitForGrids.cpp - Kernels that start beside others ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Runtime/GPU.h"
#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENWAITFORGRIDS
#include "varlen/Target/NVVM/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// At the very beginning: instructions before the wait would hide little more,
/// and change what ptxas spills.
static void wait(LLVM::LLVMFuncOp kernel) {
  auto b = ImplicitLocOpBuilder::atBlockBegin(kernel.getLoc(),
                                              &kernel.getBody().front());
  for (auto kind : {NVVM::GridDepActionKind::wait,
                    NVVM::GridDepActionKind::launch_dependents})
    NVVM::GriddepcontrolOp::create(b, kind);
}

namespace {
struct VarlenWaitForGrids
    : varlen::impl::VarlenWaitForGridsBase<VarlenWaitForGrids> {
  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    if (module.lookupSymbol(VARLEN_GPU_WAITS_FOR_GRIDS))
      return;
    bool any = false;
    for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
      if (function.isExternal() ||
          !function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
        continue;
      wait(function);
      any = true;
    }
    if (!any)
      return;
    auto b =
        ImplicitLocOpBuilder::atBlockBegin(module.getLoc(), module.getBody());
    LLVM::GlobalOp::create(
        b, b.getI8Type(), /*isConstant=*/true, LLVM::Linkage::External,
        VARLEN_GPU_WAITS_FOR_GRIDS, b.getI8IntegerAttr(1), /*alignment=*/0,
        static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  }
};
} // namespace

//===- VarlenUseDeviceMemory.cpp - Host code allocates on the device ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/NVVM/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENUSEDEVICEMEMORY
#include "varlen/Target/NVVM/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

struct VarlenUseDeviceMemory
    : varlen::impl::VarlenUseDeviceMemoryBase<VarlenUseDeviceMemory> {
  void runOnOperation() override {
    rename("malloc", "varlen_gpu_allocate");
    rename("free", "varlen_gpu_free");
  }

private:
  void rename(StringRef from, StringRef to) {
    auto function = getOperation().lookupSymbol<LLVM::LLVMFuncOp>(from);
    if (!function || !function.isExternal())
      return;
    auto name = StringAttr::get(&getContext(), to);
    if (failed(SymbolTable::replaceAllSymbolUses(function, name,
                                                 getOperation()))) {
      function.emitError("cannot be renamed: expected no unknown operations, "
                         "which may use it");
      return signalPassFailure();
    }
    // Attention that was lowered on its own calls the runtime already.
    if (getOperation().lookupSymbol(name))
      function.erase();
    else
      function.setSymNameAttr(name);
  }
};

} // namespace

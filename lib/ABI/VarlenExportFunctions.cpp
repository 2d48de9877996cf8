//===- VarlenExportFunctions.cpp - The C interface of a module ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/ABI/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPORTFUNCTIONS
#include "varlen/ABI/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;

namespace {

struct VarlenExportFunctions
    : varlen::impl::VarlenExportFunctionsBase<VarlenExportFunctions> {
  void runOnOperation() override {
    Builder b(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isPublic() || function.isExternal())
        continue;
      function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                        b.getUnitAttr());
      for (BlockArgument argument : function.getArguments())
        if (isa<TensorType>(argument.getType()))
          function.setArgAttr(
              argument.getArgNumber(),
              bufferization::BufferizationDialect::kWritableAttrName,
              b.getBoolAttr(false));
      ++numExported;
    }
  }
};

} // namespace

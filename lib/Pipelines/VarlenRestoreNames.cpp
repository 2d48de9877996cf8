//===- VarlenRestoreNames.cpp - Names of C interfaces ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Pipelines/Passes.h"
#include "varlen/Pipelines/SourceName.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENRESTORENAMES
#include "varlen/Pipelines/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
struct VarlenRestoreNames
    : varlen::impl::VarlenRestoreNamesBase<VarlenRestoreNames> {
  void runOnOperation() override {
    std::optional<SymbolTable> symbols;
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      auto source = dyn_cast_or_null<StringAttr>(
          function->removeAttr(kSourceNameAttrName));
      // The conversion copies attributes to the C interface.
      if (!source || !function.getName().starts_with(kCInterfacePrefix))
        continue;
      if (!symbols)
        symbols.emplace(getOperation());
      std::string name = (kCInterfacePrefix + source.strref()).str();
      if (symbols->lookup(name) || failed(symbols->rename(function, name))) {
        function.emitOpError("cannot be named '")
            << name << "': another function is";
        return signalPassFailure();
      }
    }
  }
};
} // namespace

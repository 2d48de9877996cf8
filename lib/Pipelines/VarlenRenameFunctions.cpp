//===- VarlenRenameFunctions.cpp - Names that code calls ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Pipelines/Passes.h"
#include "varlen/Pipelines/SourceName.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/RuntimeLibcalls.h"
#include "llvm/TargetParser/Triple.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENRENAMEFUNCTIONS
#include "varlen/Pipelines/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// The names of what code may call, although no source does.
class CalledNames {
public:
  CalledNames() : library(llvm::Triple("x86_64-unknown-linux-gnu")) {
    // What LLVM makes of instructions and intrinsics, on any target.
    for (llvm::RTLIB::LibcallImpl call : llvm::RTLIB::libcall_impls())
      names.insert(llvm::RTLIB::RuntimeLibcallsInfo::getLibcallImplName(call));
  }

  bool contains(StringRef name) const {
    // Of our runtimes and of C interfaces.
    for (StringRef prefix : {"varlen_", "mgpu", "_mlir_"})
      if (name.starts_with(prefix))
        return true;
    // MLIR's conversions call memrefCopy, varlen-legalize-for-cpu the others.
    for (StringRef called : {"memrefCopy", "erf", "erff", "erfc", "erfcf"})
      if (name == called)
        return true;
    // What LLVM's optimiser takes for a function of libc or libm by its name.
    llvm::LibFunc known;
    return names.contains(name) || library.getLibFunc(name, known);
  }

private:
  llvm::StringSet<> names;
  llvm::TargetLibraryInfoImpl library;
};

struct VarlenRenameFunctions
    : varlen::impl::VarlenRenameFunctionsBase<VarlenRenameFunctions> {
  void runOnOperation() override {
    static const CalledNames called;
    std::optional<SymbolTable> symbols;
    for (auto symbol : getOperation().getOps<SymbolOpInterface>()) {
      if (!isa<func::FuncOp, memref::GlobalOp>(symbol) ||
          symbol.isDeclaration() || !called.contains(symbol.getName()))
        continue;
      if (!symbols)
        symbols.emplace(getOperation());
      StringAttr source = symbol.getNameAttr();
      // Kernels have their names from it, so PTX has to take it.
      std::string name = "source_" + source.str();
      while (symbols->lookup(name))
        name += "_";
      // Fails for uses in operations that hide what they use.
      if (failed(symbols->rename(symbol, name))) {
        symbol.emitOpError("cannot be renamed: code calls another function "
                           "of this name");
        return signalPassFailure();
      }
      if (isa<func::FuncOp>(symbol))
        symbol->setAttr(kSourceNameAttrName, source);
      ++numRenamed;
    }
  }
};
} // namespace

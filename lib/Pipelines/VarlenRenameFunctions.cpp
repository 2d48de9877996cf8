//===- VarlenRenameFunctions.cpp - Names that code calls ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SourceName.h"
#include "varlen/Pipelines/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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

  bool contains(func::FuncOp function) const {
    StringRef name = function.getName();
    // Of our runtimes and of C interfaces. Private functions with such names
    // are what passes have made for them.
    for (StringRef prefix : {"varlen_", "mgpu", "_mlir_"})
      if (function.isPublic() && name.starts_with(prefix))
        return true;
    // MLIR's conversions call memrefCopy, varlen-call-libm the others.
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
    Builder b(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || !called.contains(function))
        continue;
      if (!symbols)
        symbols.emplace(getOperation());
      StringAttr source = function.getNameAttr();
      std::string name = "source." + source.str();
      while (symbols->lookup(name))
        name += "_";
      // Fails for uses in operations that hide what they use.
      if (failed(symbols->rename(function, name))) {
        function.emitOpError("cannot be renamed: code calls another function "
                             "of this name");
        return signalPassFailure();
      }
      function->setAttr(kSourceNameAttrName, source);
      ++numRenamed;
    }
  }
};
} // namespace

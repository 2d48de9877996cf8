//===- Compiler.h - From a module to machine code ---------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TOOLS_RUN_COMPILER_H
#define VARLEN_TOOLS_RUN_COMPILER_H

#include "Options.h"
#include "varlen/ExecutionEngine/ObjectCode.h"
#include "varlen/Target/CPUTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/Support/Error.h"

#include <memory>

namespace varlen_run {

/// Prints every diagnostic as one line on stderr.
class DiagnosticPrinter : public mlir::ScopedDiagnosticHandler {
public:
  explicit DiagnosticPrinter(mlir::MLIRContext *context);
};

/// Everything that modules and pipelines may name.
mlir::DialectRegistry makeRegistry();

/// The passes that take the module to the llvm dialect for the options' device,
/// a GPU being `chip`; `isChecked` says that compiled code need not check its
/// inputs. A module that holds kernels has the host's code for them, too.
std::string getPipeline(mlir::ModuleOp module, const Options &options,
                        llvm::StringRef chip, bool isChecked);

/// Runs the passes of `pipeline`, with the IR verified after each or not at
/// all. Where a function `entry` is given, an error says which pass has changed
/// how many arguments or results it has, by which it is called.
llvm::Error runPipeline(mlir::ModuleOp module, llvm::StringRef pipeline,
                        bool verify, llvm::StringRef entry = "");

/// Compiles a module of the llvm dialect and loads the code, of which
/// `function` can be looked up; its undefined symbols are those of the host
/// (Host.h) or of the process.
llvm::Expected<std::unique_ptr<mlir::varlen::LoadedObjects>>
compile(mlir::ModuleOp module, const mlir::varlen::CPUTarget &target,
        const std::string &function);

/// An error whose message has been printed already.
class PrintedError : public llvm::ErrorInfo<PrintedError> {
public:
  // NOLINTNEXTLINE(readability-identifier-naming): LLVM's name.
  static char ID;
  void log(llvm::raw_ostream &) const override {}
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }
};

} // namespace varlen_run

#endif // VARLEN_TOOLS_RUN_COMPILER_H

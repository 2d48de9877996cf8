//===- varlen-lsp-server.cpp - mlir-lsp-server with varlen ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  llvm::cl::SetVersionPrinter(mlir::varlen::printVersion);
  // Options of LLVM's libraries are there because these are linked; the
  // server's own come later.
  for (const auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == llvm::cl::NotHidden &&
        name != "help" && name != "version")
      option->setHiddenFlag(llvm::cl::Hidden);
  mlir::DialectRegistry registry;
  mlir::varlen::registerUpstream(registry);
  mlir::varlen::registerAllDialects(registry);
  mlir::varlen::registerAllExtensions(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}

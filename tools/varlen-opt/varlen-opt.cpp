//===- varlen-opt.cpp - mlir-opt with varlen ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emit.h"
#include "varlen/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::varlen::registerUpstream(registry);
  mlir::varlen::registerAllDialects(registry);
  mlir::varlen::registerAllExtensions(registry);
  mlir::varlen::registerAllPasses();
  if (mlir::varlen::wantsHostCode(argc, argv))
    return mlir::varlen::emitHost(argc, argv, registry);
  if (mlir::varlen::wantsEmit(argc, argv))
    return mlir::varlen::emitKernels(argc, argv, registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Variable-length attention optimiser driver\n", registry));
}

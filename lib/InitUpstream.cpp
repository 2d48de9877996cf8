//===- InitUpstream.cpp - All of upstream MLIR ----------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For programs that take MLIR from its shared library, where registering all
// links nothing more and compiles fastest. See InitUpstreamShipped.cpp.
//
//===----------------------------------------------------------------------===//

#include "varlen/InitAll.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

using namespace mlir;

void varlen::registerRequiredUpstream(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
}

void varlen::registerUpstream(DialectRegistry &registry) {
  registerRequiredUpstream(registry);
  mlir::registerAllPasses();
}

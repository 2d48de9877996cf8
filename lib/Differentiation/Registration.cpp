//===- Registration.cpp - Rules of differentiation -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Differentiation/Registration.h"

using namespace mlir;

void varlen::registerDerivativeExternalModels(DialectRegistry &registry) {
  registerArithDerivativeExternalModels(registry);
  registerLinalgDerivativeExternalModels(registry);
  registerMathDerivativeExternalModels(registry);
  registerSCFDerivativeExternalModels(registry);
  registerTensorDerivativeExternalModels(registry);
  registerVarlenDerivativeExternalModels(registry);
}

//===- RuntimeFunction.cpp - Declarations of runtime functions ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Transforms/Transforms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

FailureOr<func::FuncOp> varlen::getRuntimeFunction(ModuleOp module,
                                                   Operation *user,
                                                   StringRef name,
                                                   FunctionType type) {
  if (Operation *known = SymbolTable::lookupSymbolIn(module, name)) {
    auto function = dyn_cast<func::FuncOp>(known);
    if (function && function.getFunctionType() == type)
      return function;
    InFlightDiagnostic error = user->emitError()
                               << "needs the runtime function '" << name
                               << "' of type " << type;
    error.attachNote(known->getLoc()) << "the name stands for this";
    return error;
  }
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(builder, user->getLoc(), name, type);
  function.setPrivate();
  return function;
}

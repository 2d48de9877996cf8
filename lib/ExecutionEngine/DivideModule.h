//===- DivideModule.h - Parts that are compiled at the same time *- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_EXECUTIONENGINE_DIVIDEMODULE_H
#define VARLEN_LIB_EXECUTIONENGINE_DIVIDEMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/SmallVector.h"

namespace mlir::varlen {

/// A module that is compiled by itself.
struct ModulePart {
  ModuleOp module;
  /// How many operations it has.
  int64_t size;
  /// Null for what stays in the module that was divided.
  OwningOpRef<ModuleOp> owner;
};

/// Moves functions out of `module`, in the llvm dialect, into modules of their
/// own, so that all have about as much code; none if there is little. Returns
/// `module` and these. Which function goes where depends on the module only.
llvm::SmallVector<ModulePart> divideModule(ModuleOp module);

} // namespace mlir::varlen

#endif // VARLEN_LIB_EXECUTIONENGINE_DIVIDEMODULE_H

//===- EmitLauncher.h - Launch plans as C -----------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_OPT_EMITLAUNCHER_H
#define VARLEN_OPT_EMITLAUNCHER_H

#include "varlen/Launch/LaunchPlan.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace mlir::varlen {

/// Writes the functions that load and launch the kernels of `plans`, in C99 and
/// C++, on the CUDA driver API, with `image`, the code of the kernels, in the
/// file. An error at `module` is emitted for types that C has not.
LogicalResult emitLauncher(ModuleOp module, ArrayRef<LaunchPlan> plans,
                           StringRef image, llvm::raw_ostream &os);

/// Writes what C declares of these functions.
LogicalResult emitLauncherHeader(ModuleOp module, ArrayRef<LaunchPlan> plans,
                                 llvm::raw_ostream &os);

} // namespace mlir::varlen

#endif // VARLEN_OPT_EMITLAUNCHER_H

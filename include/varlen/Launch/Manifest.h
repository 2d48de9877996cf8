//===- Manifest.h - Launch plans as JSON ------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LAUNCH_MANIFEST_H
#define VARLEN_LAUNCH_MANIFEST_H

#include "mlir/Support/LLVM.h"

namespace mlir::varlen {

struct LaunchPlan;
struct VarlenToNVVMOptions;

/// Writes `plans` as JSON (docs/kernel-abi.md), of kernels that were compiled
/// with these options.
void emitManifest(ArrayRef<LaunchPlan> plans,
                  const VarlenToNVVMOptions &pipeline, llvm::raw_ostream &os);

} // namespace mlir::varlen

#endif // VARLEN_LAUNCH_MANIFEST_H

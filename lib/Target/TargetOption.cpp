//===- TargetOption.cpp - The target that a pass is for -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Target/TargetOption.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace mlir::varlen;

const CPUTarget *varlen::getCPUTargetOrError(Operation *op,
                                             llvm::StringRef name) {
  const CPUTarget *target = lookupCPUTarget(name);
  if (!target)
    emitError(op->getLoc()) << "expected target to be one of "
                            << getCPUTargetNames() << ", got " << name;
  return target;
}

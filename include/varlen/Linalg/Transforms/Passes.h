//===- Passes.h - Passes on upstream's linalg -------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LINALG_TRANSFORMS_PASSES_H
#define VARLEN_LINALG_TRANSFORMS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::varlen {

#define GEN_PASS_DECL
#include "varlen/Linalg/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "varlen/Linalg/Transforms/Passes.h.inc"

} // namespace mlir::varlen

#endif // VARLEN_LINALG_TRANSFORMS_PASSES_H

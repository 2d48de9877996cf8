//===- Passes.h - Passes on the interfaces of functions ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_ABI_PASSES_H
#define VARLEN_ABI_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::varlen {

#define GEN_PASS_DECL
#include "varlen/ABI/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "varlen/ABI/Passes.h.inc"

} // namespace mlir::varlen

#endif // VARLEN_ABI_PASSES_H

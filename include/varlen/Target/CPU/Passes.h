//===- Passes.h - Passes for CPUs -------------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_TARGET_CPU_PASSES_H
#define VARLEN_TARGET_CPU_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::varlen {

#define GEN_PASS_DECL
#include "varlen/Target/CPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "varlen/Target/CPU/Passes.h.inc"

} // namespace mlir::varlen

#endif // VARLEN_TARGET_CPU_PASSES_H

//===- Passes.h - Passes of the varlen dialect ------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_PASSES_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::varlen {

/// What becomes of the values of a function that its backward needs.
enum class Residuals { Recompute, Save };

/// From the cotangents of results those of arguments, or from the tangents of
/// arguments those of results.
enum class DifferentiationMode { Reverse, Forward };

#define GEN_PASS_DECL
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_PASSES_H

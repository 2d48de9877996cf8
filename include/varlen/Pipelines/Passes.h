//===- Passes.h - Passes that run pipelines ---------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_PIPELINES_PASSES_H
#define VARLEN_PIPELINES_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::varlen {

/// What runs next, and so what a host has to have registered.
enum class RegistrationStage {
  /// Bufferization.
  Bufferize,
  /// Host code to the llvm dialect.
  ToLLVM,
  /// Kernels to the llvm and nvvm dialects, and a target for them.
  Kernels,
  /// Kernels to PTX.
  PTX,
};

#define GEN_PASS_DECL
#include "varlen/Pipelines/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "varlen/Pipelines/Passes.h.inc"

} // namespace mlir::varlen

#endif // VARLEN_PIPELINES_PASSES_H

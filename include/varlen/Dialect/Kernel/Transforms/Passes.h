//===- Passes.h - Passes of the kernel dialect ------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_KERNEL_TRANSFORMS_PASSES_H
#define VARLEN_DIALECT_KERNEL_TRANSFORMS_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::varlen::kernel {

#define GEN_PASS_DECL
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"

} // namespace mlir::varlen::kernel

#endif // VARLEN_DIALECT_KERNEL_TRANSFORMS_PASSES_H

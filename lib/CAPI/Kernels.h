//===- Kernels.h - Code for a GPU -------------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CAPI_KERNELS_H
#define VARLEN_LIB_CAPI_KERNELS_H

#include "Source.h"
#include "varlen/Launch/LaunchPlan.h"
#include "varlen/Pipelines/Pipelines.h"

#include <string>
#include <vector>

namespace varlen_capi {

/// Kernels with the interface of docs/kernel-abi.md.
struct CompiledKernels {
  mlir::varlen::VarlenToNVVMOptions pipeline;
  /// Plans of the public functions; types in them belong to the context of the
  /// source.
  std::vector<mlir::varlen::LaunchPlan> plans;
  std::string image;
};

/// Compiles the kernels of a module, which is lowered with it.
VarlenStatus compileKernels(Source &source, const VarlenKernelOptions &options,
                            CompiledKernels &kernels);

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_KERNELS_H

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
#include "varlen/Pipelines/Pipelines.h"

#include <string>

namespace varlen_capi {

/// What the options of a caller ask for.
VarlenStatus readOptions(const VarlenKernelOptions &options,
                         mlir::varlen::VarlenToNVVMOptions &pipeline);

/// The code in a module that is lowered.
VarlenStatus takeCode(Source &source, mlir::varlen::GPUFormat format,
                      std::string &code);

} // namespace varlen_capi

#endif // VARLEN_LIB_CAPI_KERNELS_H

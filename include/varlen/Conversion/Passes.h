//===- Passes.h - Conversions out of the varlen dialect ---------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_CONVERSION_PASSES_H
#define VARLEN_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::varlen {

#define GEN_PASS_DECL
#include "varlen/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "varlen/Conversion/Passes.h.inc"

} // namespace mlir::varlen

#endif // VARLEN_CONVERSION_PASSES_H

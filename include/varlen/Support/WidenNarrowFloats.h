//===- WidenNarrowFloats.h - Arithmetic of narrow floats in f32 -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_WIDENNARROWFLOATS_H
#define VARLEN_SUPPORT_WIDENNARROWFLOATS_H

#include "mlir/IR/Operation.h"

namespace mlir::varlen {

/// Arithmetic and functions of f16 and bf16 in f32: one extension for each
/// operand, one rounding for the result. In ExpandNarrowFloats.cpp.
LogicalResult widenNarrowFloats(Operation *root);

/// Conversions between f8E4M3FN and other floats as integer arithmetic and
/// conversions of f16 and bf16, for targets that have instructions for these.
void expandF8Conversions(Operation *root);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_WIDENNARROWFLOATS_H

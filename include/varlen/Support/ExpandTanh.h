//===- ExpandTanh.h - tanh of vectors ---------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_SUPPORT_EXPANDTANH_H
#define VARLEN_SUPPORT_EXPANDTANH_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::varlen {

/// Replaces a tanh of f32 or f64 (a number or a vector) by arithmetic and an
/// exp2, off by at most 2 units in the last place; upstream's quotient of
/// polynomials is by 4.4, and for f32 only. An approximate division (`afn`),
/// off by 2 units of a quotient below 0.45, makes it at most 1 more. Does
/// nothing for other operations.
void expandTanh(Operation *op,
                arith::FastMathFlags division = arith::FastMathFlags::none);

} // namespace mlir::varlen

#endif // VARLEN_SUPPORT_EXPANDTANH_H

//===- ExpandTanh.h - tanh of vectors ---------------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_UTILS_EXPANDTANH_H
#define VARLEN_DIALECT_VARLEN_UTILS_EXPANDTANH_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::varlen {

/// Replaces a tanh of f32 or f64 (a number or a vector) by arithmetic and an
/// exp2, off by at most 2 units in the last place; upstream's quotient of
/// polynomials is by 4.4, and for f32 only. Does nothing for other operations.
void expandTanh(Operation *op);

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_UTILS_EXPANDTANH_H

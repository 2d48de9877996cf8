//===- TransposeVectors.h - Squares of vectors ------------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_TRANSPOSEVECTORS_H
#define VARLEN_LIB_LINALG_TRANSFORMS_TRANSPOSEVECTORS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// Transposes a square of vectors, as many as each has lanes, a power of two:
/// log2(lanes) rounds, each of which swaps blocks of 1, 2, 4, ... lanes between
/// two vectors.
SmallVector<Value> transposeVectors(ImplicitLocOpBuilder &b,
                                    SmallVector<Value> rows);

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_TRANSPOSEVECTORS_H

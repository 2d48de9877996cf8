//===- WideSum.h - Sums of narrow floats in f32 -----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_WIDESUM_H
#define VARLEN_LIB_LINALG_TRANSFORMS_WIDESUM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::varlen {

/// Lets a contraction of tensors into f16 or bf16 sum in f32 and be rounded
/// once. Leaves other operations as they are.
void widenSum(linalg::LinalgOp op);

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_WIDESUM_H

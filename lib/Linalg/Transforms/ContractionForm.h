//===- ContractionForm.h - Which loop of a contraction is what --*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONFORM_H
#define VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONFORM_H

#include "varlen/Target/CPUTarget.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::varlen {

/// Which loop and operand of a contraction is what: the result's columns are
/// those of `rhs`.
struct ContractionForm {
  unsigned rows, columns, depth;
  OpOperand *lhs, *rhs, *result;
  /// Whether the columns are the last dimension of `rhs`, too.
  bool hasColumnsLast;
  /// Whether the depth is the last dimension of `rhs`, and of both factors.
  bool hasRightDepthLast, hasDepthLast;
  /// All other loops.
  SmallVector<unsigned> outer;
};

inline Type getElement(OpOperand *operand) {
  return getElementTypeOrSelf(operand->get().getType());
}
inline unsigned getElementWidth(OpOperand *operand) {
  return getElement(operand).getIntOrFloatBitWidth();
}

/// Whether the last dimension of a memref is contiguous.
inline bool isContiguous(OpOperand *operand) {
  return cast<MemRefType>(operand->get().getType()).isLastDimUnitStride();
}

/// The form of a sum of products of floats, on tensors or memrefs; failure for
/// anything else. Factors in memory may be signed bytes, which are converted.
FailureOr<ContractionForm> getContractionForm(linalg::LinalgOp op);

/// Whether the products are those of pairs of bf16 that sum in f32, as an
/// instruction of the target takes them.
bool isBF16Product(const ContractionForm &form, const CPUTarget &target);

/// The form of a product of such pairs whose factors lie in memory in pairs of
/// the contracted loop: of loops (row, column, depth, pair) in any order,
/// `pair` is of two elements and last in both factors, and the columns are the
/// loop before it in `rhs`. Failure for anything else.
FailureOr<ContractionForm> getPairForm(linalg::LinalgOp op,
                                       const CPUTarget &target);

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONFORM_H

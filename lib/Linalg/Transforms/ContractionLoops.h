//===- ContractionLoops.h - Loops around tiles of products ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg: the loops of a contraction on memrefs around
// those over rows, columns and depth, and the places of its operands.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONLOOPS_H
#define VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONLOOPS_H

#include "ContractionForm.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Target/CPUTarget.h"

namespace mlir::varlen {

class ContractionLoops {
public:
  /// Writes the loops before the operation, which the caller erases.
  void emit();

protected:
  ContractionLoops(OpBuilder &builder, linalg::LinalgOp op,
                   const ContractionForm &form, const CPUTarget &target);
  ~ContractionLoops() = default;

  /// The loops over rows, columns and depth.
  virtual void emitMatrix() = 0;
  SmallVector<Value> getIndices(OpOperand &operand);
  /// Whether the right factor is known to stay in the second-level cache.
  bool isRightSmall(bool isPanel);
  /// Vectors of so many elements of the right factor in a cache line, at least
  /// one.
  int64_t getVectorsOfLine(int64_t lanes);
  /// How far ahead a right factor in memory is fetched: not behind the rows
  /// that are known to follow it.
  Value getRowsAhead();
  /// Asks for the element of the right factor that the loops are at, which may
  /// be behind its last row.
  void prefetchRight();
  /// A scalar or vector of a factor in the type of sums.
  Value widen(Value factor);
  /// `sum` and the products of two vectors of the type of sums.
  Value multiplyAdd(Value lhs, Value rhs, Value sum);

  linalg::LinalgOp op;
  ContractionForm form;
  const CPUTarget &target;
  /// Of sums.
  FloatType element;
  ImplicitLocOpBuilder b;
  /// Extents of the loops, and the index of each that has begun.
  SmallVector<Value> extents, indices;

private:
  void emitOuter(ArrayRef<unsigned> dims);
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONLOOPS_H

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
  /// A row of the right factor's memory, or of rows that are read after it.
  struct RightRow {
    Value memory, number;
  };
  /// The row that is fetched while `row` is read. Some that follow it may be
  /// behind the last one: nothing is read.
  RightRow getRowAhead(Value row);
  /// Asks for the element of the right factor that the loops are at, in this
  /// memory.
  void prefetchRight(Value memory);
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

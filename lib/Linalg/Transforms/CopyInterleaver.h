//===- CopyInterleaver.h - Copies of rows to pairs --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg. A copy on memrefs that makes pairs of two
// rows: the result's last dimension is one of two elements, and its last but
// one is along the rows of the source. Neither is a loop of vectors.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_COPYINTERLEAVER_H
#define VARLEN_LIB_LINALG_TRANSFORMS_COPYINTERLEAVER_H

#include "varlen/Target/CPUTarget.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

class CopyInterleaver {
public:
  CopyInterleaver(OpBuilder &builder, linalg::LinalgOp op,
                  const CPUTarget &target)
      : op(op), target(target), b(op.getLoc(), builder) {}

  /// Whether the operation is such a copy.
  bool canEmit();

  /// Writes the loops before the operation, which the caller erases.
  void emit();

private:
  void emitLoops(unsigned dim);
  void emitPairs();
  /// Where the source has element `pair` of the pairs from `column` on.
  SmallVector<Value> getSourceIndices(int64_t pair, Value column);

  linalg::LinalgOp op;
  const CPUTarget &target;
  ImplicitLocOpBuilder b;
  /// The result, its last two dimensions as one, and how many those before are.
  Value result;
  unsigned outer = 0;
  /// By dimension of the result.
  SmallVector<Value> indices;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_COPYINTERLEAVER_H

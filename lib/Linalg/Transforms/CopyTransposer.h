//===- CopyTransposer.h - A copy that transposes ----------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg. A copy on memrefs whose source is contiguous
// along one loop and whose result is along another: blocks of both are read,
// transposed in registers and written as vectors. Pairs of 16-bit elements that
// stay together are elements of 32 bits.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_COPYTRANSPOSER_H
#define VARLEN_LIB_LINALG_TRANSFORMS_COPYTRANSPOSER_H

#include "varlen/Target/CPUTarget.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace mlir::varlen {

/// Whether an operation copies all of a memref into another one, dimensions in
/// any order; elements are of whole bytes, and contiguous along the last
/// dimension of each.
bool isPermutingCopy(linalg::LinalgOp op);

class CopyTransposer {
public:
  CopyTransposer(OpBuilder &builder, linalg::LinalgOp op,
                 const CPUTarget &target)
      : op(op), target(target), b(op.getLoc(), builder) {}

  /// Whether the operation is such a copy, of blocks that are worth it; it may
  /// round or extend floats on the way.
  bool canEmit();

  /// Writes the loops before the operation, which the caller erases.
  void emit();

private:
  void emitLoops(ArrayRef<unsigned> dims);
  void emitBlocks();
  /// A whole block, or as much of it as is there along the loop that is `cut`.
  void emitBlock(std::optional<unsigned> cut);
  void emitElement();
  /// Whether some elements of a vector can be read or written.
  bool canMask(Value memory);
  Value emitMask(unsigned dim);
  /// `memory` of an operand where the indices are, `plus` steps of a loop on,
  /// but not behind the last one if that is `isCut`.
  SmallVector<Value> getIndices(OpOperand *operand, unsigned dim, int64_t plus,
                                bool isCut = false);
  Value load(int64_t row, bool isCut, Value mask);
  Value convert(Value value);
  void store(Value row, int64_t column, bool isCut, Value mask);

  linalg::LinalgOp op;
  const CPUTarget &target;
  ImplicitLocOpBuilder b;
  OpOperand *input = nullptr, *init = nullptr;
  /// Of floats, between reading and writing an element, or null.
  Operation *conversion = nullptr;
  /// The loops along which the source and the result are contiguous.
  unsigned along = 0, across = 0;
  /// Rows and columns of a block, and how many elements stay together.
  int64_t size = 0, perWord = 1;
  /// Their memory, with those that stay together in one dimension.
  Value source, result;
  /// By loop.
  SmallVector<Value> extents, indices;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_COPYTRANSPOSER_H

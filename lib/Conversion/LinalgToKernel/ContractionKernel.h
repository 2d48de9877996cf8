//===- ContractionKernel.h - A contraction on tensor cores ------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-launch-linalg. A CTA owns a tile of the result. Blocks of both
// factors along the contracted loop come through a ring of shared memory, and
// tiles are multiplied by operations of the kernel dialect.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_CONVERSION_LINALGTOKERNEL_CONTRACTIONKERNEL_H
#define VARLEN_LIB_CONVERSION_LINALGTOKERNEL_CONTRACTIONKERNEL_H

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::varlen {

/// Emits the kernel of a contraction of f16, bf16 or f32 into f32, on memrefs.
class ContractionKernel {
public:
  /// `start` is what the result begins as; null: what it holds.
  ContractionKernel(linalg::LinalgOp op, Value start)
      : op(op), start(start), b(op.getLoc(), op), index{b} {}

  /// Whether the operation has tiles: one loop of rows, of columns and
  /// contracted, the others of a batch; operands that are contiguous along one
  /// of these three, of which the extents are static multiples of 16.
  bool plan();
  /// The launch, in front of the operation.
  void emit(const Twine &name);

private:
  /// A matrix in memory, as `rows x heads x size`: the columns of a tile are
  /// those of a head.
  struct Matrix {
    OpOperand *operand = nullptr;
    unsigned rowLoop = 0, columnLoop = 0;
    /// Extents of a tile.
    int64_t rows = 0, columns = 0;
    /// In the kernel, of its index in the batch.
    Value memory;
  };
  bool findMatrix(Matrix &matrix, ArrayRef<unsigned> loops);
  Value emitView(const Matrix &matrix);
  RankedTensorType getTileType(const Matrix &matrix);
  /// The rows of a tile: of a factor, at a block of the contracted loop.
  kernel::RowsOperands rowsOf(const Matrix &matrix, Value block = {});
  Value emitStart();
  Value emitProduct(ValueRange slot, Value sum);
  void emitTile();

  linalg::LinalgOp op;
  Value start;
  ImplicitLocOpBuilder b;
  IndexBuilder index;
  SmallVector<unsigned> batch;
  unsigned m = 0, n = 0, k = 0;
  Matrix lhs, rhs, result;
  /// Extents of a tile along the loops m, n and k.
  int64_t tileM = 0, tileN = 0, tileK = 0;
  /// Extents of all loops; indices of the batch, and of tiles along m and n.
  SmallVector<Value> extents, at;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_CONVERSION_LINALGTOKERNEL_CONTRACTIONKERNEL_H

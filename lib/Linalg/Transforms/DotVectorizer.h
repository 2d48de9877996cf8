//===- DotVectorizer.h - Contractions along memory --------------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg. A contraction on memrefs whose contracted
// loop is contiguous in both factors: a tile of rows and columns at a time, of
// which each element is a vector of partial sums, added up at the end. Nothing
// is copied or transposed, which pays where rows are few.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_DOTVECTORIZER_H
#define VARLEN_LIB_LINALG_TRANSFORMS_DOTVECTORIZER_H

#include "ContractionLoops.h"

namespace mlir::varlen {

class DotVectorizer : public ContractionLoops {
public:
  DotVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                const ContractionForm &form, const CPUTarget &target);

  /// Whether the operation has this form, and the contracted loop whole
  /// vectors.
  bool canEmit();

private:
  void emitMatrix() override;
  void emitTile(Value row, int64_t numRows, Value column);
  void prefetch(const RightRow &first);
  Value addLanes(ArrayRef<Value> vectors);
  Value load(OpOperand &operand);
  /// `sum` and the products of two vectors, which have as many elements as the
  /// registers of factors hold.
  Value addProducts(Value sum, Value lhs, Value rhs);

  /// Whether products are those of pairs of bf16.
  bool isPaired;
  /// Elements of a factor that a step takes.
  int64_t lanes;
  /// Rows and columns of a tile.
  int64_t tileSize;
  /// Whether the right factor need not be asked for.
  bool isCached;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_DOTVECTORIZER_H

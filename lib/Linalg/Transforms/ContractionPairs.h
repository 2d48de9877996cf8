//===- ContractionPairs.h - Contractions of pairs of bf16 -------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of varlen-vectorize-linalg: contractions of bf16 in registers whose step
// is two elements of the contracted loop, which one instruction multiplies and
// adds to sums in f32. A right factor in panels lies in memory in such pairs;
// of one that is read where it is, two rows are interleaved. Both add up the
// same pairs in the same order.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONPAIRS_H
#define VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONPAIRS_H

#include "ContractionVectorizer.h"

namespace mlir::varlen {

/// Of factors as they are, whose columns are contiguous.
class PairVectorizer : public ContractionVectorizer {
public:
  PairVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                 const ContractionForm &form, const CPUTarget &target,
                 int64_t depthStep = 2)
      : ContractionVectorizer(builder, op, form, target, depthStep) {}

protected:
  /// A pair, or a vector of them, as integers; and the other way.
  Value toWords(Value pairs);
  Value toFactor(Value words) override;
  Value loadStep(OpOperand &operand) override;
  Value loadSteps(OpOperand &operand) override;

private:
  std::pair<Value, Value> loadBoth(function_ref<Value()> load);
  Value loadRight(Value mask) override;
  Value addProducts(Value lhs, Value rhs, Value sum) override;
};

/// Of factors in memory as getPairForm describes them.
class PackedPairVectorizer : public PairVectorizer {
public:
  PackedPairVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                       const ContractionForm &form, const CPUTarget &target)
      : PairVectorizer(builder, op, form, target, /*depthStep=*/1) {}

  /// Whether pairs are contiguous, and in the right factor those of columns.
  bool canEmit();

private:
  void emitMatrix() override;
  Value loadRight(Value mask) override;
  Value loadStep(OpOperand &operand) override;
  Value emitRightMask(Value columns) override;

  /// The right factor, each row of pairs as one dimension.
  Value right;
};

/// The vectorizer of a contraction whose columns are contiguous in memory; null
/// for any other.
std::unique_ptr<ContractionVectorizer>
createContractionVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                            const ContractionForm &form,
                            const CPUTarget &target);

} // namespace mlir::varlen

#endif // VARLEN_LIB_LINALG_TRANSFORMS_CONTRACTIONPAIRS_H

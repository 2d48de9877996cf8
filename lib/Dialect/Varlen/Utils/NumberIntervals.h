//===- NumberIntervals.h - Intervals of the numbers of a region -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integers have bounds of the type of positions, floats of their own type. That
// integers do not wrap around, and what is known of them of any block, follows
// from upstream's ranges of integers. Floats carry how large they are at most,
// so that none overflows: rounding keeps the order of results, and intervals of
// operations that do are exact.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIALECT_VARLEN_UTILS_NUMBERINTERVALS_H
#define VARLEN_LIB_DIALECT_VARLEN_UTILS_NUMBERINTERVALS_H

#include "varlen/Dialect/Varlen/Utils/ScoreIntervals.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir::varlen {

/// Captures whose numbers are larger may be anything.
constexpr double kMostOfCapture = 0x1p64;

class NumberIntervals {
public:
  explicit NumberIntervals(IndexBuilder &index) : index(index) {}

  /// The position `argument`, at least `least` in any block.
  void setPosition(Value argument, const NumberRange &range, int64_t least);
  void setCapture(Value argument, const NumberRange &range);

  /// Emits the interval of the result of an operation; false if there is none.
  /// A select has a condition that may be true, or false; null if it may be.
  bool emit(Operation &op, Value mayBeTrue, Value mayBeFalse);
  std::optional<NumberRange> get(Value number) const;

  /// Notes what is known of the results in any block.
  void inferRange(Operation &op);
  /// The value that an integer has in any block; none if there are several.
  std::optional<APInt> getConstant(Value integer) const;
  bool isNonNegative(Value integer) const;

private:
  /// The ranges of all operands of an operation; none if one of them may be
  /// anything.
  SmallVector<NumberRange> getOperands(Operation &op) const;
  std::optional<NumberRange> computeInteger(Operation &op);
  std::optional<NumberRange> computeFloat(Operation &op);
  NumberRange multiply(const NumberRange &a, const NumberRange &b,
                       bool isNonNegative, bool isNonPositive);
  NumberRange choose(const NumberRange &a, const NumberRange &b,
                     Value mayBeTrue, Value mayBeFalse);
  NumberRange remainder(const NumberRange &a, int64_t divisor);
  std::optional<NumberRange> truncateToInteger(const NumberRange &a,
                                               IntegerType type);

  ConstantIntRanges getRange(Value integer) const;
  /// Whether the result in 128 bits of what may wrap around, or of a cast,
  /// might be none of the type of `op`.
  bool mayOverflow(Operation &op) const;

  // Integers of the type of positions, or floats.
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  Value mul(Value x, Value y);
  // Floats, rounded as those of the region are.
  template <typename Op> Value make(Value lhs, Value rhs) {
    return index.b.createOrFold<Op>(lhs, rhs);
  }
  Value negate(Value x);
  Value constant(Type type, double value);

  IndexBuilder &index;
  llvm::DenseMap<Value, NumberRange> intervals;
  llvm::DenseMap<Value, ConstantIntRanges> ranges;
  /// No float is farther from 0.
  llvm::DenseMap<Value, double> most;
};

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIALECT_VARLEN_UTILS_NUMBERINTERVALS_H

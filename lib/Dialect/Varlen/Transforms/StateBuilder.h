//===- StateBuilder.h - The state of queries as linalg ----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_STATEBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_STATEBUILDER_H

#include "ScoreReference.h"
#include "StepBuilder.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

namespace mlir::varlen {

/// What changes the state of queries: steps, and unions of states.
struct StateBuilder : StepBuilder {
  template <typename Op>
  StateBuilder(Op op, bool isRounded, OpBuilder &builder)
      : StepBuilder(op, op.getOrientation(), op.getM(), builder),
        isRounded(isRounded),
        reference(op.getScale().convertToDouble(), compute, isRounded) {}

  /// Whether a step rounds probabilities. The weight of the first key of all
  /// must be 1 then: a row that sees one key is that key's value, as it is.
  template <typename Step> static bool isRoundedIn(Step step) {
    Type ofV = elementOf(step.getV());
    return ofV != elementOf(step.getM()) && !isQuantisedElement(ofV);
  }

  /// The largest of `scores` for each query, a statistic like `m`. Reduced
  /// apart from earlier maxima: what begins with -inf is known to be no NaN.
  Value largest(Value scores, Value m);
  /// The same, or `m` where that is larger, in the place of `m`.
  Value raise(Value m, Value scores);

  /// What acc and l are relative to.
  struct Reference {
    Value m, factor, minus;
  };
  /// The larger of the maxima `m` and `other`, or `m` if that is at most
  /// `threshold` in units of log2 below it, and what that implies.
  Reference getReference(Value m, Value other, int64_t threshold = 0);
  /// What acc and l that are relative to `m` change by.
  Value rescaling(Value m, const Reference &to);
  /// Part of a state, times a factor of each query, in its place.
  Value multiply(Value tile, Value factor);

  // Sums of a block.

  /// Beside the sum of thousands of keys the term of one is small, and loses
  /// places in it. So a block's are summed apart, unless p, rounded, has lost
  /// more than that, or tensor cores keep the sum in their accumulators.
  bool isApart() { return kq && !isRounded; }
  /// What the sums of a block begin with, and the state with the block in it.
  Value beginSum(Value before, Value alpha);
  Value endSum(Value before, Value alpha, Value sum);
  /// exp2(c * s - r(m)).
  Value weights(Value scores, Value factor, Value minus);

  bool isRounded;
  ScoreReference reference;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_STATEBUILDER_H

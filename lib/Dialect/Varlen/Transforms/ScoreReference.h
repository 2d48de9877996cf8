//===- ScoreReference.h - What scores are taken relative to -----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scalar arithmetic between a row's scores and its softmax: what the
// exponentials of a row are relative to, its lse at the end, and what its
// gradients need of that.
//
// exp2(c * s - r) takes one fused multiply-add, but only while the rounding of
// r is small: from |r| = 2^24 on (f32) it may be off by more than 1, and by
// hundreds for scores that are still far from overflow. Rows with such a
// maximum m use the power of two next to c in place of c: c2 * m is exact, so
// the exponential of the maximum is 1. Other scores of such a row lie so far
// below, or so near to each other in units of their last place, that this
// changes them by less than the rounding of the products that they are.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_SCOREREFERENCE_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_SCOREREFERENCE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {

/// Emits scalars of the compute type of an attention. `m` is the largest score
/// of a row, before the scale, or somewhat less (emitKept).
class ScoreReference {
public:
  /// `isRounded`: probabilities are rounded to a narrower type.
  ScoreReference(double scale, FloatType compute, bool isRounded)
      : scale(scale), compute(compute), isRounded(isRounded) {}

  /// `m`, or `larger`, which is not less, if that is more than `threshold` in
  /// units of log2 above it.
  Value emitKept(ImplicitLocOpBuilder &b, Value m, Value larger,
                 int64_t threshold) const;
  /// What the scores of a row are multiplied by: c, or the power of two.
  Value emitFactor(ImplicitLocOpBuilder &b, Value m) const;
  /// What is subtracted then. An integer, if probabilities are not rounded: to
  /// rescale them by a difference of two of these rounds nothing.
  Value emitReference(ImplicitLocOpBuilder &b, Value m, Value factor) const;

  /// What multiplies acc in the end, and lse.
  struct Result {
    Value factor, lse;
  };
  /// What results from the state of a row, with a sink if that is not null:
  /// -inf is none.
  Result emitResult(ImplicitLocOpBuilder &b, Value m, Value l,
                    Value sink) const;

private:
  double scale;
  FloatType compute;
  bool isRounded;
};

/// The logarithms that probabilities are recomputed from: natural ones, or, if
/// these are rounded anyway, in units of log2, which takes one operation a
/// score less.
class RecomputedReference {
public:
  RecomputedReference(FloatType compute, bool isNatural)
      : compute(compute), isNatural(isNatural) {}

  /// lse as `varlen.online_attn_grad` wants it: +inf of a row without a key.
  /// Where it is so large that the scores of its keys are not exact to 1, it is
  /// less by the width of what cannot be told apart.
  Value emitLse(ImplicitLocOpBuilder &b, Value lse) const;
  /// delta of a row of which `product` is that of dout and out, and dlse may be
  /// null: 0 if it has no key, whatever else it has.
  Value emitDelta(ImplicitLocOpBuilder &b, Value lse, Value product,
                  Value dlse) const;
  /// What a row of such an lse subtracts from the gradient of a sink: the
  /// weight of the sink times delta. Nothing of a sink of -inf, whatever delta
  /// is.
  Value emitSinkTerm(ImplicitLocOpBuilder &b, Value sink, Value lse,
                     Value delta) const;

private:
  /// `value`, or `none` if the row of that lse has no key.
  Value unlessUnseen(ImplicitLocOpBuilder &b, Value lse, Value value,
                     double none) const;
  /// In the units of lse; at most the largest number.
  Value convert(ImplicitLocOpBuilder &b, Value natural) const;

  FloatType compute;
  bool isNatural;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_SCOREREFERENCE_H

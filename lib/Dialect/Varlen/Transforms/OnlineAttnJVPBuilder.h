//===- OnlineAttnJVPBuilder.h - Tangents of a step as linalg ----*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNJVPBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNJVPBUILDER_H

#include "StateBuilder.h"
#include "StepPanel.h"

namespace mlir::varlen {

/// The step of online softmax with its tangents; emit() returns the new acc, m,
/// l, tacc, tl and tl_rounded, if the step has that.
///
/// Written by hand, but for score regions, which rules of the forward mode
/// differentiate. These rules would give what sums are relative to a tangent,
/// which cancels in the end, and would not know that hidden keys have none.
struct OnlineAttnJVPBuilder : StateBuilder {
  OnlineAttnJVPBuilder(OnlineAttnJVPOp step, OpBuilder &builder)
      : StateBuilder(step, isRoundedIn(step), builder), step(step) {}
  SmallVector<Value> emit();
  /// The step in register blocks of keys.
  SmallVector<Value> emitPanel(CPUScheduleAttr schedule);

private:
  /// Scores, or probabilities, and their tangents.
  struct Tiles {
    Value own, tangent;
  };
  /// q k', and tq k' + q tk', written to these.
  Tiles multiply(const Tiles &queries, const Tiles &keys, const Tiles &scores);
  /// The scores that `at`, the step or a part of it, makes of products, before
  /// the scale.
  Tiles scoreTiles(OnlineAttnJVPOp at, const Tiles &products);
  /// Scores with -inf, and tangents with 0, where a key is hidden.
  Tiles hideTiles(OnlineAttnJVPOp at, const Tiles &scores, Tiles inits = {});
  /// p * ts, of tangents before the scale.
  Value weighTangents(Value p, Value tangents);
  /// Adds p * ts to `sum` as the second product reads them: `read`, of `kept`,
  /// which is `exact` times the factor of the score region of `at`. What the
  /// factor changes of them is part of tacc and of out alike.
  Value sumAsRead(OnlineAttnJVPOp at, Value exact, Value kept, Value read,
                  Value sum);
  /// The scores of a register block, their tangents, and the largest score of
  /// each query so far.
  Values emitRegisterBlock(StepPanel &panel, const StepPanel::RegisterBlock &at,
                           ValueRange state);
  /// p and p * ts of a group, as the second products read them, their sums,
  /// where they are rounded both as they are, in place of the scores, and
  /// tl_rounded.
  Values emitWeights(StepPanel &panel, const StepPanel::Group &group,
                     const Reference &to, ValueRange state);

  OnlineAttnJVPOp step;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNJVPBUILDER_H

//===- OnlineAttnGradBuilder.h - Gradients of a step as linalg  -*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNGRADBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNGRADBUILDER_H

#include "GradientStepBuilder.h"
#include "StepPanel.h"

namespace mlir::varlen {

/// The gradients of a step of online softmax; emit() returns the new dq, dk, dv
/// and gradients of captures that are no tables, as far as asked for.
struct OnlineAttnGradBuilder : GradientStepBuilder<OnlineAttnGradOp> {
  using GradientStepBuilder::GradientStepBuilder;
  SmallVector<Value> emit();
  /// The gradients in register blocks of keys.
  SmallVector<Value> emitPanel(CPUScheduleAttr schedule);

private:
  /// ds, as probabilities, of p and of that times the factor of the score
  /// region, the same value without one; adds the gradients of captures to
  /// `dcaptures`.
  Value scoreGradients(Value products, Value p, Value pTimesFactor, Value dp,
                       bool hides, SmallVectorImpl<Value> &dcaptures,
                       Value init = {});
  /// Pulls the cotangents of scores back through the score region to arguments
  /// of it, or to lookups in it, and writes what these get to `inits`.
  SmallVector<Value> pullBack(Value products, Value dscores, ValueRange sources,
                              ValueRange inits);
  /// p and ds of a register block, and the gradients of captures.
  Values emitRegisterBlock(StepPanel &panel, const StepPanel::RegisterBlock &at,
                           ValueRange state);
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNGRADBUILDER_H

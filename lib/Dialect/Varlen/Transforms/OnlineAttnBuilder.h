//===- OnlineAttnBuilder.h - A step of online softmax as linalg  -*- C++
//-*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNBUILDER_H
#define VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNBUILDER_H

#include "StateBuilder.h"
#include "StepPanel.h"

namespace mlir::varlen {

/// The step of online softmax; emit() returns the new acc, m and l.
struct OnlineAttnBuilder : StateBuilder {
  OnlineAttnBuilder(OnlineAttnOp step, bool skipsRescaling, OpBuilder &builder)
      : StateBuilder(step, isRoundedIn(step), builder), step(step),
        skipsRescaling(skipsRescaling) {}
  SmallVector<Value> emit();
  /// The step in register blocks of keys.
  SmallVector<Value> emitPanel(CPUScheduleAttr schedule);

private:
  /// The scores of a register block, and the largest one of each query so far.
  Values emitRegisterBlock(StepPanel &panel, const StepPanel::RegisterBlock &at,
                           ValueRange state);
  /// p of a group, as the second product reads it, and its sum.
  Values emitWeights(StepPanel &panel, const StepPanel::Group &group,
                     const Reference &to, Value scores, Value p, Value sum);
  /// The accumulator times `alpha`.
  Value rescaleAcc(Value alpha);

  OnlineAttnOp step;
  bool skipsRescaling;
};

} // namespace mlir::varlen

#endif // VARLEN_DIALECT_VARLEN_TRANSFORMS_ONLINEATTNBUILDER_H

//===- Models.h - External models made from functions -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rule is an overload of `pullBack`, or of `getSlope` where the operation is
// a function of one number, in this namespace: the models find it by the type
// of its builder.
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIFFERENTIATION_MODELS_H
#define VARLEN_LIB_DIFFERENTIATION_MODELS_H

#include "varlen/Interfaces/VJPInterface.h"

namespace mlir::varlen {

/// `pullBack(op, builder)` is the rule.
template <typename OpTy>
struct PullBackModel
    : VJPOpInterface::ExternalModel<PullBackModel<OpTy>, OpTy> {
  LogicalResult buildVJP(Operation *op, VJPBuilder &b) const {
    return pullBack(cast<OpTy>(op), b);
  }
};

/// `getSlope(op, builder)` is the derivative of the result by the operand.
template <typename OpTy>
struct SlopeModel : VJPOpInterface::ExternalModel<SlopeModel<OpTy>, OpTy> {
  LogicalResult buildVJP(Operation *op, VJPBuilder &b) const {
    Value slope = getSlope(cast<OpTy>(op), b);
    b.accumulate(op->getOperand(0),
                 b.mul(b.getCotangent(op->getResult(0)), slope));
    return success();
  }
};

/// The derivative is 0 wherever there is one.
template <typename OpTy>
struct StepModel : VJPOpInterface::ExternalModel<StepModel<OpTy>, OpTy> {
  bool isDifferentiable(Operation *, OpOperand &) const { return false; }
  LogicalResult buildVJP(Operation *, VJPBuilder &) const { return success(); }
};

template <template <typename> typename Model, typename... OpTys>
void attach(MLIRContext &context) {
  (OpTys::template attachInterface<Model<OpTys>>(context), ...);
}

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIFFERENTIATION_MODELS_H

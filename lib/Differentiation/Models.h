//===- Models.h - External models made from functions -----------*- C++ -*-===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rule is an overload of a function in this namespace, which the models find
// by the type of its builder. Both modes have one rule where the Jacobian of an
// operation is diagonal: `visitPartials`, or `getSlope` of a function of one
// number. Otherwise `pullBack` is the rule of the reverse mode and
// `pushForward` that of the forward mode, but for linear operations, which are
// applied to tangents themselves (`LinearModel`).
//
//===----------------------------------------------------------------------===//

#ifndef VARLEN_LIB_DIFFERENTIATION_MODELS_H
#define VARLEN_LIB_DIFFERENTIATION_MODELS_H

#include "varlen/Interfaces/JVPInterface.h"
#include "varlen/Interfaces/VJPInterface.h"

namespace mlir::varlen {

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

/// Is called for each operand that the result of an elementwise operation
/// changes smoothly with. `times` makes of a cotangent of the result, or of a
/// tangent of the operand, its product with the partial derivative.
using VisitPartial = llvm::function_ref<void(
    Value operand, llvm::function_ref<Value(Value)> times)>;

/// `visitPartials(op, builder, visit)` is the rule.
template <typename OpTy> struct PartialsRule {
  static void visit(OpTy op, DerivativeBuilder &b, VisitPartial visit) {
    visitPartials(op, b, visit);
  }
};

/// `getSlope(op, builder)` is the derivative of the result by the operand.
template <typename OpTy> struct SlopeRule {
  static void visit(OpTy op, DerivativeBuilder &b, VisitPartial visit) {
    visit(op->getOperand(0),
          [&](Value t) { return b.mul(t, getSlope(op, b)); });
  }
};

template <template <typename> typename Rule, typename OpTy>
struct ElementwiseVJPModel
    : VJPOpInterface::ExternalModel<ElementwiseVJPModel<Rule, OpTy>, OpTy> {
  LogicalResult buildVJP(Operation *op, VJPBuilder &b) const {
    Value cotangent = b.getCotangent(op->getResult(0));
    Rule<OpTy>::visit(
        cast<OpTy>(op), b,
        [&](Value operand, llvm::function_ref<Value(Value)> times) {
          if (b.isVaried(operand))
            b.accumulate(operand, times(cotangent));
        });
    return success();
  }
};

template <template <typename> typename Rule, typename OpTy>
struct ElementwiseJVPModel
    : JVPOpInterface::ExternalModel<ElementwiseJVPModel<Rule, OpTy>, OpTy> {
  LogicalResult buildJVP(Operation *op, JVPBuilder &b) const {
    Value sum;
    Rule<OpTy>::visit(
        cast<OpTy>(op), b,
        [&](Value operand, llvm::function_ref<Value(Value)> times) {
          Value tangent = b.getTangent(operand);
          if (!tangent)
            return;
          Value term = times(tangent);
          sum = sum ? b.add(sum, term) : term;
        });
    b.setTangent(op->getResult(0), sum);
    return success();
  }
};

/// Attaches the rule of elementwise operations in both modes.
template <template <typename> typename Rule, typename... OpTys>
void attachElementwise(MLIRContext &context) {
  (OpTys::template attachInterface<ElementwiseVJPModel<Rule, OpTys>>(context),
   ...);
  (OpTys::template attachInterface<ElementwiseJVPModel<Rule, OpTys>>(context),
   ...);
}

/// The derivative is 0 wherever there is one.
template <typename OpTy>
struct StepVJPModel : VJPOpInterface::ExternalModel<StepVJPModel<OpTy>, OpTy> {
  bool isDifferentiable(Operation *, OpOperand &) const { return false; }
  LogicalResult buildVJP(Operation *, VJPBuilder &) const { return success(); }
};
template <typename OpTy>
struct StepJVPModel : JVPOpInterface::ExternalModel<StepJVPModel<OpTy>, OpTy> {
  bool isDifferentiable(Operation *, OpOperand &) const { return false; }
  LogicalResult buildJVP(Operation *, JVPBuilder &) const { return success(); }
};

//===----------------------------------------------------------------------===//
// Other operations
//===----------------------------------------------------------------------===//

/// `pullBack(op, builder)` is the rule.
template <typename OpTy>
struct PullBackModel
    : VJPOpInterface::ExternalModel<PullBackModel<OpTy>, OpTy> {
  LogicalResult buildVJP(Operation *op, VJPBuilder &b) const {
    return pullBack(cast<OpTy>(op), b);
  }
};

/// `pushForward(op, builder)` is the rule.
template <typename OpTy>
struct PushForwardModel
    : JVPOpInterface::ExternalModel<PushForwardModel<OpTy>, OpTy> {
  LogicalResult buildJVP(Operation *op, JVPBuilder &b) const {
    return pushForward(cast<OpTy>(op), b);
  }
};

/// The result is linear in all operands of floats together: its tangent is the
/// operation on theirs.
template <typename OpTy>
struct LinearModel : JVPOpInterface::ExternalModel<LinearModel<OpTy>, OpTy> {
  LogicalResult buildJVP(Operation *op, JVPBuilder &b) const {
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) {
          return hasCotangent(operand.getType()) ? b.getTangentOrZero(operand)
                                                 : operand;
        });
    Operation *tangent = b.clone(*op);
    tangent->setOperands(operands);
    b.setTangent(op->getResult(0), tangent->getResult(0));
    return success();
  }
};

template <template <typename> typename Model, typename... OpTys>
void attach(MLIRContext &context) {
  (OpTys::template attachInterface<Model<OpTys>>(context), ...);
}

} // namespace mlir::varlen

#endif // VARLEN_LIB_DIFFERENTIATION_MODELS_H

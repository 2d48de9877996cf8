//===- LinalgRules.cpp - Rules of the linalg dialect ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GenericForwardRule.h"
#include "GenericRule.h"
#include "Models.h"
#include "varlen/Differentiation/Registration.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::varlen;

/// Whether the operation reads the elements of an operand.
static bool readsElements(Operation *op, OpOperand &operand) {
  return hasCotangent(operand.get().getType()) &&
         cast<linalg::LinalgOp>(op).payloadUsesValueFromOperand(&operand);
}

/// Applies a rule of linalg.generic to what an operation is as one.
template <typename Rule, typename Builder>
static LogicalResult applyRule(Operation *op, Builder &b) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return Rule(generic, op->getResults(), b).run();
  IRRewriter rewriter(b);
  auto copy = cast<linalg::LinalgOp>(rewriter.clone(*op));
  FailureOr<linalg::GenericOp> generic =
      linalg::generalizeNamedOp(rewriter, copy);
  if (failed(generic))
    return op->emitError() << "'" << op->getName()
                           << "' cannot be written as a linalg.generic";
  b.setInsertionPoint(*generic);
  LogicalResult status = Rule(*generic, op->getResults(), b).run();
  b.setInsertionPointAfter(*generic);
  rewriter.eraseOp(*generic);
  return status;
}

namespace {
/// All structured operations, by what they are as a linalg.generic.
template <typename OpTy>
struct LinalgVJPModel
    : VJPOpInterface::ExternalModel<LinalgVJPModel<OpTy>, OpTy> {
  bool isDifferentiable(Operation *op, OpOperand &operand) const {
    return readsElements(op, operand);
  }
  LogicalResult buildVJP(Operation *op, VJPBuilder &b) const {
    return applyRule<GenericRule>(op, b);
  }
};

/// The same, but for contractions, which are linear in each of their factors.
template <typename OpTy>
struct LinalgJVPModel
    : JVPOpInterface::ExternalModel<LinalgJVPModel<OpTy>, OpTy> {
  bool isDifferentiable(Operation *op, OpOperand &operand) const {
    return readsElements(op, operand);
  }
  LogicalResult buildJVP(Operation *op, JVPBuilder &b) const {
    auto contraction = cast<linalg::LinalgOp>(op);
    if (!linalg::isaContractionOpInterface(contraction))
      return applyRule<GenericForwardRule>(op, b);
    OpOperand *init = contraction.getDpsInitOperand(0);
    Value sum = b.getTangent(init->get());
    for (OpOperand *factor : contraction.getDpsInputOperands()) {
      Value tangent = b.getTangent(factor->get());
      if (!tangent)
        continue;
      Value before = sum ? sum : b.zerosLike(init->get());
      Operation *product = b.clone(*op);
      product->setOperand(factor->getOperandNumber(), tangent);
      product->setOperand(init->getOperandNumber(), before);
      sum = product->getResult(0);
    }
    b.setTangent(op->getResult(0), sum);
    return success();
  }
};
} // namespace

void varlen::registerLinalgDerivativeExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    // What the rules are written in.
    context->loadDialect<arith::ArithDialect, math::MathDialect,
                         scf::SCFDialect, tensor::TensorDialect>();
    attach<LinalgVJPModel,
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
           >(*context);
    attach<LinalgJVPModel,
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
           >(*context);
  });
}

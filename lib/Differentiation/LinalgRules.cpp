//===- LinalgRules.cpp - Rules of the linalg dialect ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

namespace {
/// All structured operations, by what they are as a linalg.generic.
template <typename OpTy>
struct LinalgRule : VJPOpInterface::ExternalModel<LinalgRule<OpTy>, OpTy> {
  bool isDifferentiable(Operation *op, OpOperand &operand) const {
    return hasCotangent(operand.get().getType()) &&
           cast<linalg::LinalgOp>(op).payloadUsesValueFromOperand(&operand);
  }

  LogicalResult buildVJP(Operation *op, VJPBuilder &b) const {
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return GenericRule(generic, op->getResults(), b).run();
    IRRewriter rewriter(b);
    auto copy = cast<linalg::LinalgOp>(rewriter.clone(*op));
    FailureOr<linalg::GenericOp> generic =
        linalg::generalizeNamedOp(rewriter, copy);
    if (failed(generic))
      return op->emitError() << "'" << op->getName()
                             << "' cannot be written as a linalg.generic";
    b.setInsertionPoint(*generic);
    LogicalResult status = GenericRule(*generic, op->getResults(), b).run();
    b.setInsertionPointAfter(*generic);
    rewriter.eraseOp(*generic);
    return status;
  }
};
} // namespace

void varlen::registerLinalgVJPExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    // What the rules are written in.
    context->loadDialect<arith::ArithDialect, math::MathDialect,
                         scf::SCFDialect, tensor::TensorDialect>();
    attach<LinalgRule,
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
           >(*context);
  });
}

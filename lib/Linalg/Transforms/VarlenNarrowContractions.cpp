//===- VarlenNarrowContractions.cpp - Factors as narrow as they were ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionForm.h"
#include "varlen/Linalg/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENNARROWCONTRACTIONS
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// The tensor that `value` is an extension of, element by element; `value` if
/// it is none.
static Value getExtended(Value value) {
  if (auto op = value.getDefiningOp<arith::ExtFOp>())
    return op.getIn();
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      !op.isAllParallelLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return value;
  auto extension = op.getBody()
                       ->getTerminator()
                       ->getOperand(0)
                       .getDefiningOp<arith::ExtFOp>();
  return extension && extension.getIn() == op.getBody()->getArgument(0)
             ? op.getDpsInputs().front()
             : value;
}

/// Whether factors are extended, multiplied and summed, and nothing else
/// happens to them.
static bool isPlain(linalg::LinalgOp op) {
  return !isa<linalg::GenericOp>(op) ||
         llvm::all_of(*op.getBlock(),
                      llvm::IsaPred<arith::ExtFOp, arith::MulFOp, arith::AddFOp,
                                    linalg::YieldOp>);
}

namespace {
struct VarlenNarrowContractions
    : varlen::impl::VarlenNarrowContractionsBase<VarlenNarrowContractions> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureTensorSemantics() && isPlain(op) &&
          succeeded(getContractionForm(op)))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      narrow(op, rewriter);
  }

private:
  void narrow(linalg::LinalgOp op, IRRewriter &rewriter) {
    SmallVector<Value> extended = op.getDpsInputs();
    SmallVector<Value> factors = llvm::map_to_vector(extended, getExtended);
    if (factors == extended ||
        getElementTypeOrSelf(factors[0]) != getElementTypeOrSelf(factors[1]))
      return;
    rewriter.setInsertionPoint(op);
    // Whose factors are extended to the type of the sum.
    rewriter.replaceOpWithNewOp<linalg::ContractOp>(op, op->getResultTypes(),
                                                    factors, op.getDpsInits(),
                                                    op.getIndexingMaps());
    // A tensor may be both factors.
    for (Value value :
         llvm::SmallSetVector<Value, 2>(extended.begin(), extended.end()))
      if (Operation *source = value.getDefiningOp();
          source && isOpTriviallyDead(source))
        rewriter.eraseOp(source);
    ++numNarrowed;
  }
};
} // namespace

//===- VarlenDecomposeLinalg.cpp - Operations that stand for several ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Linalg/Transforms/Passes.h"
#include "varlen/Support/ExpandIntegerPower.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENDECOMPOSELINALG
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Writes powers whose exponent is an integer as products, or if that is not
/// constant as powers of floats: LLVM would call a function of compiler-rt.
/// Scores are expanded with attention.
static LogicalResult expandPowers(func::FuncOp function) {
  SmallVector<Operation *> powers;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<AttentionOpInterface>(op))
      return WalkResult::skip();
    if (isa<math::FPowIOp>(op))
      powers.push_back(op);
    return WalkResult::advance();
  });
  if (powers.empty())
    return success();
  RewritePatternSet patterns(function.getContext());
  math::populateExpansionPatterns(patterns, {"fpowi"});
  populateExpandIntegerPowerPatterns(patterns);
  return applyOpPatternsGreedily(powers, std::move(patterns));
}

namespace {
struct VarlenDecomposeLinalg
    : varlen::impl::VarlenDecomposeLinalgBase<VarlenDecomposeLinalg> {
  void runOnOperation() override {
    SmallVector<linalg::AggregatedOpInterface> ops;
    getOperation().walk([&](linalg::AggregatedOpInterface op) {
      if (isa<linalg::LinalgDialect>(op->getDialect()))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::AggregatedOpInterface op : ops) {
      rewriter.setInsertionPoint(op);
      // Upstream's decomposition of memrefs is not valid IR.
      bool isOnTensors =
          llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
      FailureOr<SmallVector<Value>> parts = failure();
      if (isOnTensors)
        parts = op.decomposeOperation(rewriter);
      if (failed(parts)) {
        op.emitOpError("cannot be decomposed: expected tensors, got ")
            << op->getOperandTypes();
        return signalPassFailure();
      }
      rewriter.replaceOp(op, *parts);
      ++numDecomposed;
    }
    if (failed(expandPowers(getOperation())))
      signalPassFailure();
  }
};
} // namespace

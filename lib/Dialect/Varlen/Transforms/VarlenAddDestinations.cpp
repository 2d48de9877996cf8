//===- VarlenAddDestinations.cpp - Attention in destination-passing style -===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENADDDESTINATIONS
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
struct VarlenAddDestinations
    : varlen::impl::VarlenAddDestinationsBase<VarlenAddDestinations> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation()->walk([&](AttentionOpInterface op) {
      if (op.isBufferized() || !op.getDestinations().empty())
        return WalkResult::advance();
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> destinations =
          getOrCreateDestinations(op, rewriter);
      if (failed(destinations))
        return WalkResult::interrupt();
      rewriter.replaceOp(op, varlen::detail::createAttention(
                                 rewriter, op, op->getResultTypes(),
                                 op.getInputSlots(), op.getCaptures(),
                                 *destinations));
      ++numRewritten;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

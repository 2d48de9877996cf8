//===- VarlenDecomposeAttn.cpp - attention as plain linalg ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENDECOMPOSEATTN
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
struct VarlenDecomposeAttn
    : varlen::impl::VarlenDecomposeAttnBase<VarlenDecomposeAttn> {
  using VarlenDecomposeAttnBase::VarlenDecomposeAttnBase;

  void runOnOperation() override {
    SmallVector<AttentionOpInterface> ops;
    getOperation()->walk([&](AttentionOpInterface op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (AttentionOpInterface op : ops) {
      if (unscheduled && op->hasAttr(kScheduleAttrName)) {
        ++numLeft;
        continue;
      }
      if (op.isBufferized()) {
        op->emitOpError("expected tensors to decompose, got memrefs; decompose "
                        "before bufferization");
        return signalPassFailure();
      }
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> results =
          cast<linalg::AggregatedOpInterface>(*op).decomposeOperation(rewriter);
      if (failed(results))
        return signalPassFailure();
      rewriter.replaceOp(op, *results);
      ++numDecomposed;
    }
  }
};
} // namespace

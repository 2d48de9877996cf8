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
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<AttentionOpInterface, MergeOp>(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops) {
      bool leave =
          mergesOnly || (unscheduled && op->hasAttr(kScheduleAttrName));
      if (leave && !isa<MergeOp>(op)) {
        ++numLeft;
        continue;
      }
      if (auto attn = dyn_cast<AttentionOpInterface>(op);
          attn && attn.isBufferized()) {
        op->emitOpError("expected tensors to decompose, got memrefs; decompose "
                        "before bufferization");
        return signalPassFailure();
      }
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> results =
          cast<linalg::AggregatedOpInterface>(op).decomposeOperation(rewriter);
      if (failed(results))
        return signalPassFailure();
      rewriter.replaceOp(op, *results);
      ++numDecomposed;
    }
  }
};
} // namespace

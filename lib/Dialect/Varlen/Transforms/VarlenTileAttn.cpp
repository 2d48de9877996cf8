//===- VarlenTileAttn.cpp - Attention to tile loops -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the roles that a schedule asks for, which is in IR/ScheduleRoles.cpp.
// What a role is, is in RoleEmitter.cpp.
//
//===----------------------------------------------------------------------===//

#include "RoleEmitter.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/Transforms/Layouts.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENTILEATTN
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
struct VarlenTileAttn : varlen::impl::VarlenTileAttnBase<VarlenTileAttn> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation()->walk([&](AttentionOpInterface op) {
      auto schedule =
          op->getAttrOfType<ScheduleAttrInterface>(kScheduleAttrName);
      if (!op.isBufferized() || !schedule)
        return WalkResult::advance();
      setUnusedStrides(op);
      if (failed(verifyLayouts(op)) ||
          failed(verifyKeyLookups(op.getScoreBody(), op.getWrtCaptures())) ||
          ((op.isGradient() || op.isTangent()) &&
           failed(verifyScoreRules(op.getScoreBody()))))
        return WalkResult::interrupt();
      rewriter.setInsertionPoint(op);
      RoleEmitter emitter(op, rewriter);
      for (const Role &role : schedule.getRoles(op))
        emitter.emit(role);
      emitter.finish();
      rewriter.eraseOp(op);
      ++numTiled;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

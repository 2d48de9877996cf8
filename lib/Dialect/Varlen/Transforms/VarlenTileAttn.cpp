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
#include "varlen/Support/MergeConstants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENTILEATTN
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Leaves each extent that a block asks for once: checks of extents and the
/// batch ask for the same ones.
static void mergeExtents(FunctionOpInterface function) {
  using Extent = std::tuple<Block *, Value, Value>;
  DenseMap<Extent, memref::DimOp> first;
  function.walk([&](memref::DimOp dim) {
    auto [known, isNew] = first.try_emplace(
        {dim->getBlock(), dim.getSource(), dim.getIndex()}, dim);
    if (isNew)
      return;
    dim.replaceAllUsesWith(known->second.getResult());
    dim.erase();
  });
}

namespace {
struct VarlenTileAttn : varlen::impl::VarlenTileAttnBase<VarlenTileAttn> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SetVector<FunctionOpInterface> functions;
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
      if (auto function = op->getParentOfType<FunctionOpInterface>())
        functions.insert(function);
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
      return signalPassFailure();
    for (FunctionOpInterface function : functions) {
      mergeConstants(function);
      mergeExtents(function);
    }
  }
};
} // namespace

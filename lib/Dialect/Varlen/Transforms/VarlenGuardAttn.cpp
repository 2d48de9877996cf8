//===- VarlenGuardAttn.cpp - Attention behind a check at run time ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExtentChecks.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENGUARDATTN
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Emits a list of work without tiles, which the runtime makes of cu_seqlens
/// and seqused that it does not refuse: whether it does, an i1.
static Value emitRefused(ImplicitLocOpBuilder &b, AttentionOpInterface op) {
  IndexBuilder index{b};
  auto toBuffer = [&](Value list) -> Value {
    if (!list)
      return {};
    auto type = cast<ShapedType>(list.getType());
    return bufferization::ToBufferOp::create(
        b, MemRefType::get(type.getShape(), type.getElementType()), list,
        /*read_only=*/true);
  };
  Value none = index.constant(0);
  KeyExtents keys = emitKeyExtents(b, op);
  auto tiles = WorkTilesOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, WorkTilesOp::NumColumns},
                      b.getI64Type()),
      toBuffer(op.getCuQ()), toBuffer(op.getCuK()), toBuffer(op.getSequsedQ()),
      toBuffer(op.getSequsedK()), toBuffer(op.getQOffset()),
      toBuffer(op.getBlockTable()), keys.numPages, keys.pageRows,
      b.createOrFold<tensor::DimOp>(op.getQ(), none), keys.rows,
      /*kv_heads=*/none, /*group=*/none, MaskAttr::getFull(op.getContext()),
      /*block_m=*/1);
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, tiles);
  auto dealloc = memref::DeallocOp::create(b, tiles);
  // Tells the deallocation of buffers, which comes later, that this is done.
  for (Operation *manual : {tiles.getOperation(), dealloc.getOperation()})
    manual->setAttr(bufferization::BufferizationDialect::kManualDeallocation,
                    b.getUnitAttr());
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, address, none);
}

static LogicalResult guard(AttentionOpInterface op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  FailureOr<Value> wrong = emitReportedChecks(b, op);
  if (failed(wrong))
    return failure();
  Value bad = emitRefused(b, op);
  if (*wrong)
    bad = arith::OrIOp::create(b, *wrong, bad);
  auto guarded = scf::IfOp::create(b, op->getResultTypes(), bad,
                                   /*withElseRegion=*/true);
  op->replaceAllUsesWith(guarded);

  b.setInsertionPointToStart(guarded.thenBlock());
  FailureOr<SmallVector<Value>> undefined = getOrCreateDestinations(op, b);
  if (failed(undefined))
    return failure();
  scf::YieldOp::create(b, *undefined);

  op->moveBefore(guarded.elseBlock(), guarded.elseBlock()->end());
  b.setInsertionPointToEnd(guarded.elseBlock());
  scf::YieldOp::create(b, op->getResults());
  return success();
}

namespace {
struct VarlenGuardAttn : varlen::impl::VarlenGuardAttnBase<VarlenGuardAttn> {
  void runOnOperation() override {
    SmallVector<AttentionOpInterface> ops;
    getOperation().walk([&](AttentionOpInterface op) {
      if (!op.isBufferized() && !op->hasAttr(kScheduleAttrName))
        ops.push_back(op);
    });
    for (AttentionOpInterface op : ops) {
      if (failed(guard(op)))
        return signalPassFailure();
      ++numGuarded;
    }
  }
};
} // namespace

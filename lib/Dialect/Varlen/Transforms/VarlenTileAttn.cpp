//===- VarlenTileAttn.cpp - Attention to loops over tiles and blocks ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which roles a schedule runs, in which sizes: an attention on buffers becomes
// tile loops. What a role is, is in RoleEmitter.cpp.
//
//===----------------------------------------------------------------------===//

#include "CPUGradTiler.h"
#include "RoleEmitter.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENTILEATTN
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// All panels of a work tile. The lanes of their vectors are queries, so
/// columns are those of memory.
static RoleShape getShape(AttnOp op, CPUScheduleAttr schedule) {
  bool isPaired = schedule.getKv() == KVStorage::Pairs;
  return {schedule.getBlockM(), schedule.getKvBlock(), Orientation::KQ,
          /*columnMultiple=*/1,
          isPaired ? op.getElementType() : op.getComputeType()};
}

static void emitRoles(AttnOp op, CPUScheduleAttr schedule, OpBuilder &b) {
  RoleEmitter(op, b)
      .emitOut(op, getShape(op, schedule))
      ->setAttr(kScheduleAttrName, schedule);
}

/// Rows and columns of tiles are whole multiples of this for tensor cores.
static constexpr int64_t kFragment = 16;

/// The kernel of `schedule` whose tiles are of queries, or of keys.
static RoleShape getShape(AttentionOpInterface op, GPUScheduleAttr schedule,
                          Axis owner) {
  if (owner == Axis::Queries)
    return {schedule.getBlockM(), schedule.getKvBlock(), Orientation::QK,
            kFragment, op.getElementType()};
  return {schedule.getKvBlock(), schedule.getBlockM(), Orientation::KQ,
          kFragment, op.getElementType()};
}

static void emitRoles(AttnOp op, GPUScheduleAttr schedule, OpBuilder &b) {
  RoleEmitter(op, b)
      .emitOut(op, getShape(op, schedule, Axis::Queries))
      ->setAttr(kScheduleAttrName, schedule);
}

/// An owner for each gradient: seven products, and no two CTAs that add to one
/// element.
static void emitRoles(AttnGradOp op, GPUGradScheduleAttr schedule,
                      OpBuilder &b) {
  RoleEmitter emitter(op, b);
  GPUScheduleAttr dq = schedule.getDq(), dk = schedule.getDk(),
                  dv = schedule.getDv();
  auto add = [](ForTilesOp loop, GPUScheduleAttr schedule) {
    loop->setAttr(kScheduleAttrName, schedule);
  };
  add(emitter.emitStatistics(op, dq.getBlockM(), op.getElementType()), dq);
  add(emitter.emitQueryGrad(op, getShape(op, dq, Axis::Queries)), dq);
  add(emitter.emitKeyGrad(op, getShape(op, dk, Axis::Keys), /*ofKeys=*/true,
                          /*ofValues=*/!dv),
      dk);
  if (dv)
    add(emitter.emitKeyGrad(op, getShape(op, dv, Axis::Keys),
                            /*ofKeys=*/false, /*ofValues=*/true),
        dv);
  if (op.getSink())
    emitter.emitSinkGrad(op);
  emitter.finish();
}

namespace {
struct VarlenTileAttn : varlen::impl::VarlenTileAttnBase<VarlenTileAttn> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation()->walk([&](AttentionOpInterface op) {
      if (!op.isBufferized())
        return WalkResult::advance();
      rewriter.setInsertionPoint(op);
      FailureOr<bool> tiled = tile(op, rewriter);
      if (failed(tiled))
        return WalkResult::interrupt();
      if (!*tiled)
        return WalkResult::advance();
      rewriter.eraseOp(op);
      ++numTiled;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Whether the operation has a schedule that says how.
  static FailureOr<bool> tile(AttentionOpInterface op, OpBuilder &builder) {
    Attribute schedule = op->getAttr(kScheduleAttrName);
    LogicalResult result = success();
    if (auto attn = dyn_cast<AttnOp>(*op)) {
      if (auto cpu = dyn_cast_or_null<CPUScheduleAttr>(schedule))
        emitRoles(attn, cpu, builder);
      else if (auto gpu = dyn_cast_or_null<GPUScheduleAttr>(schedule))
        emitRoles(attn, gpu, builder);
      else
        return false;
    } else if (auto grad = dyn_cast<AttnGradOp>(*op)) {
      if (auto cpu = dyn_cast_or_null<CPUScheduleAttr>(schedule))
        result = tileGradForCPU(grad, cpu, builder);
      else if (auto gpu = dyn_cast_or_null<GPUGradScheduleAttr>(schedule))
        emitRoles(grad, gpu, builder);
      else
        return false;
    } else {
      return false;
    }
    if (failed(result))
      return failure();
    return true;
  }
};
} // namespace

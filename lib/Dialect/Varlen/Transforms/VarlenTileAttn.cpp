//===- VarlenTileAttn.cpp - Attention to tile loops -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which roles a schedule asks for, in which sizes. What a role is, is in
// RoleEmitter.cpp.
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

#include "llvm/ADT/TypeSwitch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENTILEATTN
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// CPU
//===----------------------------------------------------------------------===//

/// Rows of a tile of statistics.
static constexpr int64_t kStatisticsRows = 1024;

/// Rows of scores are keys, queries their lanes.
static RoleShape getShape(AttentionOpInterface op, CPUScheduleAttr schedule,
                          int64_t rows, int64_t columnMultiple) {
  bool isPaired = schedule.getKv() == KVStorage::Pairs;
  return {rows, schedule.getKvBlock(), Orientation::KQ, columnMultiple,
          isPaired ? op.getElementType() : op.getComputeType()};
}

static void emitRoles(AttnOp op, CPUScheduleAttr schedule, OpBuilder &b) {
  RoleEmitter(op, b)
      .emitOut(op, getShape(op, schedule, schedule.getBlockM(),
                            /*columnMultiple=*/1))
      ->setAttr(kScheduleAttrName, schedule);
}

/// One owner for all three gradients: five products. Their tiles are as wide as
/// whole vectors.
static void emitRoles(AttnGradOp op, CPUScheduleAttr schedule, OpBuilder &b) {
  RoleShape shape = getShape(op, schedule, schedule.getPanelSize(),
                             /*columnMultiple=*/schedule.getLanes());
  RoleEmitter emitter(op, b);
  emitter
      .emitStatistics(op, {kStatisticsRows, /*block=*/0, Orientation::QK,
                           /*columnMultiple=*/1, shape.factor})
      ->setAttr(kScheduleAttrName, schedule);
  emitter.emitSequenceGrad(op, shape)->setAttr(kScheduleAttrName, schedule);
  emitter.emitHeadGrads(op);
  emitter.finish();
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

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
  add(emitter.emitStatistics(op, getShape(op, dq, Axis::Queries)), dq);
  add(emitter.emitQueryGrad(op, getShape(op, dq, Axis::Queries)), dq);
  add(emitter.emitKeyGrad(op, getShape(op, dk, Axis::Keys), /*ofKeys=*/true,
                          /*ofValues=*/!dv),
      dk);
  if (dv)
    add(emitter.emitKeyGrad(op, getShape(op, dv, Axis::Keys),
                            /*ofKeys=*/false, /*ofValues=*/true),
        dv);
  emitter.emitHeadGrads(op);
  emitter.finish();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct VarlenTileAttn : varlen::impl::VarlenTileAttnBase<VarlenTileAttn> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation()->walk([&](AttentionOpInterface op) {
      if (!op.isBufferized())
        return WalkResult::advance();
      if (op->hasAttr(kScheduleAttrName) &&
          (failed(verifyLayouts(op)) ||
           failed(verifyKeyLookups(op.getScoreBody(), op.getWrtCaptures()))))
        return WalkResult::interrupt();
      if (op.isGradient() && failed(verifyScoreRules(op.getScoreBody())))
        return WalkResult::interrupt();
      rewriter.setInsertionPoint(op);
      Attribute schedule = op->getAttr(kScheduleAttrName);
      // What another kind of schedule is on, the verifier has refused.
      if (!TypeSwitch<Operation *, bool>(op)
               .Case([&](AttnOp attn) {
                 return emit<CPUScheduleAttr, GPUScheduleAttr>(attn, schedule,
                                                               rewriter);
               })
               .Case([&](AttnGradOp grad) {
                 return emit<CPUScheduleAttr, GPUGradScheduleAttr>(
                     grad, schedule, rewriter);
               })
               .Default(false))
        return WalkResult::advance();
      rewriter.eraseOp(op);
      ++numTiled;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Whether the schedule is one of these kinds; emits its roles, then.
  template <typename... Schedules, typename Op>
  static bool emit(Op op, Attribute schedule, OpBuilder &builder) {
    auto emitFor = [&](auto kind) {
      if (kind)
        emitRoles(op, kind, builder);
      return static_cast<bool>(kind);
    };
    return (emitFor(dyn_cast_or_null<Schedules>(schedule)) || ...);
  }
};
} // namespace

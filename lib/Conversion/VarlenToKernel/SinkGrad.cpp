//===- SinkGrad.cpp - The gradient of a sink ------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoop.h"
#include "WarpReduction.h"
#include "varlen/Dialect/Varlen/Utils/IndexBuilder.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

/// A warp to a head: rows in order for each lane, then the lanes. With bad
/// cu_seqlens nobody writes.
LogicalResult varlen::convertSinkGrad(ImplicitLocOpBuilder &b, ForTilesOp loop,
                                      const TileLoopContext &context) {
  FailureOr<SinkGradLoop> found = findSinkGrad(loop);
  if (failed(found))
    return failure();
  Value terms = context.scratch.lookup(found->rows);
  Type compute = cast<MemRefType>(terms.getType()).getElementType();
  IndexBuilder index{b};
  Value heads =
      b.createOrFold<memref::DimOp>(found->gradients, index.constant(0));
  BatchOp batch = context.batch.op;
  Value tq = batch.getTq();
  auto sumOfHead = [&](Value head, Value thread) {
    Value none = arith::ConstantOp::create(b, b.getFloatAttr(compute, 0.0));
    ValueRange sum =
        emitLoop(b, thread, tq, index.constant(kWarpLanes), none,
                 [&](Value row, ValueRange sum) {
                   Value term = memref::LoadOp::create(
                       b, terms, ValueRange{head, row, index.constant(0)});
                   return Values{arith::SubFOp::create(b, sum[0], term)};
                 });
    Value total =
        emitWarpReduction(b, sum.front(), [&](Value lhs, Value rhs) -> Value {
          return arith::AddFOp::create(b, lhs, rhs);
        });
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread,
                                          index.constant(0));
    emitIf(b, isFirst,
           [&] { memref::StoreOp::create(b, total, found->gradients, head); });
  };
  emitLaunch(b, getKernelName(loop), index.max(heads, index.constant(1)), 32,
             [&](Value head, Value, Value thread) {
               Value zero = index.constant(0);
               Value isGood = index.less(index.constant(-1),
                                         index.load(context.work.count, zero));
               Value isHead = index.less(head, heads);
               emitIf(b, b.createOrFold<arith::AndIOp>(isHead, isGood),
                      [&] { sumOfHead(head, thread); });
             });
  return success();
}

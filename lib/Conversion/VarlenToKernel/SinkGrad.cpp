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
  FailureOr<HeadSums> sums = findHeadSums(loop);
  if (failed(sums))
    return failure();
  if (!sums->tables.empty())
    return sums->tables.front().emitOpError("has no kernel for a GPU");
  const SinkGrad &sink = sums->sink;
  Value terms = context.scratch.lookup(sink.rows);
  Type compute = cast<MemRefType>(terms.getType()).getElementType();
  IndexBuilder index{b};
  Value heads =
      b.createOrFold<memref::DimOp>(sink.gradients, index.constant(0));
  BatchOp batch = context.batch.op;
  Value tq = batch.getTq();
  auto sumOfHead = [&](Value head, Value thread) {
    Value none = arith::ConstantOp::create(b, b.getFloatAttr(compute, 0.0));
    Value sum =
        emitSum(b, thread, tq, index.constant(kWarpLanes), none,
                [&](Value row) -> Value {
                  return memref::LoadOp::create(
                      b, terms, ValueRange{head, row, index.constant(0)});
                });
    Value total = emitWarpReduction(b, sum, [&](Value lhs, Value rhs) -> Value {
      return arith::AddFOp::create(b, lhs, rhs);
    });
    Value gradient = arith::SubFOp::create(b, none, total);
    Value isFirst = index.equal(thread, index.constant(0));
    emitIf(b, isFirst,
           [&] { memref::StoreOp::create(b, gradient, sink.gradients, head); });
  };
  emitLaunch(b, getKernelName(loop), index.max(heads, index.constant(1)), 32,
             [&](Value head, Value, Value thread) {
               Value zero = index.constant(0);
               Value isGood = index.less(index.constant(-1),
                                         index.load(context.work.count, zero));
               Value isHead = index.less(head, heads);
               emitIf(b, index.both(isHead, isGood),
                      [&] { sumOfHead(head, thread); });
             });
  return success();
}

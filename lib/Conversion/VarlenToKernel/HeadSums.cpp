//===- HeadSums.cpp - Sums over the rows of a head ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileLoop.h"
#include "WarpReduction.h"
#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

/// A kernel of `loop` that sums `terms`, H x T x M, over rows to `sums`, H or
/// H x M, or their negation if `isNegated`. A warp to a sum: rows in order for
/// each lane, then the lanes. With bad cu_seqlens nobody writes.
static void emitHeadSums(ImplicitLocOpBuilder &b, ForTilesOp loop,
                         const TileLoopContext &context, Value terms,
                         Value sums, bool isNegated) {
  Type compute = cast<MemRefType>(terms.getType()).getElementType();
  IndexBuilder index{b};
  bool areRows = cast<MemRefType>(sums.getType()).getRank() == 2;
  Value heads = index.dim(sums, 0);
  Value entries =
      areRows ? index.max(index.dim(sums, 1), 1) : index.constant(1);
  BatchOp batch = context.batch.op;
  Value tq = batch.getTq(), count = index.mul(heads, entries);
  auto sumOf = [&](Value number, Value thread) {
    Value head = index.div(number, entries);
    Value entry = index.rem(number, entries);
    Value none = arith::ConstantOp::create(b, b.getFloatAttr(compute, 0.0));
    Value sum = emitSum(b, thread, tq, index.constant(kernel::kWarpLanes), none,
                        [&](Value row) -> Value {
                          return memref::LoadOp::create(
                              b, terms, ValueRange{head, row, entry});
                        });
    Value total = emitWarpReduction(b, sum, [&](Value lhs, Value rhs) -> Value {
      return arith::AddFOp::create(b, lhs, rhs);
    });
    if (isNegated)
      total = arith::SubFOp::create(b, none, total);
    SmallVector<Value> place = {head};
    if (areRows)
      place.push_back(entry);
    emitIf(b, index.equal(thread, 0),
           [&] { memref::StoreOp::create(b, total, sums, place); });
  };
  emitLaunch(b, getKernelName(loop), index.max(count, 1), kernel::kWarpLanes,
             [&](Value number, Value, Value thread) {
               Value tiles = index.load(context.work.count, index.constant(0));
               Value isGood = index.less(-1, tiles);
               Value isSum = index.less(number, count);
               emitIf(b, index.both(isSum, isGood),
                      [&] { sumOf(number, thread); });
             });
}

LogicalResult varlen::convertHeadSums(ImplicitLocOpBuilder &b, ForTilesOp loop,
                                      const TileLoopContext &context) {
  FailureOr<HeadSums> sums = findHeadSums(loop);
  if (failed(sums))
    return failure();
  const SinkGrad &sink = sums->sink;
  // The kernel has the name of the loop.
  if (size_t count = sums->tables.size() + (sink.op ? 1 : 0); count > 1)
    return loop.emitOpError("expected one sum in a loop over heads on a GPU, "
                            "got ")
           << count;
  if (sink.op)
    emitHeadSums(b, loop, context, context.scratch.lookup(sink.rows),
                 sink.gradients, /*isNegated=*/true);
  for (SumRowsOp op : sums->tables)
    emitHeadSums(b, loop, context, op.getRows(), op.getSums(),
                 /*isNegated=*/false);
  return success();
}

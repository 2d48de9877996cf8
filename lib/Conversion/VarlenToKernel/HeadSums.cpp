//===- HeadSums.cpp - Sums over the rows of a head ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../WarpReduction.h"
#include "TileLoop.h"
#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

/// A warp to a sum: rows in order for each lane, then the lanes. With bad
/// cu_seqlens are not written.
LogicalResult varlen::convertHeadSums(ImplicitLocOpBuilder &b, ForTilesOp loop,
                                      const TileLoopContext &context) {
  FailureOr<SumRowsOp> op = findHeadSum(loop);
  if (failed(op))
    return failure();
  Value terms = context.scratch.lookupOrDefault(op->getRows());
  TypedValue<MemRefType> sums = op->getSums();
  Type compute = cast<MemRefType>(terms.getType()).getElementType();
  IndexBuilder index{b};
  bool areRows = sums.getType().getRank() == 2;
  Value heads = index.dim(sums, 0);
  Value entries =
      areRows ? index.max(index.dim(sums, 1), 1) : index.constant(1);
  BatchOp batch = context.batch;
  ListTilesOp list = context.list;
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
    if (op->getNegated())
      total = arith::SubFOp::create(b, none, total);
    SmallVector<Value> place = {head};
    if (areRows)
      place.push_back(entry);
    emitIf(b, index.equal(thread, 0),
           [&] { memref::StoreOp::create(b, total, sums, place); });
  };
  emitLaunch(b, getKernelName(loop), index.max(count, 1), kernel::kWarpLanes,
             [&](Value number, Value, Value thread) {
               Value tiles = index.load(list.getCount(), index.constant(0));
               Value isGood = index.less(-1, tiles);
               Value isSum = index.less(number, count);
               emitIf(b, index.both(isSum, isGood),
                      [&] { sumOf(number, thread); });
             });
  return success();
}

//===- VarlenToCPU.cpp - Tile loops to loops of a CPU ---------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryTileConverter.h"
#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_CONVERTVARLENTOCPU
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {
/// Converts the loops over tiles of one batch.
class BatchConverter {
public:
  BatchConverter(BatchOp batch, RewriterBase &rewriter)
      : batch(batch), rewriter(rewriter), b(batch.getLoc(), rewriter),
        index{b} {}

  /// How many loops there were.
  FailureOr<unsigned> convert();

private:
  /// The kv heads of the batch; none if an extent breaks a rule: then there is
  /// nothing to be done.
  FailureOr<Value> emitKvHeads();
  LogicalResult convert(ForTilesOp loop, Value kvHeads);

  BatchOp batch;
  RewriterBase &rewriter;
  ImplicitLocOpBuilder b;
  IndexBuilder index;
};
} // namespace

FailureOr<Value> BatchConverter::emitKvHeads() {
  if (!batch.getRule())
    return batch.getKvHeads();
  FailureOr<Value> wrong = emitExtentReport(b, batch, batch.getRule(),
                                            batch.getValue(), batch.getBound());
  if (failed(wrong))
    return failure();
  return index.select(*wrong, index.constant(0), batch.getKvHeads());
}

LogicalResult BatchConverter::convert(ForTilesOp loop, Value kvHeads) {
  auto schedule = loop->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName);
  if (!schedule)
    return loop.emitOpError("expected a #varlen.cpu_schedule under ")
           << kScheduleAttrName;
  FailureOr<QueryTiles> parts = findQueryTiles(loop, schedule);
  if (failed(parts))
    return failure();
  b.setInsertionPoint(loop);
  Value list = WorkTilesOp::create(
      b,
      MemRefType::get({ShapedType::kDynamic, WorkTilesOp::NumColumns},
                      b.getI64Type()),
      batch.getCuQ(), batch.getCuK(), batch.getSequsedQ(), batch.getSequsedK(),
      batch.getQOffset(), batch.getTq(), batch.getTk(), kvHeads,
      batch.getGroup(), batch.getMask(), loop.getTileType().getSize());
  QueryTileConverter(*parts, schedule, b).emit(list);
  memref::DeallocOp::create(b, list);
  rewriter.eraseOp(loop);
  return success();
}

FailureOr<unsigned> BatchConverter::convert() {
  SmallVector<ForTilesOp> loops;
  for (Operation *user : batch->getUsers()) {
    auto loop = dyn_cast<ForTilesOp>(user);
    if (!loop)
      return user->emitOpError("is not known to tile loops on a CPU");
    loops.push_back(loop);
  }
  b.setInsertionPointAfter(batch);
  FailureOr<Value> kvHeads = emitKvHeads();
  if (failed(kvHeads))
    return failure();
  for (ForTilesOp loop : loops)
    if (failed(convert(loop, *kvHeads)))
      return failure();
  rewriter.eraseOp(batch);
  return loops.size();
}

namespace {
struct ConvertVarlenToCPU
    : varlen::impl::ConvertVarlenToCPUBase<ConvertVarlenToCPU> {
  void runOnOperation() override {
    SmallVector<BatchOp> batches;
    getOperation()->walk([&](BatchOp batch) { batches.push_back(batch); });
    IRRewriter rewriter(&getContext());
    for (BatchOp batch : batches) {
      FailureOr<unsigned> loops = BatchConverter(batch, rewriter).convert();
      if (failed(loops))
        return signalPassFailure();
      numConverted += *loops;
    }
  }
};
} // namespace

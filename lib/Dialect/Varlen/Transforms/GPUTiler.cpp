//===- GPUTiler.cpp - Attention on buffers as a GPU kernel ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of queries and its state meet the kv blocks that the rows see.
//
//===----------------------------------------------------------------------===//

#include "GPUTiler.h"

#include "GPUTileBuilder.h"
#include "ScoreReference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

namespace {

class GPUTiler : GPUTileBuilder {
public:
  GPUTiler(ImplicitLocOpBuilder &b, AttnOp op, GPUScheduleAttr schedule)
      : GPUTileBuilder(b, op, schedule, emitGPUBatch(b, op)), attn(op) {}

  LogicalResult emit();

private:
  void emitTile(Value entry);
  /// acc, m and l.
  State initialState();
  void emitEpilogue(const QueryTile &tile, const State &state);

  SmallVector<Value> perRow(ValueRange inputs, ArrayRef<Type> types,
                            ElementBody body) {
    return perPosition(0, blockM, inputs, types, body);
  }

  AttnOp attn;
  GPUWorkTiles work;
  SmallVector<Value> qShared;
  Value ring;
};

} // namespace

GPUTiler::State GPUTiler::initialState() {
  return {fill(0.0, blockM, vColumns),
          fill(OnlineAttnOp::getInitialM(scale, compute), blockM, 1),
          fill(0.0, blockM, 1)};
}

void GPUTiler::emitEpilogue(const QueryTile &tile, const State &state) {
  SmallVector<Value> inputs = {state[1], state[2]};
  if (attn.getSink()) {
    kernel::RowsOperands rows = rowsOf(tile, tile.rows);
    rows.row = index.constant(0);
    inputs.push_back(kernel::LoadOp::create(
                         b, RankedTensorType::get({blockM, 1}, compute),
                         attn.getSink(), rows, constant(b, b.getLoc(), 0.0))
                         .getResult(0));
  }
  // A row that is in no sequence has no sink either.
  ScoreReference reference(scale, compute, /*isRounded=*/element != compute);
  auto results = perRow(
      inputs, {compute, compute},
      [&](OpBuilder &nested, Location loc, Value row, ValueRange arguments) {
        ScoreReference::Result result =
            reference.emitResult(nested, loc, arguments[0], arguments[1],
                                 attn.getSink() ? arguments[2] : Value());
        Value isUsed = arith::CmpIOp::create(
            nested, loc, arith::CmpIPredicate::slt, row, tile.usedRows);
        auto ifUsed = [&](Value value, double otherwise) -> Value {
          return arith::SelectOp::create(nested, loc, isUsed, value,
                                         constant(nested, loc, otherwise));
        };
        return SmallVector<Value>{
            ifUsed(result.factor, 0.0),
            ifUsed(result.lse, -std::numeric_limits<double>::infinity())};
      });
  Value factor = results[0], lse = results[1];
  Value empty =
      tensor::EmptyOp::create(b, ArrayRef<int64_t>{blockM, vColumns}, element);
  AffineMap identity = b.getMultiDimIdentityMap(2);
  AffineMap row =
      AffineMap::get(2, 0, {b.getAffineDimExpr(0), b.getAffineConstantExpr(0)},
                     b.getContext());
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  Value out =
      linalg::GenericOp::create(
          b, TypeRange{empty.getType()}, ValueRange{state[0], factor},
          ValueRange{empty}, ArrayRef<AffineMap>{identity, row, identity},
          iterators,
          [&](OpBuilder &nested, Location loc, ValueRange arguments) {
            // What a row of no sequence has accumulated may be NaN.
            Value zero = constant(nested, loc, 0.0);
            Value none = arith::CmpFOp::create(
                nested, loc, arith::CmpFPredicate::OEQ, arguments[1], zero);
            Value x =
                arith::MulFOp::create(nested, loc, arguments[0], arguments[1]);
            x = arith::SelectOp::create(nested, loc, none, zero, x);
            if (element != compute)
              x = arith::TruncFOp::create(nested, loc, element, x);
            linalg::YieldOp::create(nested, loc, x);
          })
          .getResult(0);
  kernel::RowsOperands rows = rowsOf(tile, tile.rows);
  kernel::StoreOp::create(b, out, attn.getOutBuffer(), rows);
  kernel::StoreOp::create(b, lse, attn.getLseBuffer(), rows);
}

void GPUTiler::emitTile(Value entry) {
  QueryTile tile = decodeQueryTile(work, entry);
  SmallVector<Value> limits;
  auto fetch = [&](Value i, bool masked, ValueRange slot) {
    emitFetchKeys(tile, i, masked, slot);
  };
  auto step = [&](Value i, bool masked, ValueRange slot, ValueRange state) {
    Value q = tileOf(qShared, blockM, qkColumns);
    Value k = tileOf(ofSlot(slot, 0), blockN, qkColumns);
    Value v = tileOf(ofSlot(slot, 1), blockN, vColumns);
    Value lo, hi, k0;
    if (masked) {
      lo = limits[0];
      hi = limits[1];
      k0 = blockStart(tile.blocks, i, masked, blockN);
    }
    auto online = OnlineAttnOp::create(
        b, q, k, v, lo, hi, k0, /*whole=*/Value(),
        /*queries=*/Value(), /*keys=*/Value(), state[0], state[1], state[2],
        b.getF64FloatAttr(scale),
        OrientationAttr::get(b.getContext(), Orientation::QK));
    return llvm::to_vector_of<Value>(online.getResults());
  };
  Pipeline pipeline{ring, tile.blocks.masked, tile.blocks.total, fetch, step};
  emitPrefetch(pipeline, [&] {
    kernel::CopyOp::create(b, op.getQ(), rowsOf(tile, tile.usedRows), qShared);
  });
  State state = initialState();
  limits = getLimits(tile);
  emitEpilogue(tile, emitSteps(pipeline, state));
}

LogicalResult GPUTiler::emit() {
  FailureOr<GPUWorkTiles> tiles =
      emitGPUWorkTiles(b, op, batch, TilesOf::Queries, blockM);
  if (failed(tiles))
    return failure();
  work = *tiles;
  auto prepare = [&] {
    qShared = allocate(blockM, qkColumns);
    ring = allocateRing(blockN, {qkColumns, vColumns});
  };
  if (failed(emitPersistent(
          op->getParentOfType<func::FuncOp>().getName() + "_attn", work,
          prepare, [&](Value entry) { emitTile(entry); })))
    return failure();
  work.free(b);
  return success();
}

LogicalResult varlen::tileForGPU(AttnOp op, GPUScheduleAttr schedule,
                                 OpBuilder &builder) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  return GPUTiler(b, op, schedule).emit();
}

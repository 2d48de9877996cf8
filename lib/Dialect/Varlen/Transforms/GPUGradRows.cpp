//===- GPUGradRows.cpp - What gradients need of each row ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUGradTileBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// lse and delta
//===----------------------------------------------------------------------===//

/// Elements of a row that a lane reads at once.
static int64_t getChunk(MemRefType type) {
  int64_t width = 128 / type.getElementTypeBitWidth();
  return type.getLayout().isIdentity() && type.getDimSize(2) % width == 0
             ? width
             : 1;
}

Value GPUGradRows::sumOfLanes(Value value, int64_t lanes) {
  Value width = arith::ConstantIntOp::create(b, 32, 32);
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    Value offset = arith::ConstantIntOp::create(b, distance, 32);
    Value other =
        gpu::ShuffleOp::create(b, value, offset, width, gpu::ShuffleMode::XOR)
            .getShuffleResult();
    value = arith::AddFOp::create(b, value, other);
  }
  return value;
}

Value GPUGradRows::dot(Value row, Value head, Value lane, int64_t lanes,
                       int64_t width) {
  int64_t chunks = op.getValueHeadDim() / width;
  auto wide = VectorType::get(width, compute);
  Value sum = arith::ConstantOp::create(b, b.getZeroAttr(wide));
  for (int64_t base = 0; base < chunks; base += lanes) {
    Value chunk = index.add(lane, base);
    auto add = [&]() -> Value {
      Value column = index.mul(chunk, width);
      auto load = [&](Value memory) -> Value {
        Value x = vector::LoadOp::create(
            b, VectorType::get(width, element), memory,
            ValueRange{row, head, column}, /*nontemporal=*/false,
            llvm::MaybeAlign(width * element.getWidth() / 8));
        return element == compute ? x : arith::ExtFOp::create(b, wide, x);
      };
      return math::FmaOp::create(b, load(grad.getDout()), load(grad.getOut()),
                                 sum);
    };
    if (base + lanes <= chunks) {
      sum = add();
      continue;
    }
    auto yield = [&](function_ref<Value()> value) {
      return [&, value](OpBuilder &nested, Location) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(nested.saveInsertionPoint());
        scf::YieldOp::create(b, value());
      };
    };
    sum = scf::IfOp::create(b, index.less(chunk, index.constant(chunks)),
                            yield(add), yield([&] { return sum; }))
              .getResult(0);
  }
  Value total = vector::ExtractOp::create(b, sum, 0);
  for (int64_t i = 1; i < width; ++i)
    total =
        arith::AddFOp::create(b, total, vector::ExtractOp::create(b, sum, i));
  return sumOfLanes(total, lanes);
}

void GPUGradRows::emitPairs(const QueryTile &tile, Value thread) {
  int64_t width = std::min(getChunk(cast<MemRefType>(grad.getDout().getType())),
                           getChunk(cast<MemRefType>(grad.getOut().getType())));
  int64_t lanes =
      std::min<int64_t>(32, llvm::PowerOf2Ceil(op.getValueHeadDim() / width));
  int64_t atOnce = schedule.getWarps() * 32 / lanes;
  Value lane = index.rem(thread, index.constant(lanes));
  Value member = index.div(thread, index.constant(lanes));
  scf::ForOp::create(
      b, index.constant(0), index.constant(blockM), index.constant(atOnce),
      ValueRange{}, [&](OpBuilder &, Location, Value base, ValueRange) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(base.getParentBlock());
        // All lanes of a warp have to take part: those past the end do so with
        // the last pair.
        Value number = index.add(base, member);
        Value last = index.sub(tile.rows, index.constant(1));
        Value pair = index.add(tile.first, index.min(number, last));
        Value row = index.add(tile.sequence.qRow, index.div(pair, batch.group));
        Value head = index.add(index.mul(tile.kvHead, batch.group),
                               index.rem(pair, batch.group));
        Value delta = dot(row, head, lane, lanes, width);
        Value lse =
            memref::LoadOp::create(b, grad.getLse(), ValueRange{head, row});
        if (grad.getDlse())
          delta = arith::SubFOp::create(
              b, delta,
              memref::LoadOp::create(b, grad.getDlse(), ValueRange{head, row}));
        // A row that sees nothing has no probability, and no gradient.
        auto constantOf = [&](double value) {
          return constant(b, b.getLoc(), value);
        };
        const double infinity = std::numeric_limits<double>::infinity();
        Value sees = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, lse,
                                           constantOf(-infinity));
        sees =
            arith::AndIOp::create(b, sees, index.less(number, tile.usedRows));
        lse = arith::SelectOp::create(b, sees,
                                      reference.emitLse(b, b.getLoc(), lse),
                                      constantOf(infinity));
        delta = arith::SelectOp::create(b, sees, delta, constantOf(0.0));
        Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                                              index.constant(0));
        isFirst =
            arith::AndIOp::create(b, isFirst, index.less(number, tile.rows));
        emitIf(isFirst, [&] {
          Value both = vector::FromElementsOp::create(
              b, VectorType::get(2, compute), ValueRange{lse, delta});
          vector::StoreOp::create(b, both, statistics,
                                  ValueRange{head, row, index.constant(0)},
                                  /*nontemporal=*/false,
                                  llvm::MaybeAlign(2 * compute.getWidth() / 8));
        });
        scf::YieldOp::create(b);
      });
}

LogicalResult GPUGradRows::emitStatistics(const GPUWorkTiles &work) {
  return emitPersistent(
      kernelName("_delta"), work, [] {},
      [&](Value entry) {
        Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
        emitPairs(decodeQueryTile(work, entry), thread);
      });
}

//===----------------------------------------------------------------------===//
// dsink
//===----------------------------------------------------------------------===//

/// A warp to a head: rows in order for each lane, then the lanes. With bad
/// cu_seqlens nobody writes.
void GPUGradRows::emitSinkGradient(const GPUWorkTiles &work) {
  Value heads =
      b.createOrFold<memref::DimOp>(grad.getSink(), index.constant(0));
  emitLaunch(b, kernelName("_dsink"), index.max(heads, index.constant(1)), 32,
             [&](Value head, Value, Value thread) {
               Value zero = index.constant(0);
               Value isGood =
                   index.less(index.constant(-1), index.load(work.count, zero));
               Value isHead = index.less(head, heads);
               emitIf(b.createOrFold<arith::AndIOp>(isHead, isGood), [&] {
                 Value sink = memref::LoadOp::create(b, grad.getSink(), head);
                 auto constantOf = [&](double value) {
                   return constant(b, b.getLoc(), value);
                 };
                 auto loop = scf::ForOp::create(
                     b, thread, batch.tq, index.constant(32),
                     ValueRange{constantOf(0.0)},
                     [&](OpBuilder &, Location, Value row, ValueRange sum) {
                       OpBuilder::InsertionGuard guard(b);
                       b.setInsertionPointToEnd(row.getParentBlock());
                       auto load = [&](int64_t which) -> Value {
                         return memref::LoadOp::create(
                             b, statistics,
                             ValueRange{head, row, index.constant(which)});
                       };
                       Value term = reference.emitSinkTerm(b, b.getLoc(), sink,
                                                           load(0), load(1));
                       scf::YieldOp::create(
                           b,
                           arith::SubFOp::create(b, sum[0], term).getResult());
                     });
                 Value total = sumOfLanes(loop.getResult(0), 32);
                 Value isFirst = arith::CmpIOp::create(
                     b, arith::CmpIPredicate::eq, thread, index.constant(0));
                 emitIf(isFirst, [&] {
                   memref::StoreOp::create(b, total, grad.getDsink(), head);
                 });
               });
             });
}

//===- RowStatistics.cpp - What gradients need of rows -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "TileLoop.h"
#include "varlen/Dialect/Varlen/Utils/ScoreReference.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// lse and delta
//===----------------------------------------------------------------------===//

namespace {
/// Rows of a tile are shared by lanes of a warp.
class StatisticsBuilder : TileBuilder {
public:
  StatisticsBuilder(ImplicitLocOpBuilder &b, ForTilesOp loop,
                    GPUScheduleAttr schedule, const TileLoopContext &context)
      : TileBuilder(b, loop, schedule, context.batch), context(context) {}

  LogicalResult emit();

private:
  void emitRows(const Tile &tile, Value thread);
  /// sum_d dout[d] * out[d], in every lane of those that share the row.
  Value dot(Value row, Value head, Value lane, int64_t lanes, int64_t width);

  const TileLoopContext &context;
  StatisticsLoop rows;
  Value statistics;
  FloatType element, compute;
  double otherwise[2];
};
} // namespace

/// Elements of a row that a lane reads at once.
static int64_t getChunk(MemRefType type) {
  int64_t width = 128 / type.getElementTypeBitWidth();
  return type.getLayout().isIdentity() && type.getDimSize(2) % width == 0
             ? width
             : 1;
}

/// The sum over lanes that follow each other, in each of them.
static Value emitSumOfLanes(ImplicitLocOpBuilder &b, Value value,
                            int64_t lanes) {
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

Value StatisticsBuilder::dot(Value row, Value head, Value lane, int64_t lanes,
                             int64_t width) {
  int64_t chunks = cast<MemRefType>(rows.dout.getType()).getDimSize(2) / width;
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
      return math::FmaOp::create(b, load(rows.dout), load(rows.out), sum);
    };
    if (base + lanes <= chunks) {
      sum = add();
      continue;
    }
    sum = emitChoice(
              b, index.less(chunk, index.constant(chunks)),
              [&] { return Values{add()}; }, [&] { return Values{sum}; })
              .front();
  }
  Value total = vector::ExtractOp::create(b, sum, 0);
  for (int64_t i = 1; i < width; ++i)
    total =
        arith::AddFOp::create(b, total, vector::ExtractOp::create(b, sum, i));
  return emitSumOfLanes(b, total, lanes);
}

void StatisticsBuilder::emitRows(const Tile &tile, Value thread) {
  auto type = cast<MemRefType>(rows.dout.getType());
  int64_t width =
      std::min(getChunk(type), getChunk(cast<MemRefType>(rows.out.getType())));
  int64_t lanes =
      std::min<int64_t>(32, llvm::PowerOf2Ceil(type.getDimSize(2) / width));
  int64_t atOnce = schedule.getWarps() * 32 / lanes;
  Value lane = index.rem(thread, index.constant(lanes));
  Value member = index.div(thread, index.constant(lanes));
  emitLoop(
      b, index.constant(0), index.constant(tileRows), atOnce, [&](Value base) {
        // All lanes of a warp have to take part: those past the end do so with
        // the last pair.
        Value number = index.add(base, member);
        Value last = index.sub(tile.rows, index.constant(1));
        Value pair = index.add(tile.first, index.min(number, last));
        Value row = index.add(tile.sequence.qRow, index.div(pair, group));
        Value head =
            index.add(index.mul(tile.kvHead, group), index.rem(pair, group));
        auto load = [&](Value memory) -> Value {
          return memref::LoadOp::create(b, memory, ValueRange{head, row});
        };
        RecomputedReference reference(compute, rows.op.getNatural());
        Value product = dot(row, head, lane, lanes, width);
        Value natural = load(rows.lse);
        auto [lse, delta] =
            reference.emitStatistics(b, b.getLoc(), product, natural,
                                     rows.dlse ? load(rows.dlse) : Value());
        Value isUsed = index.less(number, tile.usedRows);
        auto ifUsed = [&](Value value, double none) {
          return index.select(isUsed, value, constant(compute, none));
        };
        Value values[] = {ifUsed(lse, otherwise[0]),
                          ifUsed(delta, otherwise[1])};
        Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                                              index.constant(0));
        isFirst =
            arith::AndIOp::create(b, isFirst, index.less(number, tile.rows));
        emitIf(b, isFirst, [&] {
          Value both = vector::FromElementsOp::create(
              b, VectorType::get(2, compute), values);
          vector::StoreOp::create(b, both, statistics,
                                  ValueRange{head, row, index.constant(0)},
                                  /*nontemporal=*/false,
                                  llvm::MaybeAlign(2 * compute.getWidth() / 8));
        });
      });
}

LogicalResult StatisticsBuilder::emit() {
  FailureOr<StatisticsLoop> found = findStatistics(loop);
  if (failed(found))
    return failure();
  rows = *found;
  statistics = context.scratch.lookup(rows.write.getDestination());
  element = cast<FloatType>(rows.op.getDout().getType().getElementType());
  compute = cast<FloatType>(rows.op.getLse().getType().getElementType());
  llvm::copy(rows.write.getOtherwise(), otherwise);
  return emitPersistent(
      context.work, [] {},
      [&](Value entry) {
        Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
        emitRows(decodeQueries(context.work, entry).first, thread);
      });
}

LogicalResult varlen::convertStatistics(ImplicitLocOpBuilder &b,
                                        ForTilesOp loop,
                                        GPUScheduleAttr schedule,
                                        const TileLoopContext &context) {
  return StatisticsBuilder(b, loop, schedule, context).emit();
}

//===----------------------------------------------------------------------===//
// dsink
//===----------------------------------------------------------------------===//

/// A warp to a head: rows in order for each lane, then the lanes. With bad
/// cu_seqlens nobody writes.
LogicalResult varlen::convertSinkGrad(ImplicitLocOpBuilder &b, ForTilesOp loop,
                                      const TileLoopContext &context) {
  FailureOr<SinkGradLoop> found = findSinkGrad(loop);
  if (failed(found))
    return failure();
  OnlineSinkGradOp op = found->op;
  Value sinks = found->sinks, statistics = context.scratch.lookup(found->rows);
  auto compute = cast<FloatType>(op.getSink().getType().getElementType());
  RecomputedReference reference(compute, op.getNatural());
  IndexBuilder index{b};
  Value heads = b.createOrFold<memref::DimOp>(sinks, index.constant(0));
  BatchOp batch = context.batch.op;
  Value tq = batch.getTq();
  auto sumOfHead = [&](Value head, Value thread) {
    Value sink = memref::LoadOp::create(b, sinks, head);
    Value none = arith::ConstantOp::create(b, b.getFloatAttr(compute, 0.0));
    ValueRange sum = emitLoop(
        b, thread, tq, index.constant(32), none,
        [&](Value row, ValueRange sum) {
          auto load = [&](int64_t which) -> Value {
            return memref::LoadOp::create(
                b, statistics, ValueRange{head, row, index.constant(which)});
          };
          Value term =
              reference.emitSinkTerm(b, b.getLoc(), sink, load(0), load(1));
          return Values{arith::SubFOp::create(b, sum[0], term)};
        });
    Value total = emitSumOfLanes(b, sum.front(), 32);
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

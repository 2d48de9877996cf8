//===- RowStatistics.cpp - What gradients need of rows --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileBuilder.h"
#include "RowScratch.h"
#include "varlen/Dialect/Varlen/Utils/ScoreReference.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

static FloatType elementOf(Value memory) {
  return cast<FloatType>(cast<ShapedType>(memory.getType()).getElementType());
}

//===----------------------------------------------------------------------===//
// lse and delta
//===----------------------------------------------------------------------===//

namespace {
/// Rows one by one, all heads of a token after each other, as they lie in
/// memory.
class StatisticsConverter : CPUTileBuilder {
public:
  StatisticsConverter(OpBuilder &builder, const StatisticsLoop &parts,
                      CPUScheduleAttr schedule, const RowScratch &scratch)
      : CPUTileBuilder(Value(parts.dout).getLoc(), builder, schedule,
                       elementOf(parts.dout), elementOf(parts.lse)),
        parts(parts), scratch(scratch) {}

  void emit(Value list, Value heads);

private:
  using Statistics = RecomputedReference::Statistics;
  void emitRows(const WorkTile &tile,
                function_ref<Statistics(Value, Value)> statisticsOf);
  /// sum_d dout[row, head, d] * out[row, head, d].
  Value emitRowProduct(Value row, Value head);

  const StatisticsLoop &parts;
  const RowScratch &scratch;
};
} // namespace

Value StatisticsConverter::emitRowProduct(Value row, Value head) {
  int64_t size = cast<MemRefType>(parts.dout.getType()).getDimSize(2);
  int64_t whole = size / lanes * lanes;
  auto load = [&](Value source, Value at, int64_t length) {
    auto type = VectorType::get({length}, element);
    Value x =
        vector::LoadOp::create(b, type, source, ValueRange{row, head, at});
    return emitConvert(b, x, compute);
  };
  auto sum = [&](Value vector) -> Value {
    return vector::ReductionOp::create(b, vector::CombiningKind::ADD, vector,
                                       arith::FastMathFlags::reassoc);
  };
  Value total = floatConstant(0.0);
  if (whole) {
    ValueRange products = emitLoop(
        b, index.constant(0), index.constant(whole), index.constant(lanes),
        splat(0.0), [&](Value at, ValueRange acc) {
          return Values{math::FmaOp::create(b, load(parts.dout, at, lanes),
                                            load(parts.out, at, lanes),
                                            acc.front())};
        });
    total = sum(products.front());
  }
  if (whole != size) {
    Value at = index.constant(whole);
    Value rest = arith::MulFOp::create(b, load(parts.dout, at, size - whole),
                                       load(parts.out, at, size - whole));
    total = arith::AddFOp::create(b, total, sum(rest));
  }
  return total;
}

void StatisticsConverter::emitRows(
    const WorkTile &tile, function_ref<Statistics(Value, Value)> statisticsOf) {
  loop(index.constant(0), tile.rows, 1, [&](Value i) {
    Value pair = index.add(tile.first, i);
    Value row = tile.pairs.row(index, pair);
    Value head = tile.pairs.head(index, pair);
    auto [lse, delta] = statisticsOf(row, head);
    SmallVector<Value> place = scratch.placeOf(index, row, head);
    memref::StoreOp::create(b, lse, scratch.memory[0], place);
    memref::StoreOp::create(b, delta, scratch.memory[1], place);
  });
}

void StatisticsConverter::emit(Value list, Value heads) {
  OnlineStatisticsOp op = parts.op;
  RecomputedReference reference(compute, op.getNatural());
  forEachTile(list, heads, [&](const WorkTile &tile) {
    Value isOwned = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                          index.constant(0), tile.kRows);
    branch(
        isOwned,
        [&] {
          emitRows(tile, [&](Value row, Value head) {
            auto load = [&](Value memory) -> Value {
              return memref::LoadOp::create(b, memory, ValueRange{head, row});
            };
            Value lse = load(parts.lse), product = emitRowProduct(row, head);
            return reference.emitStatistics(b, b.getLoc(), product, lse,
                                            parts.dlse ? load(parts.dlse)
                                                       : Value());
          });
        },
        [&] {
          WriteOp write = parts.write;
          ArrayRef<double> none = write.getOtherwise();
          emitRows(tile, [&](Value, Value) {
            return Statistics{floatConstant(none[0]), floatConstant(none[1])};
          });
        });
  });
}

void varlen::emitStatistics(OpBuilder &builder, const StatisticsLoop &parts,
                            CPUScheduleAttr schedule, Value list, Value heads,
                            const RowScratch &scratch) {
  StatisticsConverter(builder, parts, schedule, scratch).emit(list, heads);
}

//===----------------------------------------------------------------------===//
// dsink
//===----------------------------------------------------------------------===//

void varlen::emitSinkGrad(OpBuilder &builder, const SinkGradLoop &parts,
                          Value heads, Value rows, const RowScratch &scratch) {
  OnlineSinkGradOp op = parts.op;
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  IndexBuilder index{b};
  OpBuilder::InsertionGuard guard(b);
  FloatType compute = elementOf(scratch.memory[0]);
  auto work = scf::ForallOp::create(b, ArrayRef<OpFoldResult>{heads},
                                    ValueRange{}, std::nullopt);
  b.setInsertionPointToStart(work.getBody());
  Value head = work.getInductionVar(0);
  Value sink = memref::LoadOp::create(b, parts.sinks, head);
  sink = emitConvert(b, sink, compute);
  RecomputedReference reference(compute, op.getNatural());
  // Many thousand terms of either sign: what rounding has lost of each sum is
  // carried along (Kahan, 1965).
  Value none = arith::ConstantOp::create(b, b.getFloatAttr(compute, 0.0));
  ValueRange sum = emitLoop(
      b, index.constant(0), rows, index.constant(1), {none, none},
      [&](Value row, ValueRange state) {
        SmallVector<Value> place = scratch.placeOf(index, row, head);
        Value lse = memref::LoadOp::create(b, scratch.memory[0], place);
        Value delta = memref::LoadOp::create(b, scratch.memory[1], place);
        Value product = reference.emitSinkTerm(b, b.getLoc(), sink, lse, delta);
        auto subtract = [&](Value lhs, Value rhs) -> Value {
          return arith::SubFOp::create(b, lhs, rhs);
        };
        Value term = subtract(product, state[1]);
        Value next = subtract(state[0], term);
        Value lost = subtract(subtract(state[0], next), term);
        return Values{next, lost};
      });
  memref::StoreOp::create(b, sum.front(), parts.gradients, head);
}

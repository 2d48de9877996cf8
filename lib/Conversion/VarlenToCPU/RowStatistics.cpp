//===- RowStatistics.cpp - What gradients need of rows --------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPUTileBuilder.h"
#include "RowScratch.h"
#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// lse and delta
//===----------------------------------------------------------------------===//

/// The memory that operands of `op` are read from, at the tile of `loop`, those
/// of a product of rows from rows.
static FailureOr<SmallVector<Value>>
findSources(Operation *op, ValueRange operands, ForTilesOp loop) {
  SmallVector<Value> sources;
  for (Value operand : operands) {
    auto read = operand.getDefiningOp<ReadOp>();
    if (!read || read.getTile() != loop.getTile() ||
        isa<RowsType>(read.getSource().getType()) ||
        read.isOfVectors() != isa<RowDotOp>(op))
      return op->emitOpError("expected operands that are read at the tile, "
                             "from the memory of an attention, got ")
             << operand.getType();
    sources.push_back(read.getSource());
  }
  return sources;
}

FailureOr<StatisticsLoop> varlen::findStatistics(ForTilesOp loop) {
  StatisticsLoop found;
  for (Operation &op : *loop.getBody()) {
    if (auto statistics = dyn_cast<OnlineStatisticsOp>(op))
      found.op = statistics;
    else if (auto write = dyn_cast<WriteOp>(op))
      found.writes.push_back(write);
    else if (!isa<ReadOp, RowDotOp, YieldOp>(op))
      return op.emitOpError("expected reads, one varlen.online_statistics "
                            "and writes in this loop on a CPU");
  }
  auto dot = found.op.getDot().getDefiningOp<RowDotOp>();
  if (!dot)
    return found.op.emitOpError("expected the dot of a varlen.row_dot");
  auto rows = findSources(dot, dot->getOperands(), loop);
  auto numbers =
      findSources(found.op, found.op->getOperands().drop_front(), loop);
  if (failed(rows) || failed(numbers))
    return failure();
  found.rows = *rows;
  found.numbers = *numbers;
  auto columns = [](Value memory) {
    return cast<MemRefType>(memory.getType()).getDimSize(2);
  };
  if (columns(found.rows[0]) != columns(found.rows[1]))
    return dot.emitOpError("expected rows of one head_dim, got ")
           << found.rows[0].getType() << " and " << found.rows[1].getType();
  for (WriteOp write : found.writes)
    if (write.getTile() != loop.getTile() || write.getFactor() ||
        !isa<RowsType>(write.getDestination().getType()) ||
        !llvm::all_of(write.getValues(), [&](Value value) {
          return value.getDefiningOp() == found.op ||
                 succeeded(findSources(write, value, loop));
        }))
      return write.emitOpError("expected statistics to go to varlen.rows at "
                               "the tile, got ")
             << write.getValues().getTypes() << " to "
             << write.getDestination().getType();
  return found;
}

namespace {
/// Rows in vectors of queries, all heads of a token after each other, as they
/// lie in memory.
class StatisticsConverter : CPUTileBuilder {
public:
  StatisticsConverter(OpBuilder &builder, StatisticsLoop &parts,
                      CPUScheduleAttr schedule,
                      const DenseMap<Value, RowScratch> &scratch)
      : CPUTileBuilder(
            parts.op.getLoc(), builder, schedule,
            cast<FloatType>(
                cast<MemRefType>(parts.rows[0].getType()).getElementType()),
            cast<FloatType>(parts.op.getLse().getType().getElementType())),
        op(parts.op), parts(parts), scratch(scratch) {}

  void emit(Value list, Value heads);

private:
  /// The product of a row of both memories.
  Value emitRowProduct(Value row, Value head);
  /// The statistics of the queries of a vector.
  void emitVector(const WorkTile &tile, Value column);
  /// Stores to scratch what `valueOf` says of a value of a write.
  void emitWrites(const WorkTile &tile, Value pair,
                  function_ref<Value(WriteOp, unsigned)> valueOf);

  OnlineStatisticsOp op;
  StatisticsLoop &parts;
  const DenseMap<Value, RowScratch> &scratch;
  /// The operands and the results of a vector.
  SmallVector<Value> operands, results;
};
} // namespace

Value StatisticsConverter::emitRowProduct(Value row, Value head) {
  int64_t size = cast<MemRefType>(parts.rows[0].getType()).getDimSize(2);
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
          return Values{math::FmaOp::create(b, load(parts.rows[0], at, lanes),
                                            load(parts.rows[1], at, lanes),
                                            acc.front())};
        });
    total = sum(products.front());
  }
  if (whole != size) {
    Value at = index.constant(whole);
    Value rest = arith::MulFOp::create(b, load(parts.rows[0], at, size - whole),
                                       load(parts.rows[1], at, size - whole));
    total = arith::AddFOp::create(b, total, sum(rest));
  }
  return total;
}

void StatisticsConverter::emitWrites(
    const WorkTile &tile, Value pair,
    function_ref<Value(WriteOp, unsigned)> valueOf) {
  Value row = tile.pairs.row(index, pair), head = tile.pairs.head(index, pair);
  for (WriteOp write : parts.writes) {
    const RowScratch &rows = scratch.at(write.getDestination());
    SmallVector<Value> place = rows.placeOf(index, row, head);
    for (auto [i, memory] : llvm::enumerate(rows.memory))
      memref::StoreOp::create(b, valueOf(write, i), memory, place);
  }
}

void StatisticsConverter::emitVector(const WorkTile &tile, Value column) {
  Value first = index.add(tile.first, column), zero = index.constant(0);
  // Lanes behind the last query have its numbers.
  loop(zero, index.constant(lanes), 1, [&](Value lane) {
    Value pair = index.min(index.add(first, lane), lastPair(tile));
    Value row = tile.pairs.row(index, pair);
    Value head = tile.pairs.head(index, pair);
    SmallVector<Value> numbers = {emitRowProduct(row, head)};
    for (Value source : parts.numbers) {
      SmallVector<Value> place = {head};
      if (cast<MemRefType>(source.getType()).getRank() == 2)
        place.push_back(row);
      numbers.push_back(memref::LoadOp::create(b, source, place));
    }
    for (auto [number, memory] : llvm::zip_equal(numbers, operands))
      memref::StoreOp::create(b, number, memory, ValueRange{zero, lane});
  });
  auto tiles =
      llvm::map_to_vector(operands, [&](Value memory) { return load(memory); });
  SmallVector<Type> types(op->getNumResults(), tiles[0].getType());
  Operation *ofVector = mlir::clone(b, op, types, tiles);
  for (auto [result, memory] : llvm::zip_equal(ofVector->getResults(), results))
    store(result, memory);
  Value rows = index.min(index.sub(tile.rows, column), index.constant(lanes));
  loop(zero, rows, 1, [&](Value lane) {
    emitWrites(tile, index.add(first, lane), [&](WriteOp write, unsigned i) {
      auto value = cast<OpResult>(write.getValues()[i]);
      // What steps read of rows is passed on.
      if (auto read = value.getDefiningOp<ReadOp>())
        return loadNumber(tile, read.getSource(), index.add(first, lane));
      return memref::LoadOp::create(b, results[value.getResultNumber()],
                                    ValueRange{zero, lane})
          .getResult();
    });
  });
}

void StatisticsConverter::emit(Value list, Value heads) {
  auto work = forEachTile(list, heads, [&](const WorkTile &tile) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      operands.push_back(allocate(1, lanes, compute));
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      results.push_back(allocate(1, lanes, compute));
    Value isOwned = index.lessEqual(index.constant(0), tile.kRows);
    branch(
        isOwned,
        [&] {
          loop(index.constant(0), tile.rows, lanes,
               [&](Value column) { emitVector(tile, column); });
        },
        [&] {
          loop(index.constant(0), tile.rows, 1, [&](Value i) {
            emitWrites(tile, index.add(tile.first, i),
                       [&](WriteOp write, unsigned number) {
                         return floatConstant(write.getOtherwise()[number]);
                       });
          });
        });
  });
  work->setAttr(kScheduleAttrName, schedule);
}

void varlen::emitStatistics(OpBuilder &builder, StatisticsLoop &parts,
                            CPUScheduleAttr schedule, Value list, Value heads,
                            const DenseMap<Value, RowScratch> &scratch) {
  StatisticsConverter(builder, parts, schedule, scratch).emit(list, heads);
}

//===----------------------------------------------------------------------===//
// dsink
//===----------------------------------------------------------------------===//

void varlen::emitSinkGrad(OpBuilder &builder, const SinkGrad &parts,
                          Value heads, Value rows, const RowScratch &scratch) {
  ImplicitLocOpBuilder b(parts.gradients.getLoc(), builder);
  IndexBuilder index{b};
  OpBuilder::InsertionGuard guard(b);
  Value terms = scratch.memory.front();
  Type compute = cast<MemRefType>(terms.getType()).getElementType();
  auto work = scf::ForallOp::create(b, ArrayRef<OpFoldResult>{heads},
                                    ValueRange{}, std::nullopt);
  b.setInsertionPointToStart(work.getBody());
  Value head = work.getInductionVar(0);
  Value none = arith::ConstantOp::create(b, b.getFloatAttr(compute, 0.0));
  Value sum = emitSum(b, index.constant(0), rows, index.constant(1), none,
                      [&](Value row) -> Value {
                        return memref::LoadOp::create(
                            b, terms, scratch.placeOf(index, row, head));
                      });
  Value gradient = arith::SubFOp::create(b, none, sum);
  memref::StoreOp::create(b, gradient, parts.gradients, head);
}

//===----------------------------------------------------------------------===//
// Gradients of tables of heads
//===----------------------------------------------------------------------===//

void varlen::emitSumRows(OpBuilder &builder, SumRowsOp op, Value heads,
                         Value rows, int64_t lanes) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  IndexBuilder index{b};
  OpBuilder::InsertionGuard guard(b);
  Value memory = op.getRows(), sums = op.getSums();
  Value zero = index.constant(0), one = index.constant(1);
  Value entries = b.createOrFold<memref::DimOp>(memory, 2);
  Value parts = index.ceilDiv(entries, lanes);
  auto work =
      scf::ForallOp::create(b, ArrayRef<OpFoldResult>{index.mul(heads, parts)},
                            ValueRange{}, std::nullopt);
  b.setInsertionPointToStart(work.getBody());
  Value item = work.getInductionVar(0);
  Value head = index.div(item, parts);
  Value first = index.mul(index.rem(item, parts), lanes);
  Value count = index.min(index.sub(entries, first), index.constant(lanes));
  auto type = VectorType::get({lanes}, op.getRows().getType().getElementType());
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
  Value mask = vector::CreateMaskOp::create(b, type.clone(b.getI1Type()),
                                            ValueRange{count});
  Value total = emitSum(b, zero, rows, one, none, [&](Value row) -> Value {
    return vector::MaskedLoadOp::create(
        b, type, memory, ValueRange{head, row, first}, mask, none);
  });
  Value scratch = memref::AllocOp::create(
      b, MemRefType::get({lanes}, type.getElementType()));
  vector::StoreOp::create(b, total, scratch, zero);
  emitLoop(b, zero, count, 1, [&](Value lane) {
    memref::StoreOp::create(b, memref::LoadOp::create(b, scratch, lane), sums,
                            ValueRange{head, index.add(first, lane)});
  });
}

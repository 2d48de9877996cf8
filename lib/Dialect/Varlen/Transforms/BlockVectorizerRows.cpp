//===- BlockVectorizerRows.cpp - Some rows of tile operations -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the body of a loop consists of: loads, products in registers, the
// operations of a row, stores.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

BlockVectorizer::Vectors BlockVectorizer::statistic(Value tile) {
  auto [entry, isNew] = statistics.try_emplace(tile);
  if (!isNew)
    return entry->second;
  Vectors vectors;
  for (int64_t n = 0, e = numVectors(tile); n < e; ++n) {
    if (Value scalar = fills.lookup(tile))
      vectors.push_back(broadcast(scalar));
    else
      vectors.push_back(load(find(tile, TileOrder::Rows), index(0), n));
  }
  return statistics[tile] = vectors;
}

/// Clones the scalar body of `op` on vectors; what depends on scalars only
/// (the row, captured values) stays scalar until it meets a vector. Each
/// operation is emitted for all places before the next one: a processor waits
/// less for operations that do not depend on each other.
BlockVectorizer::Vectors BlockVectorizer::emitBody(linalg::LinalgOp op,
                                                   ArrayRef<Place> places) {
  Block *body = op.getBlock();
  SmallVector<IRMapping> mappings(places.size());
  for (auto [place, mapping] : llvm::zip(places, mappings))
    for (auto [argument, value] :
         llvm::zip(body->getArguments(), place.arguments))
      if (value)
        mapping.map(argument, value);
  for (Operation &inner : body->without_terminator())
    for (auto [place, mapping] : llvm::zip(places, mappings))
      emitOperation(inner, place, mapping);
  Vectors results;
  for (IRMapping &mapping : mappings)
    results.push_back(asVector(
        mapping.lookupOrDefault(body->getTerminator()->getOperand(0))));
  return results;
}

void BlockVectorizer::emitOperation(Operation &inner, const Place &place,
                                    IRMapping &mapping) {
  if (auto op = dyn_cast<linalg::IndexOp>(inner)) {
    Value position = place.row;
    if (op.getDim() == 1) {
      SmallVector<int64_t> lanes;
      for (int64_t lane = 0; lane < schedule.getLanes(); ++lane)
        lanes.push_back(place.vector * schedule.getLanes() + lane);
      position = arith::ConstantOp::create(b, b.getIndexVectorAttr(lanes));
    }
    return mapping.map(op.getResult(), position);
  }
  SmallVector<Value> operands;
  for (Value operand : inner.getOperands())
    operands.push_back(mapping.lookupOrDefault(operand));
  if (auto select = dyn_cast<arith::SelectOp>(inner);
      select && isAtEdge && select.getCondition() == band->whole)
    return mapping.map(select.getResult(), operands[2]);
  if (llvm::none_of(operands, [](Value operand) {
        return isa<VectorType>(operand.getType());
      })) {
    b.clone(inner, mapping);
    return;
  }
  for (Value &operand : operands)
    if (!isa<MemRefType>(operand.getType()))
      operand = asVector(operand);
  SmallVector<Type> types;
  for (Type type : inner.getResultTypes())
    types.push_back(vectorType(type));
  Operation *clone = b.create(inner.getLoc(), inner.getName().getIdentifier(),
                              operands, types, inner.getAttrs());
  mapping.map(inner.getResults(), clone->getResults());
}

void BlockVectorizer::emitStatistic(linalg::GenericOp op) {
  SmallVector<Place> places;
  for (int64_t n = 0, e = numVectors(op->getResult(0)); n < e; ++n) {
    Vectors arguments;
    for (Value input : op.getDpsInputs())
      arguments.push_back(statistic(input)[n]);
    places.push_back({arguments, index(0), n});
  }
  Vectors results = emitBody(op, places);
  statistics[op->getResult(0)] = results;
}

/// rows x vectors vectors of `tile`, from row `row` on.
BlockVectorizer::Vectors BlockVectorizer::operandRows(Value tile, Value row,
                                                      int64_t rows) {
  auto [entry, isNew] = rowValues.try_emplace(tile);
  if (!isNew)
    return entry->second;
  Vectors values;
  Value scalar = fills.lookup(tile);
  Vectors perColumn;
  if (isStatistic(tile))
    perColumn = statistic(tile);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t n = 0; n < chunkVectors; ++n)
      values.push_back(scalar               ? broadcast(scalar)
                       : !perColumn.empty() ? perColumn[chunkFirst + n]
                                            : load(find(tile, TileOrder::Rows),
                                                   offset(row, i), n));
  return rowValues[tile] = values;
}

BlockVectorizer::Vectors
BlockVectorizer::emitContract(linalg::ContractOp op, Value row, int64_t rows) {
  std::array<TileOrder, 2> orders = getFactorOrders(op);
  Value lhs = find(op.getInputs()[0], orders[0]);
  Value rhs = find(op.getInputs()[1], orders[1]);
  Value result = op->getResult(0);
  Type compute = cast<RankedTensorType>(result.getType()).getElementType();
  AffineMap lhsMap = op.getIndexingMapsArray()[0];
  bool rowFirst = lhsMap.getDimPosition(0) == 0;
  int64_t vectors = chunkVectors;

  // What is in memory is added in the end: a sum over thousands of rows is a
  // sum of sums then, whose rounding errors are smaller, and it has no load to
  // wait for in the beginning.
  Value init = op.getDpsInits()[0];
  bool isAddedLast = !fills.contains(init) && !rowValues.contains(init);
  Vectors start = isAddedLast ? Vectors(rows * vectors,
                                        constantVector(b.getZeroAttr(compute)))
                              : operandRows(init, row, rows);
  SmallVector<Value> rowIndices;
  for (int64_t i = 0; i < rows; ++i)
    rowIndices.push_back(offset(row, i));

  auto widen = [&](Value value) -> Value {
    Type element = getElementTypeOrSelf(value.getType());
    if (element == compute)
      return value;
    Type wide =
        isa<VectorType>(value.getType()) ? vectorType(compute) : compute;
    return arith::ExtFOp::create(b, wide, value);
  };
  // One k, for `vectors` vectors of columns from vector `first` on.
  auto multiplyAdd = [&](Vectors &acc, Value k, int64_t first,
                         int64_t vectors) {
    Vectors columns;
    for (int64_t n = 0; n < vectors; ++n)
      columns.push_back(widen(load(rhs, k, first + n)));
    for (int64_t i = 0; i < rows; ++i) {
      SmallVector<Value> at = {rowIndices[i], k};
      if (!rowFirst)
        std::swap(at[0], at[1]);
      Value factor = broadcast(widen(memref::LoadOp::create(b, lhs, at)));
      for (int64_t n = 0; n < vectors; ++n)
        acc[i * vectors + n] =
            math::FmaOp::create(b, factor, columns[n], acc[i * vectors + n]);
    }
  };
  // Two k at once. The left factor's pairs are neighbours in a row, or in
  // pairs like the right one's.
  auto dotPairs = [&](Vectors &acc, Value pair, int64_t first,
                      int64_t vectors) {
    auto twice = VectorType::get({2 * schedule.getLanes()}, b.getBF16Type());
    Vectors columns;
    for (int64_t n = 0; n < vectors; ++n)
      columns.push_back(vector::LoadOp::create(
          b, twice, rhs, ValueRange{pair, column(first + n, 2)}));
    for (int64_t i = 0; i < rows; ++i) {
      auto doubled = [&](Value value) -> Value {
        return arith::MulIOp::create(b, value, index(2));
      };
      SmallVector<Value> at = {rowIndices[i], doubled(pair)};
      if (!rowFirst)
        at = {pair, doubled(rowIndices[i])};
      Value factor = vector::LoadOp::create(
          b, VectorType::get({2}, b.getBF16Type()), lhs, at);
      factor = vector::BitCastOp::create(
          b, VectorType::get({1}, b.getI32Type()), factor);
      factor = broadcast(vector::ExtractOp::create(b, factor, 0));
      factor = vector::BitCastOp::create(b, twice, factor);
      for (int64_t n = 0; n < vectors; ++n)
        acc[i * vectors + n] = x86vector::DotBF16Op::create(
            b, vectorType(compute), acc[i * vectors + n], factor, columns[n]);
    }
  };
  bool pairs = hasPairs(op.getInputs()[1]);
  auto step = [&](Vectors &acc, Value k, const Segment &segment) {
    if (pairs)
      dotPairs(acc, k, segment.first, segment.count);
    else
      multiplyAdd(acc, k, segment.first, segment.count);
  };

  // Dynamic extents are multiples of 8.
  int64_t depth =
      cast<RankedTensorType>(op.getInputs()[1].getType()).getDimSize(0);
  int64_t perStep = pairs ? 2 : 1;
  bool isDynamic = ShapedType::isDynamic(depth);
  int64_t unroll = !isDynamic && depth / perStep % 2 != 0 ? 1 : 2;
  Value total = isDynamic ? getValueOrCreateConstantIndexOp(
                                b, b.getLoc(), rowsOf(op.getInputs()[1]))
                          : index(depth);
  // Where the right factor is in a band, each vector is summed over rows of its
  // own.
  SmallVector<Segment> parts = segments;
  if (!isBanded(op.getInputs()[1]))
    parts = {{0, vectors, emitDepth(op, row, rows, total, unroll * perStep)}};
  Vectors sums = start;
  for (Segment &segment : parts) {
    // At an edge little is gained by more code.
    bool isEdge =
        segment.count < numVectors(result) && band && band->isByVectors;
    int64_t perTrip = isEdge ? 1 : unroll;
    if (pairs)
      for (Value *position : {&segment.rows.begin, &segment.rows.end})
        *position = b.createOrFold<arith::DivUIOp>(*position, index(2));
    auto ofSegment = [&](int64_t i) {
      return MutableArrayRef(sums).slice(i * vectors + segment.first,
                                         segment.count);
    };
    Vectors part;
    for (int64_t i = 0; i < rows; ++i)
      llvm::append_range(part, ofSegment(i));
    part = Vectors(varlen::emitLoop(b, segment.rows.begin, segment.rows.end,
                                    index(perTrip), part,
                                    [&](Value k0, ValueRange carried) {
                                      Vectors acc(carried);
                                      for (int64_t u = 0; u < perTrip; ++u)
                                        step(acc, offset(k0, u), segment);
                                      return acc;
                                    }));
    for (int64_t i = 0; i < rows; ++i)
      llvm::copy(ArrayRef(part).slice(i * segment.count, segment.count),
                 ofSegment(i).begin());
  }
  if (isAddedLast)
    for (auto [sum, before] : llvm::zip(sums, operandRows(init, row, rows)))
      sum = arith::AddFOp::create(b, before, sum);
  return sums;
}

/// Stores the rows at hand of a tile to one of its copies.
void BlockVectorizer::emitStore(Value tile, const TileCopy &copy, Value row,
                                int64_t rows) {
  const Vectors &values = rowValues[tile];
  Type element = cast<MemRefType>(copy.memref.getType()).getElementType();
  // Takes one addition of integers, and a tie is rare.
  auto roundAway = [&](Value value) -> Value {
    return arith::TruncFOp::create(
        b, vectorType(element), value,
        arith::RoundingModeAttr::get(b.getContext(),
                                     arith::RoundingMode::to_nearest_away),
        /*fastmath=*/nullptr);
  };
  for (int64_t n = 0; n < chunkVectors; ++n) {
    auto value = [&](int64_t i) { return values[i * chunkVectors + n]; };
    if (copy.order == TileOrder::Rows) {
      for (int64_t i = 0; i < rows; ++i) {
        Value x = value(i);
        if (getElementTypeOrSelf(x.getType()) != element)
          x = arith::TruncFOp::create(b, vectorType(element), x);
        store(x, copy.memref, offset(row, i), n);
      }
      continue;
    }
    for (int64_t i = 0; i < rows; i += 2) {
      Value pair = arith::DivUIOp::create(b, offset(row, i), index(2));
      Value even = roundAway(value(i)), odd = roundAway(value(i + 1));
      vector::StoreOp::create(b, vector::InterleaveOp::create(b, even, odd),
                              copy.memref, ValueRange{pair, column(n, 2)});
    }
  }
}

/// Emits the group for `rows` rows from `row` on; returns the accumulators of
/// its reductions, vectors of one reduction after the other.
BlockVectorizer::Vectors BlockVectorizer::emitRows(Value row, int64_t rows,
                                                   ValueRange accumulators) {
  rowValues.clear();
  Vectors carried(accumulators);
  size_t reduction = 0;
  for (linalg::LinalgOp op : group) {
    if (auto contract = dyn_cast<linalg::ContractOp>(op.getOperation())) {
      Vectors values = emitContract(contract, row, rows);
      rowValues[op->getResult(0)] = values;
      continue;
    }
    if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
        generic && isSeenByAll && hidesByLimits(generic)) {
      rowValues[op->getResult(0)] =
          operandRows(op.getDpsInputs()[0], row, rows);
      continue;
    }
    Value like = isReduction(op) ? op.getDpsInputs()[0] : op->getResult(0);
    // Rounding to pairs takes two rows: it happens as a tile is stored.
    if (hasPairs(like)) {
      rowValues[like] = operandRows(op.getDpsInputs()[0], row, rows);
      continue;
    }
    int64_t vectors = chunkVectors;
    SmallVector<Vectors> inputs;
    for (Value input : op.getDpsInputs())
      inputs.push_back(operandRows(input, row, rows));
    Vectors results;
    for (int64_t i = 0; i < rows; ++i) {
      Value at = offset(row, i);
      SmallVector<Place> places;
      for (int64_t n = 0; n < vectors; ++n) {
        Place &place = places.emplace_back(Place{{}, at, chunkFirst + n});
        for (Vectors &input : inputs)
          place.arguments.push_back(input[i * vectors + n]);
        if (isReduction(op))
          place.arguments.push_back(carried[reduction + n]);
      }
      Vectors rowResults = emitBody(op, places);
      // The next row of a reduction goes on with the result of this one.
      if (isReduction(op))
        llvm::copy(rowResults, carried.begin() + reduction);
      else
        llvm::append_range(results, rowResults);
    }
    if (isReduction(op))
      reduction += vectors;
    else
      rowValues[op->getResult(0)] = results;
  }
  for (Value tile : stored)
    for (const TileCopy &copy : buffers[tile])
      emitStore(tile, copy, row, rows);
  return carried;
}

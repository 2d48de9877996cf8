//===- LoopVectorizer.cpp - A linalg operation as vector loops ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopVectorizer.h"

#include "FilledMemory.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

LoopVectorizer::LoopVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                               const CPUTarget &target)
    : op(op), target(target), b(op.getLoc(), builder) {}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value LoopVectorizer::emitSplat(Value scalar, int64_t lanes) {
  if (isa<VectorType>(scalar.getType()))
    return scalar;
  return vector::BroadcastOp::create(
      b, VectorType::get({lanes}, scalar.getType()), scalar);
}

Value LoopVectorizer::emitSplat(TypedAttr scalar, int64_t lanes) {
  auto type = VectorType::get({lanes}, scalar.getType());
  return arith::ConstantOp::create(
      b, cast<TypedAttr>(DenseElementsAttr::get(type, Attribute(scalar))));
}

Value LoopVectorizer::emitMask(Value rest, int64_t lanes) {
  return vector::CreateMaskOp::create(
      b, VectorType::get({lanes}, b.getI1Type()), rest);
}

SmallVector<Value> LoopVectorizer::getIndices(AffineMap map, Value offset) {
  SmallVector<Value> result;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      result.push_back(arith::ConstantIndexOp::create(b, 0));
    else
      result.push_back(
          dim.getPosition() == vectorDim ? offset : indices[dim.getPosition()]);
  }
  return result;
}

/// A vector of memory, zero in lanes that are not there.
Value LoopVectorizer::emitLoad(Value memory, ValueRange at, int64_t lanes,
                               Value mask) {
  auto type = VectorType::get({lanes}, getElementTypeOrSelf(memory.getType()));
  if (!mask)
    return vector::LoadOp::create(b, type, memory, at);
  return vector::MaskedLoadOp::create(
      b, type, memory, at, mask,
      arith::ConstantOp::create(b, b.getZeroAttr(type)));
}

/// The elements of an operand: a vector, or a scalar if there is only one.
Value LoopVectorizer::emitOperand(OpOperand &operand, Value offset,
                                  int64_t lanes, Value mask) {
  Value memory = operand.get();
  auto type = dyn_cast<MemRefType>(memory.getType());
  if (!type)
    return memory;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> at = getIndices(map, offset);
  auto vectorType = VectorType::get({lanes}, type.getElementType());
  switch (getAccess(operand, vectorDim)) {
  case Access::Invariant:
    return memref::LoadOp::create(b, memory, at);
  case Access::Contiguous:
    return emitLoad(memory, at, lanes, mask);
  case Access::Strided:
    break;
  }
  // One by one, the last element in place of those that are not there.
  unsigned place = *map.getResultPosition(b.getAffineDimExpr(vectorDim));
  Value last = arith::SubIOp::create(b, extents[vectorDim],
                                     arith::ConstantIndexOp::create(b, 1));
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    at[place] = arith::AddIOp::create(b, offset,
                                      arith::ConstantIndexOp::create(b, lane));
    if (mask)
      at[place] = arith::MinSIOp::create(b, at[place], last);
    elements.push_back(memref::LoadOp::create(b, memory, at));
  }
  return vector::FromElementsOp::create(b, vectorType, elements);
}

void LoopVectorizer::emitStore(OpOperand &operand, Value value, Value offset,
                               int64_t lanes, Value mask) {
  SmallVector<Value> at =
      getIndices(op.getMatchingIndexingMap(&operand), offset);
  value = emitSplat(value, lanes);
  if (mask)
    vector::MaskedStoreOp::create(b, operand.get(), at, mask, value);
  else
    vector::StoreOp::create(b, value, operand.get(), at);
}

Value LoopVectorizer::cloneOp(Operation &source, IRMapping &map, Value offset,
                              int64_t lanes, Value mask) {
  if (auto load = dyn_cast<memref::LoadOp>(source))
    return emitRead(load, map, offset, lanes, mask);
  if (auto index = dyn_cast<linalg::IndexOp>(source)) {
    if (index.getDim() != vectorDim)
      return indices[index.getDim()];
    auto type = VectorType::get({lanes}, b.getIndexType());
    Value steps = vector::StepOp::create(b, type);
    return arith::AddIOp::create(b, steps, emitSplat(offset, lanes));
  }
  auto mapped = [&](Value value) { return map.lookupOrDefault(value); };
  bool isVector = llvm::any_of(source.getOperands(), [&](Value value) {
    return isa<VectorType>(mapped(value).getType());
  });
  Operation *clone = b.clone(source, map);
  if (isVector) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(clone);
    for (OpOperand &operand : clone->getOpOperands())
      if (!isa<MemRefType>(operand.get().getType()))
        operand.set(emitSplat(operand.get(), lanes));
    clone->getResult(0).setType(
        VectorType::get({lanes}, clone->getResult(0).getType()));
  }
  return clone->getResult(0);
}

/// The values that the body yields; `accumulators` are what the results that
/// are `accumulated` are so far.
SmallVector<Value> LoopVectorizer::emitBody(Value offset, int64_t lanes,
                                            Value mask,
                                            ValueRange accumulators) {
  IRMapping map;
  Block *body = op.getBlock();
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    if (op.isDpsInit(&operand)) {
      const auto *place = llvm::find(accumulated, operand.getOperandNumber() -
                                                      op.getNumDpsInputs());
      if (place != accumulated.end()) {
        map.map(argument, accumulators[place - accumulated.begin()]);
        continue;
      }
    }
    Value before = hoisted.lookup(&operand);
    map.map(argument,
            before ? before : emitOperand(operand, offset, lanes, mask));
  }
  for (Operation &inner : body->without_terminator()) {
    if (auto check = dyn_cast<cf::AssertOp>(inner))
      emitAssert(check, map, lanes, mask);
    else
      map.map(inner.getResult(0), cloneOp(inner, map, offset, lanes, mask));
  }
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(map.lookupOrDefault(value));
  return results;
}

/// Stores of the results that are neither accumulated nor pairs.
void LoopVectorizer::emitStores(ValueRange values, Value offset, int64_t lanes,
                                Value mask) {
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable()))
    if (!llvm::is_contained(accumulated, number) &&
        !isPairMap(op.getMatchingIndexingMap(&init)))
      emitStore(init, values[number], offset, lanes, mask);
}

/// Stores of the results that are pairs.
void LoopVectorizer::emitPairs(ValueRange even, ValueRange odd, Value offset,
                               int64_t lanes) {
  Value two = arith::ConstantIndexOp::create(b, 2);
  Value row = arith::DivUIOp::create(b, indices[*pairDim], two);
  Value column = arith::MulIOp::create(b, offset, two);
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    if (!isPairMap(op.getMatchingIndexingMap(&init)))
      continue;
    Value memory =
        memref::CollapseShapeOp::create(b, init.get(), getPairDims(3));
    Value pairs = vector::InterleaveOp::create(
        b, emitSplat(even[number], lanes), emitSplat(odd[number], lanes));
    vector::StoreOp::create(b, pairs, memory, ValueRange{row, column});
  }
}

/// Emits the body, for both rows of a pair if there are pairs, and stores of
/// the results that are not accumulated; returns the accumulators after it.
SmallVector<Value> LoopVectorizer::emitStep(Value offset, int64_t lanes,
                                            Value mask,
                                            ValueRange accumulators) {
  auto emitRow = [&](ValueRange before) {
    SmallVector<Value> values = emitBody(offset, lanes, mask, before);
    emitStores(values, offset, lanes, mask);
    return values;
  };
  auto getAccumulators = [&](ValueRange values) {
    SmallVector<Value> next;
    for (unsigned number : accumulated)
      next.push_back(emitSplat(values[number], lanes));
    return next;
  };
  SmallVector<Value> values = emitRow(accumulators);
  SmallVector<Value> next = getAccumulators(values);
  if (!pairDim)
    return next;
  Value row = indices[*pairDim];
  indices[*pairDim] =
      arith::AddIOp::create(b, row, arith::ConstantIndexOp::create(b, 1));
  SmallVector<Value> odd = emitRow(next);
  indices[*pairDim] = row;
  emitPairs(values, odd, offset, lanes);
  return getAccumulators(odd);
}

/// The results that are reduced, which become those that are accumulated.
SmallVector<OpOperand *> LoopVectorizer::getReduced() {
  SmallVector<OpOperand *> inits;
  accumulated.clear();
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    if (!isReduced(op, init))
      continue;
    inits.push_back(&init);
    accumulated.push_back(number);
  }
  return inits;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void LoopVectorizer::emitParallel(Value extent) {
  auto step = [&](Value offset, int64_t lanes, Value mask) {
    emitStep(offset, lanes, mask, {});
  };
  Value lanes = arith::ConstantIndexOp::create(b, numLanes);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value rest = b.createOrFold<arith::RemUIOp>(extent, lanes);
  Value whole = b.createOrFold<arith::SubIOp>(extent, rest);
  emitLoop(b, zero, whole, lanes,
           [&](Value offset) { step(offset, numLanes, Value()); });
  if (std::optional<int64_t> number = getConstantIntValue(rest)) {
    int64_t done = 0;
    while (done < *number) {
      int64_t left = *number - done;
      int64_t size = hasNarrowFloats() ? llvm::bit_floor<uint64_t>(left) : left;
      Value by = arith::ConstantIndexOp::create(b, done);
      step(b.createOrFold<arith::AddIOp>(whole, by), size, Value());
      done += size;
    }
    return;
  }
  if (isOneByOne()) {
    emitLoop(b, whole, extent, 1,
             [&](Value offset) { step(offset, 1, Value()); });
    return;
  }
  Value isMore = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  emitIf(b, isMore, [&] { step(whole, numLanes, emitMask(rest, numLanes)); });
}

/// Whether a value counts once however often it is there, as in a maximum.
static bool isIdempotent(vector::CombiningKind kind) {
  return kind != vector::CombiningKind::ADD &&
         kind != vector::CombiningKind::MUL &&
         kind != vector::CombiningKind::XOR;
}

/// The reduction of all lanes. Floating-point maxima and minima are reduced as
/// a tree: LLVM makes a chain of them, whose latency shows.
static Value emitReduction(ImplicitLocOpBuilder &b, vector::CombiningKind kind,
                           Value vector) {
  auto type = cast<VectorType>(vector.getType());
  int64_t lanes = type.getNumElements();
  if (!isa<FloatType>(type.getElementType()))
    return vector::ReductionOp::create(b, kind, vector);
  if (!isIdempotent(kind) || !llvm::isPowerOf2_64(lanes))
    return vector::ReductionOp::create(b, kind, vector,
                                       arith::FastMathFlags::reassoc);
  auto half = [&](int64_t first) -> Value {
    return vector::ShuffleOp::create(
        b, vector, vector, llvm::to_vector(llvm::seq(first, first + lanes)));
  };
  for (lanes /= 2; lanes > 0; lanes /= 2) {
    Value low = half(0), high = half(lanes);
    vector = vector::makeArithReduction(b, b.getLoc(), kind, low, high);
  }
  return vector::ExtractOp::create(b, vector, 0);
}

/// Sums of lanes, then the sum of all lanes and what the result was.
void LoopVectorizer::emitReductions(Value extent) {
  SmallVector<OpOperand *> inits = getReduced();
  Value lanes = arith::ConstantIndexOp::create(b, numLanes);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value rest = b.createOrFold<arith::RemUIOp>(extent, lanes);
  Value whole = b.createOrFold<arith::SubIOp>(extent, rest);
  // What a maximum is filled with before takes part in each lane: unlike the
  // neutral element it is known to be no NaN.
  SmallVector<linalg::FillOp> fills;
  SmallVector<Value> begins;
  for (auto [init, combiner] : llvm::zip_equal(inits, combiners)) {
    linalg::FillOp fill;
    if (isIdempotent(*linalg::getCombinerOpKind(combiner)))
      fill = findFill(op, *init);
    fills.push_back(fill);
    begins.push_back(
        fill ? emitSplat(fill.getInputs().front(), numLanes)
             : emitSplat(*arith::getNeutralElement(combiner), numLanes));
  }
  SmallVector<Value> sums = emitLoop(
      b, zero, whole, lanes, begins, [&](Value offset, ValueRange state) {
        return emitStep(offset, numLanes, Value(), state);
      });
  std::optional<int64_t> number = getConstantIntValue(rest);
  bool isOneByOne = this->isOneByOne();
  if (!isOneByOne && (!number || *number)) {
    Value mask = emitMask(rest, numLanes);
    SmallVector<Value> next = emitStep(whole, numLanes, mask, sums);
    for (auto [sum, value] : llvm::zip_equal(sums, next))
      sum = arith::SelectOp::create(b, mask, value, sum);
  }
  auto placeOf = [&](OpOperand *init) {
    return getIndices(op.getMatchingIndexingMap(init), Value());
  };
  for (auto [init, sum, combiner, fill] :
       llvm::zip_equal(inits, sums, combiners, fills)) {
    Value total = emitReduction(b, *linalg::getCombinerOpKind(combiner), sum);
    SmallVector<Value> at = placeOf(init);
    // A loop that is reduced around this one goes on with the result.
    if (fill && op.getNumReductionLoops() == 1) {
      memref::StoreOp::create(b, total, init->get(), at);
      fill.erase();
      continue;
    }
    IRMapping map;
    for (Value operand : combiner->getOperands())
      map.map(operand, operand == op.getMatchingBlockArgument(init)
                           ? memref::LoadOp::create(b, init->get(), at)
                           : total);
    Value result = b.clone(*combiner, map)->getResult(0);
    memref::StoreOp::create(b, result, init->get(), at);
  }
  if (!isOneByOne || number == 0)
    return;
  emitLoop(b, whole, extent, 1, [&](Value offset) {
    SmallVector<Value> state;
    for (OpOperand *init : inits)
      state.push_back(
          emitSplat(memref::LoadOp::create(b, init->get(), placeOf(init)), 1));
    state = emitStep(offset, 1, Value(), state);
    for (auto [init, value] : llvm::zip_equal(inits, state))
      memref::StoreOp::create(b, vector::ExtractOp::create(b, value, 0),
                              init->get(), placeOf(init));
  });
}

/// Whether one vector has all columns of the results, so that what belongs to
/// columns stays in registers while the loops `dims`, the inner ones, run.
bool LoopVectorizer::isCarried(ArrayRef<unsigned> dims) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (!combiners.empty() || ranges[vectorDim] != numLanes)
    return false;
  if (op.getNumReductionLoops() == 0)
    return dims.size() == 1 && ranges[dims.front()] != 1 &&
           numLanes >= minLanes;
  return dims.empty() || op.getIteratorTypesArray()[dims.front()] ==
                             utils::IteratorType::reduction;
}

/// LLVM does not know that results lie in other memory.
void LoopVectorizer::hoistLoads(ArrayRef<unsigned> dims, Value offset) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (op.getMatchingBlockArgument(input).use_empty() ||
        llvm::any_of(dims,
                     [&](unsigned dim) { return map.isFunctionOfDim(dim); }))
      continue;
    hoisted[input] = emitOperand(*input, offset, numLanes, Value());
  }
}

/// What the vector of a result begins with.
Value LoopVectorizer::emitInitial(OpOperand &init) {
  if (linalg::FillOp fill = findFill(op, init)) {
    Value value = emitSplat(fill.getInputs().front(), numLanes);
    fill.erase();
    return value;
  }
  Value zero = arith::ConstantIndexOp::create(b, 0);
  return emitOperand(init, zero, numLanes, Value());
}

/// Steps of rows that are written out where there are no more.
static constexpr int64_t kMostSteps = 4;

/// The loops `dims`; `state` is what the results that are reduced are so far.
SmallVector<Value> LoopVectorizer::emitCarried(ArrayRef<unsigned> dims,
                                               ValueRange state) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  if (dims.empty())
    return emitStep(zero, numLanes, Value(), state);
  // As many rows as vectors of the usual size have registers.
  int64_t step = getStep(dims.front()), rows = step;
  if (dims.size() == 1)
    rows = std::max(step, maxLanes / numLanes);
  int64_t range = op.getStaticLoopRanges()[dims.front()];
  if (ShapedType::isStatic(range) && range > 0 && range % rows == 0 &&
      range / rows <= kMostSteps)
    rows = range;
  auto loop = [&](Value from, Value to, int64_t rows, ValueRange state) {
    return emitLoop(b, from, to, arith::ConstantIndexOp::create(b, rows), state,
                    [&](Value index, ValueRange state) {
                      SmallVector<Value> next(state);
                      for (int64_t i = 0; i < rows; i += step) {
                        indices[dims.front()] = b.createOrFold<arith::AddIOp>(
                            index, arith::ConstantIndexOp::create(b, i));
                        next = emitCarried(dims.drop_front(), next);
                      }
                      return next;
                    });
  };
  Value extent = extents[dims.front()];
  if (rows == step)
    return loop(zero, extent, step, state);
  Value whole = IndexBuilder{b}.roundDown(extent, rows);
  ValueRange results = loop(zero, whole, rows, state);
  return whole == extent ? results : loop(whole, extent, step, results);
}

void LoopVectorizer::emitLoops(ArrayRef<unsigned> dims) {
  if (isCarried(dims)) {
    Value zero = arith::ConstantIndexOp::create(b, 0);
    hoistLoads(dims, zero);
    SmallVector<OpOperand *> inits = getReduced();
    SmallVector<Value> state;
    for (OpOperand *init : inits)
      state.push_back(emitInitial(*init));
    state = emitCarried(dims, state);
    for (auto [init, value] : llvm::zip_equal(inits, state))
      emitStore(*init, value, zero, numLanes, Value());
    hoisted.clear();
    return;
  }
  if (dims.empty()) {
    if (combiners.empty())
      emitParallel(extents[vectorDim]);
    else
      emitReductions(extents[vectorDim]);
    return;
  }
  Value zero = arith::ConstantIndexOp::create(b, 0);
  emitLoop(b, zero, extents[dims.front()], getStep(dims.front()),
           [&](Value index) {
             indices[dims.front()] = index;
             emitLoops(dims.drop_front());
           });
}

void LoopVectorizer::emit() {
  b.setInsertionPoint(op);
  for (Range range : op.createLoopRanges(b, op.getLoc()))
    extents.push_back(
        getValueOrCreateConstantIndexOp(b, op.getLoc(), range.size));
  indices.assign(extents.size(), Value());
  // A result that is reduced along the inner loop is stored when all others are
  // at its place.
  SmallVector<unsigned> dims;
  for (auto type :
       {utils::IteratorType::parallel, utils::IteratorType::reduction})
    for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
      if (iterator == type && dim != vectorDim)
        dims.push_back(dim);
  emitLoops(dims);
}

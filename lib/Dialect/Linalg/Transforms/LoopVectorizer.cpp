//===- LoopVectorizer.cpp - A linalg operation as vector loops ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopVectorizer.h"

#include "varlen/Dialect/Varlen/Utils/ControlFlow.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::varlen;

/// Vectors of this many registers: arithmetic on one hides the latency of that
/// on the others.
static int64_t getNumRegisters(const CPUTarget &target) {
  return target.vectorRegisters >= 32 ? 4 : 2;
}

/// Whether vectors of the type can be read from memory: elements of whole
/// bytes.
static bool isVectorElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth());
  return type.isIndex() || type.isF16() || type.isBF16() || type.isF32() ||
         type.isF64();
}

static int64_t getBytes(Type type) {
  return type.isIndex() ? 8 : type.getIntOrFloatBitWidth() / 8;
}

/// Functions that are a library call for each lane: worth no vector.
static bool isLibraryCall(Operation *op) {
  if (op->getName().getDialectNamespace() !=
      math::MathDialect::getDialectNamespace())
    return false;
  if (isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
          math::Exp2Op, math::FloorOp, math::FmaOp, math::RoundEvenOp,
          math::SqrtOp, math::TruncOp, math::IsNaNOp, math::IsInfOp,
          math::IsFiniteOp>(op))
    return false;
  // Those that varlen-vectorize-linalg has polynomials for.
  if (isa<math::CosOp, math::ErfOp, math::ExpOp, math::ExpM1Op, math::LogOp,
          math::Log1pOp, math::Log2Op, math::RsqrtOp, math::SinOp,
          math::TanhOp>(op))
    return op->getResult(0).getType().isF64() &&
           !isa<math::RsqrtOp, math::TanhOp>(op);
  return true;
}

LoopVectorizer::LoopVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                               const CPUTarget &target)
    : op(op), target(target), b(op.getLoc(), builder) {}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

LogicalResult LoopVectorizer::checkBody(std::string &reason) {
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (isa<linalg::IndexOp>(inner) || matchPattern(&inner, m_Constant()))
      continue;
    if (!OpTrait::hasElementwiseMappableTraits(&inner) ||
        inner.getNumResults() != 1 || isLibraryCall(&inner)) {
      reason =
          ("'" + inner.getName().getStringRef() + "' has no vector form").str();
      return failure();
    }
    if (!isSpeculatable(&inner)) {
      reason = ("'" + inner.getName().getStringRef() +
                "' is undefined for lanes that are not there")
                   .str();
      return failure();
    }
  }
  return success();
}

LoopVectorizer::Access LoopVectorizer::getAccess(OpOperand &operand,
                                                 unsigned dim) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isFunctionOfDim(dim))
    return Access::Invariant;
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  bool isLast = map.getResults().back() == b.getAffineDimExpr(dim);
  return isLast && type.isLastDimUnitStride() ? Access::Contiguous
                                              : Access::Strided;
}

/// Whether vectors can run along the loop, and how many inputs would be read
/// one element at a time.
LogicalResult LoopVectorizer::checkAlong(unsigned dim, unsigned &numStrided,
                                         std::string &reason) {
  bool isReduction =
      op.getIteratorTypesArray()[dim] == utils::IteratorType::reduction;
  numStrided = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    numStrided += getAccess(*input, dim) == Access::Strided;
  SmallVector<Operation *> found;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    Access access = getAccess(init, dim);
    if (!isReduction) {
      if (access != Access::Contiguous) {
        reason = "no loop along which the memory of results is contiguous";
        return failure();
      }
      continue;
    }
    Type element = getElementTypeOrSelf(init.get().getType());
    if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32) {
      reason = "a sum in a narrow float";
      return failure();
    }
    unsigned position = found.size();
    SmallVector<Operation *> ops;
    if (access != Access::Invariant ||
        !matchReduction(op.getRegionOutputArgs(), position, ops) ||
        ops.size() != 1 || !linalg::getCombinerOpKind(ops.front()) ||
        !arith::getNeutralElement(ops.front())) {
      reason = "a reduction that is not one known operation";
      return failure();
    }
    found.push_back(ops.front());
  }
  return success();
}

LogicalResult LoopVectorizer::plan(std::string &reason) {
  if (!op.hasPureBufferSemantics()) {
    reason = "its operands are no memrefs";
    return failure();
  }
  if (op.getNumLoops() == 0) {
    reason = "it has no loop";
    return failure();
  }
  int64_t bytes = 1;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      continue;
    if (!isVectorElement(type.getElementType())) {
      reason = "elements that are no whole bytes";
      return failure();
    }
    if (!op.getMatchingIndexingMap(&operand).isProjectedPermutation(
            /*allowZeroInResults=*/true)) {
      reason = "an index is neither one of the loops nor 0";
      return failure();
    }
    bytes = std::max(bytes, getBytes(type.getElementType()));
  }
  if (failed(checkBody(reason)))
    return failure();

  // Contiguous inputs first, then a loop that is not reduced, then the inner
  // one.
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  std::optional<std::tuple<bool, unsigned, bool>> best;
  for (int dim = op.getNumLoops() - 1; dim >= 0; --dim) {
    unsigned numStrided;
    if (failed(checkAlong(dim, numStrided, reason)))
      continue;
    bool isReduction =
        op.getIteratorTypesArray()[dim] == utils::IteratorType::reduction;
    std::tuple<bool, unsigned, bool> cost(ranges[dim] == 1, numStrided,
                                          isReduction);
    if (best && *best <= cost)
      continue;
    best = cost;
    vectorDim = dim;
  }
  if (!best)
    return failure();
  numLanes = target.getLanes(bytes) * getNumRegisters(target);
  if (ShapedType::isStatic(ranges[vectorDim]))
    numLanes = std::min(numLanes, std::max<int64_t>(ranges[vectorDim], 1));
  // LLVM 22 has no code for some other vectors of bf16, such as 33.
  if (hasNarrowFloats())
    numLanes = llvm::bit_floor<uint64_t>(numLanes);
  if (op.getIteratorTypesArray()[vectorDim] == utils::IteratorType::reduction) {
    for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
      SmallVector<Operation *> ops;
      matchReduction(op.getRegionOutputArgs(), i, ops);
      combiners.push_back(ops.front());
    }
  }
  return success();
}

bool LoopVectorizer::hasNarrowFloats() {
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  });
}

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
    if (!mask)
      return vector::LoadOp::create(b, vectorType, memory, at);
    return vector::MaskedLoadOp::create(
        b, vectorType, memory, at, mask,
        arith::ConstantOp::create(b, b.getZeroAttr(vectorType)));
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
                              int64_t lanes) {
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

/// The values that the body yields. Of reductions along the loop of vectors,
/// `accumulators` are what the results are so far.
SmallVector<Value> LoopVectorizer::emitBody(Value offset, int64_t lanes,
                                            Value mask,
                                            ValueRange accumulators) {
  IRMapping map;
  Block *body = op.getBlock();
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    if (op.isDpsInit(&operand) && !accumulators.empty()) {
      map.map(argument,
              accumulators[operand.getOperandNumber() - op.getNumDpsInputs()]);
      continue;
    }
    map.map(argument, emitOperand(operand, offset, lanes, mask));
  }
  for (Operation &inner : body->without_terminator())
    map.map(inner.getResult(0), cloneOp(inner, map, offset, lanes));
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(map.lookupOrDefault(value));
  return results;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void LoopVectorizer::emitParallel(Value extent) {
  auto step = [&](Value offset, int64_t lanes, Value mask) {
    SmallVector<Value> values = emitBody(offset, lanes, mask, {});
    for (auto [init, value] : llvm::zip_equal(op.getDpsInitsMutable(), values))
      emitStore(init, value, offset, lanes, mask);
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
  // LLVM takes masked vectors of narrow floats apart, by library calls.
  if (hasNarrowFloats()) {
    emitLoop(b, whole, extent, 1,
             [&](Value offset) { step(offset, 1, Value()); });
    return;
  }
  Value isMore = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rest, zero);
  emitIf(b, isMore, [&] { step(whole, numLanes, emitMask(rest, numLanes)); });
}

/// Sums of lanes, then the sum of all lanes and what the result was.
void LoopVectorizer::emitReductions(Value extent) {
  Value lanes = arith::ConstantIndexOp::create(b, numLanes);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value rest = b.createOrFold<arith::RemUIOp>(extent, lanes);
  Value whole = b.createOrFold<arith::SubIOp>(extent, rest);
  SmallVector<Value> neutral;
  for (Operation *combiner : combiners)
    neutral.push_back(emitSplat(*arith::getNeutralElement(combiner), numLanes));
  SmallVector<Value> sums = emitLoop(
      b, zero, whole, lanes, neutral, [&](Value offset, ValueRange state) {
        return emitBody(offset, numLanes, Value(), state);
      });
  std::optional<int64_t> number = getConstantIntValue(rest);
  bool isOneByOne = hasNarrowFloats();
  if (!isOneByOne && (!number || *number)) {
    Value mask = emitMask(rest, numLanes);
    SmallVector<Value> next = emitBody(whole, numLanes, mask, sums);
    for (auto [sum, value] : llvm::zip_equal(sums, next))
      sum = arith::SelectOp::create(b, mask, value, sum);
  }
  for (auto [init, sum, combiner] :
       llvm::zip_equal(op.getDpsInitsMutable(), sums, combiners)) {
    vector::CombiningKind kind = *linalg::getCombinerOpKind(combiner);
    Value total = isa<FloatType>(getElementTypeOrSelf(sum.getType()))
                      ? vector::ReductionOp::create(
                            b, kind, sum, arith::FastMathFlags::reassoc)
                      : vector::ReductionOp::create(b, kind, sum);
    SmallVector<Value> at =
        getIndices(op.getMatchingIndexingMap(&init), Value());
    IRMapping map;
    for (Value operand : combiner->getOperands())
      map.map(operand, operand == op.getMatchingBlockArgument(&init)
                           ? memref::LoadOp::create(b, init.get(), at)
                           : total);
    Value result = b.clone(*combiner, map)->getResult(0);
    memref::StoreOp::create(b, result, init.get(), at);
  }
  if (!isOneByOne || number == 0)
    return;
  emitLoop(b, whole, extent, 1, [&](Value offset) {
    SmallVector<Value> state;
    auto placeOf = [&](OpOperand &init) {
      return getIndices(op.getMatchingIndexingMap(&init), Value());
    };
    for (OpOperand &init : op.getDpsInitsMutable())
      state.push_back(
          emitSplat(memref::LoadOp::create(b, init.get(), placeOf(init)), 1));
    state = emitBody(offset, 1, Value(), state);
    for (auto [init, value] : llvm::zip_equal(op.getDpsInitsMutable(), state))
      memref::StoreOp::create(b, vector::ExtractOp::create(b, value, 0),
                              init.get(), placeOf(init));
  });
}

/// Whether one vector has all columns of the results, so that it stays in
/// registers while the loops that are reduced run.
bool LoopVectorizer::isCarried() {
  return combiners.empty() && op.getNumReductionLoops() != 0 &&
         op.getStaticLoopRanges()[vectorDim] == numLanes;
}

/// The loops `dims`, which are reduced; `state` is what the results are so far.
SmallVector<Value> LoopVectorizer::emitCarried(ArrayRef<unsigned> dims,
                                               ValueRange state) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  if (dims.empty()) {
    SmallVector<Value> next = emitBody(zero, numLanes, Value(), state);
    for (Value &value : next)
      value = emitSplat(value, numLanes);
    return next;
  }
  Value one = arith::ConstantIndexOp::create(b, 1);
  return emitLoop(b, zero, extents[dims.front()], one, state,
                  [&](Value index, ValueRange state) {
                    indices[dims.front()] = index;
                    return emitCarried(dims.drop_front(), state);
                  });
}

void LoopVectorizer::emitLoops(ArrayRef<unsigned> dims) {
  if (isCarried() &&
      (dims.empty() || op.getIteratorTypesArray()[dims.front()] ==
                           utils::IteratorType::reduction)) {
    Value zero = arith::ConstantIndexOp::create(b, 0);
    SmallVector<Value> state;
    for (OpOperand &init : op.getDpsInitsMutable())
      state.push_back(emitOperand(init, zero, numLanes, Value()));
    state = emitCarried(dims, state);
    for (auto [init, value] : llvm::zip_equal(op.getDpsInitsMutable(), state))
      emitStore(init, value, zero, numLanes, Value());
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
  emitLoop(b, zero, extents[dims.front()], 1, [&](Value index) {
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

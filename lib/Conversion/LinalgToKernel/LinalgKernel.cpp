//===- LinalgKernel.cpp - A kernel of one linalg operation ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinalgKernel.h"

#include "../KernelLaunch.h"
#include "varlen/Dialect/Kernel/IR/SharedTile.h"
#include "varlen/Support/ControlFlow.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::varlen;

/// Threads of a block.
static constexpr int64_t kThreads = 256;

//===----------------------------------------------------------------------===//
// Owners
//===----------------------------------------------------------------------===//

void varlen::emitOwners(ImplicitLocOpBuilder &b, const Twine &name,
                        ValueRange extents, int64_t threads,
                        function_ref<void(ValueRange, Value)> body) {
  IndexBuilder index{b};
  Value count = index.constant(1);
  for (Value extent : extents)
    count = index.mul(count, extent);
  int64_t perBlock = kThreads / threads;
  // As many as a grid can have; what is beyond comes after.
  Value blocks = index.min(index.ceilDiv(count, perBlock), INT32_MAX);
  emitLaunch(
      b, name, blocks, kThreads, [&](Value block, Value grid, Value thread) {
        Value first =
            index.add(index.mul(block, perBlock), index.div(thread, threads));
        Value lane = index.rem(thread, threads);
        emitLoop(b, first, count, index.mul(grid, perBlock), [&](Value owner) {
          body(emitDelinearize(index, owner, extents), lane);
        });
      });
}

SmallVector<Value> varlen::emitDelinearize(IndexBuilder &index, Value linear,
                                           ValueRange extents) {
  SmallVector<Value> indices(extents.size());
  for (size_t d = extents.size(); d-- > 1;) {
    indices[d] = index.rem(linear, extents[d]);
    linear = index.div(linear, extents[d]);
  }
  if (!indices.empty())
    indices.front() = linear;
  return indices;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LinalgKernel::LinalgKernel(linalg::LinalgOp op, SmallVector<Value> starts)
    : op(op), starts(std::move(starts)), b(op.getLoc(), op), index{b} {
  findOwned();
  findLanes();
}

/// The dimension of the map's result that is this loop itself.
static std::optional<unsigned> findLoop(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

void LinalgKernel::findOwned() {
  SmallVector<AffineMap> results;
  for (OpOperand &init : op.getDpsInitsMutable())
    results.push_back(op.getMatchingIndexingMap(&init));
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < iterators.size(); ++loop) {
    // Owners of other indices of such a loop write other elements.
    bool isOwned = iterators[loop] == utils::IteratorType::parallel &&
                   !results.empty() &&
                   llvm::all_of(results, [&](AffineMap map) {
                     return findLoop(map, loop).has_value();
                   });
    (isOwned ? owned : inner).push_back(loop);
  }
  llvm::sort(owned, [&](unsigned lhs, unsigned rhs) {
    return *findLoop(results.front(), lhs) < *findLoop(results.front(), rhs);
  });
  for (AffineMap map : results)
    isSum.push_back(llvm::none_of(
        inner, [&](unsigned loop) { return map.isFunctionOfDim(loop); }));
}

void LinalgKernel::findLanes() {
  if (inner.empty() || !llvm::all_of(isSum, [](bool sum) { return sum; }))
    return;
  // The loop along which all operands that it reduces are contiguous.
  std::optional<unsigned> last;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (llvm::none_of(inner,
                      [&](unsigned loop) { return map.isFunctionOfDim(loop); }))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (!dim || !llvm::is_contained(inner, dim.getPosition()) ||
        (last && *last != dim.getPosition()))
      return;
    last = dim.getPosition();
  }
  if (!last)
    return;
  int64_t extent = op.getStaticLoopRanges()[*last];
  if (ShapedType::isStatic(extent) && extent < kernel::kWarpLanes / 2)
    return;
  // A sum whose terms may come in any order.
  ArrayRef<BlockArgument> arguments = op.getRegionOutputArgs();
  for (unsigned i = 0; i < arguments.size(); ++i) {
    SmallVector<Operation *> found;
    if (!arguments[i].hasOneUse() || !matchReduction(arguments, i, found) ||
        found.size() != 1 || found.front()->getNumOperands() != 2)
      return;
    std::optional<TypedAttr> neutral = arith::getNeutralElement(found.front());
    if (!neutral || !arguments[i].getType().isIntOrFloat())
      return;
    combiners.push_back(found.front());
    neutrals.push_back(*neutral);
  }
  hasLanes = true;
  llvm::erase(inner, *last);
  inner.push_back(*last);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

SmallVector<Value> LinalgKernel::getIndices(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  return llvm::map_to_vector(
      affine::makeComposedFoldedMultiResultAffineApply(b, b.getLoc(), map,
                                                       getAsOpFoldResult(ivs)),
      [&](OpFoldResult at) {
        return getValueOrCreateConstantIndexOp(b, b.getLoc(), at);
      });
}

/// What the element of a result holds before the loops of its owner.
Value LinalgKernel::emitStart(unsigned result) {
  OpOperand &init = *op.getDpsInitOperand(result);
  if (starts[result])
    return starts[result];
  return memref::LoadOp::create(b, init.get(), getIndices(init));
}

/// The body at one point; `sums` are the results so far.
SmallVector<Value> LinalgKernel::emitPoint(ValueRange sums) {
  IRMapping map;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    Value value = operand.get();
    if (op.isDpsInit(&operand) &&
        isSum[operand.getOperandNumber() - op.getNumDpsInputs()])
      value = sums[operand.getOperandNumber() - op.getNumDpsInputs()];
    else if (isa<MemRefType>(value.getType()))
      value = memref::LoadOp::create(b, value, getIndices(operand));
    map.map(argument, value);
  }
  Block &body = op->getRegion(0).front();
  for (Operation &inside : body.without_terminator()) {
    Operation *copy = b.clone(inside, map);
    SmallVector<linalg::IndexOp> indices;
    copy->walk([&](linalg::IndexOp at) { indices.push_back(at); });
    for (linalg::IndexOp at : indices) {
      Value iv = ivs[at.getDim()];
      if (at == copy)
        map.map(inside.getResult(0), iv);
      at->replaceAllUsesWith(ValueRange{iv});
      at->erase();
    }
  }
  SmallVector<Value> next;
  for (auto [i, yielded] :
       llvm::enumerate(body.getTerminator()->getOperands())) {
    Value value = map.lookupOrDefault(yielded);
    if (isSum[i]) {
      next.push_back(value);
      continue;
    }
    OpOperand &init = *op.getDpsInitOperand(i);
    memref::StoreOp::create(b, value, init.get(), getIndices(init));
    next.push_back(sums[i]);
  }
  return next;
}

SmallVector<Value>
LinalgKernel::emitLoops(ValueRange sums, ArrayRef<unsigned> loops, Value lane) {
  if (loops.empty())
    return emitPoint(sums);
  bool isOfLanes = hasLanes && loops.size() == 1;
  // Only what is kept in registers is carried.
  SmallVector<Value> carried;
  for (auto [value, sum] : llvm::zip_equal(sums, isSum))
    if (sum)
      carried.push_back(value);
  auto spread = [&](ValueRange values) {
    SmallVector<Value> all;
    for (bool sum : isSum) {
      all.push_back(sum ? values.front() : Value());
      values = values.drop_front(sum);
    }
    return all;
  };
  return spread(emitLoop(
      b, isOfLanes ? lane : index.constant(0), extents[loops.front()],
      index.constant(isOfLanes ? kernel::kWarpLanes : 1), carried,
      [&](Value iv, ValueRange sums) {
        ivs[loops.front()] = iv;
        Values next = emitLoops(spread(sums), loops.drop_front(), lane);
        llvm::erase(next, Value());
        return next;
      }));
}

Value LinalgKernel::emitCombined(unsigned result, Value lhs, Value rhs) {
  Operation *combiner = combiners[result];
  IRMapping map;
  BlockArgument sum = op.getRegionOutputArgs()[result];
  for (Value operand : combiner->getOperands())
    map.map(operand, operand == sum ? lhs : rhs);
  return b.clone(*combiner, map)->getResult(0);
}

/// The value of the lane whose number is this one's xor `distance`: a shuffle
/// for every 32 bits.
static Value emitShuffle(ImplicitLocOpBuilder &b, Value value,
                         int64_t distance) {
  auto shuffle = [&](Value word) -> Value {
    return gpu::ShuffleOp::create(b, word, static_cast<int32_t>(distance),
                                  kernel::kWarpLanes, gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Type type = value.getType();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32)
    return shuffle(value);
  Type whole = b.getIntegerType(bits), i32 = b.getI32Type();
  bool isFloat = isa<FloatType>(type);
  if (isFloat)
    value = arith::BitcastOp::create(b, whole, value);
  if (bits < 32) {
    value = shuffle(arith::ExtUIOp::create(b, i32, value));
    value = arith::TruncIOp::create(b, whole, value);
  } else {
    Value result = arith::ConstantOp::create(b, b.getIntegerAttr(whole, 0));
    for (unsigned at = 0; at < bits; at += 32) {
      Value shift = arith::ConstantOp::create(b, b.getIntegerAttr(whole, at));
      Value word = arith::ShRUIOp::create(b, value, shift);
      word = shuffle(arith::TruncIOp::create(b, i32, word));
      word = arith::ExtUIOp::create(b, whole, word);
      word = arith::ShLIOp::create(b, word, shift);
      result = arith::OrIOp::create(b, result, word);
    }
    value = result;
  }
  return isFloat ? arith::BitcastOp::create(b, type, value).getResult() : value;
}

void LinalgKernel::emitElement(Value lane) {
  SmallVector<Value> sums;
  for (unsigned i = 0; i < isSum.size(); ++i) {
    OpOperand *init = op.getDpsInitOperand(i);
    if (hasLanes)
      sums.push_back(arith::ConstantOp::create(b, neutrals[i]));
    else if (isSum[i] &&
             (!inner.empty() || op.payloadUsesValueFromOperand(init)))
      sums.push_back(emitStart(i));
    else
      sums.push_back({});
  }
  sums = emitLoops(sums, inner, lane);
  auto store = [&] {
    for (auto [i, sum] : llvm::enumerate(sums)) {
      OpOperand &init = *op.getDpsInitOperand(i);
      if (hasLanes)
        sum = emitCombined(i, emitStart(i), sum);
      if (isSum[i])
        memref::StoreOp::create(b, sum, init.get(), getIndices(init));
    }
  };
  if (!hasLanes)
    return store();
  for (int64_t distance = kernel::kWarpLanes / 2; distance > 0; distance /= 2)
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = emitCombined(i, sum, emitShuffle(b, sum, distance));
  emitIf(b, index.equal(lane, 0), store);
}

void LinalgKernel::emit(const Twine &name) {
  for (const Range &range : op.createLoopRanges(b, b.getLoc()))
    extents.push_back(
        getValueOrCreateConstantIndexOp(b, b.getLoc(), range.size));
  ivs.resize(extents.size());
  auto shared = llvm::map_to_vector(
      owned, [&](unsigned loop) -> Value { return extents[loop]; });
  emitOwners(b, name, shared, hasLanes ? kernel::kWarpLanes : 1,
             [&](ValueRange at, Value lane) {
               for (auto [loop, iv] : llvm::zip_equal(owned, at))
                 ivs[loop] = iv;
               emitElement(lane);
             });
}

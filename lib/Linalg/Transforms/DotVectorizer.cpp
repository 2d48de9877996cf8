//===- DotVectorizer.cpp - Contractions along memory ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DotVectorizer.h"

#include "varlen/Linalg/Attributes.h"
#include "varlen/Support/IndexBuilder.h"
#include "varlen/Support/Matrices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mlir::varlen;

/// Cache lines of a column whose steps are written one after the other: no loop
/// counts them, nor which line a step asks for. With more lines products wait
/// for memory, and f32 of 1 KB took 1.2 of the time.
static constexpr int64_t kUnrolledLines = 4;

DotVectorizer::DotVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                             const ContractionForm &form,
                             const CPUTarget &target)
    : ContractionLoops(builder, op, form, target),
      isPaired(isBF16Product(form, target)),
      lanes(target.getLanes(element.getWidth() / 8) * (isPaired ? 2 : 1)),
      tileSize(std::min<int64_t>(target.vectorRegisters >= 32 ? 4 : 2,
                                 target.getLanes(element.getWidth() / 8))),
      isCached(isRightSmall(/*isPanel=*/false)) {}

bool DotVectorizer::canEmit() {
  if (!op.hasPureBufferSemantics() || element.getWidth() < 32 ||
      !form.hasDepthLast || op->hasAttr(kInOrderAttrName))
    return false;
  for (OpOperand *operand : {form.lhs, form.rhs, form.result})
    if (!isContiguous(operand))
      return false;
  int64_t depth = op.getStaticLoopRanges()[form.depth];
  return ShapedType::isStatic(depth) && depth % lanes == 0;
}

Value DotVectorizer::load(OpOperand &operand) {
  auto type = VectorType::get({lanes}, getElement(&operand));
  Value vector =
      vector::LoadOp::create(b, type, operand.get(), getIndices(operand));
  return isPaired ? vector : widen(vector);
}

Value DotVectorizer::addProducts(Value sum, Value lhs, Value rhs) {
  if (isPaired)
    return x86vector::DotBF16Op::create(b, sum.getType(), sum, lhs, rhs);
  return multiplyAdd(lhs, rhs, sum);
}

/// The sum of each vector, in the order of the vectors, whose number is a power
/// of two and at most that of lanes: halves of two become one vector until each
/// has one element. A sum has the same bits whatever the number of vectors.
Value DotVectorizer::addLanes(ArrayRef<Value> vectors) {
  Values sums(vectors);
  int64_t width = cast<VectorType>(sums.front().getType()).getNumElements();
  // Lanes that a sum still has. A vector has those of some sums, one sum's
  // behind another's.
  int64_t part = width;
  auto isLower = [&](int64_t lane) { return lane % part < part / 2; };
  auto add = [&](Value lhs, Value rhs, ArrayRef<int64_t> first,
                 ArrayRef<int64_t> second) -> Value {
    return arith::AddFOp::create(
        b, vector::ShuffleOp::create(b, lhs, rhs, first),
        vector::ShuffleOp::create(b, lhs, rhs, second));
  };
  // Lower halves of one vector and upper ones of another stay where they are,
  // which takes a blend, and the others change places. Neighbours in a vector
  // are then those whose numbers differ by half of all. Vectors of 128 bits
  // are split by one instruction as they come.
  bool exchanges = target.vectorBytes > 16;
  for (; part > 1 && sums.size() > 1; part /= 2) {
    SmallVector<int64_t> first, second;
    for (int64_t lane = 0; exchanges && lane < width; ++lane) {
      first.push_back(isLower(lane) ? lane : width + lane);
      second.push_back(isLower(lane) ? lane + part / 2
                                     : width + lane - part / 2);
    }
    for (int64_t lane = 0; !exchanges && lane < 2 * width; ++lane)
      (isLower(lane) ? first : second).push_back(lane);
    size_t half = sums.size() / 2;
    for (size_t i = 0; i < half; ++i)
      sums[i] = exchanges ? add(sums[i], sums[half + i], first, second)
                          : add(sums[2 * i], sums[2 * i + 1], first, second);
    sums.resize(half);
  }
  for (; part > 1; part /= 2, width /= 2) {
    SmallVector<int64_t> lower, upper;
    for (int64_t lane = 0; lane < width; ++lane)
      (isLower(lane) ? lower : upper).push_back(lane);
    sums = {add(sums.front(), sums.front(), lower, upper)};
  }
  return sums.front();
}

/// Asks for what a later tile, whose first column is a row of memory, reads at
/// this step of the contracted loop: of a line that several steps read, each
/// asks for some columns.
void DotVectorizer::prefetch(const RightRow &first) {
  IndexBuilder index{b};
  int64_t steps = getVectorsOfLine(lanes);
  int64_t each = llvm::divideCeil(tileSize, steps);
  Value column = first.number;
  if (steps > 1) {
    Value step = index.rem(index.div(indices[form.depth], lanes), steps);
    column = index.add(column, index.mul(step, each));
  }
  for (int64_t i = 0; i < each; ++i) {
    indices[form.columns] = index.add(column, i);
    prefetchRight(first.memory);
  }
}

void DotVectorizer::emitTile(Value row, int64_t numRows, Value column) {
  IndexBuilder index{b};
  // Columns that are not there are the last one again, and not stored.
  Value present = index.sub(extents[form.columns], column);
  RightRow ahead;
  if (!isCached)
    ahead = getRowAhead(column);
  SmallVector<Value> rows, columns;
  for (int64_t i = 0; i < numRows; ++i)
    rows.push_back(index.add(row, i));
  for (int64_t j = 0; j < tileSize; ++j)
    columns.push_back(
        index.add(column, index.min(index.constant(j),
                                    index.sub(present, index.constant(1)))));
  Value zero = arith::ConstantOp::create(
      b, b.getZeroAttr(VectorType::get({lanes / (isPaired ? 2 : 1)}, element)));
  Values zeros(numRows * tileSize, zero);
  auto addStep = [&](Value k, ValueRange state) {
    indices[form.depth] = k;
    Values next(state), right;
    if (!isCached)
      prefetch(ahead);
    for (Value at : columns) {
      indices[form.columns] = at;
      right.push_back(load(*form.rhs));
    }
    for (auto [i, at] : llvm::enumerate(rows)) {
      indices[form.rows] = at;
      Value left = load(*form.lhs);
      for (auto [j, vector] : llvm::enumerate(right)) {
        Value &sum = next[i * tileSize + j];
        sum = addProducts(sum, left, vector);
      }
    }
    return next;
  };
  Values sums = zeros;
  int64_t depth = op.getStaticLoopRanges()[form.depth];
  if (depth <= kUnrolledLines * getCacheLineElements(getElement(form.rhs)))
    for (int64_t k = 0; k < depth; k += lanes)
      sums = addStep(index.constant(k), sums);
  else
    sums = emitLoop(b, index.constant(0), extents[form.depth],
                    index.constant(lanes), sums, addStep);
  indices[form.columns] = column;
  auto type = VectorType::get({tileSize}, element);
  Value mask = vector::CreateMaskOp::create(
      b, VectorType::get({tileSize}, b.getI1Type()), present);
  Value zeroRow = arith::ConstantOp::create(b, b.getZeroAttr(type));
  // As many rows at once as one vector has sums of.
  int64_t numLanes = lanes / (isPaired ? 2 : 1);
  int64_t together = std::min(numRows, numLanes / tileSize);
  Value added;
  for (int64_t i = 0; i < numRows; ++i) {
    if (i % together == 0)
      added = addLanes(ArrayRef(sums).slice(i * tileSize, together * tileSize));
    indices[form.rows] = rows[i];
    SmallVector<Value> at = getIndices(*form.result);
    Value memory = form.result->get();
    Value before =
        vector::MaskedLoadOp::create(b, type, memory, at, mask, zeroRow);
    Value sum = vector::ExtractStridedSliceOp::create(
        b, added, {i % together * tileSize}, {tileSize}, {1});
    vector::MaskedStoreOp::create(b, memory, at, mask,
                                  arith::AddFOp::create(b, before, sum));
  }
}

void DotVectorizer::emitMatrix() {
  IndexBuilder index{b};
  // The rows are read again for each tile of columns: they are few, or in the
  // first-level cache.
  Value rows = extents[form.rows], whole = index.roundDown(rows, tileSize);
  emitLoop(b, index.constant(0), extents[form.columns], tileSize,
           [&](Value column) {
             emitLoop(b, index.constant(0), whole, tileSize,
                      [&](Value row) { emitTile(row, tileSize, column); });
             emitLoop(b, whole, rows, 1,
                      [&](Value row) { emitTile(row, 1, column); });
           });
}

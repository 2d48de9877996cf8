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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mlir::varlen;

DotVectorizer::DotVectorizer(OpBuilder &builder, linalg::LinalgOp op,
                             const ContractionForm &form,
                             const CPUTarget &target)
    : ContractionLoops(builder, op, form, target),
      isPaired(isBF16Product(form, target)),
      lanes(target.getLanes(element.getWidth() / 8) * (isPaired ? 2 : 1)),
      tileSize(std::min<int64_t>(target.vectorRegisters >= 32 ? 4 : 2,
                                 target.getLanes(element.getWidth() / 8))) {}

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

/// The sum of each vector, in the order of the vectors: halves of two become
/// one vector until each has one element.
Value DotVectorizer::addLanes(ArrayRef<Value> vectors) {
  Values sums(vectors);
  int64_t width = cast<VectorType>(sums.front().getType()).getNumElements();
  // Of how many lanes each sum is made, and the vectors of the tile that one
  // vector has lanes of.
  int64_t part = width, count = 1;
  auto fold = [&](Value lhs, Value rhs) -> Value {
    SmallVector<int64_t> low, high;
    for (int64_t side = 0; side < (lhs == rhs ? 1 : 2); ++side)
      for (int64_t begin = 0; begin < count; ++begin)
        for (int64_t lane = 0; lane < part / 2; ++lane) {
          low.push_back(side * width + begin * part + lane);
          high.push_back(low.back() + part / 2);
        }
    return arith::AddFOp::create(b, vector::ShuffleOp::create(b, lhs, rhs, low),
                                 vector::ShuffleOp::create(b, lhs, rhs, high));
  };
  while (part > 1) {
    if (sums.size() > 1) {
      Values next;
      for (size_t i = 0; i < sums.size(); i += 2)
        next.push_back(fold(sums[i], sums[i + 1]));
      sums = next;
      count *= 2;
    } else {
      sums = {fold(sums.front(), sums.front())};
      width /= 2;
    }
    part /= 2;
  }
  return sums.front();
}

void DotVectorizer::emitTile(Value row, int64_t numRows, Value column) {
  IndexBuilder index{b};
  // Columns that are not there are the last one again, and not stored.
  Value present = index.sub(extents[form.columns], column);
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
  Values sums =
      emitLoop(b, index.constant(0), extents[form.depth], index.constant(lanes),
               zeros, [&](Value k, ValueRange state) {
                 indices[form.depth] = k;
                 Values next(state), right;
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
               });
  indices[form.columns] = column;
  auto type = VectorType::get({tileSize}, element);
  Value mask = vector::CreateMaskOp::create(
      b, VectorType::get({tileSize}, b.getI1Type()), present);
  Value zeroRow = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (int64_t i = 0; i < numRows; ++i) {
    indices[form.rows] = rows[i];
    SmallVector<Value> at = getIndices(*form.result);
    Value memory = form.result->get();
    Value before =
        vector::MaskedLoadOp::create(b, type, memory, at, mask, zeroRow);
    Value sum = addLanes(ArrayRef(sums).slice(i * tileSize, tileSize));
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

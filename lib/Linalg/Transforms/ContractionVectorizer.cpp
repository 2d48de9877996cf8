//===- ContractionVectorizer.cpp - Contractions in registers --------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionVectorizer.h"

#include "FilledMemory.h"
#include "varlen/Linalg/Attributes.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

/// Of panels, where rows follow each other.
static constexpr int64_t kStepsPerPrefetch = 8;
/// Rows of a result that share what is read of a right factor where it is.
static constexpr int64_t kMostRowsInPlace = 4;
/// Steps of the contracted loop in one of its trips, where nothing is fetched.
static constexpr int64_t kUnroll = 2;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Whether the rows of a matrix are `width` elements and follow each other in
/// memory without a gap.
static bool isPanel(Value matrix, int64_t width) {
  auto type = cast<MemRefType>(matrix.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  // Pairs have a third dimension.
  bool isPaired = type.getRank() == 3;
  return (isPaired || type.getRank() == 2) &&
         succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[0] == (isPaired ? 2 : 1) * width;
}

ContractionVectorizer::ContractionVectorizer(OpBuilder &builder,
                                             linalg::LinalgOp op,
                                             const ContractionForm &form,
                                             const CPUTarget &target,
                                             int64_t depthStep)
    : ContractionLoops(builder, op, form, target),
      sizes(getContractionTile(target)),
      lanes(target.getLanes(element.getWidth() / 8)), depthStep(depthStep),
      hasPanels(depthStep == 1 &&
                isPanel(form.rhs->get(), sizes.vectors * lanes)) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  isCached = isRightSmall(hasPanels);
  int64_t rows = ranges[form.rows], columns = ranges[form.columns];
  if (!hasPanels) {
    // A tile that is read where it is takes as many sums as panels do.
    ContractionTile wide = sizes;
    wide.vectors *= 2;
    wide.rows /= 2;
    if (ShapedType::isStatic(columns) && columns % (wide.vectors * lanes) == 0)
      sizes = wide;
    isCached &= rows >= sizes.rows;
    if (!isCached)
      sizes = getContractionTileInPlace(target);
  }
  if (ShapedType::isStatic(columns))
    sizes.vectors =
        std::clamp<int64_t>(llvm::divideCeil(columns, lanes), 1, sizes.vectors);
  // Few columns leave registers for more rows, which share what is read.
  bool areFew = 2 * kMostRowsInPlace * sizes.vectors <= target.vectorRegisters;
  if (!isCached && !hasPanels && areFew)
    sizes.rows = kMostRowsInPlace;
}

Value ContractionVectorizer::load(OpOperand &operand, Value mask) {
  auto type =
      VectorType::get({lanes}, getElementTypeOrSelf(operand.get().getType()));
  SmallVector<Value> at = getIndices(operand);
  if (!mask)
    return vector::LoadOp::create(b, type, operand.get(), at);
  return vector::MaskedLoadOp::create(
      b, type, operand.get(), at, mask,
      arith::ConstantOp::create(b, b.getZeroAttr(type)));
}

Value ContractionVectorizer::loadRight(Value mask) {
  return widen(load(*form.rhs, mask));
}

Value ContractionVectorizer::loadStep(OpOperand &operand) {
  return widen(memref::LoadOp::create(b, operand.get(), getIndices(operand)));
}

Value ContractionVectorizer::loadSteps(OpOperand &operand) {
  return widen(load(operand, /*mask=*/{}));
}

Value ContractionVectorizer::loadLeft() {
  Value step = loadStep(*form.lhs);
  return toFactor(vector::BroadcastOp::create(
      b, VectorType::get({lanes}, step.getType()), step));
}

Value ContractionVectorizer::addProducts(Value lhs, Value rhs, Value sum) {
  return multiplyAdd(lhs, rhs, sum);
}

Value ContractionVectorizer::emitMask(Value count, int64_t size) {
  return vector::CreateMaskOp::create(b, VectorType::get({size}, b.getI1Type()),
                                      count);
}

/// Fetches a row of the right factor for later, the columns of a tile.
void ContractionVectorizer::prefetch(const RightRow &row,
                                     ArrayRef<Value> columns) {
  indices[form.depth] = row.number;
  int64_t vectorsOfLine = getVectorsOfLine(lanes);
  for (size_t j = 0; j < columns.size(); j += vectorsOfLine) {
    indices[form.columns] = columns[j];
    prefetchRight(row.memory);
  }
}

Values ContractionVectorizer::emitLastStep(
    Value whole, Values sums, function_ref<Values(Value, ValueRange)> addStep) {
  IndexBuilder index{b};
  Value depth = extents[form.depth];
  if (getConstantIntValue(index.sub(depth, whole)) == 0)
    return sums;
  isLastStep = true;
  sums = emitLoop(b, whole, depth, index.constant(depthStep), sums, addStep);
  isLastStep = false;
  return sums;
}

/// Of panels, the next one, which lies behind this one in memory, is fetched
/// meanwhile, a part of it with each tile of a block of rows: all of it with
/// each tile would take more time than it saves.
Values ContractionVectorizer::emitDepth(
    Value row, ArrayRef<Value> columns, Values sums,
    function_ref<Values(Value, ValueRange)> addStep) {
  IndexBuilder index{b};
  Value depth = extents[form.depth], one = index.constant(1);
  if (isCached) {
    // Few sums are those of an edge, where little is gained by more code.
    ContractionTile full = getContractionTile(target);
    bool isFull = sizes.rows * sizes.vectors >= full.rows * full.vectors;
    int64_t unroll = isFull ? kUnroll : 1;
    Value each = index.constant(depthStep * unroll);
    Value whole = index.roundDown(depth, depthStep * unroll);
    sums = emitLoop(b, index.constant(0), whole, each, sums,
                    [&](Value k, ValueRange state) {
                      Values next(state);
                      for (int64_t i = 0; i < unroll; ++i)
                        next = addStep(index.add(k, i * depthStep), next);
                      return next;
                    });
    if (getConstantIntValue(index.sub(depth, whole)) == 0)
      return sums;
    Value steps = index.roundDown(depth, depthStep);
    sums = emitLoop(b, whole, steps, index.constant(depthStep), sums, addStep);
    return emitLastStep(steps, sums, addStep);
  }
  if (!hasPanels) {
    Value whole = index.roundDown(depth, depthStep);
    sums = emitLoop(b, index.constant(0), whole, index.constant(depthStep),
                    sums, [&](Value k, ValueRange state) {
                      RightRow first = getRowAhead(k);
                      for (int64_t i = 0; i < depthStep; ++i)
                        prefetch({first.memory, index.add(first.number, i)},
                                 columns);
                      return addStep(k, state);
                    });
    return emitLastStep(whole, sums, addStep);
  }
  Value numTiles = index.ceilDiv(extents[form.rows], sizes.rows);
  Value share = index.div(index.add(depth, index.sub(numTiles, one)), numTiles);
  Value tile = index.div(row, index.constant(sizes.rows));
  Value first = index.add(depth, index.mul(tile, share));
  Value step = index.constant(kStepsPerPrefetch);
  Value whole = index.roundDown(depth, kStepsPerPrefetch);
  sums = emitLoop(
      b, index.constant(0), whole, step, sums, [&](Value k, ValueRange state) {
        prefetch({form.rhs->get(), index.add(first, index.div(k, step))},
                 columns);
        return Values(emitLoop(b, k, index.add(k, step), one, state, addStep));
      });
  if (getConstantIntValue(index.sub(depth, whole)) == 0)
    return sums;
  return emitLoop(b, whole, depth, one, sums, addStep);
}

void ContractionVectorizer::emitTile(const Tile &tile) {
  IndexBuilder index{b};
  // Rows that are not there are the last one again, and not stored.
  SmallVector<Value> rows, columns, masks, rightMasks;
  for (int64_t i = 0; i < tile.numRows; ++i) {
    Value offset = index.constant(i);
    if (tile.rows)
      offset = index.min(offset, index.sub(tile.rows, index.constant(1)));
    rows.push_back(index.add(tile.row, offset));
  }
  for (int64_t j = 0; j < sizes.vectors; ++j) {
    columns.push_back(index.add(tile.column, j * lanes));
    Value present = tile.columns
                        ? index.sub(tile.columns, index.constant(j * lanes))
                        : Value();
    masks.push_back(present ? emitMask(present, lanes) : Value());
    rightMasks.push_back(present ? emitRightMask(present) : Value());
  }
  auto forEach = [&](function_ref<void(int64_t, int64_t)> visit) {
    for (int64_t i = 0; i < tile.numRows; ++i)
      for (int64_t j = 0; j < sizes.vectors; ++j) {
        indices[form.rows] = rows[i];
        indices[form.columns] = columns[j];
        visit(i, j);
      }
  };
  Values sums;
  bool isAddedLast = !initial && op->hasAttr(kAddLastAttrName);
  Value zero;
  if (isAddedLast)
    zero = arith::ConstantOp::create(
        b, b.getZeroAttr(VectorType::get({lanes}, element)));
  forEach([&](int64_t i, int64_t j) {
    sums.push_back(initial              ? initial
                   : isAddedLast        ? zero
                   : !registers.empty() ? registers[i * sizes.vectors + j]
                                        : load(*form.result, masks[j]));
  });
  auto addStep = [&](Value k, ValueRange state) {
    indices[form.depth] = k;
    Values next(state), vectors;
    for (int64_t j = 0; j < sizes.vectors; ++j) {
      indices[form.columns] = columns[j];
      vectors.push_back(loadRight(rightMasks[j]));
    }
    for (int64_t i = 0, e = state.size() / sizes.vectors; i < e; ++i) {
      indices[form.rows] = rows[i];
      Value factor = loadLeft();
      for (int64_t j = 0; j < sizes.vectors; ++j) {
        Value &sum = next[i * sizes.vectors + j];
        sum = addProducts(factor, vectors[j], sum);
      }
    }
    return next;
  };
  sums = emitDepth(tile.row, columns, sums, addStep);
  if (isAddedLast)
    forEach([&](int64_t i, int64_t j) {
      Value &sum = sums[i * sizes.vectors + j];
      Value before = registers.empty() ? load(*form.result, masks[j])
                                       : registers[i * sizes.vectors + j];
      sum = arith::AddFOp::create(b, before, sum);
    });
  if (!registers.empty()) {
    llvm::copy(sums, registers.begin());
    return;
  }
  for (int64_t i = 0; i < tile.numRows; ++i) {
    auto store = [&] {
      indices[form.rows] = index.add(tile.row, i);
      for (int64_t j = 0; j < sizes.vectors; ++j) {
        indices[form.columns] = columns[j];
        SmallVector<Value> at = getIndices(*form.result);
        Value sum = sums[i * sizes.vectors + j];
        if (masks[j])
          vector::MaskedStoreOp::create(b, form.result->get(), at, masks[j],
                                        sum);
        else
          vector::StoreOp::create(b, sum, form.result->get(), at);
      }
    };
    if (tile.rows && i > 0)
      emitIf(b, index.less(index.constant(i), tile.rows), store);
    else
      store();
  }
}

void ContractionVectorizer::emitRows(Value column, Value columns, bool isCut) {
  IndexBuilder index{b};
  Value rows = extents[form.rows];
  Value cut = isCut ? columns : Value();
  Value whole = index.roundDown(rows, sizes.rows);
  emitLoop(b, index.constant(0), whole, sizes.rows, [&](Value row) {
    emitTile({row, column, Value(), cut, sizes.rows});
  });
  Value rest = index.sub(rows, whole);
  if (getConstantIntValue(rest) == 0)
    return;
  if (isCached || hasPanels) {
    emitIf(b, index.less(index.constant(0), rest),
           [&] { emitTile({whole, column, rest, cut, sizes.rows - 1}); });
    return;
  }
  // Waiting for memory, few rows should not compute those of more: a tile of
  // each power of two.
  for (int64_t numRows = sizes.rows / 2; numRows > 0; numRows /= 2) {
    Value end = index.roundDown(rows, numRows);
    emitIf(b, index.less(whole, end),
           [&] { emitTile({whole, column, Value(), cut, numRows}); });
    whole = end;
  }
}

bool ContractionVectorizer::isOneTile() {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  return form.outer.empty() && ranges[form.rows] == sizes.rows &&
         ranges[form.columns] == sizes.vectors * lanes;
}

void ContractionVectorizer::emitOn(MutableArrayRef<Value> sums) {
  registers = sums;
  emit();
}

void ContractionVectorizer::emitMatrix() {
  IndexBuilder index{b};
  if (!registers.empty()) {
    Value zero = index.constant(0);
    return emitTile({zero, zero, Value(), Value(), sizes.rows});
  }
  if (linalg::FillOp fill = findFill(op, *form.result);
      fill && form.outer.empty()) {
    initial = vector::BroadcastOp::create(b, VectorType::get({lanes}, element),
                                          fill.getInputs().front());
    fill.erase();
  }
  Value columns = extents[form.columns];
  int64_t step = sizes.vectors * lanes;
  Value whole = index.roundDown(columns, step);
  emitLoop(b, index.constant(0), whole, step,
           [&](Value column) { emitRows(column, columns, /*isCut=*/false); });
  Value rest = index.sub(columns, whole);
  std::optional<int64_t> numLeft = getConstantIntValue(rest);
  if (numLeft == 0)
    return;
  if (numLeft && *numLeft % lanes == 0) {
    // Whole vectors, but fewer of them.
    sizes.vectors = *numLeft / lanes;
    return emitRows(whole, rest, /*isCut=*/false);
  }
  emitIf(b, index.less(index.constant(0), rest),
         [&] { emitRows(whole, rest, /*isCut=*/true); });
}

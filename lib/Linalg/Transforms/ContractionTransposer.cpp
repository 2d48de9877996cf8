//===- ContractionTransposer.cpp - Contractions of few rows ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionTransposer.h"

#include "ContractionPairs.h"
#include "TransposeVectors.h"
#include "varlen/Linalg/Attributes.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::varlen;

bool varlen::canTransposeFactor(linalg::LinalgOp op,
                                const ContractionForm &form) {
  return op->hasAttr(kInOrderAttrName) && op.hasPureBufferSemantics() &&
         form.hasRightDepthLast && isContiguous(form.result) &&
         getElementWidth(form.result) >= 32;
}

namespace {

/// `Steps` has what a step of the contracted loop takes.
template <typename Steps> class ContractionTransposer final : public Steps {
public:
  ContractionTransposer(OpBuilder &builder, linalg::LinalgOp op,
                        const ContractionForm &form, const CPUTarget &target)
      : Steps(builder, op, form, target) {
    sizes = getContractionTileTransposed(target);
    hasPanels = false;
  }

private:
  using Steps::b, Steps::extents, Steps::form, Steps::indices, Steps::lanes,
      Steps::depthStep, Steps::sizes, Steps::hasPanels;

  void emitMatrix() override;
  Values emitDepth(Value row, ArrayRef<Value> columns, Values sums,
                   function_ref<Values(Value, ValueRange)> addStep) override;
  Value loadRight(Value mask) override;
  SmallVector<Value> loadSquare();
  Value emitFirstSquare();
  Values emitSquare(Value k, ValueRange sums,
                    function_ref<Values(Value, ValueRange)> addStep);

  /// The columns of a tile; those that are not there are the last one again.
  SmallVector<Value> places;
  /// Whether the tile has one row, if that is not known.
  Value isOneRow;
  /// The step of a square that is multiplied.
  Value current;
};

} // namespace

/// Steps of the right factor from that of `indices` on, each with all columns
/// of the tile.
template <typename Steps>
SmallVector<Value> ContractionTransposer<Steps>::loadSquare() {
  SmallVector<Value> square;
  for (Value place : places) {
    indices[form.columns] = place;
    square.push_back(this->loadSteps(*form.rhs));
  }
  square = transposeVectors(b, square);
  for (Value &steps : square)
    steps = this->toFactor(steps);
  return square;
}

/// Where the squares begin: where vectors of the first column are aligned in
/// memory. Columns a power of two apart fall into one set of the first cache,
/// which has not as many ways as a square has columns: a line that two squares
/// share would be read twice.
template <typename Steps>
Value ContractionTransposer<Steps>::emitFirstSquare() {
  IndexBuilder index{b};
  auto memory = memref::ExtractStridedMetadataOp::create(b, form.rhs->get());
  int64_t bytes = getElementWidth(form.rhs) / 8;
  Value place =
      index.add(index.div(memref::ExtractAlignedPointerAsIndexOp::create(
                              b, form.rhs->get()),
                          index.constant(bytes)),
                memory.getOffset());
  indices[form.columns] = places.front();
  indices[form.depth] = index.constant(0);
  for (auto [at, stride] :
       llvm::zip_equal(this->getIndices(*form.rhs), memory.getStrides()))
    place = index.add(place, index.mul(at, stride));
  int64_t side = lanes * depthStep;
  Value before = index.rem(index.sub(index.roundUp(place, side), place),
                           index.constant(side));
  return index.roundDown(index.min(before, extents[form.depth]), depthStep);
}

template <typename Steps>
Value ContractionTransposer<Steps>::loadRight(Value /*mask*/) {
  if (current)
    return current;
  SmallVector<Value> steps;
  for (Value place : places) {
    indices[form.columns] = place;
    steps.push_back(this->loadStep(*form.rhs));
  }
  auto type = VectorType::get({lanes}, steps.front().getType());
  return this->toFactor(vector::FromElementsOp::create(b, type, steps));
}

template <typename Steps>
Values ContractionTransposer<Steps>::emitDepth(
    Value /*row*/, ArrayRef<Value> /*columns*/, Values sums,
    function_ref<Values(Value, ValueRange)> addStep) {
  IndexBuilder index{b};
  int64_t side = lanes * depthStep;
  Value depth = extents[form.depth], zero = index.constant(0);
  Value steps = index.roundDown(depth, depthStep);
  // Before squares and after them, by code that is there once.
  Value first = zero, last = zero, numParts = index.constant(1);
  std::optional<int64_t> known = getConstantIntValue(depth);
  if (isContiguous(form.rhs) && (!known || *known >= side)) {
    first = emitFirstSquare();
    last = index.add(first, index.roundDown(index.sub(steps, first), side));
    numParts = index.constant(2);
  }
  sums =
      emitLoop(b, zero, numParts, index.constant(1), sums,
               [&](Value part, ValueRange state) {
                 Value isLast = index.equal(index.add(part, 1), numParts);
                 Value end = index.select(isLast, steps, first);
                 Values next =
                     emitLoop(b, index.select(isLast, last, zero), end,
                              index.constant(depthStep), state, addStep);
                 if (getConstantIntValue(last) == 0)
                   return next;
                 return Values(emitLoop(b, end, index.select(isLast, end, last),
                                        index.constant(side), next,
                                        [&](Value k, ValueRange state) {
                                          return emitSquare(k, state, addStep);
                                        }));
               });
  return this->emitLastStep(steps, sums, addStep);
}

/// `sums` and the products of a square, of one row alone if there is no other.
template <typename Steps>
Values ContractionTransposer<Steps>::emitSquare(
    Value k, ValueRange sums, function_ref<Values(Value, ValueRange)> addStep) {
  IndexBuilder index{b};
  indices[form.depth] = k;
  SmallVector<Value> square = loadSquare();
  auto addSquare = [&](Values next) {
    for (auto [i, step] : llvm::enumerate(square)) {
      current = step;
      next = addStep(index.add(k, i * depthStep), next);
    }
    current = {};
    return next;
  };
  if (!isOneRow)
    return addSquare(sums);
  return emitChoice(
      b, isOneRow,
      [&] {
        Values next(sums);
        next.front() = addSquare({sums.front()}).front();
        return next;
      },
      [&] { return addSquare(sums); });
}

template <typename Steps> void ContractionTransposer<Steps>::emitMatrix() {
  IndexBuilder index{b};
  Value rows = extents[form.rows], columns = extents[form.columns];
  Value zero = index.constant(0), one = index.constant(1);
  auto isMultiple = [&](Value extent, int64_t of) {
    std::optional<int64_t> known = getConstantIntValue(extent);
    return known && *known % of == 0;
  };
  if (getConstantIntValue(rows) == 1)
    sizes.rows = 1;
  emitLoop(b, zero, columns, lanes, [&](Value column) {
    Value present;
    if (!isMultiple(columns, lanes))
      present = index.sub(columns, column);
    places.clear();
    for (int64_t i = 0; i < lanes; ++i) {
      Value offset = index.constant(i);
      if (present)
        offset = index.min(offset, index.sub(present, one));
      places.push_back(index.add(column, offset));
    }
    emitLoop(b, zero, rows, sizes.rows, [&](Value row) {
      Value left;
      if (!isMultiple(rows, sizes.rows)) {
        left = index.sub(rows, row);
        isOneRow = index.equal(left, one);
      }
      this->emitTile({row, column, left, present, sizes.rows});
    });
  });
}

void varlen::emitTransposingContraction(OpBuilder &builder, linalg::LinalgOp op,
                                        const ContractionForm &form,
                                        const CPUTarget &target) {
  if (isBF16Product(form, target))
    ContractionTransposer<PairVectorizer>(builder, op, form, target).emit();
  else
    ContractionTransposer<ContractionVectorizer>(builder, op, form, target)
        .emit();
}

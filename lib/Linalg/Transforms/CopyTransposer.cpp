//===- CopyTransposer.cpp - A copy that transposes ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyTransposer.h"

#include "TransposeVectors.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"
#include "varlen/Support/PairMap.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::varlen;

/// Rows of the source that are read before the next columns of it: the pages
/// that they are on, one each, should stay in the TLB meanwhile.
static constexpr int64_t kRowsOfStrip = 1024;

bool varlen::isPermutingCopy(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || !op.isSingleInputOutput() ||
      !op.isAllParallelLoops())
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type || !type.getElementType().isIntOrFloat() ||
        type.getElementTypeBitWidth() % 8 != 0 || !type.isLastDimUnitStride() ||
        !op.getMatchingIndexingMap(&operand).isPermutation())
      return false;
  }
  return op.getBlock()->getTerminator()->getOperand(0) ==
         op.getRegionInputArgs()[0];
}

bool CopyTransposer::canEmit() {
  if (!isPermutingCopy(op) || op.getNumLoops() < 2)
    return false;
  input = op.getDpsInputOperand(0);
  init = op.getDpsInitOperand(0);
  auto from = cast<MemRefType>(input->get().getType()),
       to = cast<MemRefType>(init->get().getType());
  AffineMap read = op.getMatchingIndexingMap(input),
            written = op.getMatchingIndexingMap(init);
  unsigned place = op.getNumLoops() - 1;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t bytes = from.getElementTypeBitWidth() / 8;
  if (unsigned last = read.getDimPosition(place);
      last == written.getDimPosition(place)) {
    // Collapsed dimensions have one stride.
    auto canCollapse = [&](MemRefType type) {
      return memref::CollapseShapeOp::isGuaranteedCollapsible(
          type, getPairDims(type.getRank()));
    };
    if (ranges[last] != 2 || bytes != 2 || place < 2 || !canCollapse(from) ||
        !canCollapse(to))
      return false;
    perWord = 2;
    --place;
  }
  along = read.getDimPosition(place);
  across = written.getDimPosition(place);
  if (along == across)
    return false;
  // Half of the registers are read while the others are written.
  size = std::min(target.getLanes(bytes * perWord), target.vectorRegisters / 2);
  for (unsigned dim : {along, across})
    if (ShapedType::isStatic(ranges[dim]))
      size = std::min<int64_t>(size, llvm::bit_floor<uint64_t>(ranges[dim]));
  return size >= 4 && llvm::isPowerOf2_64(size);
}

SmallVector<Value> CopyTransposer::getIndices(OpOperand *operand, unsigned dim,
                                              int64_t plus) {
  IndexBuilder index{b};
  AffineMap map = op.getMatchingIndexingMap(operand);
  SmallVector<Value> at;
  for (unsigned i = 0, e = map.getNumResults() - (perWord - 1); i < e; ++i) {
    unsigned position = map.getDimPosition(i);
    at.push_back(indices[position]);
    if (position == dim)
      at.back() = index.add(at.back(), plus);
  }
  at.back() = index.mul(at.back(), perWord);
  return at;
}

/// A row of a block of the source, as words.
Value CopyTransposer::load(int64_t row) {
  Type element = cast<MemRefType>(source.getType()).getElementType();
  Value value =
      vector::LoadOp::create(b, VectorType::get({size * perWord}, element),
                             source, getIndices(input, across, row));
  Type word = b.getIntegerType(element.getIntOrFloatBitWidth() * perWord);
  return vector::BitCastOp::create(b, VectorType::get({size}, word), value);
}

/// A row of a block of the result.
void CopyTransposer::store(Value row, int64_t column) {
  Type element = cast<MemRefType>(result.getType()).getElementType();
  row = vector::BitCastOp::create(b, VectorType::get({size * perWord}, element),
                                  row);
  vector::StoreOp::create(b, row, result, getIndices(init, along, column));
}

void CopyTransposer::emitBlock() {
  SmallVector<Value> rows;
  for (int64_t row = 0; row < size; ++row)
    rows.push_back(load(row));
  rows = transposeVectors(b, rows);
  for (int64_t column = 0; column < size; ++column)
    store(rows[column], column);
}

void CopyTransposer::emitElement() {
  SmallVector<Value> from = getIndices(input, along, 0),
                     to = getIndices(init, across, 0);
  for (int64_t i = 0; i < perWord; ++i) {
    auto next = [&](SmallVector<Value> at) {
      at.back() = IndexBuilder{b}.add(at.back(), i);
      return at;
    };
    memref::StoreOp::create(b, memref::LoadOp::create(b, source, next(from)),
                            result, next(to));
  }
}

/// Blocks, and what is left of rows and columns, one element after the other.
void CopyTransposer::emitBlocks() {
  IndexBuilder index{b};
  Value zero = index.constant(0);
  auto emitRange = [&](std::pair<Value, Value> columns,
                       std::pair<Value, Value> rows, int64_t step,
                       function_ref<void()> body) {
    for (auto [begin, end] : {columns, rows})
      if (isEqualConstantIntOrValue(begin, end))
        return;
    emitLoop(b, columns.first, columns.second, step, [&](Value i) {
      indices[along] = i;
      emitLoop(b, rows.first, rows.second, step, [&](Value j) {
        indices[across] = j;
        body();
      });
    });
  };
  Value columns = index.roundDown(extents[along], size),
        rows = index.roundDown(extents[across], size);
  std::optional<int64_t> known = getConstantIntValue(rows);
  if (known && *known <= kRowsOfStrip)
    emitRange({zero, columns}, {zero, rows}, size, [&] { emitBlock(); });
  else
    emitLoop(b, zero, rows, kRowsOfStrip, [&](Value row) {
      Value end = index.min(index.add(row, kRowsOfStrip), rows);
      emitRange({zero, columns}, {row, end}, size, [&] { emitBlock(); });
    });
  emitRange({columns, extents[along]}, {zero, extents[across]}, 1,
            [&] { emitElement(); });
  emitRange({zero, columns}, {rows, extents[across]}, 1,
            [&] { emitElement(); });
}

void CopyTransposer::emitLoops(ArrayRef<unsigned> dims) {
  if (dims.empty())
    return emitBlocks();
  emitLoop(b, IndexBuilder{b}.constant(0), extents[dims.front()], 1,
           [&](Value i) {
             indices[dims.front()] = i;
             emitLoops(dims.drop_front());
           });
}

void CopyTransposer::emit() {
  b.setInsertionPoint(op);
  source = input->get();
  result = init->get();
  if (perWord != 1)
    for (Value *memory : {&source, &result})
      *memory = memref::CollapseShapeOp::create(
          b, *memory,
          getPairDims(cast<MemRefType>(memory->getType()).getRank()));
  for (Range range : op.createLoopRanges(b, op.getLoc()))
    extents.push_back(
        getValueOrCreateConstantIndexOp(b, op.getLoc(), range.size));
  indices.assign(extents.size(), Value());
  // In the order of the result, but for the loops of blocks and words.
  AffineMap written = op.getMatchingIndexingMap(init);
  SmallVector<unsigned> dims;
  for (unsigned i = 0, e = written.getNumResults() - (perWord - 1); i < e; ++i)
    if (unsigned dim = written.getDimPosition(i); dim != along && dim != across)
      dims.push_back(dim);
  emitLoops(dims);
}

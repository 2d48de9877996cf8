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
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::varlen;

/// Rows of the source that are read before the next columns of it: the pages
/// that they are on, one each, should stay in the TLB meanwhile.
static constexpr int64_t kRowsOfStrip = 1024;

/// Whether an operation reads each element of a memref once, and writes one of
/// another for it.
static bool isPermuting(linalg::LinalgOp op) {
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
  return true;
}

bool varlen::isPermutingCopy(linalg::LinalgOp op) {
  return isPermuting(op) && op.getBlock()->getTerminator()->getOperand(0) ==
                                op.getRegionInputArgs()[0];
}

/// The operation that makes what a body yields of its only input, or null.
static Operation *getConversion(linalg::LinalgOp op) {
  Operation *maker =
      op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(maker) &&
                 maker->getOperand(0) == op.getRegionInputArgs()[0]
             ? maker
             : nullptr;
}

bool CopyTransposer::canEmit() {
  if (!isPermuting(op) || op.getNumLoops() < 2)
    return false;
  conversion = getConversion(op);
  if (!conversion && !isPermutingCopy(op))
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
    if (conversion || ranges[last] != 2 || bytes != 2 || place < 2 ||
        !canCollapse(from) || !canCollapse(to))
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
                                              int64_t plus, bool isCut) {
  IndexBuilder index{b};
  AffineMap map = op.getMatchingIndexingMap(operand);
  SmallVector<Value> at;
  for (unsigned i = 0, e = map.getNumResults() - (perWord - 1); i < e; ++i) {
    unsigned position = map.getDimPosition(i);
    at.push_back(indices[position]);
    if (position != dim)
      continue;
    at.back() = index.add(at.back(), plus);
    if (isCut)
      at.back() = index.min(at.back(), index.sub(extents[dim], 1));
  }
  at.back() = index.mul(at.back(), perWord);
  return at;
}

/// As an element of the result.
Value CopyTransposer::convert(Value value) {
  if (!conversion)
    return value;
  IRMapping mapping;
  mapping.map(conversion->getOperand(0), value);
  Value converted = b.clone(*conversion, mapping)->getResult(0);
  if (auto type = dyn_cast<VectorType>(value.getType()))
    converted.setType(type.clone(converted.getType()));
  return converted;
}

/// Those that a dimension has left, of a vector of words.
Value CopyTransposer::emitMask(unsigned dim) {
  IndexBuilder index{b};
  Value rest = index.sub(extents[dim], indices[dim]);
  return vector::CreateMaskOp::create(
      b, VectorType::get({size * perWord}, b.getI1Type()),
      index.mul(rest, perWord));
}

/// A row of a block of the source, as words.
Value CopyTransposer::load(int64_t row, bool isCut, Value mask) {
  Type element = cast<MemRefType>(source.getType()).getElementType();
  auto type = VectorType::get({size * perWord}, element);
  SmallVector<Value> at = getIndices(input, across, row, isCut);
  Value value;
  if (mask)
    value = vector::MaskedLoadOp::create(
        b, type, source, at, mask,
        arith::ConstantOp::create(b, b.getZeroAttr(type)));
  else
    value = vector::LoadOp::create(b, type, source, at);
  Type word = b.getIntegerType(element.getIntOrFloatBitWidth() * perWord);
  return vector::BitCastOp::create(b, VectorType::get({size}, word), value);
}

/// A row of a block of the result, of words.
void CopyTransposer::store(Value row, int64_t column, bool isCut, Value mask) {
  Type element = cast<MemRefType>(source.getType()).getElementType();
  row = vector::BitCastOp::create(b, VectorType::get({size * perWord}, element),
                                  row);
  SmallVector<Value> at = getIndices(init, along, column, isCut);
  if (mask)
    vector::MaskedStoreOp::create(b, result, at, mask, convert(row));
  else
    vector::StoreOp::create(b, convert(row), result, at);
}

void CopyTransposer::emitBlock(std::optional<unsigned> cut) {
  bool isAlong = cut == along, isAcross = cut == across;
  Value mask = cut ? emitMask(*cut) : Value();
  SmallVector<Value> rows;
  for (int64_t row = 0; row < size; ++row)
    rows.push_back(load(row, isAcross, isAlong ? mask : Value()));
  rows = transposeVectors(b, rows);
  for (int64_t i = 0; i < size; ++i) {
    // The last row that is there is written after those behind it.
    int64_t column = isAlong ? size - 1 - i : i;
    store(rows[column], column, isAlong, isAcross ? mask : Value());
  }
}

void CopyTransposer::emitElement() {
  SmallVector<Value> from = getIndices(input, along, 0),
                     to = getIndices(init, across, 0);
  for (int64_t i = 0; i < perWord; ++i) {
    auto next = [&](SmallVector<Value> at) {
      at.back() = IndexBuilder{b}.add(at.back(), i);
      return at;
    };
    Value element = memref::LoadOp::create(b, source, next(from));
    memref::StoreOp::create(b, convert(element), result, next(to));
  }
}

bool CopyTransposer::canMask(Value memory) {
  unsigned bits = cast<MemRefType>(memory.getType()).getElementTypeBitWidth();
  return target.maskedBytes && bits / 8 >= target.maskedBytes;
}

/// Blocks, and what is left of rows and columns: by blocks that are cut, or one
/// element after the other.
void CopyTransposer::emitBlocks() {
  IndexBuilder index{b};
  Value zero = index.constant(0);
  auto emitRange = [&](std::pair<Value, Value> columns,
                       std::pair<Value, Value> rows, int64_t columnStep,
                       int64_t rowStep, function_ref<void()> body) {
    for (auto [begin, end] : {columns, rows})
      if (isEqualConstantIntOrValue(begin, end))
        return;
    emitLoop(b, columns.first, columns.second, columnStep, [&](Value i) {
      indices[along] = i;
      emitLoop(b, rows.first, rows.second, rowStep, [&](Value j) {
        indices[across] = j;
        body();
      });
    });
  };
  auto emitElements = [&](std::pair<Value, Value> columns,
                          std::pair<Value, Value> rows) {
    emitRange(columns, rows, 1, 1, [&] { emitElement(); });
  };
  Value columns = index.roundDown(extents[along], size),
        rows = index.roundDown(extents[across], size);
  std::optional<int64_t> known = getConstantIntValue(rows);
  if (known && *known <= kRowsOfStrip)
    emitRange({zero, columns}, {zero, rows}, size, size,
              [&] { emitBlock({}); });
  else
    emitLoop(b, zero, rows, kRowsOfStrip, [&](Value row) {
      Value end = index.min(index.add(row, kRowsOfStrip), rows);
      emitRange({zero, columns}, {row, end}, size, size,
                [&] { emitBlock({}); });
    });
  std::pair<Value, Value> lastColumns = {columns, extents[along]},
                          lastRows = {rows, extents[across]};
  if (canMask(source))
    emitRange(lastColumns, {zero, rows}, size, size, [&] { emitBlock(along); });
  else
    emitElements(lastColumns, {zero, rows});
  if (canMask(result))
    emitRange({zero, columns}, lastRows, size, size,
              [&] { emitBlock(across); });
  else
    emitElements({zero, columns}, lastRows);
  emitElements(lastColumns, lastRows);
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

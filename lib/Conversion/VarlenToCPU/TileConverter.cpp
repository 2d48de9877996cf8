//===- TileConverter.cpp - What bodies of loops over tiles share ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileConverter.h"

#include "varlen/Dialect/Varlen/Utils/TileLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::varlen;

TileConverter::TileConverter(const CPUTileBuilder &common, TileLoop loop,
                             int64_t size, int64_t panels)
    : QueryPanels(common, loop.orientation, size, panels), ops(loop) {
  if (!ops.step)
    return;
  factors.emplace(*this, ops.step);
  score.emplace(*this, ops.step);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void TileConverter::useScore(ValueRange memory) {
  score->use(memory,
             llvm::map_to_vector(ops.step.getCaptures(), [&](Value capture) {
               return buffers.at(capture);
             }));
}

/// Whether a mask has no first key but that of the sequence.
static bool isZero(Value begin) { return isConstantIntValue(begin, 0); }

void TileConverter::emitLimits(Value query, ValueRange place) {
  auto [first, end] = tile.mask.emitLimits(index, query, tile.kRows);
  auto store = [&](Value key, const PanelBuffer &limits) {
    key = arith::IndexCastOp::create(b, b.getI32Type(), key);
    memref::StoreOp::create(b, key, limits.memory, place);
  };
  store(first, lo);
  store(end, hi);
}

ValueRange
TileConverter::emitSeen(const Panel &at, const KeyBlock &block, ValueRange sums,
                        function_ref<Values(const KeyRange &)> body) {
  Value k0 = block.k0, last = index.sub(index.add(at.first, at.rows), 1);
  MaskRange<Value> seen =
      tile.mask.emitKeysOf(index, tile.pairs.query(index, at.first),
                           tile.pairs.query(index, last), tile.kRows);
  // In whole register blocks from k0 on, of which the last may be cut where
  // keys are.
  Value begin = isZero(seen.begin)
                    ? seen.begin
                    : index.roundDown(index.sub(index.max(seen.begin, k0), k0),
                                      kRegisterBlock);
  Value end = index.min(seen.end, index.add(k0, block.keys));
  end = index.roundUp(index.max(index.sub(end, k0), 0), kRegisterBlock);
  if (!isKQ())
    end = index.min(end, block.keys);
  Value from = index.add(k0, begin);
  Value condition = index.less(begin, end);
  if (score->hidesKeys())
    if (Value may = score->mayBeVisible(score->loadRanges(at.number), at.first,
                                        at.rows, from, index.add(k0, end)))
      condition = index.both(condition, may);
  auto emit = [&] {
    Value seenBegin = isZero(seen.wholeBegin)
                          ? seen.wholeBegin
                          : index.sub(seen.wholeBegin, from);
    return body({begin, index.sub(end, begin), seenBegin,
                 index.sub(seen.wholeEnd, from)});
  };
  return emitChoice(b, condition, emit, [&] { return Values(sums); });
}

Values TileConverter::emitStep(const Panel &at, const KeyBlock &block,
                               const KeyRange &keys, Value limitsLo,
                               Value limitsHi, ValueRange sums,
                               ArrayRef<TileSlice> places) {
  SmallVector<Value> operands(ops.step->getOperands());
  for (auto [init, sum, place] :
       llvm::zip_equal(ops.step.getDpsInitsMutable(), sums, places))
    operands[init.getOperandNumber()] = extract(sum, place);
  factors->load(operands, at, block.k0, keys.begin, keys.size);
  for (OpOperand *number : getNumbers(ops.step))
    operands[number->getOperandNumber()] = load(buffers.at(number->get()), at);
  Value from = arith::IndexCastOp::create(b, b.getI32Type(),
                                          index.add(block.k0, keys.begin));
  StepInputs inputs = score->getInputs(at, from);
  inputs.lo = CPUTileBuilder::load(limitsLo);
  inputs.hi = CPUTileBuilder::load(limitsHi);
  inputs.k0 = from;
  inputs.seenBegin = keys.seenBegin;
  inputs.seenEnd = keys.seenEnd;
  StepOpInterface step = ops.step.cloneOnTiles(b, operands, inputs);
  Values results(step->getResults());
  for (auto [result, sum, place] : llvm::zip_equal(results, sums, places))
    result = insert(result, sum, place);
  return results;
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

Value TileConverter::emitFactor(WriteOp write) {
  auto factor = write.getFactor();
  return factor ? floatConstant(factor->convertToDouble()) : Value();
}

void TileConverter::emitWriteNumbers(
    WriteOp write, Value first, Value count,
    function_ref<Value(size_t, Value)> numberOf) {
  Value times = emitFactor(write);
  loop(index.constant(0), count, 1, [&](Value lane) {
    Values numbers;
    for (size_t i = 0; i < write.getValues().size(); ++i) {
      Value number = numberOf(i, lane);
      if (times)
        number = arith::MulFOp::create(b, number, times);
      numbers.push_back(number);
    }
    storeNumbers(numbers, write.getDestination(), index.add(first, lane));
  });
}

void TileConverter::emitOtherwise(WriteOp write, const RowRange &rows) {
  ArrayRef<double> values = write.getOtherwise();
  if (write.isOfVectors())
    return emitFillRows(values.front(), rows, write.getDestination());
  Values numbers = llvm::map_to_vector(
      values, [&](double value) { return floatConstant(value); });
  loop(index.constant(0), rows.count, 1, [&](Value i) {
    storeNumbers(numbers, write.getDestination(), index.add(rows.first, i));
  });
}

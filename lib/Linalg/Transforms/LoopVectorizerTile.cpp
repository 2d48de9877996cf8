//===- LoopVectorizerTile.cpp - Operations on tiles of registers ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FilledMemory.h"
#include "LoopVectorizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::varlen;

bool LoopVectorizer::isOnTile(ArrayRef<int64_t> shape) {
  return vectorDim == 1 && combiners.empty() &&
         ArrayRef(op.getStaticLoopRanges()) == shape &&
         (!pairDim || shape[0] % 2 == 0);
}

/// Emits the body for a vector of the row at hand. `vector` is that of
/// `memory`, `state` what reduced results are so far in its columns. Returns
/// what the body yields.
SmallVector<Value> LoopVectorizer::emitOnVector(Value memory, Value offset,
                                                Value &vector,
                                                SmallVector<Value> &state) {
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == memory)
      hoisted[&operand] = vector;
  SmallVector<Value> values = emitBody(offset, numLanes, Value(), state), next;
  for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
    Value value = emitSplat(values[number], numLanes);
    if (llvm::is_contained(accumulated, number))
      next.push_back(value);
    else if (init.get() == memory)
      vector = value;
    else if (!isPairMap(op.getMatchingIndexingMap(&init)))
      emitStore(init, value, offset, numLanes, Value());
  }
  state = next;
  return values;
}

void LoopVectorizer::emitOn(Value memory, int64_t lanes,
                            MutableArrayRef<Value> tile) {
  b.setInsertionPoint(op);
  numLanes = lanes;
  indices.assign(2, Value());
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  int64_t numVectors = ranges[1] / lanes;
  SmallVector<OpOperand *> inits = getReduced();
  SmallVector<linalg::FillOp> fills;
  for (OpOperand *init : inits)
    fills.push_back(findFill(op, *init));
  // What belongs to columns stays in registers, too.
  SmallVector<Value> offsets;
  SmallVector<SmallVector<Value>> states(numVectors);
  SmallVector<DenseMap<OpOperand *, Value>> columns;
  for (int64_t j = 0; j < numVectors; ++j) {
    Value offset = arith::ConstantIndexOp::create(b, j * lanes);
    offsets.push_back(offset);
    for (auto [init, fill] : llvm::zip_equal(inits, fills))
      states[j].push_back(fill ? emitSplat(fill.getInputs().front(), lanes)
                               : emitOperand(*init, offset, lanes, Value()));
    hoistLoads(/*dims=*/0, offset);
    columns.push_back(std::move(hoisted));
  }
  for (linalg::FillOp fill : fills)
    if (fill)
      fill.erase();
  for (int64_t i = 0; i < ranges[0]; i += getStep(0))
    for (int64_t j = 0; j < numVectors; ++j) {
      hoisted = columns[j];
      Value row = arith::ConstantIndexOp::create(b, i);
      auto emitRow = [&](int64_t i) {
        indices[0] = arith::ConstantIndexOp::create(b, i);
        return emitOnVector(memory, offsets[j], tile[i * numVectors + j],
                            states[j]);
      };
      SmallVector<Value> even = emitRow(i);
      if (!pairDim)
        continue;
      SmallVector<Value> odd = emitRow(i + 1);
      indices[0] = row;
      emitPairs(even, odd, offsets[j], lanes);
    }
  for (auto [number, init] : llvm::enumerate(inits))
    for (int64_t j = 0; j < numVectors; ++j)
      emitStore(*init, states[j][number], offsets[j], lanes, Value());
}

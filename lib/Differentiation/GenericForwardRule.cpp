//===- GenericForwardRule.cpp - linalg.generic in the forward mode --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tangents of a linalg.generic are one over the same loops: its body is the
// old one followed by its tangents, which the rules of the scalar operations
// give. A sum carries the sum of tangents. What is no sum, such as a maximum or
// a product, carries values beside tangents, if these need them.
//
//===----------------------------------------------------------------------===//

#include "GenericForwardRule.h"

#include "varlen/Support/Body.h"
#include "varlen/Support/Dependencies.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::varlen;

bool GenericForwardRule::isReduced(unsigned number) {
  return varlen::isReduced(op, *op.getDpsInitOperand(number));
}

SmallVector<unsigned> GenericForwardRule::findVaried() {
  JVPBuilder analysis(op.getLoc(), b);
  SmallVector<Value> varied, carried, yielded;
  for (OpOperand &operand : op->getOpOperands())
    if (b.getTangent(operand.get()))
      varied.push_back(op.getMatchingBlockArgument(&operand));
  for (Value value : getCaptured(op))
    if (b.getTangent(value))
      varied.push_back(value);
  Operation *yield = body->getTerminator();
  for (unsigned number = 0; number < results.size(); ++number)
    if (isReduced(number)) {
      carried.push_back(getAccumulator(number));
      yielded.push_back(yield->getOperand(number));
    }
  analysis.markCarried(
      varied, carried, yielded,
      llvm::to_vector(llvm::make_pointer_range(body->without_terminator())));
  SmallVector<unsigned> numbers;
  for (unsigned number = 0; number < results.size(); ++number)
    if (analysis.isVaried(yield->getOperand(number)))
      numbers.push_back(number);
  return numbers;
}

void GenericForwardRule::addInputs(Block &block, JVPBuilder &inner,
                                   IRMapping &mapping) {
  auto add = [&](Value value, AffineMap map) {
    inputs.push_back({value, map});
    return block.addArgument(getElementTypeOrSelf(value), op.getLoc());
  };
  for (OpOperand &operand : op->getOpOperands()) {
    // A result that no loop reduces is read once.
    if (op.isDpsInit(&operand) && varlen::isReduced(op, operand))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Value element = add(operand.get(), map);
    mapping.map(op.getMatchingBlockArgument(&operand), element);
    if (Value tangent = b.getTangent(operand.get())) {
      inner.setTangent(element, add(tangent, map));
      sources.push_back(element);
    }
  }
  for (Value value : getCaptured(op))
    if (Value tangent = b.getTangent(value)) {
      inner.setTangent(value, tangent);
      sources.push_back(value);
    }
}

SmallVector<unsigned> GenericForwardRule::findNeeded(ArrayRef<Output> outputs,
                                                     Operation *yield) {
  llvm::SetVector<Value> reached;
  for (const Output &output : outputs)
    reached.insert(output.tangent);
  llvm::SmallSetVector<unsigned, 2> needed;
  for (size_t i = 0; i < reached.size(); ++i) {
    if (Operation *definition = reached[i].getDefiningOp()) {
      reached.insert_range(getDependencies(definition));
      continue;
    }
    auto found = llvm::find(accumulators, reached[i]);
    if (found == accumulators.end())
      continue;
    unsigned number = found - accumulators.begin();
    if (needed.insert(number))
      reached.insert(yield->getOperand(number));
  }
  return llvm::to_vector(needed);
}

LogicalResult GenericForwardRule::run() {
  SmallVector<unsigned> numbers = findVaried();
  if (numbers.empty())
    return success();
  Location loc = op.getLoc();
  Region region;
  Block &block = region.emplaceBlock();
  OpBuilder builder(op.getContext());
  builder.setInsertionPointToEnd(&block);
  JVPBuilder inner(loc, builder);
  IRMapping mapping;
  addInputs(block, inner, mapping);

  // The accumulators of values, and those of tangents.
  accumulators.resize(results.size());
  auto addAccumulator = [&](unsigned number) {
    return block.addArgument(getElementTypeOrSelf(results[number]), loc);
  };
  for (unsigned number = 0; number < results.size(); ++number)
    if (isReduced(number)) {
      accumulators[number] = addAccumulator(number);
      mapping.map(getAccumulator(number), accumulators[number]);
    }
  SmallVector<BlockArgument> ofTangents;
  for (unsigned number : numbers) {
    ofTangents.push_back(addAccumulator(number));
    if (!accumulators[number])
      continue;
    inner.setTangent(accumulators[number], ofTangents.back());
    sources.push_back(accumulators[number]);
  }

  for (Operation &operation : *body)
    inner.clone(operation, mapping);
  // It keeps what it yields where that is replaced.
  Operation *yield = &block.back();
  SmallVector<Operation *> ops = llvm::to_vector(llvm::make_pointer_range(
      llvm::make_range(block.begin(), std::prev(block.end()))));
  inner.markVaried(sources, ops);
  inner.setInsertionPoint(yield);
  if (failed(inner.pushForward(ops, yield->getOperands())))
    return failure();
  SmallVector<Output> outputs;
  for (unsigned number : numbers)
    outputs.push_back(
        {number, inner.getTangentOrZero(yield->getOperand(number))});

  // The results of the new operation: values that are needed, then tangents.
  SmallVector<unsigned> kept = findNeeded(outputs, yield);
  SmallVector<Value> yielded, inits;
  SmallVector<AffineMap> maps;
  llvm::SmallBitVector bounded(op.getNumLoops());
  auto addOutput = [&](unsigned number, Value value, Value init) {
    yielded.push_back(value);
    inits.push_back(init);
    maps.push_back(op.getMatchingIndexingMap(op.getDpsInitOperand(number)));
    bounded |= getDims(maps.back());
  };
  for (unsigned number : kept)
    addOutput(number, yield->getOperand(number), getInit(number));
  for (const Output &output : outputs)
    addOutput(output.number, output.tangent,
              accumulators[output.number]
                  ? b.getTangentOrZero(getInit(output.number))
                  : b.emptyLike(results[output.number]));
  yield->setOperands(yielded);
  eraseDeadOps(block);
  llvm::BitVector unused(block.getNumArguments());
  for (auto [number, accumulator] : llvm::enumerate(accumulators))
    if (accumulator && !llvm::is_contained(kept, number))
      unused.set(cast<BlockArgument>(accumulator).getArgNumber());
  block.eraseArguments(unused);
  dropUnused(b, inputs, bounded, block);

  SmallVector<Value> values;
  SmallVector<AffineMap> allMaps;
  for (const Input &input : inputs) {
    values.push_back(input.value);
    allMaps.push_back(input.map);
  }
  llvm::append_range(allMaps, maps);
  auto tangents =
      linalg::GenericOp::create(b, ValueRange(inits).getTypes(), values, inits,
                                allMaps, op.getIteratorTypesArray());
  tangents.getRegion().takeBody(region);
  for (auto [output, tangent] :
       llvm::zip_equal(outputs, tangents->getResults().drop_front(kept.size())))
    b.setTangent(results[output.number], tangent);
  return success();
}

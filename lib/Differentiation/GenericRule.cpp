//===- GenericRule.cpp - The rule of linalg.generic -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rule for elementwise operations, broadcasts, contractions and reductions.
// The cotangent of an operand is, at each of its elements, the sum over all
// points of the iteration space that read the element, of the derivative of the
// body there. That is again a linalg.generic: the same loops, the operand's map
// as the map of the result, and for a body the old one followed by its own
// reverse, which the rules of the scalar operations give.
//
//===----------------------------------------------------------------------===//

#include "GenericRule.h"

#include "varlen/Support/Dependencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// An argument of a body and what depends on it there.
static llvm::DenseSet<Value> getDependents(BlockArgument argument) {
  llvm::DenseSet<Value> dependents{argument};
  for (Operation &op : argument.getOwner()->without_terminator())
    if (llvm::any_of(getDependencies(&op),
                     [&](Value value) { return dependents.contains(value); }))
      dependents.insert_range(op.getResults());
  return dependents;
}

/// Whether `value` is `accumulator` plus something independent of it.
static bool isSum(Value value, BlockArgument accumulator,
                  const llvm::DenseSet<Value> &dependents) {
  while (value != accumulator) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp, math::FmaOp>(op))
      return false;
    auto isDependent = [&](OpOperand &operand) {
      return dependents.contains(operand.get());
    };
    if (llvm::count_if(op->getOpOperands(), isDependent) != 1)
      return false;
    OpOperand &part = *llvm::find_if(op->getOpOperands(), isDependent);
    if ((isa<arith::SubFOp>(op) && part.getOperandNumber() != 0) ||
        (isa<math::FmaOp>(op) && part.getOperandNumber() != 2))
      return false;
    value = part.get();
  }
  return true;
}

std::optional<Output::Kind> GenericRule::classify(OpOperand &init,
                                                  Value &contribution) {
  BlockArgument accumulator = op.getMatchingBlockArgument(&init);
  if (getDims(getMap(init)).all())
    return Output::Elementwise;
  llvm::DenseSet<Value> dependents = getDependents(accumulator);
  if (isSum(contribution, accumulator, dependents))
    return Output::Sum;
  Operation *last = contribution.getDefiningOp();
  if (!isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
                       arith::MinNumFOp>(last))
    return std::nullopt;
  Value lhs = last->getOperand(0), rhs = last->getOperand(1);
  contribution = lhs == accumulator ? rhs : lhs;
  if (lhs != accumulator && rhs != accumulator)
    return std::nullopt;
  if (dependents.contains(contribution))
    return std::nullopt;
  return Output::Extremum;
}

LogicalResult GenericRule::findOutputs() {
  for (auto [i, result] : llvm::enumerate(results)) {
    Value cotangent = b.getCotangent(result);
    if (!cotangent)
      continue;
    OpOperand *init = op.getDpsInitOperand(i);
    Value contribution = body->getTerminator()->getOperand(i);
    std::optional<Output::Kind> kind = classify(*init, contribution);
    if (!kind)
      return op.emitError() << "expected result #" << i
                            << " to be elementwise, or a sum, a maximum or a "
                               "minimum, to differentiate it";
    outputs.push_back({*kind, init, getMap(*init), contribution, result,
                       cotangent, /*count=*/{}});
  }
  for (Output &output : outputs)
    if (output.kind == Output::Extremum && failed(countExtrema(output)))
      return failure();
  return success();
}

/// How many points attain the extremum, as floats. None at all where that is
/// the initial value.
LogicalResult GenericRule::countExtrema(Output &output) {
  SmallVector<Input> inputs = getInputs(/*withOutputs=*/false);
  inputs.push_back({output.result, output.map});
  auto make = [&](OpBuilder &builder, ValueRange args) -> FailureOr<Value> {
    IRMapping mapping;
    cloneBody(builder, getPoint(args, /*withOutputs=*/false), mapping);
    VJPBuilder inner(op.getLoc(), builder);
    Value candidate = mapping.lookupOrDefault(output.contribution);
    Value isAttained =
        inner.compare(arith::CmpFPredicate::OEQ, candidate, args.back());
    return inner.select(isAttained, inner.constantLike(candidate, 1),
                        inner.zerosLike(candidate));
  };
  FailureOr<Value> count = buildSum(b, inputs, output.result, output.map, make);
  if (succeeded(count))
    output.count = *count;
  return count;
}

void GenericRule::pullBackInit(const Output &output) {
  Value init = output.init->get();
  if (output.kind == Output::Sum)
    b.accumulate(init, output.cotangent);
  if (output.kind != Output::Extremum)
    return;
  Value zero = b.zerosLike(output.cotangent);
  Value isInitial = b.compare(arith::CmpFPredicate::OEQ, output.count, zero);
  b.accumulate(init, b.select(isInitial, output.cotangent, zero));
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// Whether the body reads the operand at the points themselves.
bool GenericRule::isInput(OpOperand &operand) {
  return op.isDpsInput(&operand) || getDims(getMap(operand)).all();
}

SmallVector<Input> GenericRule::getInputs(bool withOutputs) {
  SmallVector<Input> inputs;
  for (OpOperand &operand : op->getOpOperands())
    if (isInput(operand))
      inputs.push_back({operand.get(), getMap(operand)});
  if (!withOutputs)
    return inputs;
  for (Output &output : outputs) {
    inputs.push_back({output.cotangent, output.map});
    if (output.kind == Output::Extremum) {
      inputs.push_back({output.result, output.map});
      inputs.push_back({output.count, output.map});
    }
  }
  return inputs;
}

GenericRule::Point GenericRule::getPoint(ValueRange inputs, bool withOutputs) {
  Point point;
  for (OpOperand &operand : op->getOpOperands()) {
    point.arguments.push_back(isInput(operand) ? inputs.front() : Value());
    inputs = inputs.drop_front(isInput(operand));
  }
  if (!withOutputs)
    return point;
  auto take = [&](bool isThere) {
    Value value = isThere ? inputs.front() : Value();
    inputs = inputs.drop_front(isThere);
    return value;
  };
  for (Output &output : outputs) {
    bool isExtremum = output.kind == Output::Extremum;
    point.cotangents.push_back(take(true));
    point.results.push_back(take(isExtremum));
    point.counts.push_back(take(isExtremum));
  }
  return point;
}

SmallVector<Operation *> GenericRule::cloneBody(OpBuilder &builder,
                                                const Point &point,
                                                IRMapping &mapping) {
  for (auto [argument, element] :
       llvm::zip_equal(body->getArguments(), point.arguments)) {
    Value value = element;
    // No derivative of a reduction looks at its accumulator.
    if (!value && !argument.use_empty())
      value = arith::ConstantOp::create(
          builder, op.getLoc(), builder.getZeroAttr(argument.getType()));
    mapping.map(argument, value);
  }
  SmallVector<Operation *> ops;
  for (Operation &inner : body->without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (index && !point.position.empty())
      mapping.map(index.getResult(), point.position[index.getDim()]);
    else
      ops.push_back(builder.clone(inner, mapping));
  }
  return ops;
}

FailureOr<Value> GenericRule::pullBackBody(OpBuilder &builder,
                                           const Point &point, Value value,
                                           Value before) {
  IRMapping mapping;
  SmallVector<Operation *> ops = cloneBody(builder, point, mapping);
  VJPBuilder inner(op.getLoc(), builder);
  Value source = mapping.lookupOrDefault(value);
  inner.markVaried(source, ops);
  inner.accumulate(source, before);
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value contribution = mapping.lookupOrDefault(output.contribution);
    Value cotangent = point.cotangents[i];
    if (output.kind == Output::Extremum && inner.isVaried(contribution)) {
      Value isAttained = inner.compare(arith::CmpFPredicate::OEQ, contribution,
                                       point.results[i]);
      Value share = inner.div(cotangent, point.counts[i]);
      cotangent =
          inner.select(isAttained, share, inner.zerosLike(contribution));
    }
    inner.accumulate(contribution, cotangent);
  }
  if (failed(inner.pullBack(ops)))
    return failure();
  return inner.getCotangent(source);
}

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

LogicalResult GenericRule::pullBackInput(Value operand, Value inBody,
                                         AffineMap map) {
  if (!b.isVaried(operand))
    return success();
  if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return pullBackPlaces(operand, inBody, map);
  // A number is read at every point.
  bool isScalar = !isa<RankedTensorType>(operand.getType());
  Value like = operand;
  if (isScalar)
    like = tensor::EmptyOp::create(b, ArrayRef<int64_t>(), operand.getType());
  auto make = [&](OpBuilder &builder, ValueRange args) {
    return pullBackBody(builder, getPoint(args, /*withOutputs=*/true), inBody);
  };
  FailureOr<Value> cotangent =
      buildSum(b, getInputs(/*withOutputs=*/true), like, map, make);
  if (failed(cotangent))
    return failure();
  if (*cotangent && isScalar)
    *cotangent = tensor::ExtractOp::create(b, *cotangent);
  b.accumulate(operand, *cotangent);
  return success();
}

LogicalResult GenericRule::run() {
  if (failed(findOutputs()))
    return failure();
  for (const Output &output : outputs)
    pullBackInit(output);
  for (OpOperand &operand : op->getOpOperands())
    if (isInput(operand) &&
        failed(pullBackInput(operand.get(),
                             op.getMatchingBlockArgument(&operand),
                             getMap(operand))))
      return failure();
  for (Value value : getCaptured(op)) {
    if (!b.isVaried(value))
      continue;
    AffineMap everywhere =
        AffineMap::get(op.getNumLoops(), 0, op->getContext());
    LogicalResult status = isa<RankedTensorType>(value.getType())
                               ? pullBackGather(value)
                               : pullBackInput(value, value, everywhere);
    if (failed(status))
      return failure();
  }
  return success();
}

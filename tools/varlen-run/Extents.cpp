//===- Extents.cpp - Sizes in one run of the entry function ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extents.h"

#include "Attention.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace varlen_run;
using namespace mlir;

/// Chains of casts and shapes are short; the bound is for cyclic ones.
static constexpr int maxShapeSteps = 256;

/// The number of `value` among the arguments of `function`; none if it is not
/// one of them.
static std::optional<unsigned> getArgument(Value value, func::FuncOp function) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &function.front())
    return std::nullopt;
  return argument.getArgNumber();
}

std::optional<Frame> varlen_run::enterCall(func::CallOp call,
                                           const Frame &caller) {
  auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!function || function.isExternal())
    return std::nullopt;
  for (const Frame *frame = &caller; frame; frame = frame->caller)
    if (frame->function == function)
      return std::nullopt;
  return Frame(function, call, &caller);
}

std::optional<int64_t> Extents::evaluateReturned(OpResult value, int64_t dim,
                                                 const Frame &frame,
                                                 int steps) const {
  std::optional<Frame> callee =
      enterCall(cast<func::CallOp>(value.getOwner()), frame);
  if (!callee || !callee->function.getBody().hasOneBlock())
    return std::nullopt;
  Operation *end = callee->function.front().getTerminator();
  return evaluate(end->getOperand(value.getResultNumber()), dim, *callee,
                  steps);
}

/// A value of the same shape, which `value` is a cast of or is computed from
/// element by element. Null if none is seen.
static Value getSameShape(Value value) {
  if (Value source = getCastSource(value))
    return source;
  Operation *op = value.getDefiningOp();
  return op && OpTrait::hasElementwiseMappableTraits(op) &&
                 op->getNumOperands() > 0
             ? op->getOperands().back()
             : Value();
}

/// The loop that carries `value`, a result of it or an argument of its body,
/// and which of the carried values it is. Null if there is none.
static std::pair<LoopLikeOpInterface, unsigned> getCarrier(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop =
        dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
    if (loop)
      for (auto [i, carried] : llvm::enumerate(loop.getRegionIterArgs()))
        if (carried == argument)
          return {loop, i};
    return {};
  }
  auto loop = value.getDefiningOp<LoopLikeOpInterface>();
  // Some loops have results that are not what they carry.
  if (!loop || !loop.getLoopResults())
    return {};
  return {loop, cast<OpResult>(value).getResultNumber()};
}

std::optional<int64_t> Extents::evaluateCollapsed(tensor::CollapseShapeOp op,
                                                  int64_t dim,
                                                  const Frame &frame,
                                                  int steps) const {
  int64_t product = 1;
  for (int64_t source : op.getReassociationIndices()[dim]) {
    std::optional<int64_t> extent = evaluate(op.getSrc(), source, frame, steps);
    if (!extent)
      return std::nullopt;
    product *= *extent;
  }
  return product;
}

std::optional<int64_t> Extents::evaluateCarried(Value value, int64_t dim,
                                                const Frame &frame,
                                                int steps) const {
  auto [loop, i] = getCarrier(value);
  if (i >= loop.getInits().size())
    return std::nullopt;
  std::optional<int64_t> extent =
      evaluate(loop.getInits()[i], dim, frame, steps);
  // Without values that it yields, a loop writes into the initial ones.
  if (!extent || loop.getYieldedValues().empty())
    return extent;
  std::pair<Value, int64_t> key(loop.getRegionIterArgs()[i], dim);
  carried[key] = *extent;
  std::optional<int64_t> yielded =
      evaluate(loop.getYieldedValues()[i], dim, frame, steps);
  carried.erase(key);
  if (yielded != extent)
    return std::nullopt;
  // Loops in a row ask for one another.
  if (carried.empty())
    frame.extents[{value, dim}] = *extent;
  return extent;
}

std::optional<int64_t> Extents::evaluate(Value value,
                                         std::optional<int64_t> dim,
                                         const Frame &frame, int steps) const {
  if (steps == 0)
    return std::nullopt;
  if (dim)
    if (int64_t extent = cast<ShapedType>(value.getType()).getDimSize(*dim);
        ShapedType::isStatic(extent))
      return extent;
  if (std::optional<unsigned> argument = getArgument(value, frame.function)) {
    if (frame.caller)
      return evaluate(frame.getPassed(*argument), dim, *frame.caller,
                      steps - 1);
    const Tensor &input = inputs[*argument];
    if (dim)
      return input.shape[*dim];
    return input.shape.empty() ? std::optional(input.getInteger(0))
                               : std::nullopt;
  }
  if (dim) {
    for (const KnownExtents *known : {&carried, &frame.extents})
      if (auto it = known->find({value, *dim}); it != known->end())
        return it->second;
    if (getCarrier(value).first)
      return evaluateCarried(value, *dim, frame, steps - 1);
    if (Value same = getSameShape(value))
      return evaluate(same, dim, frame, steps - 1);
    if (auto [source, sourceDim] = getShapeSource(value, *dim); source)
      return evaluate(source, sourceDim, frame, steps - 1);
    if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>())
      return evaluateCollapsed(collapse, *dim, frame, steps - 1);
    if (value.getDefiningOp<func::CallOp>())
      return evaluateReturned(cast<OpResult>(value), *dim, frame, steps - 1);
  }

  // Upstream knows how the shapes of most operations follow from one another;
  // what it does not is a source, and comes back above.
  auto isSource = [&](Value source, std::optional<int64_t> sourceDim,
                      ValueBoundsConstraintSet &) {
    if (source == value && sourceDim == dim)
      return false;
    return getArgument(source, frame.function) ||
           (sourceDim &&
            (getCarrier(source).first || getSameShape(source) ||
             getShapeSource(source, *sourceDim).first ||
             isa_and_present<tensor::CollapseShapeOp, func::CallOp>(
                 source.getDefiningOp())));
  };
  AffineMap map;
  ValueDimList operands;
  ValueBoundsConstraintSet::Variable variable =
      dim ? ValueBoundsConstraintSet::Variable(value, *dim)
          : ValueBoundsConstraintSet::Variable(value);
  if (failed(ValueBoundsConstraintSet::computeBound(
          map, operands, presburger::BoundType::EQ, variable, isSource)))
    return std::nullopt;
  SmallVector<Attribute> constants;
  Builder builder(value.getContext());
  for (auto [source, sourceDim] : operands) {
    std::optional<int64_t> constant =
        evaluate(source, sourceDim, frame, steps - 1);
    if (!constant)
      return std::nullopt;
    constants.push_back(builder.getIndexAttr(*constant));
  }
  SmallVector<Attribute> results;
  if (failed(map.constantFold(constants, results)))
    return std::nullopt;
  return cast<IntegerAttr>(results.front()).getInt();
}

std::optional<int64_t> Extents::getExtent(Value value, int64_t dim,
                                          const Frame &frame) const {
  std::optional<int64_t> extent = evaluate(value, dim, frame, maxShapeSteps);
  if (extent)
    frame.extents[{value, dim}] = *extent;
  return extent;
}

std::optional<int64_t> Extents::getNumber(OpFoldResult number,
                                          const Frame &frame) const {
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return constant;
  auto value = cast<Value>(number);
  if (!value.getType().isIndex())
    return std::nullopt;
  return evaluate(value, /*dim=*/std::nullopt, frame, maxShapeSteps);
}

const Tensor *Extents::getInput(Value value, const Frame &frame) const {
  const Frame *current = &frame;
  for (int step = 0; value && step < maxShapeSteps; ++step) {
    std::optional<unsigned> argument = getArgument(value, current->function);
    if (!argument) {
      value = getCastSource(value);
    } else if (current->caller) {
      value = current->getPassed(*argument);
      current = current->caller;
    } else {
      return &inputs[*argument];
    }
  }
  return nullptr;
}

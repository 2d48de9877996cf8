//===- DerivativeBuilder.cpp - What derivatives are built with ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Interfaces/DerivativeBuilder.h"

#include "varlen/Support/Dependencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::varlen;

bool varlen::hasCotangent(Type type) {
  if (isa<RankedTensorType, VectorType>(type))
    type = cast<ShapedType>(type).getElementType();
  return isa<FloatType>(type);
}

/// Whether values of the type hold floats, with a cotangent or without.
static bool holdsFloats(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType, ComplexType>(element);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value DerivativeBuilder::add(Value lhs, Value rhs) {
  return createOrFold<arith::AddFOp>(lhs, rhs);
}
Value DerivativeBuilder::sub(Value lhs, Value rhs) {
  return createOrFold<arith::SubFOp>(lhs, rhs);
}
Value DerivativeBuilder::mul(Value lhs, Value rhs) {
  return createOrFold<arith::MulFOp>(lhs, rhs);
}
Value DerivativeBuilder::div(Value lhs, Value rhs) {
  return createOrFold<arith::DivFOp>(lhs, rhs);
}
Value DerivativeBuilder::neg(Value value) {
  return createOrFold<arith::NegFOp>(value);
}
Value DerivativeBuilder::compare(arith::CmpFPredicate predicate, Value lhs,
                                 Value rhs) {
  return arith::CmpFOp::create(*this, predicate, lhs, rhs);
}
Value DerivativeBuilder::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(*this, condition, yes, no);
}

Value DerivativeBuilder::constantLike(Value like, double value) {
  Type type = like.getType(), element = getElementTypeOrSelf(type);
  TypedAttr number = isa<FloatType>(element)
                         ? TypedAttr(getFloatAttr(element, value))
                         : getIntegerAttr(element, static_cast<int64_t>(value));
  if (auto vector = dyn_cast<VectorType>(type))
    number = DenseElementsAttr::get(vector, Attribute(number));
  Value constant = arith::ConstantOp::create(*this, number);
  if (!isa<RankedTensorType>(type))
    return constant;
  return linalg::FillOp::create(*this, constant, emptyLike(like)).getResult(0);
}

Value DerivativeBuilder::emptyLike(Value like, Type element) {
  auto type = cast<RankedTensorType>(like.getType());
  if (!element)
    element = type.getElementType();
  Value empty = tensor::EmptyOp::create(*this, getSizes(like), element,
                                        type.getEncoding());
  // Sizes may be known to be constant where the type does not say so.
  return createOrFold<tensor::CastOp>(type.clone(element), empty);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// The initial value of what a loop carries, if it keeps its shape; `argument`
/// is its value in an iteration.
static Value getInitOfSameShape(LoopLikeOpInterface loop,
                                BlockArgument argument) {
  OpOperand *init = argument ? loop.getTiedLoopInit(argument) : nullptr;
  OpOperand *yielded = init ? loop.getTiedLoopYieldedValue(argument) : nullptr;
  if (!yielded)
    return {};
  Value value = yielded->get();
  while (value && value != argument) {
    // What is from elsewhere has not the shape of the argument for being it.
    Operation *op = value.getDefiningOp();
    bool isOfBody = op && op->getBlock() == argument.getOwner();
    value = isOfBody ? getEarlierOfSameShape(value) : Value();
  }
  return value ? init->get() : Value();
}

/// The value from outside of a branch whose shape a result has in each of its
/// regions.
static Value getOfSameShapeInBranches(scf::IfOp op, unsigned result) {
  Value common;
  for (Region &region : op->getRegions()) {
    Value value = region.front().getTerminator()->getOperand(result);
    while (value && region.isAncestor(value.getParentRegion()))
      value = getEarlierOfSameShape(value);
    if (!value || (common && value != common))
      return {};
    common = value;
  }
  return common;
}

Value varlen::getEarlierOfSameShape(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<LoopLikeOpInterface>(
        argument.getOwner()->getParentOp());
    return loop ? getInitOfSameShape(loop, argument) : Value();
  }
  Operation *op = value.getDefiningOp();
  if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
    return destination.getTiedOpOperand(cast<OpResult>(value))->get();
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return getInitOfSameShape(
        loop, loop.getTiedLoopRegionIterArg(cast<OpResult>(value)));
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return getOfSameShapeInBranches(branch,
                                    cast<OpResult>(value).getResultNumber());
  if (!OpTrait::hasElementwiseMappableTraits(op))
    return {};
  auto hasSameShape = [&](Value operand) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    return type && type.getShape() ==
                       cast<RankedTensorType>(value.getType()).getShape();
  };
  auto found = llvm::find_if(op->getOperands(), hasSameShape);
  return found == op->operand_end() ? Value() : *found;
}

SmallVector<OpFoldResult> DerivativeBuilder::getSizes(Value tensor) {
  while (Value earlier = getEarlierOfSameShape(tensor))
    tensor = earlier;
  if (auto empty = tensor.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes();
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    SmallVector<OpFoldResult> sizes;
    for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
      if (!dropped.test(dim))
        sizes.push_back(size);
    return sizes;
  }
  return tensor::getMixedSizes(*this, getLoc(), tensor);
}

//===----------------------------------------------------------------------===//
// What varies
//===----------------------------------------------------------------------===//

/// Whether the operation, or one in it, may have that effect on a memref.
template <typename Effect> static bool mayHaveEffect(Operation *op) {
  auto visit = [](Operation *nested) {
    bool hasMemRef =
        llvm::any_of(nested->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
    if (!hasMemRef || nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    auto effects = dyn_cast<MemoryEffectOpInterface>(nested);
    return WalkResult(failure(!effects || effects.hasEffect<Effect>()));
  };
  return op->walk(visit).wasInterrupted();
}

void DerivativeBuilder::markVaried(ValueRange sources,
                                   ArrayRef<Operation *> ops) {
  varied.insert_range(sources);
  // Memory has no cotangents, but what is read may have been varied when it was
  // written: by an earlier iteration, if these are the operations of a loop.
  if (markResults(ops, /*isMemoryVaried=*/false))
    (void)markResults(ops, /*isMemoryVaried=*/true);
}

bool DerivativeBuilder::markResults(ArrayRef<Operation *> ops,
                                    bool isMemoryVaried) {
  bool written = false;
  auto isVariedOperand = [&](OpOperand &operand) {
    return isVaried(operand.get()) && (!hasRule(operand.getOwner()) ||
                                       !hasCotangent(operand.get().getType()) ||
                                       isDifferentiable(operand));
  };
  auto isCaptured = [&](Operation *op) {
    return llvm::any_of(getCaptured(op),
                        [&](Value value) { return isVaried(value); });
  };
  for (Operation *op : ops) {
    bool isFromMemory =
        isMemoryVaried && mayHaveEffect<MemoryEffects::Read>(op);
    if (isFromMemory)
      readers.insert(op);
    else if (!llvm::any_of(op->getOpOperands(), isVariedOperand) &&
             !isCaptured(op))
      continue;
    written |= mayHaveEffect<MemoryEffects::Write>(op);
    for (Value result : op->getResults())
      if (holdsFloats(result.getType()))
        varied.insert(result);
  }
  return written;
}

LogicalResult DerivativeBuilder::verifyCanPass(Operation *op) {
  if (readers.contains(op))
    return op->emitError()
           << "'" << op->getName()
           << "' reads memory, which what is differentiated by may have been "
              "written to; expected tensors and scalars";
  if (!hasRule(op))
    return op->emitError()
           << "'" << op->getName() << "' has no rule of differentiation in the "
           << getMode()
           << " mode, but lies between what is differentiated and what it is "
              "differentiated by";
  SmallVector<Value> values = getDependencies(op);
  llvm::append_range(values, op->getResults());
  for (Value value : values)
    if (isVaried(value) && !hasCotangent(value.getType()))
      return op->emitError()
             << "expected what lies between what is differentiated and what "
                "it is differentiated by to be floats, or ranked tensors or "
                "vectors of floats, got "
             << value.getType();
  return success();
}

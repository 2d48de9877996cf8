//===- GenericRuleGather.cpp - Tensors that a body reads at places --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cotangent of a tensor of which a body reads elements at places that it
// computes, perhaps in a branch: a loop nest over the iteration space applies
// the rules of the body's operations at each point, which add to these places.
// Where they are rows of the tensor, as those of an embedding, it adds rows. An
// operand that is read through sums of loops, as that of a convolution, gets
// its cotangent in the same way.
//
//===----------------------------------------------------------------------===//

#include "GenericRule.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/Dependencies.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::varlen;

/// The extents of the iteration space.
SmallVector<Value> GenericRule::getExtents() {
  SmallVector<OpFoldResult> ofOperands;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()))
      llvm::append_range(ofOperands, b.getSizes(operand.get()));
  SmallVector<Value> extents;
  AffineMap toLoops = op.getShapesToLoopsMap();
  for (AffineExpr expr : toLoops.getResults()) {
    unsigned position = cast<AffineDimExpr>(expr).getPosition();
    extents.push_back(
        getValueOrCreateConstantIndexOp(b, b.getLoc(), ofOperands[position]));
  }
  return extents;
}

/// Where a point reads through a map.
static SmallVector<Value> getIndices(VJPBuilder &inner, AffineMap map,
                                     ValueRange position) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return affine::expandAffineExpr(inner, inner.getLoc(), expr, position,
                                    /*symbolValues=*/{});
  });
}

/// What an input has at one point.
Value GenericRule::readInput(VJPBuilder &inner, const Input &input,
                             ValueRange position) {
  if (!isa<RankedTensorType>(input.value.getType()))
    return input.value;
  return tensor::ExtractOp::create(inner, input.value,
                                   getIndices(inner, input.map, position));
}

/// The loop that is the last index of all reads and that no other index of
/// them depends on, if there is one.
std::optional<unsigned>
GenericRule::getRowLoop(ArrayRef<tensor::ExtractOp> reads) {
  // What points add to a row is a tensor of the extents of all loops.
  if (op.getNumReductionLoops() != 0)
    return std::nullopt;
  std::optional<unsigned> along;
  for (tensor::ExtractOp read : reads) {
    if (read.getIndices().empty())
      return std::nullopt;
    auto last = read.getIndices().back().getDefiningOp<linalg::IndexOp>();
    if (!last || (along && *along != last.getDim()))
      return std::nullopt;
    along = last.getDim();
    for (Value index : read.getIndices().drop_back())
      if (variesAlong(op, index, *along))
        return std::nullopt;
  }
  return along;
}

FailureOr<Value> GenericRule::addPoints(
    Value sum,
    llvm::function_ref<FailureOr<Value>(VJPBuilder &, const Point &, Value)>
        add) {
  Location loc = b.getLoc();
  SmallVector<Input> inputs = getInputs(/*withOutputs=*/true);
  SmallVector<Value> upper = getExtents();
  SmallVector<Value> lower(upper.size(), arith::ConstantIndexOp::create(b, 0));
  SmallVector<Value> steps(upper.size(), arith::ConstantIndexOp::create(b, 1));
  LogicalResult status = success();
  auto make = [&](OpBuilder &builder, Location loc, ValueRange position,
                  ValueRange carried) -> scf::ValueVector {
    VJPBuilder inner(loc, builder);
    SmallVector<Value> elements;
    for (const Input &input : inputs)
      elements.push_back(readInput(inner, input, position));
    Point point = getPoint(elements, /*withOutputs=*/true);
    point.position = position;
    FailureOr<Value> next = add(inner, point, carried.front());
    status = success(succeeded(status) && succeeded(next));
    return {succeeded(next) ? *next : carried.front()};
  };
  Value result = scf::buildLoopNest(b, loc, lower, upper, steps, sum, make)
                     .results.front();
  if (failed(status))
    return failure();
  return result;
}

/// The indices of a read but the last one, at a point.
SmallVector<Value> GenericRule::getRowNumbers(VJPBuilder &inner,
                                              tensor::ExtractOp read,
                                              ValueRange position) {
  ValueRange numbers = read.getIndices().drop_back();
  llvm::SmallDenseSet<Value> needed(numbers.begin(), numbers.end());
  for (Operation &operation : llvm::reverse(body->without_terminator()))
    if (llvm::any_of(operation.getResults(),
                     [&](Value value) { return needed.contains(value); }))
      needed.insert_range(getDependencies(&operation));
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands())
    if (BlockArgument argument = op.getMatchingBlockArgument(&operand);
        needed.contains(argument))
      mapping.map(argument,
                  readInput(inner, {operand.get(), getMap(operand)}, position));
  for (Operation &operation : body->without_terminator()) {
    if (llvm::none_of(operation.getResults(),
                      [&](Value value) { return needed.contains(value); }))
      continue;
    if (auto index = dyn_cast<linalg::IndexOp>(operation))
      mapping.map(index.getResult(), position[index.getDim()]);
    else
      inner.clone(operation, mapping);
  }
  SmallVector<Value> values;
  for (Value number : numbers)
    values.push_back(mapping.lookupOrDefault(number));
  return values;
}

/// The same, of rows along a loop: first what each point adds, as a tensor.
FailureOr<Value> GenericRule::addRows(Value sum, unsigned along,
                                      ArrayRef<tensor::ExtractOp> reads) {
  Location loc = b.getLoc();
  unsigned rank = op.getNumLoops();
  SmallVector<Value> upper = getExtents();
  Type element = cast<RankedTensorType>(sum.getType()).getElementType();
  Value like = tensor::EmptyOp::create(b, getAsOpFoldResult(upper), element);
  SmallVector<std::pair<tensor::ExtractOp, Value>> terms;
  for (tensor::ExtractOp read : reads) {
    auto make = [&](OpBuilder &builder, ValueRange args) {
      return pullBackBody(builder, getPoint(args, /*withOutputs=*/true), read);
    };
    FailureOr<Value> term = buildSum(b, getInputs(/*withOutputs=*/true), like,
                                     b.getMultiDimIdentityMap(rank), make);
    if (failed(term))
      return failure();
    if (*term)
      terms.push_back({read, *term});
  }

  Value zero = arith::ConstantIndexOp::create(b, 0);
  OpFoldResult columns = getAsOpFoldResult(upper[along]);
  SmallVector<Value> lower(rank, zero);
  SmallVector<Value> steps(rank, arith::ConstantIndexOp::create(b, 1));
  // One trip, or none where rows have no columns: their numbers are not read.
  upper[along] = arith::MinSIOp::create(b, upper[along], steps[along]);
  // A slice that is a row along its dimension `dim`.
  auto getRow = [&](VJPBuilder &inner, Value from, ValueRange at,
                    unsigned dim) -> tensor::ExtractSliceOp {
    SmallVector<OpFoldResult> ones(at.size(), inner.getIndexAttr(1)),
        sizes(ones);
    sizes[dim] = columns;
    auto type = RankedTensorType::get(
        getConstantIntValue(columns).value_or(ShapedType::kDynamic), element);
    return tensor::ExtractSliceOp::create(inner, type, from,
                                          getAsOpFoldResult(at), sizes, ones);
  };
  auto make = [&](OpBuilder &builder, Location loc, ValueRange position,
                  ValueRange carried) -> scf::ValueVector {
    VJPBuilder inner(loc, builder);
    Value sum = carried.front();
    for (auto [read, term] : terms) {
      SmallVector<Value> at = getRowNumbers(inner, read, position);
      at.push_back(zero);
      tensor::ExtractSliceOp old = getRow(inner, sum, at, at.size() - 1);
      Value more = getRow(inner, term, position, along);
      // Not linalg.add, which reads and writes rows as two operands.
      SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(1));
      auto next = linalg::GenericOp::create(
          inner, old.getType(), more, old.getResult(), maps,
          utils::IteratorType::parallel,
          [](OpBuilder &builder, Location loc, ValueRange args) {
            Value sum = arith::AddFOp::create(builder, loc, args[1], args[0]);
            linalg::YieldOp::create(builder, loc, sum);
          });
      sum = tensor::InsertSliceOp::create(
          inner, next.getResult(0), sum, old.getMixedOffsets(),
          old.getMixedSizes(), old.getMixedStrides());
    }
    return {sum};
  };
  return scf::buildLoopNest(b, loc, lower, upper, steps, sum, make)
      .results.front();
}

LogicalResult GenericRule::pullBackGather(Value tensor) {
  // Reads in the body itself may be of rows; branches and loops in it have
  // rules of their own.
  SmallVector<tensor::ExtractOp> reads;
  bool areAllDirect = true;
  for (Operation *user : tensor.getUsers()) {
    if (!body->findAncestorOpInBlock(*user) || isa<tensor::DimOp>(user))
      continue;
    auto read = dyn_cast<tensor::ExtractOp>(user);
    if (read && read->getBlock() == body)
      reads.push_back(read);
    else
      areAllDirect = false;
  }
  if (reads.empty() && areAllDirect)
    return success();
  FailureOr<Value> result = Value();
  b.accumulateInto(tensor, [&](Value sum) -> Value {
    std::optional<unsigned> along;
    if (areAllDirect)
      along = getRowLoop(reads);
    result = along ? addRows(sum, *along, reads)
                   : addPoints(sum, [&](VJPBuilder &inner, const Point &point,
                                        Value before) {
                       return pullBackBody(inner, point, tensor, before);
                     });
    return succeeded(result) ? *result : sum;
  });
  return result;
}

LogicalResult GenericRule::pullBackPlaces(Value operand, Value inBody,
                                          AffineMap map) {
  FailureOr<Value> result = Value();
  b.accumulateInto(operand, [&](Value sum) -> Value {
    result = addPoints(
        sum,
        [&](VJPBuilder &inner, const Point &point,
            Value before) -> FailureOr<Value> {
          FailureOr<Value> term = pullBackBody(inner, point, inBody);
          if (failed(term) || !*term)
            return failed(term) ? term : before;
          SmallVector<Value> at = getIndices(inner, map, point.position);
          Value old = tensor::ExtractOp::create(inner, before, at);
          return tensor::InsertOp::create(inner, inner.add(old, *term), before,
                                          at)
              .getResult();
        });
    return succeeded(result) ? *result : sum;
  });
  return result;
}

//===- VarlenScore.cpp - Score regions ------------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Interfaces/VJPInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::varlen;

void varlen::setScoreArgumentNames(Region &region,
                                   OpAsmSetValueNameFn setName) {
  constexpr StringLiteral names[] = {"score", "query", "key"};
  for (BlockArgument argument : region.getArguments())
    setName(argument, argument.getArgNumber() < Captures
                          ? names[argument.getArgNumber()]
                          : StringLiteral("capture"));
}

bool varlen::readsPositions(Block *score) {
  return score && !(score->getArgument(QueryPosition).use_empty() &&
                    score->getArgument(KeyPosition).use_empty());
}

bool varlen::changesScores(Block *score) {
  return score &&
         score->getTerminator()->getOperand(0) != score->getArgument(Score);
}

Value varlen::getVisible(Block *score) {
  if (!score || score->getTerminator()->getNumOperands() == 1)
    return {};
  return score->getTerminator()->getOperand(1);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Whether `value` is computed from `source`, both of one block.
static bool dependsOn(Value value, Value source) {
  SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i)
    if (Operation *op = reached[i].getDefiningOp())
      reached.insert_range(op->getOperands());
  return reached.contains(source);
}

/// That the region has one block with the arguments it is called with, and ends
/// with a score.
static LogicalResult verifySignature(Operation *op, Block *score,
                                     FloatType compute, unsigned captures) {
  auto i32 = IntegerType::get(op->getContext(), 32);
  SmallVector<Type> wanted = {compute, i32, i32};
  wanted.append(captures, compute);
  if (score->getArgumentTypes() != TypeRange(wanted))
    return op->emitOpError("expected a score region of ")
           << wanted
           << ": the score, the positions of query and key, and a number of "
              "each capture, got "
           << score->getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(score->back());
  Type i1 = IntegerType::get(op->getContext(), 1);
  if (!yield || (yield->getOperandTypes() != TypeRange(compute) &&
                 yield->getOperandTypes() != TypeRange({compute, i1}))) {
    auto error = op->emitOpError("expected the score region to end with "
                                 "varlen.yield of one ")
                 << compute << ", or of that and 'i1', got ";
    if (yield)
      return error << yield->getOperandTypes();
    return error << "'" << score->back().getName() << "'";
  }
  if (Value visible = getVisible(score);
      visible && dependsOn(visible, score->getArgument(Score)))
    return op->emitOpError("expected positions and captures to say whether a "
                           "key is visible, got what depends on the score");
  return success();
}

LogicalResult varlen::verifyScore(Operation *op, Block *score,
                                  FloatType compute, unsigned captures) {
  if (op->getNumRegions() > 1)
    return op->emitOpError("expected one score region at most, got ")
           << op->getNumRegions();
  if (!score) {
    if (captures == 0)
      return success();
    return op->emitOpError("expected a score region beside captures");
  }
  if (failed(verifySignature(op, score, compute, captures)))
    return failure();
  auto isNumber = [](Type type) { return type.isIntOrIndexOrFloat(); };
  for (Operation &inner : score->without_terminator())
    if (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
        inner.getNumRegions() != 0 || !isPure(&inner) ||
        !llvm::all_of(inner.getOperandTypes(), isNumber) ||
        !llvm::all_of(inner.getResultTypes(), isNumber))
      return inner.emitOpError("expected operations of arith and math on "
                               "numbers in a score region");
  return success();
}

LogicalResult varlen::verifyCaptureNumbers(Operation *op,
                                           ArrayRef<int64_t> numbers,
                                           int64_t captures) {
  int64_t next = 0;
  for (int64_t number : numbers) {
    if (number < next || number >= captures)
      return op->emitOpError("expected wrt_captures to be ascending numbers of "
                             "the ")
             << captures << " captures, got " << number;
    next = number + 1;
  }
  return success();
}

LogicalResult varlen::verifyScoreRules(Block *score) {
  if (!score)
    return success();
  for (Operation &inner : score->without_terminator()) {
    auto isFloat = [](Type type) { return isa<FloatType>(type); };
    bool isSmooth = llvm::any_of(inner.getOperandTypes(), isFloat) &&
                    llvm::any_of(inner.getResultTypes(), isFloat);
    if (isSmooth && !isa<VJPOpInterface>(inner))
      return inner.emitError() << "'" << inner.getName()
                               << "' has no rule of differentiation, but is "
                                  "part of the score of an attention that is "
                                  "differentiated";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// Copies the body; returns what it yields.
static SmallVector<Value> cloneBody(OpBuilder &builder, Block *score,
                                    ValueRange arguments,
                                    SmallVectorImpl<Operation *> &ops) {
  IRMapping mapping;
  mapping.map(score->getArguments(), arguments);
  for (Operation &inner : score->without_terminator())
    ops.push_back(builder.clone(inner, mapping));
  return llvm::map_to_vector(
      score->getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> varlen::cloneScoreBody(OpBuilder &builder, Block *score,
                                          ValueRange arguments) {
  SmallVector<Operation *> ops;
  return cloneBody(builder, score, arguments, ops);
}

/// Copies what one of the values that the region yields is computed from.
static Value emitYielded(OpBuilder &builder, Block *score, ValueRange arguments,
                         unsigned number) {
  SmallVector<Operation *> ops;
  Value result = cloneBody(builder, score, arguments, ops)[number];
  for (Operation *op : llvm::reverse(ops))
    if (op != result.getDefiningOp() && op->use_empty())
      op->erase();
  return result;
}

Value varlen::emitScore(OpBuilder &builder, Block *score,
                        ValueRange arguments) {
  return emitYielded(builder, score, arguments, 0);
}

Value varlen::emitVisible(OpBuilder &builder, Block *score,
                          ValueRange arguments) {
  return getVisible(score) ? emitYielded(builder, score, arguments, 1)
                           : Value();
}

Value varlen::emitScoreVJP(OpBuilder &builder, Location loc, Block *score,
                           ValueRange arguments, Value cotangent,
                           unsigned argument) {
  VJPBuilder vjp(loc, builder);
  Value source = arguments[argument];
  SmallVector<Operation *> ops;
  Value result = cloneBody(vjp, score, arguments, ops).front();
  vjp.markVaried(source, ops);
  vjp.accumulate(result, cotangent);
  LogicalResult pulled = vjp.pullBack(ops);
  assert(succeeded(pulled) && "verifyScoreRules has looked for rules");
  (void)pulled;
  return vjp.getCotangentOrZero(source);
}

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

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

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
  if (!yield || yield->getOperandTypes() != TypeRange(compute)) {
    auto error = op->emitOpError("expected the score region to end with "
                                 "varlen.yield of one ")
                 << compute << ", got ";
    if (yield)
      return error << yield->getOperandTypes();
    return error << "'" << score->back().getName() << "'";
  }
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
static Value cloneBody(OpBuilder &builder, Block *score, IRMapping &mapping,
                       SmallVectorImpl<Operation *> &ops) {
  for (Operation &inner : score->without_terminator())
    ops.push_back(builder.clone(inner, mapping));
  return mapping.lookupOrDefault(score->getTerminator()->getOperand(0));
}

Value varlen::emitScore(OpBuilder &builder, Block *score,
                        ValueRange arguments) {
  IRMapping mapping;
  mapping.map(score->getArguments(), arguments);
  SmallVector<Operation *> ops;
  return cloneBody(builder, score, mapping, ops);
}

Value varlen::emitScoreVJP(OpBuilder &builder, Location loc, Block *score,
                           ValueRange arguments, Value cotangent,
                           unsigned argument) {
  VJPBuilder vjp(loc, builder);
  Value source = arguments[argument];
  IRMapping mapping;
  mapping.map(score->getArguments(), arguments);
  SmallVector<Operation *> ops;
  Value result = cloneBody(vjp, score, mapping, ops);
  vjp.markVaried(source, ops);
  vjp.accumulate(result, cotangent);
  LogicalResult pulled = vjp.pullBack(ops);
  assert(succeeded(pulled) && "verifyScoreRules has looked for rules");
  (void)pulled;
  return vjp.getCotangentOrZero(source);
}

//===- VJPInterface.cpp - Rules of the reverse mode -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Interfaces/VJPInterface.h"

using namespace mlir;
using namespace mlir::varlen;

#include "varlen/Interfaces/VJPInterface.cpp.inc"

bool VJPBuilder::hasRule(Operation *op) const {
  return isa<VJPOpInterface>(op);
}

bool VJPBuilder::isDifferentiable(OpOperand &operand) const {
  return cast<VJPOpInterface>(operand.getOwner()).isDifferentiable(operand);
}

Value VJPBuilder::getCotangentOrZero(Value value) {
  Value cotangent = getCotangent(value);
  return cotangent ? cotangent : zerosLike(value);
}

void VJPBuilder::accumulate(Value value, Value cotangent) {
  if (!cotangent || !isVaried(value))
    return;
  assert(value.getType() == cotangent.getType() && "expected the value's type");
  Value &sum = cotangents[value];
  sum = sum ? add(sum, cotangent) : cotangent;
}

void VJPBuilder::accumulateInto(Value value,
                                llvm::function_ref<Value(Value)> add) {
  if (!isVaried(value))
    return;
  Value sum = add(getCotangentOrZero(value));
  assert(value.getType() == sum.getType() && "expected the value's type");
  cotangents[value] = sum;
}

LogicalResult VJPBuilder::pullBack(ArrayRef<Operation *> ops) {
  for (Operation *op : llvm::reverse(ops)) {
    if (llvm::none_of(op->getResults(),
                      [&](Value result) { return getCotangent(result); }))
      continue;
    if (failed(verifyCanPass(op)))
      return failure();
    setLoc(op->getLoc());
    if (failed(cast<VJPOpInterface>(op).buildVJP(*this)))
      return failure();
  }
  return success();
}

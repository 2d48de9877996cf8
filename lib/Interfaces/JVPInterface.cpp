//===- JVPInterface.cpp - Rules of the forward mode -----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Interfaces/JVPInterface.h"

#include "varlen/Support/Dependencies.h"

using namespace mlir;
using namespace mlir::varlen;

#include "varlen/Interfaces/JVPInterface.cpp.inc"

bool JVPBuilder::hasRule(Operation *op) const {
  return isa<JVPOpInterface>(op);
}

bool JVPBuilder::isDifferentiable(OpOperand &operand) const {
  return cast<JVPOpInterface>(operand.getOwner()).isDifferentiable(operand);
}

Value JVPBuilder::getTangentOrZero(Value value) {
  Value tangent = getTangent(value);
  return tangent ? tangent : zerosLike(value);
}

void JVPBuilder::setTangent(Value value, Value tangent) {
  if (!tangent)
    return;
  assert(value.getType() == tangent.getType() && "expected the value's type");
  tangents[value] = tangent;
}

void JVPBuilder::markCarried(ValueRange sources, ValueRange carried,
                             ValueRange yielded, ArrayRef<Operation *> ops) {
  SmallVector<Value> all(sources);
  for (bool changed = true; changed;) {
    markVaried(all, ops);
    changed = false;
    for (auto [before, after] : llvm::zip_equal(carried, yielded))
      if (isVaried(after) && !isVaried(before)) {
        all.push_back(before);
        changed = true;
      }
  }
}

/// The operations of `ops` that `wanted` depend on.
static SmallVector<Operation *> getNeeded(ArrayRef<Operation *> ops,
                                          ValueRange wanted) {
  llvm::DenseSet<Value> needed;
  needed.insert_range(wanted);
  SmallVector<Operation *> found;
  for (Operation *op : llvm::reverse(ops)) {
    if (llvm::none_of(op->getResults(),
                      [&](Value result) { return needed.contains(result); }))
      continue;
    needed.insert_range(getDependencies(op));
    found.push_back(op);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

LogicalResult JVPBuilder::pushForward(ArrayRef<Operation *> ops,
                                      ValueRange wanted) {
  InsertionGuard guard(*this);
  for (Operation *op : getNeeded(ops, wanted)) {
    if (llvm::none_of(op->getResults(),
                      [&](Value result) { return isVaried(result); }))
      continue;
    if (failed(verifyCanPass(op)))
      return failure();
    if (!hasTangent(getDependencies(op)))
      continue;
    setLoc(op->getLoc());
    setInsertionPointAfter(op);
    if (failed(cast<JVPOpInterface>(op).buildJVP(*this)))
      return failure();
  }
  return success();
}

//===- Dependencies.cpp - What an operation reads -------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Support/Dependencies.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

SmallVector<Value> varlen::getCaptured(Operation *op) {
  llvm::SetVector<Value> values;
  op->walk([&](Operation *nested) {
    if (nested == op)
      return;
    for (Value operand : nested->getOperands()) {
      Operation *parent = operand.getParentBlock()->getParentOp();
      if (!parent || !op->isAncestor(parent))
        values.insert(operand);
    }
  });
  return values.takeVector();
}

SmallVector<Value> varlen::getDependencies(Operation *op) {
  llvm::SetVector<Value> values;
  values.insert_range(op->getOperands());
  values.insert_range(getCaptured(op));
  return values.takeVector();
}

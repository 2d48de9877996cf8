//===- FilledMemory.cpp - What a result is filled with before -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FilledMemory.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::varlen;

linalg::FillOp varlen::findFill(linalg::LinalgOp op, OpOperand &init) {
  Value memory = init.get();
  linalg::FillOp fill;
  for (Operation *user : memory.getUsers())
    if (auto other = dyn_cast<linalg::FillOp>(user);
        other && other->getBlock() == op->getBlock() &&
        other.getOutputs().front() == memory && other->isBeforeInBlock(op) &&
        (!fill || fill->isBeforeInBlock(other)))
      fill = other;
  if (!fill)
    return {};
  Value root = memory;
  while (auto view = root.getDefiningOp<ViewLikeOpInterface>())
    root = view.getViewSource();
  if (!root.getDefiningOp<memref::AllocOp>())
    return {};
  SmallVector<Value> names = {root};
  while (!names.empty()) {
    for (OpOperand &use : names.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (isa<ViewLikeOpInterface>(user)) {
        names.push_back(user->getResult(0));
        continue;
      }
      // Another name that is not followed, such as what a loop carries.
      if (llvm::any_of(user->getResultTypes(), llvm::IsaPred<BaseMemRefType>))
        return {};
      // None for what happens before or after all of the block.
      Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      bool isBetween = ancestor && fill->isBeforeInBlock(ancestor) &&
                       ancestor->isBeforeInBlock(op);
      if (isBetween || (ancestor == op && &use != &init))
        return {};
    }
  }
  return fill;
}

//===- IndependentLoop.cpp - Loops whose iterations are threads -----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndependentLoop.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::varlen;

namespace {
struct Access {
  Operation *op;
  Value memory;
  ValueRange indices;
  bool isStore;
};
} // namespace

/// All accesses of the nest; failure if it has other effects.
static FailureOr<SmallVector<Access>> findAccesses(Operation *nest) {
  SmallVector<Access> accesses;
  WalkResult result = nest->walk([&](Operation *op) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      accesses.push_back({op, load.getMemRef(), load.getIndices(), false});
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      accesses.push_back({op, store.getMemRef(), store.getIndices(), true});
    else if (!isa<scf::ForOp, scf::IfOp, scf::YieldOp>(op) && !isPure(op))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return accesses;
}

/// The allocation or argument of the function that a memref is part of; null if
/// it is something else.
static Value findRoot(Value memory) {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  if (memory.getDefiningOp<memref::AllocOp>())
    return memory;
  auto argument = dyn_cast<BlockArgument>(memory);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp())
             ? memory
             : Value();
}

/// Whether iterations of the loop touch nothing that another one stores.
static bool isIndependent(scf::ForOp loop, ArrayRef<Access> accesses) {
  for (const Access &store : accesses) {
    if (!store.isStore)
      continue;
    if (!loop->isAncestor(store.op) ||
        !store.memory.getDefiningOp<memref::AllocOp>())
      return false;
    // Dimensions in which every access has the index of the loop.
    llvm::SmallBitVector dims(store.indices.size(), true);
    for (const Access &access : accesses) {
      Value root = findRoot(access.memory);
      if (!root)
        return false;
      if (root != store.memory)
        continue;
      if (access.memory != root)
        return false;
      for (auto [d, at] : llvm::enumerate(access.indices))
        if (at != loop.getInductionVar())
          dims.reset(d);
    }
    if (dims.none())
      return false;
  }
  return true;
}

scf::ForOp varlen::findIndependentLoop(Operation *nest) {
  FailureOr<SmallVector<Access>> accesses = findAccesses(nest);
  if (failed(accesses))
    return {};
  scf::ForOp found;
  nest->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    auto isKnown = [&](Value value) {
      return !nest->isAncestor(value.getParentBlock()->getParentOp());
    };
    // Numbers that loops carry go from one iteration to the next.
    bool isPlain = loop.getNumResults() == 0;
    for (Operation *around = loop; isPlain && around != nest;
         around = around->getParentOp())
      isPlain = isa<scf::ForOp, scf::IfOp>(around->getParentOp()) &&
                around->getParentOp()->getNumResults() == 0;
    if (!isPlain || !isKnown(loop.getLowerBound()) ||
        !isKnown(loop.getUpperBound()) || !isKnown(loop.getStep()) ||
        !isIndependent(loop, *accesses))
      return WalkResult::advance();
    found = loop;
    return WalkResult::interrupt();
  });
  return found;
}

//===- KernelCopyByMap.cpp - Whole tiles are copied by tensor maps --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyRows.h"
#include "Roles.h"
#include "TensorMaps.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/IndexBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELCOPYBYMAP
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

/// Memory, and the rows of a box.
using Box = std::pair<Value, int64_t>;

/// What a map has to be of for the copy; nothing if no map can do it. The rows
/// of a group of heads are no box where it ends within one.
static std::optional<Box> getBox(CopyOp copy) {
  if (copy.getBlockTable() || copy.getSlot().size() != 1 ||
      !isConstantIntValue(copy.getGroup(), 1) ||
      !canHaveMap(copy.getSource().getType()))
    return std::nullopt;
  auto slot = cast<MemRefType>(copy.getSlot()[0].getType());
  return Box(copy.getSource(), getSharedRows(slot));
}

/// A branch on whether all rows are there; the other ones are copied as before.
static void copyByMap(CopyOp copy, Value map, int64_t rows) {
  ImplicitLocOpBuilder b(copy.getLoc(), copy);
  IndexBuilder index{b};
  auto emitCopy = [&] {
    CopyByMapOp::create(b, map, index.add(copy.getRow(), copy.getFirst()),
                        copy.getHead(), copy.getSlot()[0]);
  };
  if (std::optional<int64_t> valid = getConstantIntValue(copy.getValid());
      valid && *valid >= rows)
    emitCopy();
  else
    emitIf(b, index.lessEqual(rows, copy.getValid()), emitCopy,
           [&] { b.clone(*copy); });
  copy->erase();
}

namespace {
struct KernelCopyByMap : kernel::impl::KernelCopyByMapBase<KernelCopyByMap> {
  void runOnOperation() override {
    RolesOp roles = getRoles(getOperation());
    if (!roles)
      return;
    llvm::MapVector<Box, TensorMapOp> maps;
    roles.getProducing().walk([&](TensorMapOp map) {
      maps.insert({Box(map.getSource(), map.getRows()), map});
    });
    SmallVector<CopyOp> copies;
    roles.getProducing().walk([&](CopyOp copy) { copies.push_back(copy); });
    for (CopyOp copy : copies) {
      std::optional<Box> box = getBox(copy);
      auto *found = box ? maps.find(*box) : maps.end();
      if (found == maps.end())
        continue;
      copyByMap(copy, found->second.getMap(), box->second);
      ++numCopies;
    }
    roles.getProducing().walk([](TensorMapOp map) {
      if (map.getMap().use_empty())
        map->erase();
    });
  }
};
} // namespace

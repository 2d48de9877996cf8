//===- HostMemory.cpp - What is not in device memory ----------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostMemory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::varlen;

/// Whether all calls of a private function give it memory of the host.
static bool isGivenHostMemory(BlockArgument argument) {
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function || !function.isPrivate() ||
      !argument.getOwner()->isEntryBlock())
    return false;
  std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(
      function, function->getParentOfType<ModuleOp>());
  return uses && !uses->empty() &&
         llvm::all_of(*uses, [&](SymbolTable::SymbolUse use) {
           auto call = dyn_cast<func::CallOp>(use.getUser());
           return call &&
                  isHostMemory(call.getOperand(argument.getArgNumber()));
         });
}

bool varlen::isHostMemory(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  if (auto argument = dyn_cast<BlockArgument>(memref))
    return isGivenHostMemory(argument);
  Operation *source = memref.getDefiningOp();
  return isa_and_present<memref::AllocaOp, memref::GetGlobalOp>(source);
}

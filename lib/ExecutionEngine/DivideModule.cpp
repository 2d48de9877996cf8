//===- DivideModule.cpp - Parts that are compiled at the same time --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On modules of the llvm dialect rather than of LLVM: each part then is
// translated into an LLVM context of its own, and nothing has to be copied.
//
//===----------------------------------------------------------------------===//

#include "DivideModule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

using namespace mlir;
using namespace mlir::varlen;

/// There is a part for so many operations at most: some 30 ms of code
/// generation, many times what another part costs.
static constexpr int64_t minPartSize = 1500;
static constexpr int64_t maxParts = 16;

namespace {
/// A function that may leave the module, and what it names.
struct Candidate {
  LLVM::LLVMFuncOp function;
  SmallVector<LLVM::LLVMFuncOp> callees;
  int64_t size;
  /// Among all candidates, in the order of the module.
  size_t index;
};
} // namespace

static int64_t getSize(Operation *op) {
  int64_t size = 0;
  op->walk([&](Operation *) { ++size; });
  return size;
}

/// Whether other modules can name the function.
static bool isExternal(LLVM::LLVMFuncOp function) {
  return function.getLinkage() == LLVM::Linkage::External &&
         !function.getComdat();
}

/// Whether attributes of an operation may name symbols. To look at those of
/// each operation takes as long as half of its translation.
static bool mayNameSymbols(Operation *op) {
  return !isa_and_present<LLVM::LLVMDialect>(op->getDialect()) ||
         isa<SymbolUserOpInterface, CallOpInterface, LLVM::LLVMFuncOp>(op) ||
         !op->getRawDictionaryAttrs().empty();
}

/// The functions that `function` names; failure if it names anything else, or a
/// function that other modules cannot.
static FailureOr<SmallVector<LLVM::LLVMFuncOp>>
findCallees(LLVM::LLVMFuncOp function, const SymbolTable &symbols) {
  llvm::SetVector<LLVM::LLVMFuncOp> callees;
  auto addCallee = [&](SymbolRefAttr symbol) {
    auto callee = symbols.lookup<LLVM::LLVMFuncOp>(symbol.getRootReference());
    if (!callee || !isExternal(callee))
      return WalkResult::interrupt();
    callees.insert(callee);
    return WalkResult::skip();
  };
  WalkResult result = function->walk([&](Operation *op) {
    if (!mayNameSymbols(op))
      return WalkResult::advance();
    return op->getAttrDictionary().walk<WalkOrder::PreOrder>(addCallee);
  });
  if (result.wasInterrupted())
    return failure();
  return SmallVector<LLVM::LLVMFuncOp>(callees.getArrayRef());
}

/// Declares a function, with all that a caller has to know of it.
static void declare(LLVM::LLVMFuncOp function, OpBuilder &b) {
  auto declaration = cast<LLVM::LLVMFuncOp>(function->cloneWithoutRegions());
  // Locations of functions say where their code is.
  declaration->setLoc(b.getUnknownLoc());
  declaration.setSymVisibility("private");
  b.insert(declaration);
}

/// The functions that may leave the module, largest first.
static SmallVector<Candidate> findCandidates(ModuleOp module) {
  // These need the definition of what they stand for beside them.
  if (!module.getOps<LLVM::AliasOp>().empty() ||
      !module.getOps<LLVM::IFuncOp>().empty())
    return {};
  SymbolTable symbols(module);
  SmallVector<Candidate> candidates;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal() || !isExternal(function))
      continue;
    auto callees = findCallees(function, symbols);
    if (succeeded(callees))
      candidates.push_back({function, std::move(*callees), getSize(function),
                            candidates.size()});
  }
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::tie(b.size, a.index) < std::tie(a.size, b.index);
  });
  return candidates;
}

/// Moves a function, and declares it here and there what it names.
static void move(const Candidate &candidate, ModuleOp part) {
  LLVM::LLVMFuncOp function = candidate.function;
  OpBuilder b(function);
  declare(function, b);
  // What has been declared for another function may be this one.
  if (Operation *declaration = part.lookupSymbol(function.getNameAttr()))
    declaration->erase();
  function->moveBefore(part.getBody(), part.getBody()->end());
  b.setInsertionPointToEnd(part.getBody());
  for (LLVM::LLVMFuncOp callee : candidate.callees)
    if (!part.lookupSymbol(callee.getNameAttr()))
      declare(callee, b);
}

SmallVector<ModulePart> varlen::divideModule(ModuleOp module) {
  int64_t size = getSize(module);
  SmallVector<Candidate> candidates = findCandidates(module);
  SmallVector<ModulePart> parts;
  parts.push_back({module, size, {}});
  if (candidates.empty())
    return parts;
  // With more of them, the largest function would take longest all the same.
  int64_t numParts = std::min(
      size / std::max(candidates.front().size, minPartSize) + 1, maxParts);
  for (const Candidate &candidate : candidates)
    parts.front().size -= candidate.size;
  while (static_cast<int64_t>(parts.size()) < numParts) {
    ModuleOp part = ModuleOp::create(module.getLoc());
    part->setAttrs(module->getAttrs());
    parts.push_back({part, 0, part});
  }
  // The largest functions first, each to what is the smallest part then.
  for (const Candidate &candidate : candidates) {
    ModulePart &part = *llvm::min_element(
        parts, [](auto &a, auto &b) { return a.size < b.size; });
    part.size += candidate.size;
    if (part.owner)
      move(candidate, part.module);
  }
  llvm::erase_if(parts, [](ModulePart &part) { return part.size == 0; });
  return parts;
}

//===- VarlenSplitWork.cpp - Halves of large functions of work ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What leaves a function is the end of a block, from some operation on: nothing
// after it uses its results. Numbers become arguments; buffers are derived
// again from the context and the workspace, so that LLVM knows there, too, that
// these do not overlap.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/Transforms/Transforms.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cstdlib>

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENSPLITWORK
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// The end of a block, without its terminator, and how many operations that
/// are, constants aside.
struct Tail {
  Operation *first = nullptr;
  int64_t size = 0;
};

class Splitter {
public:
  explicit Splitter(func::FuncOp work) : work(work) {}

  /// Moves about half of the operations into a function of their own, if there
  /// are at least `minSize`. False if nothing was done.
  bool split(int64_t minSize, SymbolTable &symbols);

private:
  int64_t findTail(Block &block, int64_t all, Tail &best);
  void enterBranch();
  bool collectInputs(Operation *op);
  bool isDerived(Operation *op);

  func::FuncOp work;
  Tail tail;
  /// What the tail uses of its surroundings: operations that its function
  /// repeats, in order, and values that it takes as arguments.
  llvm::SetVector<Operation *> derived;
  llvm::SetVector<Value> arguments;
};

} // namespace

/// Finds the tail in `block`, or else within its operations, that is next to
/// half of `all`, if there is one between a third and two thirds of it. Returns
/// the size of the block.
int64_t Splitter::findTail(Block &block, int64_t all, Tail &best) {
  bool isCandidate =
      &block != &work.front() && block.getTerminator()->getNumOperands() == 0;
  int64_t size = 0;
  Tail here;
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    size += !op.hasTrait<OpTrait::ConstantLike>();
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        size += findTail(nested, all, best);
    if (isCandidate &&
        std::abs(2 * size - all) <= std::abs(2 * here.size - all))
      here = {&op, size};
  }
  if (here.size * 3 >= all && here.size * 3 <= all * 2)
    best = here;
  return size;
}

/// Where the tail ends in a branch that has nearly all of it, takes what is in
/// the branch: only a thread that enters it pays for the call.
void Splitter::enterBranch() {
  Block *block = tail.first->getBlock();
  while (auto branch = dyn_cast_or_null<scf::IfOp>(
             block->getTerminator()->getPrevNode())) {
    block = branch.thenBlock();
    if (branch.elseBlock() || block->without_terminator().empty() ||
        block->getTerminator()->getNumOperands() > 0)
      return;
    int64_t size = 0;
    block->walk(
        [&](Operation *op) { size += !op->hasTrait<OpTrait::ConstantLike>(); });
    if (size < tail.size / 10 * 9)
      return;
    tail = {&block->front(), size};
  }
}

/// Whether the operation only derives buffers, or what tells them apart, from
/// the context and the workspace.
bool Splitter::isDerived(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return true;
  // The context is not written.
  bool isRead = isMemoryEffectFree(op) || isa<LLVM::LoadOp>(op);
  return isRead &&
         (op->getBlock() == &work.front() ||
          llvm::any_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>));
}

/// Finds out how the tail gets at what `op` uses; false if it cannot.
bool Splitter::collectInputs(Operation *op) {
  Block *block = tail.first->getBlock();
  auto isInTail = [&](Operation *user) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    return ancestor && !ancestor->isBeforeInBlock(tail.first);
  };
  auto collect = [&](Value value) {
    Operation *source = value.getDefiningOp();
    if (Operation *owner =
            source ? source : value.getParentBlock()->getParentOp();
        op->isAncestor(owner) || isInTail(owner))
      return true;
    if (source && isDerived(source)) {
      if (derived.contains(source))
        return true;
      if (!collectInputs(source))
        return false;
      derived.insert(source);
      return true;
    }
    // The context and the workspace.
    if (value == work.getArgument(0) || value == work.getArgument(3))
      return true;
    Type element = getElementTypeOrSelf(value.getType());
    if (isa<BaseMemRefType>(value.getType()) ||
        !(element.isIntOrIndex() || element.isF32() || element.isF64()))
      return false;
    arguments.insert(value);
    return true;
  };
  return !op->walk([&](Operation *nested) {
              return WalkResult(
                  success(llvm::all_of(nested->getOperands(), collect)));
            }).wasInterrupted();
}

bool Splitter::split(int64_t minSize, SymbolTable &symbols) {
  Block &entry = work.front();
  int64_t size = findTail(entry, /*all=*/0, tail);
  if (size < minSize)
    return false;
  findTail(entry, size, tail);
  if (!tail.first)
    return false;
  enterBranch();
  Block *block = tail.first->getBlock();
  auto operations =
      llvm::make_range(tail.first->getIterator(), std::prev(block->end()));
  for (Operation &op : operations)
    if (!collectInputs(&op))
      return false;

  ImplicitLocOpBuilder b(tail.first->getLoc(), tail.first);
  SmallVector<Value> operands = {work.getArgument(0), work.getArgument(3)};
  llvm::append_range(operands, arguments);
  auto part = func::FuncOp::create(
      b.getLoc(), (work.getName() + "_part").str(),
      b.getFunctionType(TypeRange(ValueRange(operands)), {}));
  part.setPrivate();
  part->setAttr("passthrough", work->getAttr("passthrough"));
  symbols.insert(part, std::next(work->getIterator()));
  for (unsigned argument : {0, 1})
    part.setArgAttr(argument, LLVM::LLVMDialect::getNoAliasAttrName(),
                    b.getUnitAttr());

  IRMapping mapping;
  Block *body = part.addEntryBlock();
  mapping.map(operands, body->getArguments());
  OpBuilder inside = OpBuilder::atBlockBegin(body);
  for (Operation *op : derived)
    inside.clone(*op, mapping);
  func::CallOp::create(b, part, operands);
  body->getOperations().splice(body->end(), block->getOperations(),
                               operations.begin(), operations.end());
  part.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(mapping.lookupOrDefault(operand.get()));
  });
  inside.setInsertionPointToEnd(body);
  func::ReturnOp::create(inside, b.getLoc());
  return true;
}

namespace {

struct VarlenSplitWork : varlen::impl::VarlenSplitWorkBase<VarlenSplitWork> {
  using VarlenSplitWorkBase::VarlenSplitWorkBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (isWork(function) && Splitter(function).split(minSize, symbols))
        ++numParts;
  }

  /// A function of varlen-outline-work. One that allocates is left: of what
  /// its buffers depend on, others look there only.
  static bool isWork(func::FuncOp function) {
    auto attributes = function->getAttrOfType<ArrayAttr>("passthrough");
    return attributes && !function.isExternal() &&
           function.getNumArguments() == 4 &&
           llvm::is_contained(
               attributes,
               StringAttr::get(function.getContext(), kWorkFunctionAttrName)) &&
           !function
                .walk([](memref::AllocOp) { return WalkResult::interrupt(); })
                .wasInterrupted();
  }
};

} // namespace

//===- VarlenAllowMeasuring.cpp - Runs that only count memory -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run that measures must execute every allocation of a real one, and has no
// memory behind the buffers. So operations that read or write go into branches
// that it does not take, and what they compute must not decide what is
// allocated, nor how often.
//
//===----------------------------------------------------------------------===//

#include "varlen/ABI/Passes.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENALLOWMEASURING
#include "varlen/ABI/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Neighbours in a block that go into one branch, in front of `end`.
struct Group {
  SmallVector<Operation *> ops;
  Operation *end;
};

/// What a run that measures leaves out of a function.
class Measuring {
public:
  explicit Measuring(func::FuncOp function);

  /// The first operation found that decides about memory by what is in memory;
  /// null if there is none.
  Operation *getObstacle() const { return obstacle; }
  int64_t getNumGroups() const { return static_cast<int64_t>(groups.size()); }
  LogicalResult rewrite(ModuleOp module, func::FuncOp function);

private:
  void visit(Block &block);
  void close(Group &group, Operation *end);
  void follow(SmallVectorImpl<Value> &values);
  /// Goes on with what an operation that both runs execute makes of a value
  /// that only a real one has. False if that is an obstacle.
  bool pass(OpOperand &use, SmallVectorImpl<Value> &values);

  std::vector<Group> groups;
  DenseSet<Operation *> skipped;
  Operation *obstacle = nullptr;
};

} // namespace

/// Whether the operation takes or gives back memory, and does nothing else.
static bool isAllocation(Operation *op) {
  auto effects = getEffectsRecursively(op);
  return effects && !effects->empty() &&
         llvm::all_of(*effects, [](const auto &effect) {
           return isa<MemoryEffects::Allocate, MemoryEffects::Free>(
               effect.getEffect());
         });
}

/// Whether the operation has allocations, of its own or of work in it.
static bool contains(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool allocates =
            isa<AttentionOpInterface, scf::ForallOp, CallOpInterface,
                memref::AllocOp, memref::DeallocOp, memref::ReallocOp>(inner);
        return WalkResult(failure(allocates));
      })
      .wasInterrupted();
}

static bool usesMemory(Operation *op) {
  auto effects = getEffectsRecursively(op);
  return !effects || llvm::any_of(*effects, [](const auto &effect) {
    return isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect());
  });
}

/// Whether the operation, or one in it, uses a result of the group.
static bool dependsOn(Operation *op, const Group &group) {
  auto isOfGroup = [&](Value value) {
    return llvm::is_contained(group.ops, value.getDefiningOp());
  };
  return op
      ->walk([&](Operation *inner) {
        return WalkResult(
            failure(llvm::any_of(inner->getOperands(), isOfGroup)));
      })
      .wasInterrupted();
}

Measuring::Measuring(func::FuncOp function) {
  for (Block &block : function.getBody())
    visit(block);
  SmallVector<Value> values;
  for (const Group &group : groups)
    for (Operation *op : group.ops)
      llvm::append_range(values, op->getResults());
  follow(values);
}

void Measuring::close(Group &group, Operation *end) {
  if (group.ops.empty())
    return;
  group.end = end;
  skipped.insert(group.ops.begin(), group.ops.end());
  groups.push_back(std::move(group));
  group = {};
}

void Measuring::visit(Block &block) {
  Group group;
  for (Operation &op : block) {
    bool isWork = isa<AttentionOpInterface, scf::ForallOp>(op);
    // What work allocates beside scratch is not counted.
    if (isa<scf::ForallOp>(op))
      op.walk([&](Operation *inner) {
        if (isa<AttentionOpInterface, CallOpInterface>(inner) && !obstacle)
          obstacle = inner;
      });
    if (isWork || op.hasTrait<OpTrait::IsTerminator>() || isAllocation(&op)) {
      close(group, &op);
    } else if (contains(&op)) {
      close(group, &op);
      // A function may do anything.
      if (isa<CallOpInterface>(op) || op.getNumRegions() == 0)
        obstacle = obstacle ? obstacle : &op;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          visit(inner);
    } else if (usesMemory(&op) || dependsOn(&op, group)) {
      group.ops.push_back(&op);
    }
  }
}

void Measuring::follow(SmallVectorImpl<Value> &values) {
  DenseSet<Value> seen;
  while (!values.empty()) {
    Value value = values.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *outer = use.getOwner();
      while (outer && !skipped.contains(outer))
        outer = outer->getParentOp();
      if (!outer && !pass(use, values))
        obstacle = obstacle ? obstacle : use.getOwner();
    }
  }
}

bool Measuring::pass(OpOperand &use, SmallVectorImpl<Value> &values) {
  Operation *user = use.getOwner();
  if (isMemoryEffectFree(user) && user->getNumRegions() == 0 &&
      !user->hasTrait<OpTrait::IsTerminator>()) {
    llvm::append_range(values, user->getResults());
    // A division, for example, must not run: its operands may be anything.
    return isSpeculatable(user) || user->getParentOfType<scf::ForallOp>();
  }
  // Its iterations are not run, but each has memory.
  if (user->getParentOfType<scf::ForallOp>())
    return !isAllocation(user);
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    BlockArgument argument = loop.getTiedLoopRegionIterArg(&use);
    if (!argument)
      return false;
    values.push_back(argument);
    values.push_back(loop.getTiedLoopResult(&use));
    return true;
  }
  if (auto yield = dyn_cast<scf::YieldOp>(user)) {
    Operation *parent = yield->getParentOp();
    unsigned index = use.getOperandNumber();
    if (!isa<scf::ForOp, scf::IfOp>(parent))
      return false;
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      values.push_back(loop.getRegionIterArg(index));
    values.push_back(parent->getResult(index));
    return true;
  }
  return false;
}

LogicalResult Measuring::rewrite(ModuleOp module, func::FuncOp function) {
  ImplicitLocOpBuilder b =
      ImplicitLocOpBuilder::atBlockBegin(function.getLoc(), &function.front());
  FailureOr<func::FuncOp> query =
      getRuntimeFunction(module, function, "varlen_is_measuring",
                         b.getFunctionType(TypeRange(), {b.getI1Type()}));
  if (failed(query))
    return failure();
  Value measures = func::CallOp::create(b, *query, ValueRange()).getResult(0);
  Value computes = arith::XOrIOp::create(
      b, measures, arith::ConstantIntOp::create(b, 1, /*width=*/1));
  for (const Group &group : groups) {
    auto isOutside = [&](OpOperand &use) {
      Operation *outer =
          group.end->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return !llvm::is_contained(group.ops, outer);
    };
    SmallVector<Value> results;
    for (Operation *op : group.ops)
      llvm::copy_if(op->getResults(), std::back_inserter(results),
                    [&](Value result) {
                      return llvm::any_of(result.getUses(), isOutside);
                    });
    TypeRange types(results);
    b.setLoc(group.ops.front()->getLoc());
    b.setInsertionPoint(group.end);
    auto branch = scf::IfOp::create(b, types, computes,
                                    /*withElseRegion=*/!types.empty());
    for (auto [from, to] : llvm::zip_equal(results, branch.getResults()))
      from.replaceUsesWithIf(to, isOutside);
    b.setInsertionPointToStart(branch.thenBlock());
    if (!types.empty())
      scf::YieldOp::create(b, results);
    for (Operation *op : group.ops)
      op->moveBefore(branch.thenBlock()->getTerminator());
    if (types.empty())
      continue;
    b.setInsertionPointToStart(branch.elseBlock());
    SmallVector<Value> nothing;
    for (Type type : types)
      nothing.push_back(ub::PoisonOp::create(b, type));
    scf::YieldOp::create(b, nothing);
  }
  return success();
}

namespace {

struct VarlenAllowMeasuring
    : varlen::impl::VarlenAllowMeasuringBase<VarlenAllowMeasuring> {
  void runOnOperation() override {
    for (auto function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!function.isPublic() || function.isExternal())
        continue;
      Measuring measuring(function);
      if (Operation *obstacle = measuring.getObstacle()) {
        function->setAttr(kMemoryDependsOnAttrName,
                          obstacle->getName().getIdentifier());
        ++numRefused;
        continue;
      }
      if (measuring.getNumGroups() == 0)
        continue;
      if (failed(measuring.rewrite(getOperation(), function)))
        return signalPassFailure();
      numBranches += measuring.getNumGroups();
    }
  }
};

} // namespace

//===- VarlenLaunchLinalg.cpp - What is not attention, as kernels ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../KernelLaunch.h"
#include "ContractionKernel.h"
#include "HostMemory.h"
#include "IndependentLoop.h"
#include "LinalgKernel.h"
#include "varlen/Conversion/Passes.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENLAUNCHLINALG
#include "varlen/Conversion/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What a thread can run
//===----------------------------------------------------------------------===//

/// Whether the operation loads or stores an element of device memory.
static bool isDeviceAccess(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return !isHostMemory(load.getMemref());
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return !isHostMemory(store.getMemref());
  return false;
}

/// Elements of memory that a thread can have for itself.
static constexpr int64_t kThreadElements = 64;

/// Whether the memory is a thread's own: a few elements, freed in the block
/// that has allocated them.
static bool isThreadMemory(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  return type.hasStaticShape() && type.getNumElements() <= kThreadElements &&
         llvm::any_of(alloc->getUsers(), [&](Operation *user) {
           return isa<memref::DeallocOp>(user) &&
                  user->getBlock() == alloc->getBlock();
         });
}

/// Whether a thread can run the operation by itself.
static bool canRun(Operation *op) {
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return isThreadMemory(alloc);
  if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
    auto alloc = dealloc.getMemref().getDefiningOp<memref::AllocOp>();
    return alloc && isThreadMemory(alloc);
  }
  return isa<memref::LoadOp, memref::StoreOp, memref::CopyOp, cf::AssertOp,
             linalg::LinalgOp, ViewLikeOpInterface>(op) ||
         isa<scf::SCFDialect, linalg::LinalgDialect>(op->getDialect()) ||
         isMemoryEffectFree(op);
}

/// Whether a thread can run the operation, with all that is in it.
static bool isThreadCode(Operation *op) {
  WalkResult result = op->walk(
      [](Operation *inside) { return WalkResult(success(canRun(inside))); });
  return !result.wasInterrupted();
}

static bool hasAccess(Operation *op) {
  return op
      ->walk([](Operation *inside) {
        // Those in the body of a linalg operation are its kernel's.
        if (isa<linalg::LinalgOp>(inside))
          return WalkResult::skip();
        return WalkResult(failure(isDeviceAccess(inside)));
      })
      .wasInterrupted();
}

/// Whether threads run the loop or branch as it is, each all of it or an
/// iteration.
static bool isThreadLoop(Operation *op) {
  if (auto forall = dyn_cast<scf::ForallOp>(op))
    return forall.getOutputs().empty() && isThreadCode(op);
  if (auto parallel = dyn_cast<scf::ParallelOp>(op))
    return parallel.getNumReductions() == 0 && isThreadCode(op);
  return isa<scf::SCFDialect>(op->getDialect()) && op->getNumRegions() != 0 &&
         op->use_empty() && hasAccess(op) && isThreadCode(op);
}

/// Writes all that is in the operation, which a thread runs, as loops of that
/// thread.
static void makeSequential(Operation *op) {
  IRRewriter rewriter(op->getContext());
  SmallVector<Operation *> ops;
  op->walk([&](Operation *inside) {
    if (isa<memref::CopyOp, linalg::LinalgOp, scf::ForallOp>(inside))
      ops.push_back(inside);
  });
  for (Operation *inside : ops) {
    rewriter.setInsertionPoint(inside);
    if (auto forall = dyn_cast<scf::ForallOp>(inside)) {
      (void)scf::forallToForLoop(rewriter, forall);
      continue;
    }
    if (auto copy = dyn_cast<memref::CopyOp>(inside))
      inside = rewriter.replaceOpWithNewOp<linalg::CopyOp>(
          copy, copy.getSource(), copy.getTarget());
    rewriter.setInsertionPoint(inside);
    (void)linalg::linalgOpToLoops(rewriter, cast<linalg::LinalgOp>(inside));
    rewriter.eraseOp(inside);
  }
}

//===----------------------------------------------------------------------===//
// What only the host uses
//===----------------------------------------------------------------------===//

/// Elements of memory that the host takes from its stack.
static constexpr int64_t kHostElements = 4096;

/// Whether the memory is for the host's own numbers, as deallocation and shapes
/// have them: no kernel will use it.
static bool isOfHost(Value memory) {
  return llvm::all_of(memory.getUsers(), [&](Operation *user) {
    if (auto call = dyn_cast<func::CallOp>(user)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      return callee && callee.isPrivate() && !callee.isExternal();
    }
    if (auto view = dyn_cast<memref::CastOp>(user))
      return isOfHost(view);
    if (auto reshape = dyn_cast<memref::ReshapeOp>(user))
      return reshape.getShape() == memory;
    if (!isa<memref::LoadOp, memref::StoreOp, memref::DeallocOp, memref::DimOp>(
            user))
      return false;
    for (Operation *around = user->getParentOp();
         isa<scf::SCFDialect>(around->getDialect());
         around = around->getParentOp())
      if (isThreadCode(around))
        return false;
    return true;
  });
}

/// Takes memory from the stack, where `b` is, and frees it no more.
static void moveToStack(OpBuilder &b, memref::AllocOp alloc) {
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  Value memory = memref::AllocaOp::create(b, alloc.getLoc(), alloc.getType());
  alloc.replaceAllUsesWith(memory);
  alloc.erase();
}

/// Puts it on the host's stack.
static void placeHostMemory(ModuleOp module) {
  SmallVector<memref::AllocOp> allocs;
  module.walk([&](memref::AllocOp op) {
    Type element = op.getType().getElementType();
    if (op->getParentOfType<func::FuncOp>() && op.getType().hasStaticShape() &&
        op.getType().getNumElements() <= kHostElements &&
        element.isIntOrIndex() && isOfHost(op))
      allocs.push_back(op);
  });
  for (memref::AllocOp op : allocs) {
    auto function = op->getParentOfType<func::FuncOp>();
    OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
    moveToStack(b, op);
  }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The fill whose number is what the operation finds in the memory of a result,
/// if nothing else has to do with that memory before. It can be left out then.
static linalg::FillOp findFill(linalg::LinalgOp op, OpOperand &init) {
  auto memory = init.get().getDefiningOp<memref::AllocOp>();
  if (!memory || memory->getBlock() != op->getBlock() ||
      !op.getMatchingIndexingMap(&init).isProjectedPermutation())
    return {};
  linalg::FillOp fill;
  for (OpOperand &use : memory->getUses()) {
    Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (!user || user == op ? &use != &init : user->isBeforeInBlock(op)) {
      if (isa<memref::DimOp>(user))
        continue;
      auto found = dyn_cast<linalg::FillOp>(user);
      if (!found || fill || found.getDpsInitOperand(0) != &use)
        return {};
      fill = found;
    }
  }
  return fill;
}

/// Memory of a thread is taken once, not in every trip of its loop.
static void placeThreadMemory(gpu::LaunchOp launch) {
  SmallVector<memref::AllocOp> allocs;
  launch.getBody().walk([&](memref::AllocOp op) { allocs.push_back(op); });
  OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
  for (memref::AllocOp alloc : allocs)
    moveToStack(b, alloc);
}

/// Constants that kernels read are in their module.
static void sinkGlobals(gpu::LaunchOp launch) {
  llvm::MapVector<Operation *, SmallVector<OpOperand *>> uses;
  launch.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      auto get = operand.get().getDefiningOp<memref::GetGlobalOp>();
      if (!get || launch->isAncestor(get))
        continue;
      auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
          get, get.getNameAttr());
      if (global && global.getConstant())
        uses[get].push_back(&operand);
    }
  });
  OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
  for (auto &[get, operands] : uses) {
    Operation *copy = b.clone(*get);
    for (OpOperand *operand : operands)
      operand->set(copy->getResult(0));
    if (get->use_empty())
      get->erase();
  }
}

namespace {

struct VarlenLaunchLinalg
    : varlen::impl::VarlenLaunchLinalgBase<VarlenLaunchLinalg> {
  void runOnOperation() override {
    starts.clear();
    folded.clear();
    llvm::SmallPtrSet<Operation *, 4> others;
    getOperation().walk([&](gpu::LaunchOp launch) { others.insert(launch); });
    placeHostMemory(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      findStarts(function);
    for (auto function : getOperation().getOps<func::FuncOp>())
      visit(function.getBody());
    for (Operation *fill : folded)
      fill->erase();
    getOperation().walk([&](gpu::LaunchOp launch) {
      if (others.contains(launch))
        return;
      placeThreadMemory(launch);
      sinkGlobals(launch);
    });
  }

private:
  /// Finds the initial values of sums, before fills are kernels of their own.
  void findStarts(func::FuncOp function) {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::LaunchOp>(op) || isThreadLoop(op))
        return WalkResult::skip();
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      if (!linalgOp || isa<linalg::FillOp>(op) ||
          !linalgOp.hasPureBufferSemantics())
        return WalkResult::advance();
      for (OpOperand &init : linalgOp.getDpsInitsMutable())
        if (linalg::FillOp fill = findFill(linalgOp, init)) {
          starts[&init] = fill;
          folded.insert(fill);
        }
      return WalkResult::skip();
    });
  }
  void visit(Region &region) {
    for (Block &block : region)
      for (Operation &op : llvm::make_early_inc_range(block))
        visit(&op);
  }
  void visit(Operation *op);
  void launch(linalg::LinalgOp op);
  void launchParallel(scf::ParallelOp op);
  void launchIterations(Operation *nest, scf::ForOp loop);
  void launchThread(Operation *op);
  std::string makeName(Operation *op);

  llvm::DenseMap<OpOperand *, linalg::FillOp> starts;
  llvm::SetVector<Operation *> folded;
};

} // namespace

std::string VarlenLaunchLinalg::makeName(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  return (function.getName() + "_" + op->getName().stripDialect()).str();
}

/// Whether all that an operation does with such elements is to move and convert
/// them.
static bool onlyConverts(linalg::LinalgOp op, Type element) {
  return llvm::all_of(*op.getBlock(), [&](Operation &inner) {
    return isa<arith::ExtFOp, arith::TruncFOp, linalg::YieldOp>(inner) ||
           (!llvm::is_contained(inner.getOperandTypes(), element) &&
            !llvm::is_contained(inner.getResultTypes(), element));
  });
}

/// Refuses elements that kernels do not compute with.
static LogicalResult checkElements(linalg::LinalgOp op) {
  for (Type type : op->getOperandTypes()) {
    Type element = getElementTypeOrSelf(type);
    if (isa<Float8E4M3FNType>(element) && onlyConverts(op, element))
      continue;
    if (isa<FloatType>(element) && !element.isF16() && !element.isBF16() &&
        !element.isF32() && !element.isF64())
      return op.emitOpError("has no kernel: expected elements of f16, bf16, "
                            "f32, f64 or integers, got ")
             << element;
  }
  return success();
}

void VarlenLaunchLinalg::launch(linalg::LinalgOp op) {
  if (failed(checkElements(op)))
    return signalPassFailure();
  SmallVector<Value> numbers;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    linalg::FillOp fill = starts.lookup(&init);
    numbers.push_back(fill ? fill.getInputs().front() : Value());
  }
  ContractionKernel contraction(op, numbers.empty() ? Value() : numbers[0]);
  if (contraction.plan()) {
    contraction.emit(makeName(op));
    ++numTiled;
  } else {
    LinalgKernel(op, numbers).emit(makeName(op));
  }
  ++numLaunched;
  op->erase();
}

/// How often a loop runs.
static Value emitTrips(IndexBuilder &index, Value lower, Value upper,
                       Value step) {
  Value distance = index.max(index.sub(upper, lower), 0);
  return index.ceilDiv(distance, step);
}

/// Owners of all iterations: those of a parallel loop depend on none.
void VarlenLaunchLinalg::launchParallel(scf::ParallelOp op) {
  makeSequential(op);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  IndexBuilder index{b};
  SmallVector<Value> trips;
  for (auto [lower, upper, step] :
       llvm::zip_equal(op.getLowerBound(), op.getUpperBound(), op.getStep()))
    trips.push_back(emitTrips(index, lower, upper, step));
  emitOwners(b, makeName(op), trips, 1, [&](ValueRange indices, Value) {
    IRMapping map;
    for (auto [iv, at, lower, step] : llvm::zip_equal(
             op.getInductionVars(), indices, op.getLowerBound(), op.getStep()))
      map.map(iv, index.add(lower, index.mul(at, step)));
    for (Operation &inside : op.getBody()->without_terminator())
      b.clone(inside, map);
  });
  ++numLaunched;
  op->erase();
}

/// Each iteration of a loop in the nest with all loops around it.
void VarlenLaunchLinalg::launchIterations(Operation *nest, scf::ForOp loop) {
  ImplicitLocOpBuilder b(nest->getLoc(), nest);
  IndexBuilder index{b};
  Value trips = emitTrips(index, loop.getLowerBound(), loop.getUpperBound(),
                          loop.getStep());
  emitOwners(b, makeName(nest), trips, 1, [&](ValueRange number, Value) {
    Value at = index.add(loop.getLowerBound(),
                         index.mul(number.front(), loop.getStep()));
    IRMapping map;
    b.clone(*nest, map);
    Value iv = map.lookup(loop.getInductionVar());
    auto copy = cast<scf::ForOp>(iv.getParentBlock()->getParentOp());
    iv.replaceAllUsesWith(at);
    for (Operation &inside :
         llvm::make_early_inc_range(copy.getBody()->without_terminator()))
      inside.moveBefore(copy);
    copy.erase();
  });
  ++numLaunched;
  nest->erase();
}

void VarlenLaunchLinalg::launchThread(Operation *op) {
  if (isa<LoopLikeOpInterface>(op))
    op->emitRemark("one thread runs this loop, whose iterations may depend on "
                   "each other");
  makeSequential(op);
  ImplicitLocOpBuilder b(op->getLoc(), op);
  IndexBuilder index{b};
  emitLaunch(b, makeName(op), index.constant(1), 1,
             [&](Value, Value, Value) { b.clone(*op); });
  ++numLaunched;
  op->erase();
}

void VarlenLaunchLinalg::visit(Operation *op) {
  if (auto copy = dyn_cast<memref::CopyOp>(op);
      copy && isa<MemRefType>(copy.getSource().getType()) &&
      isa<MemRefType>(copy.getTarget().getType())) {
    OpBuilder b(copy);
    Operation *same = linalg::CopyOp::create(b, copy.getLoc(), copy.getSource(),
                                             copy.getTarget());
    copy->erase();
    op = same;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (linalgOp.hasPureBufferSemantics() && !folded.contains(op))
      launch(linalgOp);
    return;
  }
  IRRewriter rewriter(op);
  if (isThreadLoop(op)) {
    auto parallel = dyn_cast<scf::ParallelOp>(op);
    if (auto forall = dyn_cast<scf::ForallOp>(op))
      (void)scf::forallToParallelLoop(rewriter, forall, &parallel);
    if (parallel)
      return launchParallel(parallel);
    if (scf::ForOp loop = findIndependentLoop(op);
        loop && loop.getInductionVar().getType().isIndex())
      return launchIterations(op, loop);
    return launchThread(op);
  }
  if (isa<memref::StoreOp>(op) && isDeviceAccess(op))
    return launchThread(op);
  if (auto forall = dyn_cast<scf::ForallOp>(op)) {
    // A loop of launches.
    SmallVector<Operation *> loops;
    if (succeeded(scf::forallToForLoop(rewriter, forall, &loops)) &&
        !loops.empty())
      visit(loops.front());
    return;
  }
  if (isa<gpu::LaunchOp, gpu::GPUModuleOp>(op))
    return;
  for (Region &region : op->getRegions())
    visit(region);
}

//===- Wgmma.cpp - Accumulators as handles --------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The registers of an accumulator are written while the kernel runs on. So the
// struct that wgmma gives becomes a handle, and so do all values that it flows
// from and to: insertions, selects, block arguments. A register is read where
// it is extracted; the executor sees there whether anybody has waited for it.
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"

#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::executor;

static int64_t getNumRegisters(Type type) {
  return static_cast<int64_t>(
      cast<LLVM::LLVMStructType>(type).getBody().size());
}

//===----------------------------------------------------------------------===//
// The web of values
//===----------------------------------------------------------------------===//

/// Calls `visit` with what flows into and out of `value` unchanged.
static void forEachNeighbour(Value value, function_ref<void(Value)> visit) {
  if (Operation *op = value.getDefiningOp()) {
    if (auto insert = dyn_cast<LLVM::InsertValueOp>(op)) {
      visit(insert.getContainer());
    } else if (auto select = dyn_cast<LLVM::SelectOp>(op)) {
      visit(select.getTrueValue());
      visit(select.getFalseValue());
    }
  } else {
    auto argument = cast<BlockArgument>(value);
    Block *block = argument.getOwner();
    for (Block *before : block->getPredecessors()) {
      auto branch = cast<BranchOpInterface>(before->getTerminator());
      for (unsigned i = 0; i < before->getNumSuccessors(); ++i)
        if (before->getSuccessor(i) == block)
          visit(branch.getSuccessorOperands(i)[argument.getArgNumber()]);
    }
  }
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    if (isa<LLVM::SelectOp>(op) ||
        (isa<LLVM::InsertValueOp>(op) && use.get() == op->getOperand(0))) {
      visit(op->getResult(0));
    } else if (auto branch = dyn_cast<BranchOpInterface>(op)) {
      if (std::optional<BlockArgument> argument =
              branch.getSuccessorBlockArgument(use.getOperandNumber()))
        visit(*argument);
    }
  }
}

namespace {
/// Turns the accumulators of one function into handles.
class AccumulatorRewriter {
public:
  AccumulatorRewriter(CallBuilder &b, LLVM::LLVMFuncOp function)
      : b(b), function(function) {}
  LogicalResult run();

private:
  LogicalResult collect();
  LogicalResult check(Value value);
  void rewrite(Operation *op);
  Value makeWgmma(NVVM::WgmmaMmaAsyncOp op);
  Value makeWgmma(kernel::WgmmaOp op);
  Value makeAccumulator(Operation *op, int64_t registers);
  bool isAccumulator(Value value) const {
    return web.contains(value) || handles.contains(value);
  }
  int64_t isInPlace(Value value) const { return single.contains(value); }

  CallBuilder &b;
  LLVM::LLVMFuncOp function;
  /// The values as they were, in the order they were found.
  llvm::SetVector<Value> web;
  /// Those that have taken their place.
  llvm::DenseSet<Value> handles;
  /// With one use: its registers may be reused.
  llvm::DenseSet<Value> single;
};
} // namespace

LogicalResult AccumulatorRewriter::check(Value value) {
  auto type = dyn_cast<LLVM::LLVMStructType>(value.getType());
  if (type && llvm::all_of(type.getBody(),
                           [&](Type member) { return member == b.f32; }))
    return success();
  Operation *op = value.getDefiningOp();
  return emitError(value.getLoc())
         << (op ? op->getName().getStringRef() : StringRef("a block argument"))
         << " has no equivalent in the executor: an accumulator of "
         << value.getType() << ", expected a struct of f32";
}

/// Whether the executor has the input type.
static bool isKnownInput(NVVM::WgmmaMmaAsyncOp op) {
  return op.getTypeA() == op.getTypeB() &&
         (op.getTypeA() == NVVM::WGMMATypes::bf16 ||
          op.getTypeA() == NVVM::WGMMATypes::f16 ||
          op.getTypeA() == NVVM::WGMMATypes::tf32);
}

LogicalResult AccumulatorRewriter::collect() {
  WalkResult walked = function.walk([&](Operation *op) {
    if (auto wgmma = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op)) {
      if (!isKnownInput(wgmma))
        return WalkResult(
            op->emitOpError("has no equivalent in the executor: inputs of ")
            << stringifyEnum(wgmma.getTypeA()) << " and "
            << stringifyEnum(wgmma.getTypeB()));
      web.insert(wgmma.getResults());
      web.insert(wgmma.getInouts());
    } else if (auto wgmma = dyn_cast<kernel::WgmmaOp>(op)) {
      web.insert(wgmma.getResult());
      if (Value acc = wgmma.getAcc())
        web.insert(acc);
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (size_t i = 0; i < web.size(); ++i)
    forEachNeighbour(web[i], [&](Value value) { web.insert(value); });
  for (Value value : web) {
    if (failed(check(value)))
      return failure();
    if (value.hasOneUse())
      single.insert(value);
  }
  return success();
}

Value AccumulatorRewriter::makeWgmma(NVVM::WgmmaMmaAsyncOp op) {
  int64_t flags =
      (op.getTypeA() == NVVM::WGMMATypes::bf16 ? VARLEN_SIM_WGMMA_BF16 : 0) |
      (op.getTypeA() == NVVM::WGMMATypes::tf32 ? VARLEN_SIM_WGMMA_TF32 : 0) |
      (op.getLayoutA() == NVVM::MMALayout::col ? VARLEN_SIM_WGMMA_A_MN : 0) |
      // Row-major B is N-major: transposed.
      (op.getLayoutB() == NVVM::MMALayout::row ? VARLEN_SIM_WGMMA_B_MN : 0) |
      (op.getScaleA() == NVVM::WGMMAScaleIn::neg ? VARLEN_SIM_WGMMA_NEG_A : 0) |
      (op.getScaleB() == NVVM::WGMMAScaleIn::neg ? VARLEN_SIM_WGMMA_NEG_B : 0) |
      (isInPlace(op.getInouts()) ? VARLEN_SIM_WGMMA_IN_PLACE : 0);
  return b.call("varlen_sim_wgmma", b.pointer,
                {op.getInouts(), op.getDescriptorA(), op.getDescriptorB(),
                 b.i32Constant(op.getShape().getN()),
                 b.i32Constant(op.getScaleD() == NVVM::WGMMAScaleOut::one),
                 b.i32Constant(flags), b.site()});
}

Value AccumulatorRewriter::makeWgmma(kernel::WgmmaOp op) {
  Value acc = op.getAcc();
  bool isInitial = !acc;
  if (isInitial) {
    acc = makeAccumulator(op, op.getNumRegisters());
    b.setOp(op);
  }
  int64_t flags = (op.getElement().isBF16() ? VARLEN_SIM_WGMMA_BF16 : 0) |
                  (op.getAT() ? VARLEN_SIM_WGMMA_A_MN : 0) |
                  (op.getBT() ? VARLEN_SIM_WGMMA_B_MN : 0) |
                  (isInitial || isInPlace(acc) ? VARLEN_SIM_WGMMA_IN_PLACE : 0);
  SmallVector<Value> arguments = {acc};
  llvm::append_range(arguments, op.getA());
  llvm::append_range(
      arguments, ArrayRef<Value>{op.getB(), b.i32Constant(op.getNumColumns()),
                                 b.i32Constant(!isInitial),
                                 b.i32Constant(flags), b.site()});
  return b.call(op.isAInRegisters() ? "varlen_sim_wgmma_rs"
                                    : "varlen_sim_wgmma",
                b.pointer, arguments);
}

/// Where registers are written that `op` puts into an accumulator: in front of
/// a fence, if the `operands` are there already. An insertion costs nothing, so
/// where in the text it stands means nothing.
static Operation *findWrite(Operation *op, ValueRange operands) {
  Operation *write = op;
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    if (isa<NVVM::WgmmaFenceAlignedOp>(before)) {
      write = before;
      continue;
    }
    if (!isMemoryEffectFree(before) ||
        llvm::any_of(operands, [&](Value operand) {
          return operand.getDefiningOp() == before;
        }))
      break;
  }
  return write;
}

/// A new accumulator for `op`.
Value AccumulatorRewriter::makeAccumulator(Operation *op, int64_t registers) {
  b.setInsertionPoint(findWrite(op, /*operands=*/{}));
  return b.call("varlen_sim_acc_new", b.pointer,
                {b.i32Constant(registers), b.site()});
}

void AccumulatorRewriter::rewrite(Operation *op) {
  b.setOp(op);
  if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op)) {
    if (isAccumulator(extract.getContainer()))
      extract.getResult().replaceAllUsesWith(
          b.call("varlen_sim_acc_get", b.f32,
                 {extract.getContainer(),
                  b.i32Constant(extract.getPosition()[0]), b.site()}));
    return;
  }
  if (op->getNumResults() != 1 || !web.contains(op->getResult(0)))
    return;
  Value result = op->getResult(0);
  if (isa<LLVM::SelectOp>(op)) {
    result.setType(b.pointer);
    return;
  }
  Value handle =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case([&](LLVM::InsertValueOp insert) {
            b.setInsertionPoint(findWrite(insert, insert->getOperands()));
            Value container = insert.getContainer();
            return b.call("varlen_sim_acc_set", b.pointer,
                          {container, b.i32Constant(insert.getPosition()[0]),
                           insert.getValue(),
                           b.i32Constant(isInPlace(container)), b.site()});
          })
          .Case<NVVM::WgmmaMmaAsyncOp, kernel::WgmmaOp>(
              [&](auto wgmma) { return makeWgmma(wgmma); })
          // Undefined, zero, constant zeros: a new one.
          .Default([&](Operation *empty) {
            return makeAccumulator(empty, getNumRegisters(result.getType()));
          });
  handles.insert(handle);
  if (single.contains(result))
    single.insert(handle);
  result.replaceAllUsesWith(handle);
}

/// Whether the executor can make the value anew.
static bool isEmptyAccumulator(Operation *op) {
  if (auto constant = dyn_cast<LLVM::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    return splat && splat.getElementType().isF32() &&
           splat.getSplatValue<APFloat>().isPosZero();
  }
  return isa<LLVM::UndefOp, LLVM::PoisonOp, LLVM::ZeroOp>(op);
}

LogicalResult AccumulatorRewriter::run() {
  if (failed(collect()))
    return failure();
  if (web.empty())
    return success();
  for (Block &block : function.getBody())
    for (BlockArgument argument : block.getArguments())
      if (web.contains(argument))
        argument.setType(b.pointer);
  SmallVector<Operation *> ops, dead;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    bool isResult = op->getNumResults() == 1 && web.contains(op->getResult(0));
    bool isKnown = !isResult || isEmptyAccumulator(op) ||
                   isa<LLVM::InsertValueOp, LLVM::SelectOp,
                       NVVM::WgmmaMmaAsyncOp, kernel::WgmmaOp>(op);
    if (!isKnown)
      return op->emitOpError("has no equivalent in the executor: an "
                             "accumulator of wgmma");
    bool isRead =
        isa<LLVM::ExtractValueOp>(op) && isAccumulator(op->getOperand(0));
    if ((isResult && !isa<LLVM::SelectOp>(op)) || isRead)
      dead.push_back(op);
    rewrite(op);
  }
  // Only now: the sets above know values by their address.
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  return success();
}

/// Waits that an accumulator passes through.
static void lowerWaits(CallBuilder &b, LLVM::LLVMFuncOp function) {
  function.walk([&](kernel::WgmmaWaitOp wait) {
    b.setOp(wait);
    b.call("varlen_sim_wgmma_wait_group",
           {b.i32Constant(wait.getYounger()), b.site()});
    b.replaceOp(wait.getAcc());
  });
}

LogicalResult executor::lowerAccumulators(CallBuilder &b,
                                          LLVM::LLVMFuncOp function) {
  lowerWaits(b, function);
  return AccumulatorRewriter(b, function).run();
}

//===----------------------------------------------------------------------===//
// What has no accumulator
//===----------------------------------------------------------------------===//

Lowered executor::lowerWgmma(CallBuilder &b) {
  return llvm::TypeSwitch<Operation *, Lowered>(b.getOp())
      .Case([&](NVVM::WgmmaFenceAlignedOp) {
        return b.replaceWithCall("varlen_sim_wgmma_fence");
      })
      .Case([&](NVVM::WgmmaGroupSyncAlignedOp) {
        return b.replaceWithCall("varlen_sim_wgmma_commit");
      })
      .Case([&](NVVM::WgmmaWaitGroupSyncOp wait) {
        return b.replaceWithCall("varlen_sim_wgmma_wait_group",
                                 {b.i32Constant(wait.getGroup())});
      })
      .Default([](Operation *) { return Lowered::No; });
}

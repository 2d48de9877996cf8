//===- VarlenMutateKernels.cpp - Faults, to see them found ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Executor/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENMUTATEKERNELS
#include "varlen/Executor/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// What may be changed
//===----------------------------------------------------------------------===//

namespace {
/// One change of one operation.
struct Mutant {
  enum class Kind {
    Delete,   // the operation
    Weaken,   // a wait that lets one more group be in flight
    Operand,  // an integer that is a constant
    Position, // a constant index of an address
    Relax,    // an access to a flag that orders nothing
  };
  Kind kind;
  Operation *op;
  /// Index of the operand or the position.
  unsigned index = 0;
  /// What constants change by.
  int64_t delta = 0;
  /// Number of the operation among those of its name in the kernel.
  unsigned ordinal = 0;
};
} // namespace

/// Orders threads or asynchronous work.
static bool isSynchronising(Operation *op) {
  if (auto control = dyn_cast<NVVM::GriddepcontrolOp>(op))
    return control.getKind() == NVVM::GridDepActionKind::wait;
  return isa<NVVM::Barrier0Op, NVVM::BarrierOp, NVVM::BarrierArriveOp,
             NVVM::SyncWarpOp, NVVM::CpAsyncCommitGroupOp,
             NVVM::CpAsyncWaitGroupOp, NVVM::CpAsyncMBarrierArriveOp,
             NVVM::CpAsyncBulkCommitGroupOp, NVVM::CpAsyncBulkWaitGroupOp,
             NVVM::MBarrierInitOp, NVVM::MBarrierArriveOp,
             NVVM::MBarrierArriveExpectTxOp, NVVM::MBarrierExpectTxOp,
             NVVM::MBarrierTryWaitParityOp, NVVM::MBarrierTryWaitOp,
             NVVM::MBarrierTestWaitOp, NVVM::FenceMbarrierInitOp,
             NVVM::FenceProxyOp, NVVM::MembarOp, NVVM::FenceScClusterOp,
             NVVM::ClusterArriveOp, NVVM::ClusterArriveRelaxedOp,
             NVVM::ClusterWaitOp, NVVM::WgmmaFenceAlignedOp,
             NVVM::WgmmaGroupSyncAlignedOp, NVVM::WgmmaWaitGroupSyncOp,
             NVVM::FenceProxyAcquireOp, kernel::PublishMapOp,
             kernel::WgmmaWaitOp>(op);
}

/// The attribute of a wait that says how many groups may stay in flight.
static StringRef getPendingAttr(Operation *op) {
  if (isa<NVVM::CpAsyncWaitGroupOp>(op))
    return "n";
  if (isa<NVVM::WgmmaWaitGroupSyncOp, NVVM::CpAsyncBulkWaitGroupOp>(op))
    return "group";
  if (isa<kernel::WgmmaWaitOp>(op))
    return "younger";
  return "";
}

/// Whether the operation can go: its results are not used, or are the tokens
/// and flags of a wait, or the registers that pass through it.
static bool canDelete(Operation *op) {
  return isa<kernel::WgmmaWaitOp>(op) ||
         llvm::all_of(op->getResults(), [](OpResult result) {
           return result.use_empty() || isa<IntegerType>(result.getType());
         });
}

/// The attribute of an access to a flag that orders CTAs; empty if it is none,
/// or one for the host.
static StringRef getOrderAttr(Operation *op) {
  auto nameOf = [](auto access) -> StringRef {
    if (access.getSyncscope() != "device")
      return "";
    switch (access.getOrdering()) {
    case LLVM::AtomicOrdering::acquire:
    case LLVM::AtomicOrdering::release:
      return access.getOrderingAttrName();
    default:
      return "";
    }
  };
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return nameOf(load);
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return nameOf(store);
  return "";
}

/// Differs from constant to constant, and is the same in every run: it depends
/// on the place of the constant in its kernel, whatever other kernels there
/// are.
static int64_t pickDelta(Operation *op, unsigned ordinal, unsigned index) {
  size_t chance = (size_t{ordinal} * 8 + index) * 2654435761U >> 16;
  // High bits of a mask or a shift are combined with zeros.
  if (isa<LLVM::AndOp, LLVM::LShrOp, LLVM::ShlOp>(op))
    return chance % 2 == 0 ? 1 : -1;
  static constexpr int64_t deltas[] = {1, -1, 2, 16, 8, -16};
  return deltas[chance % std::size(deltas)];
}

/// The constants that the operation uses, the `ordinal`-th of its name.
static void collectConstants(Operation *op, unsigned ordinal,
                             SmallVectorImpl<Mutant> &mutants) {
  auto add = [&](Mutant::Kind kind, unsigned index) {
    mutants.push_back(
        {kind, op, index, pickDelta(op, ordinal, index), ordinal});
  };
  // Branches only hand values on, and registers have no neighbours; nor has
  // what conversions put on the stack of a thread, from where LLVM takes it.
  auto gep = dyn_cast<LLVM::GEPOp>(op);
  if (op->hasTrait<OpTrait::IsTerminator>() ||
      isa<LLVM::ExtractElementOp, LLVM::InsertElementOp, LLVM::AllocaOp>(op) ||
      (gep && gep.getBase().getDefiningOp<LLVM::AllocaOp>()))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    APInt value;
    auto type = dyn_cast<IntegerType>(operand.get().getType());
    if (type && type.getWidth() >= 32 &&
        matchPattern(operand.get(), m_ConstantInt(&value)))
      add(Mutant::Kind::Operand, operand.getOperandNumber());
  }
  if (gep)
    for (auto [i, position] : llvm::enumerate(gep.getRawConstantIndices()))
      if (position != LLVM::GEPOp::kDynamicIndex &&
          !isa<LLVM::LLVMStructType>(gep.getElemType()))
        add(Mutant::Kind::Position, static_cast<unsigned>(i));
}

/// All mutants: first those of synchronisation, then those of constants.
static SmallVector<Mutant> collect(ModuleOp module) {
  SmallVector<Mutant> sync, constants;
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    for (auto function : kernels.getOps<LLVM::LLVMFuncOp>()) {
      llvm::StringMap<unsigned> ordinals;
      function.walk([&](Operation *op) {
        if (op == function)
          return;
        unsigned ordinal = ++ordinals[op->getName().getStringRef()];
        if (isSynchronising(op)) {
          if (canDelete(op))
            sync.push_back({Mutant::Kind::Delete, op, 0, 0, ordinal});
          if (!getPendingAttr(op).empty())
            sync.push_back({Mutant::Kind::Weaken, op, 0, 1, ordinal});
        }
        if (!getOrderAttr(op).empty())
          sync.push_back({Mutant::Kind::Relax, op, 0, 0, ordinal});
        collectConstants(op, ordinal, constants);
      });
    }
  llvm::append_range(sync, constants);
  return sync;
}

/// "delete nvvm.barrier0 2 of kernel", "operand 1 = 64 + 8 in llvm.mul 3 of
/// kernel".
static std::string describe(const Mutant &mutant) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  switch (mutant.kind) {
  case Mutant::Kind::Delete:
    stream << "delete ";
    break;
  case Mutant::Kind::Weaken:
    stream << "wait for fewer groups in ";
    break;
  case Mutant::Kind::Relax:
    stream << "no order in ";
    break;
  case Mutant::Kind::Operand: {
    APInt value;
    matchPattern(mutant.op->getOperand(mutant.index), m_ConstantInt(&value));
    stream << "operand " << mutant.index << " = ";
    value.print(stream, /*isSigned=*/true);
    break;
  }
  case Mutant::Kind::Position:
    stream
        << "index " << mutant.index << " = "
        << cast<LLVM::GEPOp>(mutant.op).getRawConstantIndices()[mutant.index];
    break;
  }
  if (mutant.kind == Mutant::Kind::Operand ||
      mutant.kind == Mutant::Kind::Position)
    stream << (mutant.delta < 0 ? " - " : " + ") << std::abs(mutant.delta)
           << " in ";
  stream << mutant.op->getName() << ' ' << mutant.ordinal << " of "
         << mutant.op->getParentOfType<LLVM::LLVMFuncOp>().getSymName();
  return text;
}

//===----------------------------------------------------------------------===//
// Changing it
//===----------------------------------------------------------------------===//

static void apply(const Mutant &mutant) {
  Operation *op = mutant.op;
  OpBuilder b(op);
  switch (mutant.kind) {
  case Mutant::Kind::Delete:
    if (auto wait = dyn_cast<kernel::WgmmaWaitOp>(op)) {
      wait.getResult().replaceAllUsesWith(wait.getAcc());
    } else {
      // A wait that always succeeds.
      for (OpResult result : op->getResults())
        result.replaceAllUsesWith(
            LLVM::ConstantOp::create(b, op->getLoc(), result.getType(), 1));
    }
    op->erase();
    return;
  case Mutant::Kind::Weaken: {
    StringRef name = getPendingAttr(op);
    auto pending = op->getAttrOfType<IntegerAttr>(name);
    op->setAttr(name, b.getIntegerAttr(pending.getType(),
                                       pending.getInt() + mutant.delta));
    return;
  }
  case Mutant::Kind::Relax:
    op->setAttr(getOrderAttr(op),
                LLVM::AtomicOrderingAttr::get(b.getContext(),
                                              LLVM::AtomicOrdering::monotonic));
    return;
  case Mutant::Kind::Operand: {
    Value operand = op->getOperand(mutant.index);
    APInt value;
    matchPattern(operand, m_ConstantInt(&value));
    value += static_cast<uint64_t>(mutant.delta);
    op->setOperand(
        mutant.index,
        LLVM::ConstantOp::create(b, op->getLoc(), operand.getType(), value));
    return;
  }
  case Mutant::Kind::Position: {
    auto gep = cast<LLVM::GEPOp>(op);
    auto positions = llvm::to_vector(gep.getRawConstantIndices());
    positions[mutant.index] += static_cast<int32_t>(mutant.delta);
    gep.setRawConstantIndices(positions);
    return;
  }
  }
}

namespace {

struct VarlenMutateKernels
    : varlen::impl::VarlenMutateKernelsBase<VarlenMutateKernels> {
  using VarlenMutateKernelsBase::VarlenMutateKernelsBase;

  void runOnOperation() override {
    SmallVector<Mutant> mutants = collect(getOperation());
    if (mutant < 0) {
      for (auto [i, candidate] : llvm::enumerate(mutants))
        candidate.op->emitRemark()
            << "mutant " << i << ": " << describe(candidate);
      return;
    }
    if (mutant >= static_cast<int64_t>(mutants.size())) {
      emitError(getOperation().getLoc())
          << "expected mutant to be less than " << mutants.size()
          << ", the number of mutants, got " << mutant.getValue();
      return signalPassFailure();
    }
    apply(mutants[mutant]);
  }
};

} // namespace

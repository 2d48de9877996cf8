//===- KernelLowerContract.cpp - Contractions to instructions -------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorCores.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Dialect/Kernel/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELLOWERCONTRACT
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

static std::unique_ptr<TensorCores> createCores(int64_t warps, bool wgmma) {
  return wgmma ? createWgmma(warps) : std::make_unique<TensorCores>(warps);
}

/// The parts of an operation or an adaptor.
template <typename Op> static Contraction getContraction(Op op) {
  return {op.getA(),  op.getB(), op.getAcc(), static_cast<int64_t>(op.getK()),
          op.getAT(), op.getBT()};
}

static Contraction getContraction(Operation *op) {
  return TypeSwitch<Operation *, Contraction>(op)
      .Case<kernel::ContractOp, StartOp>(
          [](auto contract) { return getContraction(contract); });
}

namespace {

template <typename Op> class Pattern : public OpConversionPattern<Op> {
public:
  Pattern(const TypeConverter &converter, MLIRContext *context,
          std::shared_ptr<const TensorCores> cores)
      : OpConversionPattern<Op>(converter, context), cores(std::move(cores)) {}

protected:
  std::shared_ptr<const TensorCores> cores;
};

struct ContractPattern : Pattern<kernel::ContractOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(kernel::ContractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter);
    Value pending = cores->start(b, getContraction(adaptor));
    rewriter.replaceOp(op, cores->wait(b, pending, op.getResult().getType(),
                                       /*younger=*/0));
    return success();
  }
};

struct StartPattern : Pattern<StartOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(StartOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, cores->start(b, getContraction(adaptor)));
    return success();
  }
};

struct WaitPattern : Pattern<WaitOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(WaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op,
                       cores->wait(b, adaptor.getPending(),
                                   op.getResult().getType(), op.getYounger()));
    return success();
  }
};

/// Contractions that accumulate one onto the other, with nothing that uses the
/// intermediate sums, and the addition of something else to the last.
struct Chain {
  SmallVector<kernel::ContractOp> contracts;
  arith::AddFOp addition;

  static std::optional<Chain> startingAt(kernel::ContractOp first);
  void lower(const TensorCores &cores);

private:
  bool readsTwice();
};

struct KernelLowerContract
    : kernel::impl::KernelLowerContractBase<KernelLowerContract> {
  using KernelLowerContractBase::KernelLowerContractBase;

  void runOnOperation() override {
    gpu::GPUFuncOp func = getOperation();
    SmallVector<Operation *> contractions;
    func->walk([&](Operation *op) {
      if (isa<kernel::ContractOp, StartOp>(op))
        contractions.push_back(op);
    });
    if (contractions.empty())
      return;
    FailureOr<int64_t> warps = getWarps(func);
    if (failed(warps))
      return signalPassFailure();
    bool usesWgmma = wgmma && llvm::all_of(contractions, [&](Operation *op) {
                       return fitsWgmma(getContraction(op), *warps);
                     });
    numWgmma += usesWgmma;
    std::unique_ptr<TensorCores> cores = createCores(*warps, usesWgmma);
    for (Operation *op : contractions)
      if (failed(cores->check(op, getContraction(op))))
        return signalPassFailure();
    numContractions += contractions.size();
    SmallVector<Chain> chains;
    DenseSet<Operation *> chained;
    for (Operation *op : contractions) {
      auto contract = dyn_cast<kernel::ContractOp>(op);
      if (!contract || chained.contains(op))
        continue;
      if (std::optional<Chain> chain = Chain::startingAt(contract)) {
        chained.insert(chain->contracts.begin(), chain->contracts.end());
        chains.push_back(*chain);
      }
    }
    for (Chain &chain : chains)
      chain.lower(*cores);

    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    ConversionTarget target(getContext());
    RewritePatternSet patterns(&getContext());
    kernel::populateLowerContractPatternsAndLegality(converter, patterns,
                                                     target, *warps, usesWgmma);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(func, target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void kernel::populateLowerContractPatternsAndLegality(
    TypeConverter &converter, RewritePatternSet &patterns,
    ConversionTarget &target, int64_t warps, bool wgmma) {
  std::shared_ptr<const TensorCores> cores = createCores(warps, wgmma);
  converter.addConversion([cores](PendingType type) {
    return cores->getPendingType(type.getFragment());
  });
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  patterns.add<ContractPattern, StartPattern, WaitPattern>(
      converter, patterns.getContext(), cores);
  target.addIllegalOp<kernel::ContractOp, StartOp, WaitOp>();
}

std::optional<Chain> Chain::startingAt(kernel::ContractOp first) {
  Chain chain{{first}, {}};
  auto getUser = [&]() -> Operation * {
    Value last = chain.contracts.back().getResult();
    return last.hasOneUse() ? *last.user_begin() : nullptr;
  };
  while (auto next = dyn_cast_or_null<kernel::ContractOp>(getUser())) {
    if (next.getA().getType() != first.getA().getType() ||
        next.getK() != first.getK() || next->getBlock() != first->getBlock() ||
        next.getAcc() != chain.contracts.back().getResult())
      break;
    chain.contracts.push_back(next);
  }
  if (chain.contracts.size() == 1)
    return std::nullopt;
  // What is between must not change the memory that all read at the end.
  for (Operation *op = first->getNextNode(); op != chain.contracts.back();
       op = op->getNextNode())
    if (!isMemoryEffectFree(op) && !isa<kernel::ContractOp>(op))
      return std::nullopt;
  auto addition = dyn_cast_or_null<arith::AddFOp>(getUser());
  if (chain.readsTwice() && addition &&
      addition->getBlock() == first->getBlock() &&
      addition->getPrevNode() == chain.contracts.back())
    chain.addition = addition;
  return chain;
}

/// Whether two of the contractions read one operand, as terms of f32 do: in
/// registers it is then for both.
bool Chain::readsTwice() {
  DenseSet<Value> operands;
  return llvm::any_of(contracts, [&](kernel::ContractOp contract) {
    bool isFirst = operands.insert(contract.getA()).second;
    return !operands.insert(contract.getB()).second || !isFirst;
  });
}

void Chain::lower(const TensorCores &cores) {
  Value last = contracts.back().getResult(), addend;
  Operation *end = contracts.back();
  if (addition) {
    addend = addition.getLhs() == last ? addition.getRhs() : addition.getLhs();
    end = addition;
  }
  ThreadBuilder b(end->getLoc(), OpBuilder(end));
  auto contractions = llvm::map_to_vector(
      contracts, [](Operation *contract) { return getContraction(contract); });
  Value sum = readsTwice()
                  ? cores.contractAll(b, contractions, addend)
                  : cores.wait(b, cores.start(b, contractions),
                               cast<VectorType>(last.getType()), /*younger=*/0);
  end->getResult(0).replaceAllUsesWith(sum);
  if (addition)
    addition.erase();
  for (kernel::ContractOp contract : llvm::reverse(contracts))
    contract.erase();
}

//===- ConvertNVVMToExecutorBatch.cpp - Several mma.sync in one call ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each call for a warp collective costs the executor a switch between all lanes
// of the warp, more than the product itself. A product has no side effects: it
// is done as late as its result is first used by something else than another
// product's accumulator, and all that wait by then go in one call.
//
//===----------------------------------------------------------------------===//

#include "ConvertNVVMToExecutor.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::varlen::executor;

/// The most that varlen_sim_mma_batch takes is 255; a kernel's stack has the
/// operands of all.
static constexpr size_t maxBatch = 64;

namespace {
/// Products that one call does.
struct Batch {
  SmallVector<NVVM::MmaOp> products;
  /// The product whose result is the accumulator of each, or -1.
  SmallVector<int32_t> chain;
  /// The call goes in front of this.
  Operation *end = nullptr;
};

/// Collects the batches of one block.
class Collector {
public:
  explicit Collector(SmallVectorImpl<Batch> &batches) : batches(batches) {}

  void run(Block &block);

private:
  /// The product that waits and has this value as (part of) its result.
  std::optional<unsigned> findProduct(Value value) const;
  bool usesResult(ValueRange values) const {
    return llvm::any_of(
        values, [&](Value value) { return findProduct(value).has_value(); });
  }
  std::optional<int32_t> findChain(NVVM::MmaOp op) const;
  void end(Operation *op);

  SmallVectorImpl<Batch> &batches;
  Batch current;
};
} // namespace

std::optional<unsigned> Collector::findProduct(Value value) const {
  Operation *op = value.getDefiningOp();
  if (auto extract = dyn_cast_or_null<LLVM::ExtractValueOp>(op))
    op = extract.getContainer().getDefiningOp();
  const auto *found = llvm::find(current.products, op);
  if (!op || found == current.products.end())
    return std::nullopt;
  return found - current.products.begin();
}

/// The product that the accumulator comes from, -1 if it comes from none that
/// waits; nothing if it is put together from several.
std::optional<int32_t> Collector::findChain(NVVM::MmaOp op) const {
  if (!usesResult(op.getOperandC()))
    return -1;
  std::optional<unsigned> product = findProduct(op.getOperandC()[0]);
  for (auto [i, value] : llvm::enumerate(op.getOperandC())) {
    auto extract = value.getDefiningOp<LLVM::ExtractValueOp>();
    if (!extract || !product || findProduct(value) != product ||
        extract.getPosition() != ArrayRef<int64_t>{static_cast<int64_t>(i)})
      return std::nullopt;
  }
  return static_cast<int32_t>(*product);
}

void Collector::end(Operation *op) {
  current.end = op;
  // One alone is better served by a call of its own.
  if (current.products.size() > 1)
    batches.push_back(std::move(current));
  current = Batch();
}

void Collector::run(Block &block) {
  for (Operation &op : block) {
    if (auto product = dyn_cast<NVVM::MmaOp>(op)) {
      if (!getMmaKind(product))
        continue;
      std::optional<int32_t> chain = findChain(product);
      bool fits = current.products.empty() ||
                  (current.products.size() < maxBatch && chain &&
                   *getMmaKind(current.products[0]) == *getMmaKind(product));
      if (!fits || usesResult(product.getOperandA()) ||
          usesResult(product.getOperandB())) {
        end(&op);
        chain = -1;
      }
      current.products.push_back(product);
      current.chain.push_back(*chain);
      continue;
    }
    // Parts of a result are taken where they are used, or after the call.
    if (isa<LLVM::ExtractValueOp>(op) && usesResult(op.getOperands()))
      continue;
    if (usesResult(op.getOperands()) || op.hasTrait<OpTrait::IsTerminator>())
      end(&op);
  }
}

static void lowerBatch(CallBuilder &b, Batch &batch) {
  NVVM::MmaOp first = batch.products[0];
  MmaKind kind = *getMmaKind(first);
  auto count = static_cast<int64_t>(batch.products.size());
  auto resultType = cast<LLVM::LLVMStructType>(first.getRes().getType());
  auto numResults = static_cast<int64_t>(resultType.getBody().size());
  auto numOperands = static_cast<int64_t>(first->getNumOperands());
  b.setOp(first);
  Value operands = b.sharedStackSlot(b.i32, maxBatch * 10);
  Value results = b.stackSlot(b.i32, count * numResults);
  // Where operands are at hand, so that they need not be kept until the call.
  for (auto [i, product] : llvm::enumerate(batch.products)) {
    b.setOp(product);
    bool isChained = batch.chain[i] >= 0;
    int64_t at = static_cast<int64_t>(i) * numOperands;
    for (Value operand : product->getOperands()) {
      bool isAccumulator = at % numOperands >= numOperands - numResults;
      if (!isChained || !isAccumulator)
        LLVM::StoreOp::create(b.get(), b.getLoc(), operand,
                              b.element(operands, b.i32, at));
      ++at;
    }
  }
  b.setOp(first);
  Value site = b.site();
  b.get().setInsertionPoint(batch.end);
  b.call("varlen_sim_mma_batch",
         {operands, results, b.constantWords(batch.chain), b.i32Constant(count),
          b.i32Constant(kind.type), b.i32Constant(kind.k),
          b.i32Constant(kind.accumulator), site});
  // Results stay in their own slots until somebody wants them.
  for (auto [i, product] : llvm::enumerate(batch.products)) {
    int64_t base = static_cast<int64_t>(i) * numResults;
    for (Operation *user : llvm::make_early_inc_range(product->getUsers())) {
      auto extract = dyn_cast<LLVM::ExtractValueOp>(user);
      if (!extract)
        continue;
      bool isBefore = extract->getBlock() == batch.end->getBlock() &&
                      extract->isBeforeInBlock(batch.end);
      b.get().setInsertionPoint(isBefore ? batch.end : extract);
      Value word = LLVM::LoadOp::create(
          b.get(), extract.getLoc(), extract.getType(),
          b.element(results, b.i32, base + extract.getPosition()[0]));
      extract.replaceAllUsesWith(word);
      extract.erase();
    }
    if (!product->use_empty()) {
      b.get().setInsertionPoint(batch.end);
      Value words = b.element(results, b.i32, base);
      product.getRes().replaceAllUsesWith(
          b.loadWords(words, product.getRes().getType()));
    }
  }
  for (NVVM::MmaOp product : llvm::reverse(batch.products))
    product.erase();
}

void mlir::varlen::executor::lowerBatches(CallBuilder &b,
                                          LLVM::LLVMFuncOp function) {
  SmallVector<Batch> batches;
  for (Block &block : function.getBody())
    Collector(batches).run(block);
  for (Batch &batch : batches)
    lowerBatch(b, batch);
}

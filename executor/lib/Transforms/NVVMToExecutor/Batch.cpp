//===- Batch.cpp - Several collectives in one call ------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each call for a warp collective costs the executor a switch between all lanes
// of the warp, more than a product or a load of matrices itself.
//
// A product has no side effects: it is done as late as its result is first used
// by something else than another product's accumulator, and all that wait by
// then go in one call.
//
// A load reads memory: it is done as early as right behind the load before it,
// if nothing between them has an effect, and those that follow each other go in
// one call.
//
//===----------------------------------------------------------------------===//

#include "NVVMToExecutor.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::varlen::executor;

/// The most that varlen_sim_mma_batch takes is 255; a kernel's stack has the
/// operands of all.
static constexpr size_t maxBatch = 64;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

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

/// Reads what uses of an operation's result want from words in memory that are
/// written at `end`: parts where they are taken, so that they need not be kept
/// from there on.
static void readResult(CallBuilder &b, Operation *op, Operation *end,
                       Value words, int64_t first) {
  Value result = op->getResult(0);
  for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
    auto extract = dyn_cast<LLVM::ExtractValueOp>(user);
    if (!extract)
      continue;
    bool isBefore =
        extract->getBlock() == end->getBlock() && extract->isBeforeInBlock(end);
    b.setInsertionPoint(isBefore ? end : extract);
    Value word = LLVM::LoadOp::create(
        b, extract.getLoc(), extract.getType(),
        b.element(words, b.i32, first + extract.getPosition()[0]));
    extract.replaceAllUsesWith(word);
    extract.erase();
  }
  if (result.use_empty())
    return;
  b.setInsertionPoint(end);
  result.replaceAllUsesWith(
      b.loadWords(b.element(words, b.i32, first), result.getType()));
}

static void lowerProducts(CallBuilder &b, Batch &batch) {
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
        LLVM::StoreOp::create(b, operand, b.element(operands, b.i32, at));
      ++at;
    }
  }
  b.setOp(first);
  Value site = b.site();
  b.setInsertionPoint(batch.end);
  b.call("varlen_sim_mma_batch",
         {operands, results, b.constantWords(batch.chain), b.i32Constant(count),
          b.i32Constant(kind.type), b.i32Constant(kind.k),
          b.i32Constant(kind.accumulator), site});
  for (auto [i, product] : llvm::enumerate(batch.products))
    readResult(b, product, batch.end, results,
               static_cast<int64_t>(i) * numResults);
  for (NVVM::MmaOp product : llvm::reverse(batch.products))
    product.erase();
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Moves a load right behind `last`, and what its address is computed from in
/// front of `first`, unless that has an effect, as another load has.
static bool moveUp(NVVM::LdMatrixOp load, NVVM::LdMatrixOp first,
                   NVVM::LdMatrixOp last) {
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) {
    return op->getBlock() == first->getBlock() && !op->isBeforeInBlock(first);
  };
  SetVector<Operation *> slice;
  if (failed(getBackwardSlice(load.getOperation(), &slice, options)) ||
      !llvm::all_of(slice, isMemoryEffectFree))
    return false;
  for (Operation *op : slice)
    op->moveBefore(first);
  load->moveAfter(last);
  return true;
}

/// Moves the loads of each batch of a block together.
static void
collectLoads(Block &block,
             SmallVectorImpl<SmallVector<NVVM::LdMatrixOp>> &batches) {
  SmallVector<NVVM::LdMatrixOp> current;
  auto end = [&] {
    if (current.size() > 1)
      batches.push_back(current);
    current.clear();
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto load = dyn_cast<NVVM::LdMatrixOp>(op);
    if (load && hasMatrixShape(load)) {
      if (!current.empty() && (current.size() == maxBatch ||
                               !moveUp(load, current.front(), current.back())))
        end();
      current.push_back(load);
    } else if (!isa<NVVM::MmaOp>(op) && !isMemoryEffectFree(&op)) {
      end();
    }
  }
  end();
}

static void lowerLoads(CallBuilder &b,
                       MutableArrayRef<NVVM::LdMatrixOp> loads) {
  b.setOp(loads.front());
  Value rows = b.sharedStackSlot(b.pointer, maxBatch);
  Value registers = b.stackSlot(b.i32, static_cast<int64_t>(4 * loads.size()));
  SmallVector<int32_t> words;
  for (auto [i, load] : llvm::enumerate(loads)) {
    b.setOp(load);
    LLVM::StoreOp::create(b, b.flat(load.getPtr()),
                          b.element(rows, b.pointer, static_cast<int64_t>(i)));
    bool transposed = load.getLayout() == NVVM::MMALayout::col;
    words.append({static_cast<int32_t>(load.getNum()), transposed,
                  static_cast<int32_t>(b.siteIndex())});
  }
  b.call("varlen_sim_ldmatrix_batch",
         {rows, registers, b.constantWords(words),
          b.i32Constant(static_cast<int64_t>(loads.size()))});
  for (auto [i, load] : llvm::enumerate(loads))
    readResult(b, load, loads.back(), registers, static_cast<int64_t>(4 * i));
  for (NVVM::LdMatrixOp load : loads)
    load.erase();
}

void mlir::varlen::executor::lowerBatches(CallBuilder &b,
                                          LLVM::LLVMFuncOp function) {
  SmallVector<SmallVector<NVVM::LdMatrixOp>> loads;
  SmallVector<Batch> products;
  for (Block &block : function.getBody()) {
    collectLoads(block, loads);
    Collector(products).run(block);
  }
  for (MutableArrayRef<NVVM::LdMatrixOp> batch : loads)
    lowerLoads(b, batch);
  for (Batch &batch : products)
    lowerProducts(b, batch);
}

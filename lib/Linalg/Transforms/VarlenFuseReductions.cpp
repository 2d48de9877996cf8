//===- VarlenFuseReductions.cpp - Reductions where elements are computed --===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// upstream's fusion of elementwise operations keeps a producer that others read
// and computes it twice. A reduction may come with all elements that it reads
// as another result.
//
//===----------------------------------------------------------------------===//

#include "LoopVectorizer.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Linalg/Transforms/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENFUSEREDUCTIONS
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Whether the loops of one have a vector form wherever those of both apart
/// have one.
static bool isVectorizable(linalg::GenericOp producer,
                           linalg::GenericOp consumer) {
  if (consumer.getNumReductionLoops() != 0)
    for (auto [number, type] : llvm::enumerate(consumer.getResultTypes())) {
      SmallVector<Operation *> combiners;
      if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() < 32 ||
          !matchReduction(consumer.getRegionOutputArgs(), number, combiners) ||
          combiners.size() != 1)
        return false;
    }
  return llvm::none_of(producer.getBody()->without_terminator(),
                       [](Operation &inner) { return isLibraryCall(&inner); });
}

/// Whether the operation masks a tile; not in place, as varlen-online-softmax
/// has it done beside the products.
static bool isMask(linalg::GenericOp op) {
  return !op.getBody()->getOps<HideOp>().empty() &&
         !llvm::is_contained(op.getInputs(), op.getOutputs()[0]);
}

/// Whether the operation is elementwise and reads a tile that a reduction
/// behind it reads, too.
static bool isBesideReduction(linalg::GenericOp op) {
  if (!op.isAllParallelLoops())
    return false;
  return llvm::any_of(op.getDpsInputs(), [&](Value input) {
    return llvm::any_of(input.getUsers(), [&](Operation *user) {
      auto reader = dyn_cast<linalg::GenericOp>(user);
      return reader && reader.getNumReductionLoops() != 0 &&
             reader->getBlock() == op->getBlock() &&
             op->isBeforeInBlock(reader);
    });
  });
}

/// Whether the operation reads a tile to write it in another form: reduced, as
/// pairs of rows, masked, or rounded if no remainder of a row has to be masked;
/// or what a reduction reads.
static bool isConsumer(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics())
    return false;
  if (op.getNumReductionLoops() != 0 || isMask(op) || isBesideReduction(op))
    return true;
  if (op.getNumResults() != 1 || op.getNumDpsInputs() != 1 ||
      op.getNumLoops() == 0)
    return false;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  int64_t columns = op.getStaticLoopRanges().back();
  return isPairMap(map) ||
         (map.isIdentity() && isa<arith::TruncFOp>(op.getBody()->front()) &&
          ShapedType::isStatic(columns) && llvm::isPowerOf2_64(columns));
}

/// Whether the consumer can compute the operand, for all who read that.
static bool canFuse(OpOperand &operand) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  if (!producer || producer->getBlock() != consumer->getBlock() ||
      !producer.isAllParallelLoops() ||
      !consumer.getMatchingIndexingMap(&operand).isIdentity() ||
      !producer.getIndexingMapMatchingResult(cast<OpResult>(operand.get()))
           .isIdentity() ||
      !linalg::areElementwiseOpsFusable(&operand) ||
      !isVectorizable(producer, consumer))
    return false;
  return llvm::all_of(producer->getUses(), [&](OpOperand &use) {
    Operation *user =
        consumer->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return use.getOwner() == consumer ? &use == &operand
                                      : consumer->isBeforeInBlock(user);
  });
}

/// An input that the consumer can compute, if there is one.
static OpOperand *findFusable(linalg::GenericOp consumer) {
  for (OpOperand *operand : consumer.getDpsInputOperands())
    if (canFuse(*operand))
      return operand;
  return nullptr;
}

/// Moves what reads the producer, but for the consumer, behind that.
static bool moveReadersBehind(linalg::GenericOp producer,
                              linalg::GenericOp consumer) {
  if (producer->getBlock() != consumer->getBlock() ||
      !producer->isBeforeInBlock(consumer))
    return false;
  llvm::SetVector<Operation *> readers;
  for (Operation *op = producer->getNextNode(); op != consumer;
       op = op->getNextNode()) {
    // Nor past what writes to memory that they read.
    if (!isMemoryEffectFree(op))
      return false;
    bool reads = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *from = operand.getDefiningOp())
          reads |= from == producer || readers.contains(from);
    });
    if (reads)
      readers.insert(op);
  }
  for (Value operand : consumer->getOperands())
    if (readers.contains(operand.getDefiningOp()))
      return false;
  Operation *last = consumer;
  for (Operation *op : readers) {
    op->moveAfter(last);
    last = op;
  }
  return true;
}

/// The input that one of the masks computes, so that one loop can compute both,
/// after what else reads that was moved behind the consumer. For an input that
/// turns out to be none, these operations may have been moved, too.
static OpOperand *exposeMasked(linalg::GenericOp consumer,
                               const SetVector<Operation *> &masks) {
  for (OpOperand *operand : consumer.getDpsInputOperands()) {
    auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
    if (producer && masks.contains(producer) &&
        moveReadersBehind(producer, consumer) && canFuse(*operand))
      return operand;
  }
  return nullptr;
}

namespace {
struct VarlenFuseReductions
    : varlen::impl::VarlenFuseReductionsBase<VarlenFuseReductions> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> consumers;
    getOperation().walk([&](linalg::GenericOp op) {
      if (isConsumer(op))
        consumers.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    // Masks, with what is fused with them, and reductions of what is masked.
    SetVector<Operation *> masks;
    SmallVector<linalg::GenericOp> reductions;
    for (linalg::GenericOp consumer : consumers) {
      if (consumer.getNumReductionLoops() != 0 &&
          llvm::any_of(consumer.getInputs(), [&](Value input) {
            return masks.contains(input.getDefiningOp());
          })) {
        reductions.push_back(consumer);
        continue;
      }
      bool hides = isMask(consumer);
      // What is masked is a score region first, then an exponential.
      bool isChain = hides;
      while (OpOperand *operand = findFusable(consumer)) {
        hides |= masks.remove(operand->get().getDefiningOp());
        linalg::GenericOp fused = fuse(rewriter, *operand);
        if (fused == std::exchange(consumer, fused) || !isChain)
          break;
      }
      if (hides && consumer.isAllParallelLoops())
        masks.insert(consumer);
    }
    for (Operation *mask : SmallVector<Operation *>(masks.getArrayRef()))
      if (OpOperand *operand =
              exposeMasked(cast<linalg::GenericOp>(mask), masks)) {
        masks.remove(operand->get().getDefiningOp());
        masks.remove(mask);
        masks.insert(fuse(rewriter, *operand));
      }
    // Last: what reduces computes no input of another mask.
    for (linalg::GenericOp reduction : reductions)
      if (OpOperand *operand = exposeMasked(reduction, masks)) {
        masks.remove(operand->get().getDefiningOp());
        fuse(rewriter, *operand);
      }
  }

  /// The operation that computes what it reads, too, in place of both.
  linalg::GenericOp fuse(IRRewriter &rewriter, OpOperand &operand) {
    auto consumer = cast<linalg::GenericOp>(operand.getOwner());
    Operation *producer = operand.get().getDefiningOp();
    rewriter.setInsertionPoint(consumer);
    FailureOr<linalg::ElementwiseOpFusionResult> fused =
        linalg::fuseElementwiseOps(rewriter, &operand);
    if (failed(fused))
      return consumer;
    for (auto [before, after] : fused->replacements)
      rewriter.replaceAllUsesWith(before, after);
    rewriter.eraseOp(consumer);
    if (producer->use_empty())
      rewriter.eraseOp(producer);
    // The indices of the producer, which are those of the consumer.
    fused->fusedOp->walk([&](affine::AffineApplyOp index) {
      SmallVector<Value> folded;
      if (OpBuilder(index).tryFold(index, folded).succeeded())
        rewriter.replaceOp(index, folded);
    });
    ++numFused;
    return cast<linalg::GenericOp>(fused->fusedOp);
  }
};
} // namespace

//===- VarlenPlaceTiles.cpp - Where the tiles of a step lie ---------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One-shot bufferization gives each tile memory of its own extents, which is on
// the heap where these are dynamic, and copies what it may not write. Both are
// known better here.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENPLACETILES
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Makes a tile with a dynamic number of rows a slice of one of kv_block rows.
static bool bound(tensor::EmptyOp empty, CPUScheduleAttr schedule) {
  RankedTensorType type = empty.getType();
  // Pairs of rows have a third dimension.
  bool isPaired = type.getRank() == 3 && type.getDimSize(2) == 2;
  if ((type.getRank() != 2 && !isPaired) || !type.isDynamicDim(0) ||
      type.isDynamicDim(1))
    return false;
  OpBuilder b(empty);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = schedule.getKvBlock() / (isPaired ? 2 : 1);
  Value whole =
      tensor::EmptyOp::create(b, empty.getLoc(), shape, type.getElementType());
  Value slice = tensor::ExtractSliceOp::create(b, empty.getLoc(), type, whole,
                                               empty.getMixedSizes());
  empty.replaceAllUsesWith(slice);
  empty.erase();
  return true;
}

/// Whether a tile is new, or one that is written back in any case.
static bool isWritable(Value tile, Block *block) {
  Operation *producer = tile.getDefiningOp();
  if (!producer || producer->getBlock() != block)
    return false;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(producer))
    return isWritable(slice.getSource(), block);
  auto read = dyn_cast<bufferization::ToTensorOp>(producer);
  return read ? read.getWritable()
              : isa<linalg::LinalgOp, tensor::InsertSliceOp, scf::ForOp>(
                    producer);
}

/// The input of an operation that it can write over: one that is not read
/// after it.
static OpOperand *getOverwritten(linalg::GenericOp op, OpOperand &init) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (isWritable(input->get(), op->getBlock()) &&
        input->get().getType() == init.get().getType() &&
        op.getMatchingIndexingMap(input) == op.getMatchingIndexingMap(&init) &&
        llvm::all_of(input->get().getUses(), [&](OpOperand &use) {
          Operation *user =
              op->getBlock()->findAncestorOpInBlock(*use.getOwner());
          return user == op ? &use == input : user->isBeforeInBlock(op);
        }))
      return input;
  }
  return nullptr;
}

/// Makes results that are written to new memory write over inputs. An operation
/// that reduces reads them as what it overwrites: bufferization knows only of
/// others that they read an element before they write it.
static unsigned overwrite(linalg::GenericOp op) {
  unsigned count = 0;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    if (!op.getMatchingIndexingMap(&init).isIdentity() ||
        !op.getMatchingBlockArgument(&init).use_empty() ||
        !init.get().getDefiningOp<tensor::EmptyOp>())
      continue;
    OpOperand *input = getOverwritten(op, init);
    if (!input)
      continue;
    Operation *empty = init.get().getDefiningOp();
    init.set(input->get());
    if (empty->use_empty())
      empty->erase();
    ++count;
  }
  return count;
}

/// Lets an elementwise operation write where its result is to end up, if that
/// is the last one that reads tiles of memory: any of them may be what it
/// writes over, element by element.
static bool
writeToDestination(bufferization::MaterializeInDestinationOp write) {
  auto op = write.getSource().getDefiningOp<linalg::LinalgOp>();
  Value memory = write.getDest();
  if (!op || op->getBlock() != write->getBlock() || !op.isAllParallelLoops() ||
      op->getNumResults() != 1 || !op->hasOneUse() ||
      !isa<MemRefType>(memory.getType()))
    return false;
  OpOperand &init = *op.getDpsInitOperand(0);
  auto type = cast<RankedTensorType>(init.get().getType());
  Operation *empty = init.get().getDefiningOp<tensor::EmptyOp>();
  Operation *maker = memory.getDefiningOp();
  if (!empty || !op.getMatchingIndexingMap(&init).isIdentity() ||
      !op.getMatchingBlockArgument(&init).use_empty() ||
      type.getShape() != cast<MemRefType>(memory.getType()).getShape() ||
      (maker && maker->getBlock() == op->getBlock() &&
       !maker->isBeforeInBlock(op)))
    return false;
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get().getDefiningOp<bufferization::ToTensorOp>() &&
        !op.getMatchingIndexingMap(input).isIdentity())
      return false;
  for (auto tile : op->getBlock()->getOps<bufferization::ToTensorOp>())
    for (Operation *user : tile->getUsers()) {
      Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
      if (reader != op && !reader->isBeforeInBlock(op))
        return false;
    }
  OpBuilder b(op);
  init.set(bufferization::ToTensorOp::create(b, op.getLoc(), type, memory,
                                             /*restrict=*/true,
                                             /*writable=*/true));
  if (empty->use_empty())
    empty->erase();
  return true;
}

/// Erases an operation whose result was written to new memory, with it.
static void eraseWithInit(RewriterBase &rewriter, linalg::LinalgOp op) {
  Operation *empty =
      op.getDpsInitOperand(0)->get().getDefiningOp<tensor::EmptyOp>();
  rewriter.eraseOp(op);
  if (empty && empty->use_empty())
    rewriter.eraseOp(empty);
}

/// Transposes the part of a tile that is read, not the tile.
static void cutTranspose(RewriterBase &rewriter, tensor::ExtractSliceOp slice) {
  auto transpose = slice.getSource().getDefiningOp<linalg::TransposeOp>();
  if (!transpose || !transpose->hasOneUse() || !slice.hasUnitStride() ||
      slice.getSourceType().getRank() != slice.getType().getRank())
    return;
  rewriter.setInsertionPoint(slice);
  Location loc = slice.getLoc();
  SmallVector<int64_t> inverse =
      invertPermutationVector(transpose.getPermutation());
  Value part = tensor::ExtractSliceOp::create(
      rewriter, loc, transpose.getInput(),
      applyPermutation(slice.getMixedOffsets(), inverse),
      applyPermutation(slice.getMixedSizes(), inverse),
      slice.getMixedStrides());
  Value empty = tensor::EmptyOp::create(rewriter, loc, slice.getMixedSizes(),
                                        slice.getType().getElementType());
  rewriter.replaceOpWithNewOp<linalg::TransposeOp>(slice, part, empty,
                                                   transpose.getPermutation());
  eraseWithInit(rewriter, transpose);
}

/// Makes a transpose and what rounds its result one operation: one copy of a
/// tile less. A tile may be rounded on its way to memory, where its rows lie.
static LogicalResult fuseTranspose(RewriterBase &rewriter,
                                   linalg::GenericOp op) {
  if (!op.isSingleInputOutput())
    return success();
  OpOperand *input = op.getDpsInputOperand(0);
  auto transpose = input->get().getDefiningOp<linalg::TransposeOp>();
  if (!transpose || !transpose->hasOneUse())
    return success();
  rewriter.setInsertionPoint(transpose);
  FailureOr<linalg::GenericOp> permuting =
      linalg::generalizeNamedOp(rewriter, transpose);
  if (failed(permuting))
    return failure();
  FailureOr<linalg::ElementwiseOpFusionResult> fused =
      linalg::fuseElementwiseOps(rewriter, input);
  if (failed(fused))
    return failure();
  rewriter.replaceOp(op, fused->replacements.lookup(op.getResult(0)));
  eraseWithInit(rewriter, *permuting);
  return success();
}

static bool isPlaced(Operation *op) {
  return static_cast<bool>(getEnclosingSchedule(op));
}

namespace {
struct VarlenPlaceTiles : varlen::impl::VarlenPlaceTilesBase<VarlenPlaceTiles> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](tensor::ExtractSliceOp slice) {
      if (isPlaced(slice))
        cutTranspose(rewriter, slice);
    });
    WalkResult fused = getOperation()->walk([&](linalg::GenericOp op) {
      return WalkResult(isPlaced(op) ? fuseTranspose(rewriter, op) : success());
    });
    if (fused.wasInterrupted() || failed(overwriteAll()))
      return signalPassFailure();
    getOperation()->walk([&](bufferization::MaterializeInDestinationOp write) {
      if (isPlaced(write))
        numOverwritten += writeToDestination(write);
    });
    getOperation()->walk([&](tensor::EmptyOp empty) {
      if (isPlaced(empty))
        numBounded += bound(empty, getEnclosingSchedule(empty));
    });
    // It has no later reader.
    getOperation()->walk([](Operation *op) {
      auto schedule = op->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName);
      if (schedule &&
          (isa<scf::ForallOp>(op) || op->getParentOfType<scf::ForallOp>()))
        op->removeAttr(kScheduleAttrName);
    });
  }

private:
  LogicalResult overwriteAll() {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (!isPlaced(op))
        return;
      unsigned count = overwrite(op);
      numOverwritten += count;
      if (count != 0)
        ops.push_back(op);
    });
    RewritePatternSet patterns(&getContext());
    linalg::populateEraseUnnecessaryInputsPatterns(patterns);
    return applyOpPatternsGreedily(
        ops, std::move(patterns),
        GreedyRewriteConfig().setStrictness(
            GreedyRewriteStrictness::ExistingAndNewOps));
  }
};
} // namespace

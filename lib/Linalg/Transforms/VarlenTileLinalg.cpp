//===- VarlenTileLinalg.cpp - linalg on tensors in tiles, on threads ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// upstream's tileConsumerAndFuseProducersUsingSCF computes a producer again for
// every consumer in the loop, and knows no tile that is more than one
// operation, as a block of a contraction is. The tiles themselves are
// upstream's (TilingInterface).
//
//===----------------------------------------------------------------------===//

#include "ContractionBlocks.h"
#include "LinalgGroups.h"
#include "TileArithmetic.h"
#include "WideSum.h"
#include "varlen/Linalg/Attributes.h"
#include "varlen/Linalg/Transforms/Passes.h"
#include "varlen/Target/TargetOption.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENTILELINALG
#include "varlen/Linalg/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

class GroupTiler {
public:
  GroupTiler(LinalgGroup &group, const CPUTarget &target)
      : group(group), target(target), b(group.root.getLoc(), group.root) {}

  LogicalResult run();

private:
  LogicalResult emitTile(linalg::LinalgOp op);
  Value emitDestination(OpOperand &init, Value tile);
  Value emitBlock(linalg::LinalgOp op, linalg::LinalgOp tiled,
                  ArrayRef<OpFoldResult> from);
  Value emitInOrder(linalg::LinalgOp op, linalg::LinalgOp tiled,
                    const ContractionForm &form);
  Value emitBase(OpOperand &init);
  OpOperand *getOnlyUse(OpResult result);

  LinalgGroup &group;
  const CPUTarget &target;
  ImplicitLocOpBuilder b;
  llvm::DenseMap<Operation *, std::unique_ptr<ContractionBlocks>> blocks;
  scf::ForallOp forall;
  SmallVector<OpFoldResult> offsets, sizes;
  /// Of results of the group.
  llvm::DenseMap<Value, Value> tiles;
};

} // namespace

/// What a result of the root is written into: the first destination of the
/// chain that is none of the group's results, or new memory if nothing reads
/// it.
Value GroupTiler::emitBase(OpOperand &init) {
  OpOperand *first = &init;
  while (group.contains(first->get().getDefiningOp())) {
    auto result = cast<OpResult>(first->get());
    first = cast<linalg::LinalgOp>(result.getOwner())
                .getDpsInitOperand(result.getResultNumber());
  }
  Value value = first->get();
  if (cast<linalg::LinalgOp>(first->getOwner())
          .payloadUsesValueFromOperand(first) ||
      value.getDefiningOp<tensor::EmptyOp>())
    return value;
  // Empty rather than allocated: a caller's destination can take its place.
  return tensor::EmptyOp::create(
      b, tensor::getMixedSizes(b, b.getLoc(), value),
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// The only use of a result by an operation of the group, or null.
OpOperand *GroupTiler::getOnlyUse(OpResult result) {
  OpOperand *only = nullptr;
  for (OpOperand &use : result.getUses()) {
    if (!group.contains(use.getOwner()))
      continue;
    if (only)
      return nullptr;
    only = &use;
  }
  return only;
}

/// Where a tile of an operation's result is written: the part of the root's
/// results that it becomes, or memory of its own, with what is in `tile` if
/// that is read.
Value GroupTiler::emitDestination(OpOperand &init, Value tile) {
  auto op = cast<linalg::LinalgOp>(init.getOwner());
  OpResult result = op.getTiedOpResult(&init);
  // The tile that is written over this one, if nothing else reads it.
  linalg::LinalgOp last = op;
  while (OpOperand *use = last == group.root ? nullptr : getOnlyUse(result)) {
    last = cast<linalg::LinalgOp>(use->getOwner());
    if (!last.isDpsInit(use))
      break;
    result = last.getTiedOpResult(use);
  }
  AffineMap map = op.getMatchingIndexingMap(&init);
  SmallVector<OpFoldResult> at, area, bound;
  auto type = cast<RankedTensorType>(init.get().getType());
  ArrayRef<unsigned> loops = group.loops[op];
  for (auto [place, expr] : llvm::enumerate(map.getResults())) {
    const auto *loop =
        llvm::find(loops, cast<AffineDimExpr>(expr).getPosition());
    if (loop != loops.end()) {
      unsigned t = loop - loops.begin();
      at.push_back(offsets[t]);
      area.push_back(sizes[t]);
      bound.push_back(b.getIndexAttr(group.sizes[t]));
      continue;
    }
    at.push_back(b.getIndexAttr(0));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(forall);
    area.push_back(tensor::getMixedSize(b, b.getLoc(), init.get(), place));
    bound.push_back(area.back());
  }
  if (result.getOwner() == group.root) {
    SmallVector<OpFoldResult> ones(at.size(), b.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(
        b, forall.getRegionIterArgs()[result.getResultNumber()], at, area,
        ones);
  }
  // Its size is known before the loop.
  Value memory = emitAlloc(b, bound, type.getElementType());
  Value own =
      tensor::ExtractSliceOp::create(b, /*resultType=*/{}, memory, area);
  return op.payloadUsesValueFromOperand(&init)
             ? linalg::CopyOp::create(b, tile, own).getResult(0)
             : own;
}

/// A tile without the loops of which it has one index. These are the first; the
/// last two are the matrix.
static Value dropOuter(ImplicitLocOpBuilder &b, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getRank() == 2)
    return tile;
  SmallVector<OpFoldResult> area = tensor::getMixedSizes(b, b.getLoc(), tile);
  RankedTensorType matrix =
      tensor::ExtractSliceOp::inferCanonicalRankReducedResultType(2, type,
                                                                  area);
  return tensor::ExtractSliceOp::create(b, matrix, tile, area);
}

/// A tile of a contraction, in blocks.
Value GroupTiler::emitBlock(linalg::LinalgOp op, linalg::LinalgOp tiled,
                            ArrayRef<OpFoldResult> from) {
  const ContractionForm &form = group.contractions[op];
  Value lhs = dropOuter(b, tiled->getOperand(form.lhs->getOperandNumber()));
  Value whole = tiled->getOperand(form.result->getOperandNumber());
  Value sum = dropOuter(b, whole);
  Value result = blocks[op]->emitTile(lhs, sum, from, sizes.back());
  if (sum == whole)
    return result;
  return tensor::InsertSliceOp::create(
      b, result, whole, tensor::getMixedSizes(b, b.getLoc(), whole));
}

/// A tile of a contraction that is transposed in registers and adds up as
/// blocks of it would. A left factor in a narrow type is converted once rather
/// than with each product.
Value GroupTiler::emitInOrder(linalg::LinalgOp op, linalg::LinalgOp tiled,
                              const ContractionForm &form) {
  auto element = cast<FloatType>(getElement(form.result));
  SmallVector<Value> factors = tiled.getDpsInputs();
  Value &lhs = factors[form.lhs->getOperandNumber()];
  if (getElement(form.lhs) != element && !isBF16Product(form, target)) {
    SmallVector<OpFoldResult> area;
    for (auto [place, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(form.lhs).getResults())) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(forall);
      area.push_back(
          llvm::is_contained(group.loops[op],
                             cast<AffineDimExpr>(expr).getPosition())
              ? OpFoldResult(b.getIndexAttr(1))
              : tensor::getMixedSize(b, b.getLoc(), form.lhs->get(), place));
    }
    lhs = linalg::CopyOp::create(b, lhs, emitAlloc(b, area, element))
              .getResult(0);
  }
  Value sum = tiled->getOperand(form.result->getOperandNumber());
  auto contraction =
      linalg::ContractOp::create(b, TypeRange{sum.getType()}, factors,
                                 ValueRange{sum}, op.getIndexingMaps());
  contraction->setAttr(kInOrderAttrName, b.getUnitAttr());
  return contraction.getResult(0);
}

LogicalResult GroupTiler::emitTile(linalg::LinalgOp op) {
  ArrayRef<unsigned> loops = group.loops[op];
  SmallVector<OpFoldResult> from, extents;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(forall);
    for (Range range : op.createLoopRanges(b, op.getLoc())) {
      from.push_back(range.offset);
      extents.push_back(range.size);
    }
  }
  for (auto [t, dim] : llvm::enumerate(loops)) {
    from[dim] = offsets[t];
    extents[dim] = sizes[t];
  }
  FailureOr<TilingResult> tiling =
      cast<TilingInterface>(op.getOperation())
          .getTiledImplementation(b, from, extents);
  if (failed(tiling))
    return op.emitError("could not be tiled");
  auto tiled = cast<linalg::LinalgOp>(tiling->tiledOps.front());
  b.setInsertionPoint(tiled);
  for (auto [whole, tile] :
       llvm::zip_equal(op->getOpOperands(), tiled->getOpOperands())) {
    if (Value known = tiles.lookup(whole.get()))
      tile.set(known);
    else if (op.isDpsInit(&whole))
      tile.set(emitDestination(whole, tile.get()));
  }
  for (auto [result, init] :
       llvm::zip_equal(tiled->getResults(), tiled.getDpsInits()))
    result.setType(init.getType());
  b.setInsertionPointAfter(tiled);
  SmallVector<Value> results(tiled->getResults());
  if (group.contractions.contains(op)) {
    results = {emitBlock(op, tiled, from)};
    tiled->erase();
  } else if (FailureOr<ContractionForm> form = getContractionForm(op);
             succeeded(form) && !form->hasColumnsLast &&
             canHaveColumnTiles(op, *form)) {
    results = {emitInOrder(op, tiled, *form)};
    tiled->erase();
  }
  for (Operation *slice : llvm::reverse(tiling->generatedSlices))
    if (slice->use_empty())
      slice->erase();
  for (auto [whole, tile] : llvm::zip_equal(op->getResults(), results))
    tiles[whole] = tile;
  return success();
}

LogicalResult GroupTiler::run() {
  linalg::LinalgOp root = group.root;
  TileArithmetic math{b};
  for (auto &[op, form] : group.contractions) {
    auto &block = blocks[op];
    block = std::make_unique<ContractionBlocks>(b, cast<linalg::LinalgOp>(op),
                                                form, target);
    block->emitPanels();
  }
  SmallVector<Range> ranges = root.createLoopRanges(b, root.getLoc());
  SmallVector<OpFoldResult> counts;
  for (auto [dim, size] : llvm::zip_equal(group.loops[root], group.sizes))
    counts.push_back(math.ceilDiv(ranges[dim].size, size));
  SmallVector<Value> bases;
  for (OpOperand &init : root.getDpsInitsMutable())
    bases.push_back(emitBase(init));
  forall = scf::ForallOp::create(b, counts, bases, std::nullopt);
  b.setInsertionPointToStart(forall.getBody());
  for (auto [dim, size, index] : llvm::zip_equal(group.loops[root], group.sizes,
                                                 forall.getInductionVars())) {
    offsets.push_back(math.mul(index, size));
    sizes.push_back(math.cut(size, ranges[dim].size, offsets.back()));
  }
  SmallVector<Operation *> ops = group.getOperations();
  for (Operation *op : ops)
    if (failed(emitTile(cast<linalg::LinalgOp>(op))))
      return failure();

  for (auto [i, init] : llvm::enumerate(root.getDpsInitsMutable())) {
    Value tile = tiles[root->getResult(i)];
    b.setInsertionPoint(forall.getTerminator());
    SmallVector<OpFoldResult> at, area;
    for (auto [place, expr] :
         llvm::enumerate(root.getMatchingIndexingMap(&init).getResults())) {
      unsigned dim = cast<AffineDimExpr>(expr).getPosition();
      const auto *loop = llvm::find(group.loops[root], dim);
      bool isTiled = loop != group.loops[root].end();
      unsigned t = loop - group.loops[root].begin();
      at.push_back(isTiled ? offsets[t] : OpFoldResult(b.getIndexAttr(0)));
      area.push_back(isTiled
                         ? sizes[t]
                         : tensor::getMixedSize(b, b.getLoc(), tile, place));
    }
    SmallVector<OpFoldResult> ones(at.size(), b.getIndexAttr(1));
    b.setInsertionPointToEnd(forall.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(
        b, tile, forall.getRegionIterArgs()[i], at, area, ones);
  }
  root->replaceAllUsesWith(forall.getResults());
  // What is left reads extents, which are those of the destination.
  for (Operation *op : llvm::reverse(ops)) {
    op->replaceAllUsesWith(cast<linalg::LinalgOp>(op).getDpsInits());
    op->erase();
  }
  return success();
}

/// Whether contractions in blocks that could be in columns have few rows, if
/// that is not known before run time; null if it is.
static Value emitHasFewRows(LinalgGroup &group, const CPUTarget &target) {
  ImplicitLocOpBuilder b(group.root.getLoc(), group.root);
  Value rows;
  int64_t few = 0;
  for (Operation *op : group.getOperations()) {
    const auto *found = group.contractions.find(op);
    if (found == group.contractions.end())
      continue;
    const ContractionForm &form = found->second;
    auto contraction = cast<linalg::LinalgOp>(op);
    if (!canHaveColumnTiles(contraction, form) ||
        ShapedType::isStatic(contraction.getStaticLoopRanges()[form.rows]))
      continue;
    int64_t limit = getFewRows(form, target);
    few = rows ? std::min(few, limit) : limit;
    if (rows)
      continue;
    AffineMap map = contraction.getMatchingIndexingMap(form.lhs);
    unsigned place =
        *map.getResultPosition(getAffineDimExpr(form.rows, op->getContext()));
    rows = tensor::DimOp::create(b, form.lhs->get(), place);
  }
  if (!rows)
    return {};
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ule, rows,
                               arith::ConstantIndexOp::create(b, few));
}

/// The group twice: for few rows and for many.
static scf::IfOp emitBothForms(LinalgGroup &group, Value few) {
  ImplicitLocOpBuilder b(group.root.getLoc(), group.root);
  SmallVector<Operation *> ops = group.getOperations();
  auto isOutside = [&](OpOperand &use) {
    return !group.contains(use.getOwner());
  };
  // Extents, which are those of the destination.
  for (Operation *op : llvm::reverse(ops))
    if (op != group.root)
      for (auto [result, init] : llvm::zip_equal(
               op->getResults(), cast<linalg::LinalgOp>(op).getDpsInits()))
        result.replaceUsesWithIf(init, isOutside);
  auto both = scf::IfOp::create(b, group.root->getResultTypes(), few,
                                /*withElseRegion=*/true);
  for (auto [result, other] :
       llvm::zip_equal(group.root->getResults(), both.getResults()))
    result.replaceUsesWithIf(other, isOutside);
  IRMapping map;
  b.setInsertionPointToEnd(both.thenBlock());
  for (Operation *op : ops)
    b.clone(*op, map);
  SmallVector<Value> results;
  for (Value result : group.root->getResults())
    results.push_back(map.lookup(result));
  scf::YieldOp::create(b, results);
  b.setInsertionPointToEnd(both.elseBlock());
  auto yield = scf::YieldOp::create(b, group.root->getResults());
  for (Operation *op : ops)
    op->moveBefore(yield);
  return both;
}

namespace {

struct VarlenTileLinalg : varlen::impl::VarlenTileLinalgBase<VarlenTileLinalg> {
  using VarlenTileLinalgBase::VarlenTileLinalgBase;

  void runOnOperation() override {
    const CPUTarget *cpu = getCPUTargetOrError(getOperation(), target);
    if (!cpu)
      return signalPassFailure();
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops)
      widenSum(op);
    // What is inside a loop on threads is one thread's already.
    SmallVector<Block *> blocks;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<scf::ForallOp, linalg::LinalgOp>(op))
        return WalkResult::skip();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          blocks.push_back(&block);
      return WalkResult::advance();
    });
    for (Block *block : blocks)
      if (failed(tile(*block, *cpu, /*hasFewRows=*/false,
                      /*choose=*/true)))
        return signalPassFailure();
  }

  LogicalResult tile(Block &block, const CPUTarget &cpu, bool hasFewRows,
                     bool choose) {
    for (std::unique_ptr<LinalgGroup> &group :
         findGroups(block, cpu, hasFewRows)) {
      if (Value few = choose ? emitHasFewRows(*group, cpu) : Value()) {
        scf::IfOp both = emitBothForms(*group, few);
        if (failed(tile(*both.thenBlock(), cpu, /*hasFewRows=*/true,
                        /*choose=*/false)) ||
            failed(tile(*both.elseBlock(), cpu, /*hasFewRows=*/false,
                        /*choose=*/false)))
          return failure();
        continue;
      }
      numOperations += group->loops.size();
      ++numLoops;
      if (failed(GroupTiler(*group, cpu).run()))
        return failure();
    }
    return success();
  }
};

} // namespace

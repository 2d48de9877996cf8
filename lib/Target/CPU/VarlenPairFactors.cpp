//===- VarlenPairFactors.cpp - Products of tiles of bf16 pairs ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How pairs lie in memory becomes a dimension of two elements, which all passes
// on linalg understand.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Support/Body.h"
#include "varlen/Support/Extents.h"
#include "varlen/Support/IndexBuilder.h"
#include "varlen/Support/PairMap.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENPAIRFACTORS
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

/// Half of an extent or offset. In i32, through which bufferization does not
/// look for bounds of slices, which would take it most of its time.
static OpFoldResult halve(ImplicitLocOpBuilder &b, OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return b.getIndexAttr(*constant / 2);
  IndexBuilder at{b}, in{b, b.getI32Type()};
  return at.cast(in.div(in.cast(cast<Value>(value)), 2));
}

/// Whether an extent or offset is even, as far as the operations that compute
/// it say.
static bool isEven(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant % 2 == 0;
  auto number = cast<Value>(value);
  if (auto argument = dyn_cast<BlockArgument>(number)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() &&
           isEven(loop.getLowerBound()) && isEven(loop.getStep());
  }
  Operation *op = number.getDefiningOp();
  auto isEvenValue = [](Value operand) { return isEven(operand); };
  if (isa<arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), isEvenValue);
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isEven(select.getTrueValue()) && isEven(select.getFalseValue());
  return isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
             arith::IndexCastOp>(op) &&
         llvm::all_of(op->getOperands(), isEvenValue);
}

/// Whether a part of a tile has both or none of two neighbours in a dimension.
static bool hasPairs(OffsetSizeAndStrideOpInterface part, int64_t dim) {
  return isEven(part.getMixedOffsets()[dim]) &&
         isEven(part.getMixedSizes()[dim]);
}

/// Whether a tile is, or is part of, one in memory.
static bool isInMemory(Value tile) {
  while (auto part = tile.getDefiningOp<tensor::ExtractSliceOp>())
    tile = part.getSource();
  return isa_and_present<ToTileOp>(tile.getDefiningOp());
}

namespace {
/// Finds or makes the pairs of the factors of a block's products. Loops that
/// compute a tile part by part are replaced by ones that carry its pairs, too.
class PairBuilder {
public:
  /// A tile [depth, columns] as [depth / 2, columns, 2].
  FailureOr<Value> getRowPairs(Value tile);
  /// A tile [rows, depth] as [rows, depth / 2, 2].
  FailureOr<Value> getNeighbours(Value tile);

private:
  FailureOr<Value> insert(ImplicitLocOpBuilder &b, tensor::InsertSliceOp op);
  FailureOr<Value> carry(scf::ForOp loop, unsigned number);

  using Pairs = DenseMap<Value, Value>;
  Pairs rowPairs, neighbours;
};
} // namespace

/// A tile whose rows are of pairs.
static Value expand(ImplicitLocOpBuilder &b, Value tile) {
  SmallVector<OpFoldResult> shape = getExtents(b, tile);
  shape[1] = halve(b, shape[1]);
  shape.push_back(b.getIndexAttr(2));
  auto type = RankedTensorType::get(decomposeMixedValues(shape).first,
                                    getElementTypeOrSelf(tile.getType()));
  return tensor::ExpandShapeOp::create(b, type, tile, getPairDims(/*rank=*/3),
                                       shape);
}

/// Memory for the pairs of rows of a tile.
static Value emitEmpty(ImplicitLocOpBuilder &b, SmallVector<OpFoldResult> shape,
                       Type element) {
  shape[0] = halve(b, shape[0]);
  shape.push_back(b.getIndexAttr(2));
  return tensor::EmptyOp::create(b, shape, element);
}

/// What a tile that is computed is rounded from, or the tile. The builder's
/// place is next to what is computed, to be fused with it.
static Value getUnrounded(ImplicitLocOpBuilder &b, Value tile) {
  auto round = tile.getDefiningOp<linalg::GenericOp>();
  if (round && linalg::isaElemwiseSingleUnaryOpInterface(round) &&
      isa<arith::TruncFOp>(round.getBody()->front()))
    tile = round.getInputs()[0];
  b.setInsertionPointAfterValue(tile);
  return tile;
}

/// Pairs of two rows of a tile, in `into`. What is to be rounded is rounded
/// here, away from zero on a tie: that takes one addition of integers, and a
/// tie is rare.
static Value interleave(ImplicitLocOpBuilder &b, Value tile, Value into) {
  return emitGeneric(
      b, tile, into, {b.getMultiDimIdentityMap(2), getPairMap(b.getContext())},
      [](ImplicitLocOpBuilder &inner, ValueRange x) -> Value {
        if (x[0].getType() == x[1].getType())
          return x[0];
        return arith::TruncFOp::create(
            inner, x[1].getType(), x[0],
            arith::RoundingModeAttr::get(inner.getContext(),
                                         arith::RoundingMode::to_nearest_away),
            /*fastmath=*/nullptr);
      });
}

/// The pairs of a slice, of which `halved` is the dimension of the tile that
/// they are neighbours in.
static tensor::ExtractSliceOp slice(ImplicitLocOpBuilder &b,
                                    OffsetSizeAndStrideOpInterface op,
                                    Value pairs, int64_t halved) {
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets(),
                            sizes = op.getMixedSizes(),
                            strides(3, b.getIndexAttr(1));
  offsets[halved] = halve(b, offsets[halved]);
  sizes[halved] = halve(b, sizes[halved]);
  offsets.push_back(b.getIndexAttr(0));
  sizes.push_back(b.getIndexAttr(2));
  return tensor::ExtractSliceOp::create(b, pairs, offsets, sizes, strides);
}

/// The pairs of a tile of which some rows are computed.
FailureOr<Value> PairBuilder::insert(ImplicitLocOpBuilder &b,
                                     tensor::InsertSliceOp op) {
  FailureOr<Value> before = getRowPairs(op.getDest());
  if (failed(before))
    return failure();
  Value source = getUnrounded(b, op.getSource());
  tensor::ExtractSliceOp into = slice(b, op, *before, /*halved=*/0);
  Value pairs = interleave(b, source, into);
  b.setInsertionPointAfter(op);
  return tensor::InsertSliceOp::create(
             b, pairs, *before, into.getMixedOffsets(), into.getMixedSizes(),
             into.getMixedStrides())
      .getResult();
}

/// The pairs of a tile that a loop carries, from one that carries them.
FailureOr<Value> PairBuilder::carry(scf::ForOp loop, unsigned number) {
  FailureOr<Value> init = getRowPairs(loop.getInitArgs()[number]);
  if (failed(init))
    return failure();
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  Value carried = loop.getRegionIterArgs()[number];
  bool isDone = true;
  auto emitPairs = [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
    rowPairs[carried] = added.front();
    FailureOr<Value> pairs = getRowPairs(yield.getOperand(number));
    isDone = succeeded(pairs);
    return SmallVector<Value>{isDone ? *pairs : Value(added.front())};
  };
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> before(loop.getRegionIterArgs());
  llvm::append_range(before, loop.getResults());
  FailureOr<LoopLikeOpInterface> next = loop.replaceWithAdditionalYields(
      rewriter, *init, /*replaceInitOperandUsesInLoop=*/false, emitPairs);
  if (failed(next) || !isDone)
    return failure();
  // What the loop before carried and returned has another name now.
  auto after = cast<scf::ForOp>(next->getOperation());
  SmallVector<Value> renamed(after.getRegionIterArgs().drop_back());
  llvm::append_range(renamed, after.getResults().drop_back());
  for (Pairs *pairs : {&rowPairs, &neighbours})
    for (auto [from, to] : llvm::zip_equal(before, renamed)) {
      for (auto &entry : *pairs)
        if (entry.second == from)
          entry.second = to;
      if (Value known = pairs->lookup(from)) {
        pairs->erase(from);
        (*pairs)[to] = known;
      }
    }
  return rowPairs[after.getResult(number)] = after.getResults().back();
}

FailureOr<Value> PairBuilder::getRowPairs(Value tile) {
  if (Value known = rowPairs.lookup(tile))
    return known;
  if (auto loop = tile.getDefiningOp<scf::ForOp>())
    return carry(loop, cast<OpResult>(tile).getResultNumber());
  ImplicitLocOpBuilder b(tile.getLoc(), tile.getContext());
  b.setInsertionPointAfterValue(tile);
  auto part = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (part && !hasPairs(part, /*dim=*/0) && isInMemory(part))
    return part.emitOpError("expected rows of pairs in memory to begin and end "
                            "at multiples of two");
  if (part && hasPairs(part, /*dim=*/0)) {
    FailureOr<Value> pairs = getRowPairs(part.getSource());
    if (failed(pairs))
      return failure();
    return rowPairs[tile] = slice(b, part, *pairs, /*halved=*/0);
  }
  if (auto op = tile.getDefiningOp<tensor::InsertSliceOp>();
      op && hasPairs(op, /*dim=*/0)) {
    FailureOr<Value> pairs = insert(b, op);
    if (failed(pairs))
      return failure();
    return rowPairs[tile] = *pairs;
  }
  Type element = getElementTypeOrSelf(tile.getType());
  if (auto empty = tile.getDefiningOp<tensor::EmptyOp>())
    return rowPairs[tile] = emitEmpty(b, empty.getMixedSizes(), element);
  auto source = tile.getDefiningOp<ToTileOp>();
  if (!source) {
    Value computed = getUnrounded(b, tile);
    Value into = emitEmpty(b, getExtents(b, computed), element);
    return rowPairs[tile] = interleave(b, computed, into);
  }
  const auto copies = source.getTileCopies();
  const auto *copy = llvm::find_if(copies, [](const TileCopy &copy) {
    return copy.order == TileOrder::RowPairs;
  });
  if (copy == copies.end())
    return source.emitOpError("expected ")
           << source.getTile().getType() << " to lie in memory in "
           << stringifyTileOrder(TileOrder::RowPairs) << " for a product";
  SmallVector<OpFoldResult> shape =
      memref::getMixedSizes(b, b.getLoc(), copy->memref);
  shape[1] = halve(b, shape[1]);
  shape.push_back(b.getIndexAttr(2));
  Value memory = memref::ExpandShapeOp::create(
      b, decomposeMixedValues(shape).first, copy->memref,
      getPairDims(/*rank=*/3), shape);
  return rowPairs[tile] = bufferization::ToTensorOp::create(
             b, memref::getTensorTypeFromMemRefType(memory.getType()), memory,
             /*restrict=*/true);
}

FailureOr<Value> PairBuilder::getNeighbours(Value tile) {
  if (Value known = neighbours.lookup(tile))
    return known;
  ImplicitLocOpBuilder b(tile.getLoc(), tile.getContext());
  b.setInsertionPointAfterValue(tile);
  if (auto op = tile.getDefiningOp<tensor::ExtractSliceOp>();
      op && hasPairs(op, /*dim=*/1)) {
    FailureOr<Value> pairs = getNeighbours(op.getSource());
    if (failed(pairs))
      return failure();
    return neighbours[tile] = slice(b, op, *pairs, /*halved=*/1);
  }
  return neighbours[tile] = expand(b, tile);
}

/// Whether the operation is a product of bf16 tiles, as varlen-choose-copies
/// leaves them.
static bool isProduct(linalg::ContractOp op) {
  ArrayAttr maps = op.getIndexingMaps();
  auto isBF16 = [](Value tile) {
    return getElementTypeOrSelf(tile.getType()).isBF16();
  };
  return (linalg::MatmulOp::isDefaultIndexingMaps(maps) ||
          linalg::MatmulTransposeAOp::isDefaultIndexingMaps(maps)) &&
         isBF16(op.getInputs()[0]) && isBF16(op.getInputs()[1]);
}

static LogicalResult pairFactors(linalg::ContractOp op, PairBuilder &pairs) {
  Value rhs = op.getInputs()[1];
  bool isRowFirst = op.getIndexingMapsArray()[0].getDimPosition(0) == 0;
  int64_t depth = cast<RankedTensorType>(rhs.getType()).getDimSize(0);
  if (!ShapedType::isDynamic(depth) && depth % 2 != 0)
    return op.emitOpError("expected an even depth of pairs, got ") << depth;
  // The second one may replace the loop that the first one is a result of.
  FailureOr<Value> right = pairs.getRowPairs(rhs);
  if (failed(right))
    return failure();
  Value lhs = op.getInputs()[0];
  FailureOr<Value> left =
      isRowFirst ? pairs.getNeighbours(lhs) : pairs.getRowPairs(lhs);
  if (failed(left) || failed(right))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto map = [&](ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(4, dims, b.getContext());
  };
  ArrayAttr maps =
      b.getAffineMapArrayAttr({isRowFirst ? map({0, 2, 3}) : map({2, 0, 3}),
                               map({2, 1, 3}), map({0, 1})});
  auto product = linalg::ContractOp::create(b, op->getResultTypes(),
                                            ValueRange{*left, *right},
                                            op.getOutputs(), maps);
  product->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->replaceAllUsesWith(product);
  op.erase();
  return success();
}

namespace {
struct VarlenPairFactors
    : varlen::impl::VarlenPairFactorsBase<VarlenPairFactors> {
  void runOnOperation() override {
    SmallVector<linalg::ContractOp> products;
    getOperation()->walk([&](linalg::ContractOp op) {
      CPUScheduleAttr schedule = getEnclosingSchedule(op);
      if (schedule && schedule.getKv() == KVStorage::Pairs && isProduct(op))
        products.push_back(op);
    });
    if (products.empty())
      return;
    PairBuilder pairs;
    for (linalg::ContractOp product : products)
      if (failed(pairFactors(product, pairs)))
        return signalPassFailure();
    // The tiles that pairs stand for are not needed.
    getOperation()->walk([](Block *block) { eraseDeadOps(*block); });
    numProducts += products.size();
  }
};
} // namespace

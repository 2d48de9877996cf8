//===- BlockVectorizerCheck.cpp - What can become vector loops ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each operation of a block is checked before loops are made of it: what the
// other parts of BlockVectorizer rely on is here.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

/// The dimensions that a map selects; -1 for a constant 0.
static std::optional<SmallVector<int64_t>> getDims(AffineMap map) {
  SmallVector<int64_t> result;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim && expr != getAffineConstantExpr(0, map.getContext()))
      return std::nullopt;
    result.push_back(dim ? static_cast<int64_t>(dim.getPosition()) : -1);
  }
  return result;
}

static bool hasDims(AffineMap map, ArrayRef<int64_t> dims) {
  std::optional<SmallVector<int64_t>> found = getDims(map);
  return found && ArrayRef(*found) == dims;
}

static RankedTensorType tileType(Value tile) {
  return cast<RankedTensorType>(tile.getType());
}

bool BlockVectorizer::isTile(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != 2)
    return false;
  Operation *producer = value.getDefiningOp();
  return buffers.contains(value) ||
         (producer && producer->getBlock() == &block &&
          isa<linalg::LinalgOp, tensor::EmptyOp>(producer));
}

bool BlockVectorizer::isReadable(Value tile) const {
  if (buffers.contains(tile))
    return static_cast<bool>(find(tile, TileOrder::Rows));
  return !tile.getDefiningOp<tensor::EmptyOp>();
}

/// That vectors of a row of a tile can be read from `memory` and written to it.
static LogicalResult checkMemory(Operation *op, Value memory) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  if (type && type.getRank() == 2 && type.isLastDimUnitStride())
    return success();
  return op->emitOpError("expected a rank-2 memref whose rows are contiguous, "
                         "got ")
         << memory.getType();
}

LogicalResult BlockVectorizer::checkRead(Operation *op) {
  auto &copies = buffers[op->getResult(0)];
  if (auto tile = dyn_cast<ToTileOp>(op))
    llvm::append_range(copies, tile.getTileCopies());
  else
    copies.push_back({TileOrder::Rows, op->getOperand(0)});
  return success(llvm::all_of(op->getOperands(), [&](Value memory) {
    return succeeded(checkMemory(op, memory));
  }));
}

LogicalResult
BlockVectorizer::check(bufferization::MaterializeInDestinationOp op) {
  if (failed(checkMemory(op, op.getDest())))
    return failure();
  auto source = op.getSource().getDefiningOp<linalg::LinalgOp>();
  if (!source || source->getBlock() != &block || isa<linalg::FillOp>(source))
    return op.emitOpError("expected a tile that is computed in this block, got "
                          "another value of type ")
           << op.getSource().getType();
  // It is stored as it is computed.
  Operation *dest = op.getDest().getDefiningOp();
  if (dest && dest->getBlock() == &block && !dest->isBeforeInBlock(source))
    return op.emitOpError("expected the destination to be there before the "
                          "tile is computed");
  if (llvm::count_if(op.getSource().getUsers(),
                     llvm::IsaPred<bufferization::MaterializeInDestinationOp>) >
      1)
    return op.emitOpError("expected one destination of a tile, got several");
  return success();
}

LogicalResult BlockVectorizer::check(linalg::LinalgOp op) {
  auto type = op->getNumResults() == 1
                  ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                  : RankedTensorType();
  if (!type || type.getRank() != 2 || type.isDynamicDim(1) ||
      type.getDimSize(1) % schedule.getLanes() != 0 ||
      !VectorType::isValidElementType(type.getElementType()))
    return op->emitOpError("expected one rank-2 tile with a multiple of ")
           << schedule.getLanes() << " columns as the result";
  if (auto fill = dyn_cast<linalg::FillOp>(*op)) {
    Type value = fill.getInputs()[0].getType();
    if (value == type.getElementType())
      return success();
    return op->emitOpError("expected a value of the tile's ")
           << type.getElementType() << ", got " << value;
  }
  for (OpOperand &operand : op->getOpOperands())
    if (!isTile(operand.get()))
      return op->emitOpError("expected operand #")
             << operand.getOperandNumber()
             << " to be a rank-2 tile of the same block, got "
             << operand.get().getType();
  if (auto contract = dyn_cast<linalg::ContractOp>(*op))
    return checkContract(contract);
  if (auto generic = dyn_cast<linalg::GenericOp>(*op))
    return checkGeneric(generic);
  return op->emitOpError("expected linalg.fill, linalg.contract or "
                         "linalg.generic on tiles");
}

LogicalResult BlockVectorizer::checkContract(linalg::ContractOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!hasDims(maps[2], {0, 1}) || !hasDims(maps[1], {2, 1}) ||
      (!hasDims(maps[0], {0, 2}) && !hasDims(maps[0], {2, 0})))
    return op->emitOpError("expected a contraction of the form (r, c) += "
                           "(r, k) or (k, r), (k, c)");
  Value lhs = op.getInputs()[0], rhs = op.getInputs()[1];
  auto compute =
      dyn_cast<FloatType>(tileType(op->getResult(0)).getElementType());
  bool pairs = hasPairs(rhs);
  for (Value factor : {lhs, rhs}) {
    auto element = dyn_cast<FloatType>(tileType(factor).getElementType());
    if (!compute || !element ||
        (pairs
             ? !element.isBF16() || !compute.isF32()
             : element != compute && element.getWidth() >= compute.getWidth()))
      return op->emitOpError("expected factors of ")
             << (pairs
                     ? "bf16 and sums of f32"
                     : "the floating-point type of the sums or a narrower one")
             << ", got " << tileType(lhs).getElementType() << " and "
             << tileType(rhs).getElementType() << " for sums of "
             << tileType(op->getResult(0)).getElementType();
  }
  for (auto [factor, order] :
       llvm::zip(ValueRange(op.getInputs()), getFactorOrders(op))) {
    bool inMemory = buffers.contains(factor);
    if (inMemory && !find(factor, order))
      return op->emitOpError("expected ")
             << factor.getType() << " to lie in memory in "
             << stringifyTileOrder(order) << " for this product";
    // A tile that is computed row by row is stored for those who read it.
    if (!inMemory && (fills.contains(factor) || statistics.contains(factor) ||
                      factor.getDefiningOp<tensor::EmptyOp>()))
      return op->emitOpError("expected ")
             << factor.getType()
             << " to be in memory or computed row by row for this product";
  }
  if (tileType(rhs).getDimSize(1) != tileType(op->getResult(0)).getDimSize(1) ||
      tileType(rhs).isDynamicDim(1))
    return op->emitOpError("expected a right factor with static columns and "
                           "with the columns of the result, got ")
           << rhs.getType() << " for " << op->getResult(0).getType();
  if (!fills.contains(op.getDpsInits()[0]) && !isReadable(op.getDpsInits()[0]))
    return op->emitOpError("expected an initial value of the product, in rows");
  return success();
}

LogicalResult BlockVectorizer::checkGeneric(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (op.getNumLoops() != 2)
    return op->emitOpError("expected loops over rows and columns, got ")
           << op.getNumLoops() << " loops";
  RankedTensorType result = tileType(op->getResult(0));
  int64_t columns = result.getDimSize(1);
  bool reduces = isReduction(cast<linalg::LinalgOp>(op.getOperation()));
  auto iterators = op.getIteratorTypesArray();
  if (reduces && (iterators[0] != utils::IteratorType::reduction ||
                  iterators[1] != utils::IteratorType::parallel ||
                  op.getNumDpsInputs() == 0 || !hasDims(maps[0], {0, 1})))
    return op->emitOpError("expected a reduction over the rows of the first "
                           "operand");
  if (!hasDims(maps.back(),
               reduces ? ArrayRef<int64_t>{-1, 1} : ArrayRef<int64_t>{0, 1}))
    return op->emitOpError("expected ")
           << (reduces ? "one value per column" : "a tile") << " as the result";
  // Rows of the loop, as far as types know them.
  int64_t rows =
      (reduces ? tileType(op.getDpsInputs()[0]) : result).getDimSize(0);
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps)) {
    bool isRow = hasDims(map, {-1, 1});
    if (!isRow && !hasDims(map, {0, 1}))
      return op->emitOpError("expected every operand to be a tile or one "
                             "value per column");
    RankedTensorType type = tileType(operand);
    if (type.getDimSize(1) != columns ||
        type.getDimSize(0) != (isRow ? 1 : rows) ||
        !VectorType::isValidElementType(type.getElementType()))
      return op->emitOpError("expected operands of ")
             << columns << " columns and the rows of the loop or one, got "
             << type;
  }
  for (Value input : op.getDpsInputs())
    if (!fills.contains(input) && !isReadable(input))
      return op->emitOpError("expected ")
             << input.getType()
             << " to be computed or to lie in memory in rows";
  Value init = op.getDpsInits()[0];
  if (reduces && !fills.contains(init) && !isReadable(init))
    return op->emitOpError("expected an initial value of the reduction");
  return checkBody(op);
}

/// Whether an operation can be made one on vectors.
static bool isElementwise(Operation &op) {
  // The memory of a table is one for all lanes.
  auto isScalar = [](Type type) {
    return VectorType::isValidElementType(type) || isa<MemRefType>(type);
  };
  return op.getNumRegions() == 0 && op.getNumResults() != 0 &&
         (OpTrait::hasElementwiseMappableTraits(&op) ||
          op.hasTrait<OpTrait::ConstantLike>()) &&
         llvm::all_of(op.getOperandTypes(), isScalar) &&
         llvm::all_of(op.getResultTypes(), isScalar);
}

LogicalResult BlockVectorizer::checkBody(linalg::GenericOp op) {
  Block *body = op.getBody();
  bool reduces = isReduction(cast<linalg::LinalgOp>(op.getOperation()));
  for (Operation &inner : body->without_terminator())
    if (!isa<linalg::IndexOp>(inner) && !isElementwise(inner))
      return inner.emitOpError(
          "expected an elementwise operation on numbers in "
          "the body of a tile operation");
  if (!reduces && !body->getArguments().back().use_empty())
    return op->emitOpError("expected a body that does not read what it "
                           "overwrites");
  // Tiles of pairs are rounded as they are stored, and read by products only.
  if (reduces && hasPairs(op.getDpsInputs()[0]))
    return op->emitOpError("expected no reduction of a tile of pairs");
  if (!reduces && hasPairs(op->getResult(0)) &&
      !isStatistic(op->getResult(0))) {
    auto round = dyn_cast<arith::TruncFOp>(body->front());
    if (!round || body->getOperations().size() != 2 ||
        op.getNumDpsInputs() != 1 || round.getIn() != body->getArgument(0) ||
        !round.getIn().getType().isF32() ||
        !hasDims(op.getIndexingMapsArray()[0], {0, 1}))
      return op->emitOpError("expected a factor of pairs to be rounded from a "
                             "wider tile");
    int64_t rows = tileType(op->getResult(0)).getDimSize(0);
    if (!ShapedType::isDynamic(rows) && rows % 2 != 0)
      return op->emitOpError("expected an even number of rows of pairs, got ")
             << rows;
  }
  if (!op->hasAttr(kBandAttrName))
    return success();
  // What makes zero of what is hidden reads scores that are.
  auto hidden = op.getNumDpsInputs() == 0
                    ? linalg::GenericOp()
                    : op.getInputs()[0].getDefiningOp<linalg::GenericOp>();
  if (reduces ||
      (!hidesByLimits(op) && !(hidden && hidden->hasAttr(kBandAttrName))))
    return op->emitOpError("expected ")
           << kBandAttrName
           << " on scores and two limits of i32, or on scores that have it";
  return success();
}

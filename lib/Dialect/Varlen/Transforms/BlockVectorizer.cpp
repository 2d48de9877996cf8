//===- BlockVectorizer.cpp - Tile operations that share a loop ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which operations become one loop, over which rows and columns, and where
// their tiles lie.
//
//===----------------------------------------------------------------------===//

#include "BlockVectorizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value BlockVectorizer::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value BlockVectorizer::offset(Value base, int64_t plus) {
  return plus == 0 ? base : arith::AddIOp::create(b, base, index(plus));
}

Value BlockVectorizer::constantVector(TypedAttr scalar) {
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(vectorType(scalar.getType()),
                                static_cast<Attribute>(scalar)));
}

Value BlockVectorizer::broadcast(Value scalar) {
  TypedAttr constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    return constantVector(constant);
  return vector::BroadcastOp::create(b, vectorType(scalar.getType()), scalar);
}

Value BlockVectorizer::column(int64_t vector, int64_t perColumn) {
  int64_t at = (chunkFirst + vector) * schedule.getLanes() * perColumn;
  if (!chunkColumn)
    return index(at);
  Value base = chunkColumn;
  if (perColumn != 1)
    base = arith::MulIOp::create(b, base, index(perColumn));
  return offset(base, at);
}

Value BlockVectorizer::load(Value memref, Value row, int64_t vector) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return vector::LoadOp::create(b, vectorType(element), memref,
                                ValueRange{row, column(vector)});
}

void BlockVectorizer::store(Value value, Value memref, Value row,
                            int64_t vector) {
  vector::StoreOp::create(b, value, memref, ValueRange{row, column(vector)});
}

Value BlockVectorizer::find(Value tile, TileOrder order) const {
  auto found = buffers.find(tile);
  if (found != buffers.end())
    for (const TileCopy &copy : found->second)
      if (copy.order == order)
        return copy.memref;
  return Value();
}

std::array<TileOrder, 2>
BlockVectorizer::getFactorOrders(linalg::ContractOp op) const {
  bool pairs = hasPairs(op.getInputs()[1]);
  TileOrder rows = pairs ? TileOrder::RowPairs : TileOrder::Rows;
  // Loops are (row, column, reduction).
  AffineMap left = op.getIndexingMapsArray()[0];
  return {left.getDimPosition(0) == 0 ? TileOrder::Rows : rows, rows};
}

OpFoldResult BlockVectorizer::rowsOf(Value tile) {
  int64_t rows = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  if (!ShapedType::isDynamic(rows))
    return b.getIndexAttr(rows);
  if (auto op = tile.getDefiningOp<linalg::LinalgOp>())
    return rowsOf(op.getDpsInits()[0]);
  if (auto source = tile.getDefiningOp<ToTileOp>()) {
    ReifiedRankedShapedTypeDims shapes;
    (void)source.reifyResultShapes(b, shapes);
    return shapes[0][0];
  }
  if (auto source = tile.getDefiningOp<bufferization::ToTensorOp>())
    return OpFoldResult(
        memref::DimOp::create(b, source.getBuffer(), index(0)).getResult());
  return OpFoldResult(
      tile.getDefiningOp<tensor::EmptyOp>().getDynamicSizes()[0]);
}

//===----------------------------------------------------------------------===//
// Grouping
//===----------------------------------------------------------------------===//

bool BlockVectorizer::isPending(Value tile) const {
  Operation *op = tile.getDefiningOp();
  return op && llvm::is_contained(group, op);
}

bool BlockVectorizer::canJoin(linalg::LinalgOp op) {
  if (group.empty())
    return true;
  // Rows of the iteration: those of the first tile operand, or of the result.
  Value tile = isReduction(op) ? op.getDpsInputs()[0] : op->getResult(0);
  if (rowsOf(tile) != groupRows ||
      numVectors(op->getResult(0)) != numVectors(group[0]->getResult(0)) ||
      isNeededInBand(op) != isGroupBanded)
    return false;
  if (isa<linalg::ContractOp>(op) &&
      (llvm::any_of(op.getDpsInputs(),
                    [&](Value input) { return isPending(input); }) ||
       llvm::any_of(group, llvm::IsaPred<linalg::ContractOp>)))
    return false;
  // What a reduction begins with is there before the loop, what it ends with
  // only after it.
  if (isReduction(op) && isPending(op.getDpsInits()[0]))
    return false;
  return llvm::none_of(op->getOperands(), [&](Value operand) {
    auto producer = operand.getDefiningOp<linalg::LinalgOp>();
    return producer && isPending(operand) && isReduction(producer);
  });
}

LogicalResult BlockVectorizer::run() {
  band = findBand();
  SmallVector<Operation *> done;
  for (Operation &operation : llvm::make_early_inc_range(block)) {
    b.setInsertionPoint(&operation);
    b.setLoc(operation.getLoc());
    if (isa<bufferization::ToTensorOp, ToTileOp>(operation)) {
      if (failed(checkRead(&operation)))
        return failure();
      done.push_back(&operation);
    } else if (isa<tensor::EmptyOp>(operation)) {
      done.push_back(&operation);
    } else if (auto op = dyn_cast<linalg::LinalgOp>(operation)) {
      if (failed(check(op)))
        return failure();
      done.push_back(op);
      if (auto fill = dyn_cast<linalg::FillOp>(operation)) {
        fills[fill.getResult(0)] = fill.getInputs()[0];
        continue;
      }
      bool statistic = isStatistic(op->getResult(0)) && !isReduction(op) &&
                       !isa<linalg::ContractOp>(op);
      if (statistic) {
        if (llvm::any_of(op->getOperands(),
                         [&](Value operand) { return isPending(operand); }) &&
            failed(flush()))
          return failure();
        b.setInsertionPoint(op);
        emitStatistic(cast<linalg::GenericOp>(operation));
        continue;
      }
      if (!canJoin(op)) {
        if (failed(flush()))
          return failure();
        b.setInsertionPoint(op);
      }
      if (group.empty()) {
        groupRows =
            rowsOf(isReduction(op) ? op.getDpsInputs()[0] : op->getResult(0));
        isGroupBanded = isNeededInBand(op);
      }
      group.push_back(op);
    } else if (auto op = dyn_cast<bufferization::MaterializeInDestinationOp>(
                   operation)) {
      if (failed(check(op)) || failed(flush()))
        return failure();
      b.setInsertionPoint(op);
      if (auto vectors = statistics.find(op.getSource());
          vectors != statistics.end())
        for (auto [n, value] : llvm::enumerate(vectors->second))
          store(value, op.getDest(), index(0), n);
      done.push_back(op);
    }
  }
  for (Operation *op : llvm::reverse(done)) {
    if (!op->use_empty())
      return op->emitOpError("expected a tile to be used by tile operations "
                             "of the same block only");
    op->erase();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The orders in which those who read `tile` from memory want it.
SmallVector<TileOrder> BlockVectorizer::neededOrders(Value tile) {
  SmallVector<TileOrder> orders;
  auto add = [&](TileOrder order) {
    if (!llvm::is_contained(orders, order))
      orders.push_back(order);
  };
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    // The group has its values at hand.
    if (llvm::is_contained(group, user))
      continue;
    auto contract = dyn_cast<linalg::ContractOp>(user);
    add(contract && use.getOperandNumber() < 2
            ? getFactorOrders(contract)[use.getOperandNumber()]
            : TileOrder::Rows);
  }
  return orders;
}

/// Decides where the tiles of the group that outlive it lie.
void BlockVectorizer::assignBuffers() {
  stored.clear();
  DenseSet<Value> overwritten;
  // A scratch tile read by the group for the last time can be overwritten: the
  // loop reads a row before it writes it. A product reads other rows too.
  auto findLastRead = [&](RankedTensorType type) -> Value {
    for (linalg::LinalgOp op : group) {
      if (isa<linalg::ContractOp>(op.getOperation()))
        continue;
      for (Value input : op.getDpsInputs()) {
        Value buffer = find(input, TileOrder::Rows);
        bool last = llvm::all_of(input.getUsers(), [&](Operation *user) {
          return user->isBeforeInBlock(group.back()) ||
                 user == group.back().getOperation();
        });
        if (buffer && fromScratch.contains(buffer) && last &&
            input.getType() == type && overwritten.insert(buffer).second)
          return buffer;
      }
    }
    return Value();
  };
  for (linalg::LinalgOp op : group) {
    if (isReduction(op))
      continue;
    Value tile = op->getResult(0), destination;
    for (Operation *user : tile.getUsers())
      if (auto write =
              dyn_cast<bufferization::MaterializeInDestinationOp>(user))
        destination = write.getDest();
    SmallVector<TileOrder> orders = neededOrders(tile);
    if (orders.empty())
      continue;
    stored.push_back(tile);
    auto type = cast<RankedTensorType>(tile.getType());
    for (TileOrder order : orders) {
      Value memref;
      if (order == TileOrder::Rows)
        memref = destination ? destination : findLastRead(type);
      if (!memref) {
        memref = scratch.get(type, order, taken);
        fromScratch.insert(memref);
      }
      buffers[tile].push_back({order, memref});
    }
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

BlockVectorizer::Vectors BlockVectorizer::emitLoop(int64_t rows,
                                                   const Range &range,
                                                   const Vectors &carried) {
  return Vectors(varlen::emitLoop(b, range.begin, range.end, index(rows),
                                  carried,
                                  [&](Value row, ValueRange accumulators) {
                                    return emitRows(row, rows, accumulators);
                                  }));
}

BlockVectorizer::Vectors BlockVectorizer::emitLoop(int64_t rows,
                                                   Vectors carried) {
  if (isCutByRows())
    return emitAroundSeen(rows, {index(0), getGroupRows()}, carried);
  std::optional<int64_t> total = getConstantIntValue(groupRows);
  int64_t whole = total ? *total / rows * rows : -1;
  if (whole != 0)
    carried = emitLoop(
        rows, Range{index(0), total ? index(whole) : getGroupRows()}, carried);
  if (total && whole != *total)
    carried = emitRows(index(whole), *total - whole, carried);
  return carried;
}

int64_t BlockVectorizer::getRowsAtOnce(int64_t width) {
  // The schedule's for a full panel; a narrower one takes more rows, of no more
  // accumulators in all, to keep the multipliers busy.
  int64_t rows = 2;
  if (llvm::any_of(group, llvm::IsaPred<linalg::ContractOp>))
    for (rows = schedule.getRows();
         rows < 8 &&
         2 * rows * width <= schedule.getRows() * schedule.getVectors();)
      rows *= 2;
  // A pair is of two rows.
  if (llvm::any_of(group, [&](linalg::LinalgOp op) {
        return hasPairs(op->getResult(0));
      }))
    rows = std::max<int64_t>(rows, 2);
  return rows;
}

void BlockVectorizer::emitPart(int64_t first, int64_t count, Vectors &carried,
                               function_ref<Vectors(Vectors)> emit) {
  int64_t total = numVectors(group[0]->getResult(0));
  chunkFirst = first;
  chunkVectors = count;
  Vectors part;
  for (size_t begin = first; begin < carried.size(); begin += total)
    llvm::append_range(part, ArrayRef(carried).slice(begin, count));
  part = emit(part);
  for (size_t number = 0; number * count < part.size(); ++number)
    llvm::copy(ArrayRef(part).slice(number * count, count),
               carried.begin() + number * total + first);
}

BlockVectorizer::Vectors
BlockVectorizer::emitChunks(int64_t width, Vectors carried,
                            std::optional<Range> range) {
  // Of about the same width.
  int64_t total = numVectors(group[0]->getResult(0));
  int64_t chunks = llvm::divideCeil(total, width);
  width = llvm::divideCeil(total, chunks);
  int64_t rows = getRowsAtOnce(width);
  auto emit = [&](const Vectors &part) {
    return range ? emitLoop(rows, *range, part) : emitLoop(rows, part);
  };
  bool hasContract = llvm::any_of(group, llvm::IsaPred<linalg::ContractOp>);
  if (chunks > 1 && total % width == 0 && group.size() == 1 && hasContract) {
    // A product alone: one micro-kernel for all chunks.
    chunkFirst = 0;
    chunkVectors = width;
    varlen::emitLoop(b, index(0), index(total * schedule.getLanes()),
                     width * schedule.getLanes(), [&](Value at) {
                       chunkColumn = at;
                       emit({});
                       chunkColumn = nullptr;
                     });
    return carried;
  }
  for (int64_t first = 0; first < total; first += width)
    emitPart(first, std::min(width, total - first), carried, emit);
  return carried;
}

LogicalResult BlockVectorizer::flush() {
  if (group.empty())
    return success();
  assignBuffers();

  // Everything that is the same for all rows is computed before the loop.
  Vectors carried;
  for (linalg::LinalgOp op : group) {
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && !isPending(operand) &&
          isStatistic(operand) &&
          (fills.contains(operand) || buffers.contains(operand)))
        statistic(operand);
    if (isReduction(op))
      llvm::append_range(carried, statistic(op.getDpsInits()[0]));
  }

  carried = isGroupBanded ? emitBand(carried)
                          : emitChunks(schedule.getVectors(), carried);
  chunkFirst = chunkVectors = 0;

  ArrayRef<Value> left = carried;
  for (linalg::LinalgOp op : group)
    if (isReduction(op)) {
      int64_t vectors = numVectors(op->getResult(0));
      statistics[op->getResult(0)] = Vectors(left.take_front(vectors));
      left = left.drop_front(vectors);
    }
  group.clear();
  return success();
}

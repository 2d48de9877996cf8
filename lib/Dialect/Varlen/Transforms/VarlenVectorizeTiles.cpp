//===- VarlenVectorizeTiles.cpp - Tiles to register-blocked loops ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CPU's counterpart of distributing a tile over the threads of a GPU. The
// lanes of a vector are the columns of a tile; loops run over its rows. Tile
// operations over the same rows are fused into one loop, so a row is loaded,
// computed with and stored once; a contraction keeps rows x vectors
// accumulators in registers; a reduction over rows is a loop-carried vector. A
// tile with more columns than registers hold is done in chunks of columns.
//
//===----------------------------------------------------------------------===//

#include "CPUTileOrder.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENVECTORIZETILES
#include "varlen/Dialect/Varlen/Transforms/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Scratch tiles of one piece of work. Blocks of tile operations never overlap
/// in time and keep nothing in scratch, so they share it.
class ScratchPool {
public:
  ScratchPool(Block *body, CPUScheduleAttr schedule)
      : body(body), schedule(schedule) {}

  /// Memory for a tile of at least rows x (panel size) in the given order; rows
  /// are at most kv_block where they are dynamic. `inUse` counts the tiles of
  /// each kind that are in use.
  Value get(int64_t rows, Type element, TileOrder order,
            DenseMap<Type, unsigned> &inUse) {
    if (ShapedType::isDynamic(rows))
      rows = schedule.getKvBlock();
    auto type = MemRefType::get(
        getTileMemoryShape(order, rows, schedule.getPanelSize()), element);
    SmallVector<Value> &tiles = pool[type];
    unsigned taken = inUse[type]++;
    if (taken == tiles.size()) {
      auto builder = OpBuilder::atBlockBegin(body);
      tiles.push_back(
          memref::AllocOp::create(builder, body->getParentOp()->getLoc(), type,
                                  /*alignment=*/builder.getI64IntegerAttr(64)));
    }
    return tiles[taken];
  }

private:
  Block *body;
  CPUScheduleAttr schedule;
  llvm::MapVector<MemRefType, SmallVector<Value>> pool;
};

/// Vectorizes the tile operations of one block, in their order.
class BlockVectorizer {
public:
  BlockVectorizer(Block &block, CPUScheduleAttr schedule, bool emulateDot,
                  ScratchPool &scratch)
      : block(block), schedule(schedule), emulateDot(emulateDot),
        scratch(scratch),
        b(block.getParentOp()->getLoc(), block.getParentOp()->getContext()) {}

  LogicalResult run();

private:
  using Vectors = SmallVector<Value>;

  /// Whether a tile holds one value per column: a statistic.
  static bool isStatistic(Value tile) {
    return cast<RankedTensorType>(tile.getType()).getDimSize(0) == 1;
  }
  static bool isReduction(linalg::LinalgOp op) {
    return op.getNumReductionLoops() != 0 && !isa<linalg::ContractOp>(op);
  }
  int64_t numVectors(Value tile) const {
    return cast<RankedTensorType>(tile.getType()).getDimSize(1) /
           schedule.getLanes();
  }
  VectorType vectorType(Type element) const {
    return VectorType::get({schedule.getLanes()}, element);
  }

  LogicalResult check(linalg::LinalgOp op);
  OpFoldResult rowsOf(Value tile);
  Value index(int64_t value);
  Value offset(Value base, int64_t plus);
  Value constantVector(TypedAttr scalar);
  Value broadcast(Value scalar);
  /// The place of a vector of the chunk in a row of (perColumn * columns)
  /// elements.
  Value column(int64_t vector, int64_t perColumn = 1);
  Value load(Value memref, Value row, int64_t vector);
  void store(Value value, Value memref, Value row, int64_t vector);
  /// `tile` in memory in this order; null if it is not there.
  Value find(Value tile, TileOrder order) const;

  /// The vectors of a statistic that is not pending in the open group.
  Vectors statistic(Value tile);
  bool isPending(Value tile) const;
  bool canJoin(linalg::LinalgOp op);
  void emitStatistic(linalg::GenericOp op);
  LogicalResult flush();
  SmallVector<TileOrder> neededOrders(Value tile);
  void assignBuffers();
  Vectors emitRows(Value row, int64_t rows, ValueRange accumulators);
  void emitStore(Value tile, const TileCopy &copy, Value row, int64_t rows);
  Vectors operandRows(Value tile, Value row, int64_t rows);
  Vectors emitContract(linalg::ContractOp op, Value row, int64_t rows);
  /// One vector that the body of an operation is emitted for.
  struct Place {
    Vectors arguments;
    Value row;
    int64_t vector;
  };
  Vectors emitBody(linalg::LinalgOp op, ArrayRef<Place> places);
  void emitOperation(Operation &inner, const Place &place, IRMapping &mapping);
  Value asVector(Value value) {
    return isa<VectorType>(value.getType()) ? value : broadcast(value);
  }
  /// A condition that is the same for all rows and decides a select of the
  /// group: the group's loop is made once for either outcome.
  Value getUnswitchCondition();
  /// The loop over the group's rows; returns what its reductions end with.
  Vectors emitLoop(int64_t rows, Vectors carried);
  /// The same, for one chunk of columns: once for either outcome of a condition
  /// that is the same for all rows.
  Vectors emitChunk(int64_t rows, Vectors carried);

  /// Whether a product with `tile` as its right factor is one of pairs.
  bool hasPairs(Value tile) const {
    return schedule.getKv() == KVStorage::Pairs &&
           cast<RankedTensorType>(tile.getType()).getElementType().isBF16();
  }
  /// How a product reads its factors: the left one by scalars (or pairs of
  /// them), the right one by vectors of columns.
  std::array<TileOrder, 2> getFactorOrders(linalg::ContractOp op) const;
  /// acc[c] += a[2c] * b[2c] + a[2c + 1] * b[2c + 1].
  Value dot(Value acc, Value lhs, Value rhs);
  /// Two rows rounded to bf16, in pairs.
  Value packPairs(Value even, Value odd);

  Block &block;
  CPUScheduleAttr schedule;
  bool emulateDot;
  ScratchPool &scratch;
  ImplicitLocOpBuilder b;

  /// Where a tile lies in memory: tiles loaded from there, and stored ones.
  DenseMap<Value, SmallVector<TileCopy, 2>> buffers;
  /// Tiles that are a constant all over.
  DenseMap<Value, Value> fills;
  /// Statistics in registers.
  DenseMap<Value, Vectors> statistics;
  /// Buffers that came from the pool, and how many of each type.
  DenseSet<Value> fromScratch;
  DenseMap<Type, unsigned> taken;

  /// Operations over the same rows, to become one loop.
  SmallVector<linalg::LinalgOp> group;
  OpFoldResult groupRows;
  /// Tiles of the group that must be in memory after its loop.
  SmallVector<Value> stored;
  /// The chunk of columns being emitted: `chunkVectors` vectors from vector
  /// `chunkFirst` on, and `chunkColumn` columns later where it is not null.
  int64_t chunkFirst = 0, chunkVectors = 0;
  Value chunkColumn;
  /// Rows at hand in the loop body being emitted.
  DenseMap<Value, Vectors> rowValues;
  /// The outcome of the condition in the loop being emitted.
  Value knownCondition;
  bool knownOutcome = false;
};

} // namespace

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
  TileOrder columns = pairs ? TileOrder::ColumnPairs : TileOrder::Columns;
  // Loops are (row, column, reduction).
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return {maps[0].getDimPosition(0) == 0 ? TileOrder::Rows : rows,
          maps[1].getDimPosition(0) == 2 ? rows : columns};
}

OpFoldResult BlockVectorizer::rowsOf(Value tile) {
  int64_t rows = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  if (!ShapedType::isDynamic(rows))
    return b.getIndexAttr(rows);
  if (auto op = tile.getDefiningOp<linalg::LinalgOp>())
    return rowsOf(op.getDpsInits()[0]);
  if (auto source = tile.getDefiningOp<bufferization::ToTensorOp>()) {
    // Memory in rows; tiles of which only other copies exist have static rows,
    // or are the right factor of a product whose other operands know them.
    Value buffer = find(tile, TileOrder::Rows);
    return OpFoldResult(
        memref::DimOp::create(b, buffer ? buffer : source.getBuffer(), index(0))
            .getResult());
  }
  return OpFoldResult(
      tile.getDefiningOp<tensor::EmptyOp>().getDynamicSizes()[0]);
}

//===----------------------------------------------------------------------===//
// Grouping
//===----------------------------------------------------------------------===//

LogicalResult BlockVectorizer::check(linalg::LinalgOp op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (op->getNumResults() != 1 || !type || type.getRank() != 2 ||
      type.isDynamicDim(1) || type.getDimSize(1) % schedule.getLanes() != 0)
    return op->emitOpError("expected one rank-2 tile with a multiple of ")
           << schedule.getLanes() << " columns as the result";
  if (isa<linalg::FillOp>(op))
    return success();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto dims = [](AffineMap map) {
    SmallVector<int64_t> result;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      result.push_back(dim ? static_cast<int64_t>(dim.getPosition()) : -1);
    }
    return result;
  };
  using Dims = SmallVector<int64_t>;
  if (isa<linalg::ContractOp>(op)) {
    Dims lhs = dims(maps[0]), rhs = dims(maps[1]);
    if (dims(maps[2]) != Dims{0, 1} ||
        (rhs != Dims{2, 1} && rhs != Dims{1, 2}) ||
        (lhs != Dims{0, 2} && lhs != Dims{2, 0}))
      return op->emitOpError("expected a contraction of the form (r, c) += "
                             "(r, k) or (k, r), (k, c) or (c, k)");
    auto contract = cast<linalg::ContractOp>(op.getOperation());
    for (auto [factor, order] :
         llvm::zip(contract.getInputs(), getFactorOrders(contract))) {
      bool inMemory = buffers.contains(factor);
      bool transposed =
          order == TileOrder::Columns || order == TileOrder::ColumnPairs;
      if (inMemory ? !find(factor, order) : transposed)
        return op->emitOpError("expected ")
               << factor.getType() << " to lie in memory in "
               << (transposed ? "columns" : "rows")
               << (hasPairs(contract.getInputs()[1]) ? " of pairs" : "")
               << " for this product";
    }
    return success();
  }
  if (hasPairs(op->getResult(0)) &&
      !isa<arith::TruncFOp>(op.getBlock()->front()))
    return op->emitOpError("expected a factor of pairs to be rounded from a "
                           "wider tile");
  if (!isa<linalg::GenericOp>(op))
    return op->emitOpError("expected linalg.fill, linalg.contract or "
                           "linalg.generic on tiles");
  for (AffineMap map : maps)
    if (dims(map) != Dims{0, 1} && dims(map) != Dims{-1, 1})
      return op->emitOpError("expected every operand to be a tile or one "
                             "value per column");
  return success();
}

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
      numVectors(op->getResult(0)) != numVectors(group[0]->getResult(0)))
    return false;
  if (isa<linalg::ContractOp>(op) &&
      (llvm::any_of(op.getDpsInputs(),
                    [&](Value input) { return isPending(input); }) ||
       llvm::any_of(group, llvm::IsaPred<linalg::ContractOp>)))
    return false;
  // The result of a reduction is there only after the loop.
  return llvm::none_of(op->getOperands(), [&](Value operand) {
    auto producer = operand.getDefiningOp<linalg::LinalgOp>();
    return producer && isPending(operand) && isReduction(producer);
  });
}

LogicalResult BlockVectorizer::run() {
  SmallVector<Operation *> done;
  for (Operation &operation : llvm::make_early_inc_range(block)) {
    b.setInsertionPoint(&operation);
    b.setLoc(operation.getLoc());
    if (auto op = dyn_cast<bufferization::ToTensorOp>(operation)) {
      SmallVector<TileCopy> copies = getTileCopies(op.getBuffer());
      if (copies.empty())
        return op.emitOpError("expected memory in an order of tiles, got ")
               << op.getBuffer().getType();
      llvm::append_range(buffers[op.getResult()], copies);
      done.push_back(op);
    } else if (auto op = dyn_cast<UnrealizedConversionCastOp>(operation)) {
      done.push_back(op);
    } else if (isa<tensor::EmptyOp>(operation)) {
      done.push_back(&operation);
    } else if (auto op = dyn_cast<tensor::DimOp>(operation)) {
      // A computed tile may lie in scratch that has more rows.
      auto source = op.getSource().getDefiningOp<bufferization::ToTensorOp>();
      // Columns are static: this asks for rows.
      op.replaceAllUsesWith(
          source && find(source, TileOrder::Rows)
              ? memref::DimOp::create(b, find(source, TileOrder::Rows),
                                      op.getIndex())
                    .getResult()
              : getValueOrCreateConstantIndexOp(b, op.getLoc(),
                                                rowsOf(op.getSource())));
      done.push_back(op);
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
      if (group.empty())
        groupRows =
            rowsOf(isReduction(op) ? op.getDpsInputs()[0] : op->getResult(0));
      group.push_back(op);
    } else if (auto op = dyn_cast<bufferization::MaterializeInDestinationOp>(
                   operation)) {
      if (failed(flush()))
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
// Emission
//===----------------------------------------------------------------------===//

BlockVectorizer::Vectors BlockVectorizer::statistic(Value tile) {
  auto [entry, isNew] = statistics.try_emplace(tile);
  if (!isNew)
    return entry->second;
  Vectors vectors;
  for (int64_t n = 0, e = numVectors(tile); n < e; ++n) {
    if (Value scalar = fills.lookup(tile))
      vectors.push_back(broadcast(scalar));
    else
      vectors.push_back(load(find(tile, TileOrder::Rows), index(0), n));
  }
  return statistics[tile] = vectors;
}

/// Clones the scalar body of `op` on vectors; what depends on scalars only
/// (the row, captured values) stays scalar until it meets a vector. Each
/// operation is emitted for all places before the next one: a processor waits
/// less for operations that do not depend on each other.
BlockVectorizer::Vectors BlockVectorizer::emitBody(linalg::LinalgOp op,
                                                   ArrayRef<Place> places) {
  Block *body = op.getBlock();
  SmallVector<IRMapping> mappings(places.size());
  for (auto [place, mapping] : llvm::zip(places, mappings))
    for (auto [argument, value] :
         llvm::zip(body->getArguments(), place.arguments))
      if (value)
        mapping.map(argument, value);
  for (Operation &inner : body->without_terminator())
    for (auto [place, mapping] : llvm::zip(places, mappings))
      emitOperation(inner, place, mapping);
  Vectors results;
  for (IRMapping &mapping : mappings)
    results.push_back(asVector(
        mapping.lookupOrDefault(body->getTerminator()->getOperand(0))));
  return results;
}

void BlockVectorizer::emitOperation(Operation &inner, const Place &place,
                                    IRMapping &mapping) {
  if (auto op = dyn_cast<linalg::IndexOp>(inner)) {
    Value position = place.row;
    if (op.getDim() == 1) {
      SmallVector<int64_t> lanes;
      for (int64_t lane = 0; lane < schedule.getLanes(); ++lane)
        lanes.push_back(place.vector * schedule.getLanes() + lane);
      position = arith::ConstantOp::create(b, b.getIndexVectorAttr(lanes));
    }
    return mapping.map(op.getResult(), position);
  }
  SmallVector<Value> operands;
  for (Value operand : inner.getOperands())
    operands.push_back(mapping.lookupOrDefault(operand));
  if (auto select = dyn_cast<arith::SelectOp>(inner);
      select && knownCondition && select.getCondition() == knownCondition)
    return mapping.map(select.getResult(), operands[knownOutcome ? 1 : 2]);
  if (llvm::none_of(operands, [](Value operand) {
        return isa<VectorType>(operand.getType());
      })) {
    b.clone(inner, mapping);
    return;
  }
  for (Value &operand : operands)
    operand = asVector(operand);
  if (isa<arith::MaxNumFOp>(inner)) {
    // One instruction on x86, where maxnumf takes three. Only the second
    // operand's NaN survives: a running maximum ignores NaN scores, which
    // the exponential then carries into the result.
    Value greater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                          operands[0], operands[1]);
    return mapping.map(
        inner.getResult(0),
        arith::SelectOp::create(b, greater, operands[0], operands[1])
            .getResult());
  }
  SmallVector<Type> types;
  for (Type type : inner.getResultTypes())
    types.push_back(vectorType(type));
  Operation *clone = b.create(inner.getLoc(), inner.getName().getIdentifier(),
                              operands, types, inner.getAttrs());
  mapping.map(inner.getResults(), clone->getResults());
}

void BlockVectorizer::emitStatistic(linalg::GenericOp op) {
  SmallVector<Place> places;
  for (int64_t n = 0, e = numVectors(op->getResult(0)); n < e; ++n) {
    Vectors arguments;
    for (Value input : op.getDpsInputs())
      arguments.push_back(statistic(input)[n]);
    places.push_back({arguments, index(0), n});
  }
  Vectors results = emitBody(op, places);
  statistics[op->getResult(0)] = results;
}

/// The orders in which those who read `tile` from memory want it.
SmallVector<TileOrder> BlockVectorizer::neededOrders(Value tile) {
  SmallVector<TileOrder> orders;
  auto add = [&](TileOrder order) {
    if (!llvm::is_contained(orders, order))
      orders.push_back(order);
  };
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    // A size asks for no element; the group has its values at hand.
    if (isa<tensor::DimOp>(user) || llvm::is_contained(group, user))
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
        memref = scratch.get(type.getDimSize(0), type.getElementType(), order,
                             taken);
        fromScratch.insert(memref);
      }
      buffers[tile].push_back({order, memref});
    }
  }
}

/// rows x vectors vectors of `tile`, from row `row` on.
BlockVectorizer::Vectors BlockVectorizer::operandRows(Value tile, Value row,
                                                      int64_t rows) {
  auto [entry, isNew] = rowValues.try_emplace(tile);
  if (!isNew)
    return entry->second;
  Vectors values;
  Value scalar = fills.lookup(tile);
  Vectors perColumn;
  if (isStatistic(tile))
    perColumn = statistic(tile);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t n = 0; n < chunkVectors; ++n)
      values.push_back(scalar               ? broadcast(scalar)
                       : !perColumn.empty() ? perColumn[chunkFirst + n]
                                            : load(find(tile, TileOrder::Rows),
                                                   offset(row, i), n));
  return rowValues[tile] = values;
}

BlockVectorizer::Vectors
BlockVectorizer::emitContract(linalg::ContractOp op, Value row, int64_t rows) {
  std::array<TileOrder, 2> orders = getFactorOrders(op);
  Value lhs = find(op.getInputs()[0], orders[0]);
  Value rhs = find(op.getInputs()[1], orders[1]);
  Value result = op->getResult(0);
  Type compute = cast<RankedTensorType>(result.getType()).getElementType();
  AffineMap lhsMap = op.getIndexingMapsArray()[0];
  bool rowFirst = lhsMap.getDimPosition(0) == 0;
  int64_t vectors = chunkVectors;

  Vectors init = operandRows(op.getDpsInits()[0], row, rows);
  SmallVector<Value> rowIndices;
  for (int64_t i = 0; i < rows; ++i)
    rowIndices.push_back(offset(row, i));

  auto widen = [&](Value value) -> Value {
    Type element = getElementTypeOrSelf(value.getType());
    if (element == compute)
      return value;
    Type wide =
        isa<VectorType>(value.getType()) ? vectorType(compute) : compute;
    return arith::ExtFOp::create(b, wide, value);
  };
  auto multiplyAdd = [&](Vectors &acc, Value k) {
    Vectors columns;
    for (int64_t n = 0; n < vectors; ++n)
      columns.push_back(widen(load(rhs, k, n)));
    for (int64_t i = 0; i < rows; ++i) {
      SmallVector<Value> at = {rowIndices[i], k};
      if (!rowFirst)
        std::swap(at[0], at[1]);
      Value factor = broadcast(widen(memref::LoadOp::create(b, lhs, at)));
      for (int64_t n = 0; n < vectors; ++n)
        acc[i * vectors + n] =
            math::FmaOp::create(b, factor, columns[n], acc[i * vectors + n]);
    }
  };
  // Two k at once. The left factor's pairs are neighbours in a row, or in
  // pairs like the right one's.
  auto dotPairs = [&](Vectors &acc, Value pair) {
    auto twice = VectorType::get({2 * schedule.getLanes()}, b.getBF16Type());
    Vectors columns;
    for (int64_t n = 0; n < vectors; ++n)
      columns.push_back(vector::LoadOp::create(b, twice, rhs,
                                               ValueRange{pair, column(n, 2)}));
    for (int64_t i = 0; i < rows; ++i) {
      auto doubled = [&](Value value) -> Value {
        return arith::MulIOp::create(b, value, index(2));
      };
      SmallVector<Value> at = {rowIndices[i], doubled(pair)};
      if (!rowFirst)
        at = {pair, doubled(rowIndices[i])};
      Value factor = vector::LoadOp::create(
          b, VectorType::get({2}, b.getBF16Type()), lhs, at);
      factor = vector::BitCastOp::create(
          b, VectorType::get({1}, b.getI32Type()), factor);
      factor = broadcast(vector::ExtractOp::create(b, factor, 0));
      factor = vector::BitCastOp::create(b, twice, factor);
      for (int64_t n = 0; n < vectors; ++n)
        acc[i * vectors + n] = dot(acc[i * vectors + n], factor, columns[n]);
    }
  };
  bool pairs = hasPairs(op.getInputs()[1]);
  auto step = [&](Vectors &acc, Value k) {
    if (pairs)
      dotPairs(acc, k);
    else
      multiplyAdd(acc, k);
  };

  // Dynamic extents are multiples of 8.
  unsigned depthAxis =
      op.getIndexingMapsArray()[1].getDimPosition(0) == 2 ? 0 : 1;
  int64_t depth =
      cast<RankedTensorType>(op.getInputs()[1].getType()).getDimSize(depthAxis);
  int64_t perStep = pairs ? 2 : 1;
  Value bound;
  if (ShapedType::isDynamic(depth)) {
    bound = getValueOrCreateConstantIndexOp(b, b.getLoc(),
                                            rowsOf(op.getInputs()[1]));
    if (pairs)
      bound = arith::DivUIOp::create(b, bound, index(2));
  } else {
    depth /= perStep;
    bound = index(depth);
  }
  int64_t unroll = !ShapedType::isDynamic(depth) && depth % 2 != 0 ? 1 : 2;
  auto loop = scf::ForOp::create(
      b, index(0), bound, index(unroll), init,
      [&](OpBuilder &, Location, Value k0, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(k0.getParentBlock());
        Vectors acc(carried);
        for (int64_t u = 0; u < unroll; ++u)
          step(acc, offset(k0, u));
        scf::YieldOp::create(b, acc);
      });
  return Vectors(loop.getResults());
}

Value BlockVectorizer::dot(Value acc, Value lhs, Value rhs) {
  if (!emulateDot)
    return x86vector::DotBF16Op::create(b, acc.getType(), acc, lhs, rhs);
  // Each half of a 32-bit lane is the upper half of an f32.
  Type words = vectorType(b.getI32Type());
  auto half = [&](Value value, bool odd) -> Value {
    value = vector::BitCastOp::create(b, words, value);
    if (odd)
      value = arith::AndIOp::create(
          b, value, constantVector(b.getI32IntegerAttr(-65536)));
    else
      value = arith::ShLIOp::create(b, value,
                                    constantVector(b.getI32IntegerAttr(16)));
    return arith::BitcastOp::create(b, acc.getType(), value);
  };
  for (bool odd : {false, true})
    acc = math::FmaOp::create(b, half(lhs, odd), half(rhs, odd), acc);
  return acc;
}

Value BlockVectorizer::packPairs(Value even, Value odd) {
  // Round half up, on cheap integer ports; interleaving two converted vectors
  // takes five shuffles.
  Type words = vectorType(b.getI32Type());
  auto rounded = [&](Value value) -> Value {
    value = arith::BitcastOp::create(b, words, value);
    return arith::AddIOp::create(b, value,
                                 constantVector(b.getI32IntegerAttr(32768)));
  };
  Value low = arith::ShRUIOp::create(b, rounded(even),
                                     constantVector(b.getI32IntegerAttr(16)));
  Value high = arith::AndIOp::create(
      b, rounded(odd), constantVector(b.getI32IntegerAttr(-65536)));
  return vector::BitCastOp::create(
      b, VectorType::get({2 * schedule.getLanes()}, b.getBF16Type()),
      arith::OrIOp::create(b, low, high));
}

/// Stores the rows at hand of a tile to one of its copies.
void BlockVectorizer::emitStore(Value tile, const TileCopy &copy, Value row,
                                int64_t rows) {
  const Vectors &values = rowValues[tile];
  Type element = cast<MemRefType>(copy.memref.getType()).getElementType();
  for (int64_t n = 0; n < chunkVectors; ++n) {
    auto value = [&](int64_t i) { return values[i * chunkVectors + n]; };
    if (copy.order == TileOrder::Rows) {
      for (int64_t i = 0; i < rows; ++i) {
        Value x = value(i);
        if (getElementTypeOrSelf(x.getType()) != element)
          x = arith::TruncFOp::create(b, vectorType(element), x);
        store(x, copy.memref, offset(row, i), n);
      }
      continue;
    }
    for (int64_t i = 0; i < rows; i += 2) {
      Value pair = arith::DivUIOp::create(b, offset(row, i), index(2));
      vector::StoreOp::create(b, packPairs(value(i), value(i + 1)), copy.memref,
                              ValueRange{pair, column(n, 2)});
    }
  }
}

/// Emits the group for `rows` rows from `row` on; returns the accumulators of
/// its reductions, vectors of one reduction after the other.
BlockVectorizer::Vectors BlockVectorizer::emitRows(Value row, int64_t rows,
                                                   ValueRange accumulators) {
  rowValues.clear();
  Vectors carried(accumulators);
  size_t reduction = 0;
  for (linalg::LinalgOp op : group) {
    if (auto contract = dyn_cast<linalg::ContractOp>(op.getOperation())) {
      Vectors values = emitContract(contract, row, rows);
      rowValues[op->getResult(0)] = values;
      continue;
    }
    Value like = isReduction(op) ? op.getDpsInputs()[0] : op->getResult(0);
    // Rounding to pairs takes two rows: it happens as a tile is stored.
    if (hasPairs(like)) {
      rowValues[like] = operandRows(op.getDpsInputs()[0], row, rows);
      continue;
    }
    int64_t vectors = chunkVectors;
    SmallVector<Vectors> inputs;
    for (Value input : op.getDpsInputs())
      inputs.push_back(operandRows(input, row, rows));
    Vectors results;
    for (int64_t i = 0; i < rows; ++i) {
      Value at = offset(row, i);
      SmallVector<Place> places;
      for (int64_t n = 0; n < vectors; ++n) {
        Place &place = places.emplace_back(Place{{}, at, chunkFirst + n});
        for (Vectors &input : inputs)
          place.arguments.push_back(input[i * vectors + n]);
        if (isReduction(op))
          place.arguments.push_back(carried[reduction + n]);
      }
      Vectors rowResults = emitBody(op, places);
      // The next row of a reduction goes on with the result of this one.
      if (isReduction(op))
        llvm::copy(rowResults, carried.begin() + reduction);
      else
        llvm::append_range(results, rowResults);
    }
    if (isReduction(op))
      reduction += vectors;
    else
      rowValues[op->getResult(0)] = results;
  }
  for (Value tile : stored)
    for (const TileCopy &copy : buffers[tile])
      emitStore(tile, copy, row, rows);
  return carried;
}

Value BlockVectorizer::getUnswitchCondition() {
  for (linalg::LinalgOp op : group)
    for (auto select : op.getBlock()->getOps<arith::SelectOp>())
      if (Value condition = select.getCondition();
          condition.getType().isInteger(1) &&
          condition.getParentBlock() != op.getBlock())
        return condition;
  return Value();
}

BlockVectorizer::Vectors BlockVectorizer::emitLoop(int64_t rows,
                                                   Vectors carried) {
  std::optional<int64_t> total = getConstantIntValue(groupRows);
  int64_t whole = total ? *total / rows * rows : -1;
  if (whole != 0) {
    Value bound =
        total ? index(whole)
              : getValueOrCreateConstantIndexOp(b, b.getLoc(), groupRows);
    auto loop = scf::ForOp::create(
        b, index(0), bound, index(rows), carried,
        [&](OpBuilder &, Location, Value row, ValueRange accumulators) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(row.getParentBlock());
          scf::YieldOp::create(b, emitRows(row, rows, accumulators));
        });
    carried = Vectors(loop.getResults());
  }
  if (total && whole != *total)
    carried = emitRows(index(whole), *total - whole, carried);
  return carried;
}

BlockVectorizer::Vectors BlockVectorizer::emitChunk(int64_t rows,
                                                    Vectors carried) {
  Value condition = getUnswitchCondition();
  if (!condition)
    return emitLoop(rows, carried);
  auto outcome = [&](bool value) {
    return [&, value](OpBuilder &nested, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(nested.saveInsertionPoint());
      knownCondition = condition;
      knownOutcome = value;
      scf::YieldOp::create(b, emitLoop(rows, carried));
      knownCondition = nullptr;
    };
  };
  auto branches =
      scf::IfOp::create(b, condition, outcome(true), outcome(false));
  return Vectors(branches.getResults());
}

LogicalResult BlockVectorizer::flush() {
  if (group.empty())
    return success();
  assignBuffers();

  // Everything that is the same for all rows is computed before the loop.
  SmallVector<Vectors> carried;
  bool hasContract = false;
  for (linalg::LinalgOp op : group) {
    hasContract |= isa<linalg::ContractOp>(op.getOperation());
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && !isPending(operand) &&
          isStatistic(operand) &&
          (fills.contains(operand) || buffers.contains(operand)))
        statistic(operand);
    if (isReduction(op))
      carried.push_back(statistic(op.getDpsInits()[0]));
  }

  // Chunks of columns of about the same width, none wider than a panel.
  int64_t total = numVectors(group[0]->getResult(0));
  int64_t chunks = llvm::divideCeil(total, schedule.getVectors());
  int64_t width = llvm::divideCeil(total, chunks);
  // Rows at once: the schedule's for a full panel; a narrower one takes more
  // rows to keep the multipliers busy.
  int64_t rows = 2;
  if (hasContract)
    for (rows = schedule.getRows(); rows < 8 && rows * width < 8;)
      rows *= 2;

  if (chunks > 1 && total % width == 0 && group.size() == 1 && hasContract) {
    // A product alone: one micro-kernel for all chunks.
    chunkFirst = 0;
    chunkVectors = width;
    scf::ForOp::create(b, index(0), index(total * schedule.getLanes()),
                       index(width * schedule.getLanes()), ValueRange(),
                       [&](OpBuilder &, Location, Value at, ValueRange) {
                         OpBuilder::InsertionGuard guard(b);
                         b.setInsertionPointToEnd(at.getParentBlock());
                         chunkColumn = at;
                         emitLoop(rows, {});
                         chunkColumn = nullptr;
                         scf::YieldOp::create(b);
                       });
  } else {
    for (chunkFirst = 0; chunkFirst < total; chunkFirst += width) {
      chunkVectors = std::min(width, total - chunkFirst);
      Vectors parts;
      for (const Vectors &reduction : carried)
        llvm::append_range(parts,
                           ArrayRef(reduction).slice(chunkFirst, chunkVectors));
      parts = emitChunk(rows, parts);
      for (auto [i, reduction] : llvm::enumerate(carried))
        llvm::copy(ArrayRef(parts).slice(i * chunkVectors, chunkVectors),
                   reduction.begin() + chunkFirst);
    }
  }
  chunkFirst = chunkVectors = 0;

  size_t next = 0;
  for (linalg::LinalgOp op : group)
    if (isReduction(op))
      statistics[op->getResult(0)] = carried[next++];
  group.clear();
  return success();
}

namespace {
struct VarlenVectorizeTiles
    : varlen::impl::VarlenVectorizeTilesBase<VarlenVectorizeTiles> {
  using VarlenVectorizeTilesBase::VarlenVectorizeTilesBase;
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](scf::ForallOp work) {
      auto schedule = work->getAttrOfType<CPUScheduleAttr>(kScheduleAttrName);
      if (!schedule)
        return WalkResult::advance();
      SetVector<Block *> blocks;
      work.walk([&](bufferization::MaterializeInDestinationOp op) {
        blocks.insert(op->getBlock());
      });
      ScratchPool scratch(work.getBody(), schedule);
      for (Block *block : blocks) {
        if (failed(
                BlockVectorizer(*block, schedule, emulateDot, scratch).run()))
          return WalkResult::interrupt();
        ++numBlocks;
      }
      work->removeAttr(kScheduleAttrName);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

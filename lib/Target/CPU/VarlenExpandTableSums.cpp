//===- VarlenExpandTableSums.cpp - Sums to rows of a table ----------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Columns are queries, each of which has a row of the table to itself: a vector
// of them adds to as many places, and the keys of a query come one after the
// other. In a table of keys the queries of a head share the row: a vector adds
// one sum for each of its heads.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/Utils/EnclosingSchedule.h"
#include "varlen/Dialect/Varlen/Utils/TableMemory.h"
#include "varlen/Support/ControlFlow.h"
#include "varlen/Support/Extents.h"
#include "varlen/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::varlen {
#define GEN_PASS_DEF_VARLENEXPANDTABLESUMS
#include "varlen/Target/CPU/Passes.h.inc"
} // namespace mlir::varlen

using namespace mlir;
using namespace mlir::varlen;

namespace {

/// Scratch tiles of one piece of work: one operation is done with them before
/// the next one begins, so all share those of a type.
using Scratch = DenseMap<std::pair<Block *, Type>, SmallVector<Value, 2>>;

/// Writes one operation that adds a tile to a table as loops.
class TableSums {
public:
  TableSums(Operation *op, CPUScheduleAttr schedule, Scratch &scratch)
      : op(op), schedule(schedule), scratch(scratch), b(op->getLoc(), op),
        at{b} {}

  /// The loop over keys that adds lane by lane to a row of its own.
  LogicalResult expand(ScatterAddOp add);
  /// The loops that add to a table of keys, one head of the lanes after the
  /// other.
  LogicalResult expand(AddKeysOp add);

private:
  LogicalResult prepare(ArrayRef<Value> tiles, Value table, Value rows);
  LogicalResult readRows(Value rows);
  FailureOr<Value> store(Value tile);
  Value constantVector(TypedAttr scalar) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(vectorType(scalar.getType()),
                                  static_cast<Attribute>(scalar)));
  }
  VectorType vectorType(Type element) const {
    return VectorType::get({schedule.getLanes()}, element);
  }
  /// A vector of a row, of the columns from `first` on.
  Value load(Value memory, Value row, int64_t vector, Value first = {}) {
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    Value column = at.constant(vector * schedule.getLanes());
    if (first)
      column = at.add(first, column);
    return vector::LoadOp::create(b, vectorType(element), memory,
                                  ValueRange{row, column});
  }

  Operation *op;
  CPUScheduleAttr schedule;
  Scratch &scratch;
  ImplicitLocOpBuilder b;
  IndexBuilder at;
  /// Where the tiles are that the operation reads, and the table as a list.
  SmallVector<Value, 2> stored;
  Value memory;
  /// Of vectors of what is added.
  VectorType type;
  Value zeros;
  /// The rows of the table, one for each column, and how many tiles of each
  /// type are in use.
  SmallVector<Value> tableRows;
  DenseMap<Type, unsigned> taken;
};

} // namespace

/// Whether vectors of a row can be read from `memory`.
static bool hasContiguousRows(Value memory) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  return type && type.getRank() == 2 && type.isLastDimUnitStride();
}

LogicalResult TableSums::readRows(Value rows) {
  auto type = cast<RankedTensorType>(rows.getType());
  Value zero = at.constant(0), first = zero;
  // A part of the queries has a slice of the rows of their panel.
  if (auto part = rows.getDefiningOp<tensor::ExtractSliceOp>();
      part && part.hasUnitStride() &&
      part.getSourceType().getRank() == type.getRank() &&
      isConstantIntValue(part.getMixedOffsets()[0], 0)) {
    rows = part.getSource();
    first = getValueOrCreateConstantIndexOp(b, b.getLoc(),
                                            part.getMixedOffsets()[1]);
  }
  auto source = rows.getDefiningOp<bufferization::ToTensorOp>();
  if (type.getDimSize(0) != 1 || type.isDynamicDim(1) ||
      type.getDimSize(1) % schedule.getLanes() != 0 || !source ||
      !hasContiguousRows(source.getBuffer()))
    return op->emitOpError("expected rows of a table in memory, one for each "
                           "column, a multiple of ")
           << schedule.getLanes() << ", got " << type;
  for (int64_t n = 0; n < type.getDimSize(1) / schedule.getLanes(); ++n)
    tableRows.push_back(load(source.getBuffer(), zero, n, first));
  return success();
}

/// The memory of a tile, where it is stored if it lies nowhere.
FailureOr<Value> TableSums::store(Value tile) {
  if (auto source = tile.getDefiningOp<bufferization::ToTensorOp>();
      source && hasContiguousRows(source.getBuffer()))
    return source.getBuffer();
  for (Operation *user : tile.getUsers())
    if (auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(user);
        write && write->getBlock() == op->getBlock() &&
        write->isBeforeInBlock(op) && hasContiguousRows(write.getDest()))
      return write.getDest();
  auto type = cast<RankedTensorType>(tile.getType());
  auto producer = tile.getDefiningOp<linalg::LinalgOp>();
  if (!producer || isa<linalg::FillOp>(producer) ||
      producer->getBlock() != op->getBlock() || type.isDynamicDim(1))
    return op->emitOpError("expected values and indices that are computed in "
                           "this block or lie in memory, got ")
           << type;
  // Rows are at most a kv block where they are dynamic, as those of all tiles.
  auto work = op->getParentOfType<scf::ForallOp>();
  int64_t rows =
      type.isDynamicDim(0) ? schedule.getKvBlock() : type.getDimSize(0);
  auto memoryType =
      MemRefType::get({rows, type.getDimSize(1)}, type.getElementType());
  SmallVector<Value, 2> &tiles = scratch[{work.getBody(), memoryType}];
  unsigned number = taken[memoryType]++;
  if (number == tiles.size()) {
    auto start = OpBuilder::atBlockBegin(work.getBody());
    tiles.push_back(
        memref::AllocOp::create(start, work.getLoc(), memoryType,
                                /*alignment=*/start.getI64IntegerAttr(64)));
  }
  Value memory = tiles[number];
  bufferization::MaterializeInDestinationOp::create(
      b, /*result=*/Type(), tile, memory, /*restrict=*/true, /*writable=*/true);
  return memory;
}

/// What both operations begin with.
LogicalResult TableSums::prepare(ArrayRef<Value> tiles, Value table,
                                 Value rows) {
  for (Value tile : tiles) {
    FailureOr<Value> place = store(tile);
    if (failed(place))
      return failure();
    stored.push_back(*place);
  }
  memory = emitFlatTable(at, table);
  type = vectorType(getElementTypeOrSelf(tiles.front().getType()));
  zeros = constantVector(b.getZeroAttr(type.getElementType()));
  return readRows(rows);
}

LogicalResult TableSums::expand(ScatterAddOp add) {
  if (failed(prepare({add.getValues(), add.getIndex()}, add.getMemory(),
                     add.getRows())))
    return failure();
  Value values = stored[0], indices = stored[1], zero = at.constant(0);
  Value none = constantVector(b.getI64IntegerAttr(kNoTableRow));
  SmallVector<Value> masks;
  for (Value row : tableRows)
    masks.push_back(at.notEqual(row, none));
  Value keys = emitExtent(b, add.getValues(), 0);
  emitLoop(b, zero, keys, 1, [&](Value key) {
    for (size_t n = 0; n < tableRows.size(); ++n) {
      Value offset = emitTableOffset(at, add.getMemory(), tableRows[n],
                                     load(indices, key, n));
      Value sum = vector::GatherOp::create(b, type, memory, zero, offset,
                                           masks[n], zeros);
      sum = arith::AddFOp::create(b, sum, load(values, key, n));
      vector::ScatterOp::create(b, /*result=*/Type(), memory, zero, offset,
                                masks[n], sum);
    }
  });
  return success();
}

LogicalResult TableSums::expand(AddKeysOp add) {
  if (failed(prepare(add.getValues(), add.getMemory(), add.getRows())))
    return failure();
  Value values = stored[0], zero = at.constant(0);
  Value none = arith::ConstantOp::create(b, b.getI64IntegerAttr(kNoTableRow));
  // Those that the memory has.
  Value keys =
      at.min(emitExtent(b, add.getValues(), 0),
             at.sub(at.dim(add.getMemory(), 1), at.cast(add.getFirstKey())));
  int64_t lanes = schedule.getLanes();
  Value lastLane = constantVector(b.getI64IntegerAttr(lanes));
  Value numbers =
      vector::StepOp::create(b, VectorType::get({lanes}, b.getIndexType()));
  numbers = arith::IndexCastOp::create(b, vectorType(b.getI64Type()), numbers);
  for (size_t n = 0; n < tableRows.size(); ++n) {
    Value own = tableRows[n];
    // The first lane of each head is there for all of them.
    emitLoop(b, zero, at.constant(lanes), 1, [&](Value lane) {
      Value row = vector::ExtractOp::create(b, own, OpFoldResult(lane));
      Value same = at.equal(
          own, vector::BroadcastOp::create(b, vectorType(row.getType()), row));
      Value first = vector::ReductionOp::create(
          b, vector::CombiningKind::MINSI,
          arith::SelectOp::create(b, same, numbers, lastLane));
      Value isFirst = at.equal(at.cast(first), lane);
      emitIf(b, at.both(isFirst, at.notEqual(row, none)), [&] {
        emitLoop(b, zero, keys, 1, [&](Value key) {
          Value x =
              arith::SelectOp::create(b, same, load(values, key, n), zeros);
          Value sum = vector::ReductionOp::create(
              b, vector::CombiningKind::ADD, x, arith::FastMathFlags::reassoc);
          Value entry = arith::AddIOp::create(
              b, add.getFirstKey(),
              arith::IndexCastOp::create(b, b.getI32Type(), key));
          Value place =
              at.cast(emitTableOffset(at, add.getMemory(), row, entry));
          Value before = memref::LoadOp::create(b, memory, place);
          memref::StoreOp::create(b, arith::AddFOp::create(b, before, sum),
                                  memory, place);
        });
      });
    });
  }
  return success();
}

namespace {
struct VarlenExpandTableSums
    : varlen::impl::VarlenExpandTableSumsBase<VarlenExpandTableSums> {
  void getDependentDialects(DialectRegistry &registry) const override {
    VarlenExpandTableSumsBase::getDependentDialects(registry);
    // Of indices that are frozen.
    registry.insert<LLVM::LLVMDialect>();
  }
  void runOnOperation() override {
    Scratch scratch;
    WalkResult result = getOperation()->walk([&](Operation *op) {
      if (!isa<ScatterAddOp, AddKeysOp>(op))
        return WalkResult::advance();
      CPUScheduleAttr schedule = getEnclosingSchedule(op);
      // On a GPU threads add their own elements.
      if (!schedule || !op->getParentOfType<scf::ForallOp>())
        return WalkResult::advance();
      TableSums sums(op, schedule, scratch);
      auto scatter = dyn_cast<ScatterAddOp>(op);
      if (failed(scatter ? sums.expand(scatter)
                         : sums.expand(cast<AddKeysOp>(op))))
        return WalkResult::interrupt();
      op->erase();
      ++numExpanded;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

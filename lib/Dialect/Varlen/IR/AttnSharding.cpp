//===- AttnSharding.cpp - Attention on several processes ------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Heads are divided without communication. Rows of q are divided in equal
// parts, with all rows of k and v on each process: its part of a sequence is a
// sequence of its own, as in a tile of rows, and gradients by what all
// processes have are summed over them.
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "varlen/Dialect/Varlen/IR/ShardingInterfaceImpl.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/Dialect/Shard/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::varlen;
using shard::GridAxis;
using shard::GridOp;
using shard::Sharding;
using shard::ShardingOption;

//===----------------------------------------------------------------------===//
// Which dimensions are divided
//===----------------------------------------------------------------------===//

namespace {
/// What the dimensions of an operand or a result are. Others than rows of q and
/// heads are whole on each process.
enum class Dim { Rows, Heads, Whole };
using Dims = SmallVector<Dim, 3>;

/// The dimensions of all operands and results of an operation.
struct OpDims {
  SmallVector<Dims> operands, results;
};
} // namespace

static const Dims ofQueries = {Dim::Rows, Dim::Heads, Dim::Whole};
static const Dims ofKeys = {Dim::Whole, Dim::Heads, Dim::Whole};
static const Dims ofPages = {Dim::Whole, Dim::Whole, Dim::Heads, Dim::Whole};
static const Dims ofNumbers = {Dim::Heads, Dim::Rows};
static const Dims ofSink = {Dim::Heads};

static Dims getCaptureDims(AttentionOpInterface op, unsigned number) {
  auto type = cast<RankedTensorType>(op.getCaptures()[number].getType());
  Dims dims(type.getRank(), Dim::Whole);
  dims[0] = Dim::Heads;
  if (varlen::detail::isOfQueries(op, number))
    dims[1] = Dim::Rows;
  return dims;
}

template <typename OpTy> static OpDims getCommonDims(OpTy op) {
  OpDims dims;
  // cu_seqlens, seqused and q_offset.
  dims.operands.assign(op->getNumOperands(), {Dim::Whole});
  auto set = [&](OpOperand &operand, const Dims &of) {
    dims.operands[operand.getOperandNumber()] = of;
  };
  set(op.getQMutable(), ofQueries);
  set(op.getKMutable(), ofKeys);
  set(op.getVMutable(), ofKeys);
  for (OpOperand &sink : op.getSinkMutable())
    set(sink, ofSink);
  for (auto [number, capture] :
       llvm::enumerate(MutableArrayRef<OpOperand>(op.getCapturesMutable())))
    set(capture, getCaptureDims(op, number));
  return dims;
}

static OpDims getDims(AttnOp op) {
  OpDims dims = getCommonDims(op);
  for (OpOperand &table : op.getBlockTableMutable()) {
    dims.operands[table.getOperandNumber()] = {Dim::Whole, Dim::Whole};
    for (OpOperand *rows : {&op.getKMutable(), &op.getVMutable()})
      dims.operands[rows->getOperandNumber()] = ofPages;
  }
  for (MutableOperandRange scales :
       {op.getKScaleMutable(), op.getVScaleMutable()})
    for (OpOperand &scale : scales) {
      Dims of(shaped(scale.get()).getRank(), Dim::Whole);
      of.back() = Dim::Heads;
      dims.operands[scale.getOperandNumber()] = of;
    }
  dims.results = {ofQueries, ofNumbers};
  return dims;
}

static OpDims getDims(AttnGradOp op) {
  OpDims dims = getCommonDims(op);
  dims.operands[op.getDoutMutable().getOperandNumber()] = ofQueries;
  dims.operands[op.getOutMutable().getOperandNumber()] = ofQueries;
  dims.operands[op.getLseMutable().getOperandNumber()] = ofNumbers;
  for (OpOperand &dlse : op.getDlseMutable())
    dims.operands[dlse.getOperandNumber()] = ofNumbers;
  dims.results = {ofQueries, ofKeys, ofKeys};
  if (op.getSink())
    dims.results.push_back(ofSink);
  for (int64_t number : op.getWrtCaptures())
    dims.results.push_back(getCaptureDims(op, number));
  return dims;
}

/// The axes of the grid that `which` is divided over, as the first of the
/// shardings says that says anything.
static SmallVector<GridAxis> findAxes(Dim which, ArrayRef<Dims> dims,
                                      ArrayRef<Sharding> shardings) {
  for (auto [of, sharding] : llvm::zip_equal(dims, shardings)) {
    if (!sharding)
      continue;
    for (auto [dim, axes] : llvm::zip(of, sharding.getSplitAxes()))
      if (dim == which && !axes.empty())
        return llvm::to_vector(axes.asArrayRef());
  }
  return {};
}

/// Whether `which` has equal parts on as many processes, as far as types say.
static bool divides(int64_t processes, Dim which, ArrayRef<Dims> dims,
                    TypeRange types) {
  for (auto [of, type] : llvm::zip_equal(dims, types))
    for (auto [dim, extent] :
         llvm::zip_equal(of, cast<RankedTensorType>(type).getShape()))
      if (dim == which && ShapedType::isStatic(extent) &&
          (ShapedType::isDynamic(processes) || extent % processes != 0))
        return false;
  return true;
}

//===----------------------------------------------------------------------===//
// ShardingInterface
//===----------------------------------------------------------------------===//

namespace {
template <typename OpTy>
struct AttentionSharding
    : shard::ShardingInterface::ExternalModel<AttentionSharding<OpTy>, OpTy> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    return SmallVector<utils::IteratorType>(getMaps(op).front().getNumDims(),
                                            utils::IteratorType::parallel);
  }
  SmallVector<shard::ReductionKind>
  getReductionLoopIteratorKinds(Operation *) const {
    return {};
  }
  SmallVector<AffineMap> getIndexingMaps(Operation *op) const {
    return getMaps(op);
  }
  FailureOr<ShardingOption> getShardingOption(Operation *op,
                                              ArrayRef<Sharding> operands,
                                              ArrayRef<Sharding> results) const;
  LogicalResult partition(Operation *op, ArrayRef<Value> partitioned,
                          ArrayRef<Sharding> operands,
                          ArrayRef<Sharding> results, IRMapping &mapping,
                          SymbolTableCollection &symbols,
                          OpBuilder &builder) const;

private:
  /// Loop 0 is of rows and loop 1 of heads, each other dimension has one of its
  /// own.
  static SmallVector<AffineMap> getMaps(Operation *op) {
    OpDims dims = getDims(cast<OpTy>(op));
    unsigned numLoops = 2;
    SmallVector<SmallVector<AffineExpr>> exprs;
    for (const Dims &of : llvm::concat<Dims>(dims.operands, dims.results)) {
      exprs.emplace_back();
      for (Dim dim : of)
        exprs.back().push_back(getAffineDimExpr(
            dim == Dim::Whole ? numLoops++ : static_cast<unsigned>(dim),
            op->getContext()));
    }
    return llvm::map_to_vector(exprs, [&](ArrayRef<AffineExpr> of) {
      return AffineMap::get(numLoops, 0, of, op->getContext());
    });
  }
};
} // namespace

/// Emits an error where a sharding says more than which axes divide what: an
/// option of upstream's propagation has axes alone, so parts of other sizes, or
/// with rows of their neighbours, would become equal parts on the way.
static LogicalResult checkEqualParts(Operation *op,
                                     ArrayRef<Sharding> shardings) {
  for (const Sharding &sharding : shardings) {
    bool hasOffsets =
        sharding && !sharding.getStaticShardedDimsOffsets().empty();
    bool hasHalos = sharding && !sharding.getStaticHaloSizes().empty();
    if (hasOffsets || hasHalos)
      return op->emitOpError("expected shardings in equal parts, got one with ")
             << (hasOffsets ? "sharded_dims_offsets" : "halo_sizes");
  }
  return success();
}

/// The sum of a tensor over processes, in the type that sums are in: MPI has no
/// floats of 16 bits either.
static Value sumOver(ImplicitLocOpBuilder &b, Value value, GridOp grid,
                     ArrayRef<GridAxis> axes) {
  auto type = cast<RankedTensorType>(value.getType());
  bool isNarrow =
      type.getElementType().isF16() || type.getElementType().isBF16();
  if (isNarrow)
    value = arith::ExtFOp::create(
        b, type.cloneWith(std::nullopt, b.getF32Type()), value);
  Value sum = shard::AllReduceOp::create(b, value, grid.getSymName(), axes,
                                         shard::ReductionKind::Sum);
  return isNarrow ? arith::TruncFOp::create(b, type, sum) : sum;
}

/// Whether cu_seqlens begin at 0, do not decrease, and end within `rows` rows.
static Value isValid(ImplicitLocOpBuilder &b, Value cuSeqlens, Value rows) {
  OpFoldResult entries = tensor::getMixedSize(b, b.getLoc(), cuSeqlens, 0);
  OpFoldResult sequences = affine::makeComposedFoldedAffineApply(
      b, b.getLoc(), b.getAffineDimExpr(0) - 1, {entries});
  auto entriesFrom = [&](int64_t position) -> Value {
    OpFoldResult one = b.getIndexAttr(1), from = b.getIndexAttr(position);
    return tensor::ExtractSliceOp::create(b, cuSeqlens, from, sequences, one);
  };
  // In whole bytes, which vectors have.
  Value yes = arith::ConstantOp::create(b, b.getI8IntegerAttr(1));
  Value init = tensor::FromElementsOp::create(
      b, RankedTensorType::get({}, yes.getType()), yes);
  AffineMap each = b.getMultiDimIdentityMap(1);
  AffineMap all = AffineMap::get(1, 0, b.getContext());
  auto increase = linalg::GenericOp::create(
      b, init.getType(), ValueRange{entriesFrom(0), entriesFrom(1)}, init,
      {each, each, all}, utils::IteratorType::reduction,
      [](OpBuilder &builder, Location loc, ValueRange args) {
        Value isNext = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::sle, args[0], args[1]);
        Value one =
            arith::ExtUIOp::create(builder, loc, args[2].getType(), isNext);
        Value both = arith::AndIOp::create(builder, loc, args[2], one);
        linalg::YieldOp::create(builder, loc, both);
      });
  auto entry = [&](OpFoldResult number) -> Value {
    Value index = getValueOrCreateConstantIndexOp(b, b.getLoc(), number);
    Value value = tensor::ExtractOp::create(b, cuSeqlens, index);
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  };
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value begins = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                       entry(b.getIndexAttr(0)), zero);
  Value ends = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                     entry(sequences), rows);
  Value increases = arith::TruncIOp::create(
      b, b.getI1Type(),
      tensor::ExtractOp::create(b, increase.getResult(0), ValueRange{}));
  return arith::AndIOp::create(b, arith::AndIOp::create(b, begins, ends),
                               increases);
}

/// Entries of the part of a process if those of the whole batch are valid, else
/// these, which are not valid for the part either: its attention reports them.
static Value chooseEntries(ImplicitLocOpBuilder &b, Value isValid, Value part,
                           Value whole) {
  AffineMap each = b.getMultiDimIdentityMap(1);
  return linalg::GenericOp::create(
             b, part.getType(), ValueRange{whole}, part, {each, each},
             utils::IteratorType::parallel,
             [&](OpBuilder &builder, Location loc, ValueRange args) {
               Value chosen = arith::SelectOp::create(builder, loc, isValid,
                                                      args[1], args[0]);
               linalg::YieldOp::create(builder, loc, chosen);
             })
      .getResult(0);
}

template <typename OpTy>
FailureOr<ShardingOption>
AttentionSharding<OpTy>::getShardingOption(Operation *op,
                                           ArrayRef<Sharding> operands,
                                           ArrayRef<Sharding> results) const {
  if (failed(checkEqualParts(op, operands)) ||
      failed(checkEqualParts(op, results)))
    return failure();
  OpDims dims = getDims(cast<OpTy>(op));
  FlatSymbolRefAttr grid;
  for (const Sharding &sharding :
       llvm::concat<const Sharding>(operands, results))
    if (sharding && !grid)
      grid = sharding.getGridAttr();
  if (!grid)
    return ShardingOption::makeEmpty();
  SymbolTableCollection symbols;
  GridOp gridOp = shard::getGridOrNull(op, grid, symbols);
  if (!gridOp)
    return op->emitOpError("expected a shard.grid named ") << grid;
  shard::ShardingArray axes;
  for (Dim which : {Dim::Rows, Dim::Heads}) {
    SmallVector<GridAxis> of = findAxes(which, dims.operands, operands);
    if (of.empty())
      of = findAxes(which, dims.results, results);
    bool isTaken = llvm::any_of(of, [&](GridAxis axis) {
      return !axes.empty() && llvm::is_contained(axes.front(), axis);
    });
    int64_t processes = shard::collectiveProcessGroupSize(of, gridOp);
    if (isTaken ||
        !divides(processes, which, dims.operands, op->getOperandTypes()))
      of.clear();
    axes.push_back(of);
  }
  return ShardingOption(axes, grid);
}

template <typename OpTy>
LogicalResult AttentionSharding<OpTy>::partition(
    Operation *op, ArrayRef<Value> partitioned, ArrayRef<Sharding> operands,
    ArrayRef<Sharding> results, IRMapping &mapping,
    SymbolTableCollection &symbols, OpBuilder &builder) const {
  if (failed(checkEqualParts(op, operands)) ||
      failed(checkEqualParts(op, results)))
    return failure();
  for (auto [number, value] : llvm::enumerate(partitioned))
    if (!value)
      return op->emitOpError("expected operands that shard-partition can "
                             "divide, which it cannot with operand ")
             << number;
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  OpDims dims = getDims(cast<OpTy>(op));
  auto local = cast<OpTy>(b.clone(*op));
  local->setOperands(partitioned);
  auto given = llvm::find_if(operands, [](const Sharding &x) { return x; });
  if (given == operands.end()) {
    mapping.map(op->getResults(), local->getResults());
    return success();
  }
  GridOp grid = shard::getGrid(op, given->getGridAttr(), symbols);
  for (auto [result, sharding] : llvm::zip_equal(local->getResults(), results))
    result.setType(shard::shardType(result.getType(), grid, sharding));
  SmallVector<GridAxis> axes = findAxes(Dim::Rows, dims.operands, operands);
  if (axes.empty()) {
    mapping.map(op->getResults(), local->getResults());
    return success();
  }

  b.setInsertionPoint(local);
  Value cuQ = local.getCuQ(), sequsedQ = local.getSequsedQ(),
        qOffset = local.getQOffset();
  Value rows = tensor::DimOp::create(b, local.getQ(), 0);
  Value number = shard::createProcessLinearIndex(grid.getSymName(), axes, b);
  Value first = arith::MulIOp::create(b, number, rows);
  varlen::detail::takeRowRange(b, local, first, rows, cuQ, sequsedQ, qOffset);
  int64_t size = shard::collectiveProcessGroupSize(axes, grid);
  Value processes;
  if (ShapedType::isDynamic(size))
    processes = shard::createCollectiveProcessGroupSize(grid, axes, b);
  else
    processes = arith::ConstantIndexOp::create(b, size);
  Value whole = local.getCuQ();
  Value valid = isValid(b, whole, arith::MulIOp::create(b, rows, processes));
  local.getCuQMutable().assign(chooseEntries(b, valid, cuQ, whole));
  if (sequsedQ)
    local.getSequsedQMutable().assign(sequsedQ);
  if (qOffset)
    local.getQOffsetMutable().assign(qOffset);
  else
    local.getQOffsetMutable().clear();

  b.setInsertionPointAfter(local);
  for (auto [old, result, of] :
       llvm::zip_equal(op->getResults(), local->getResults(), dims.results)) {
    Value value = result;
    // What has no rows of q has a part of its sum here.
    if (!llvm::is_contained(of, Dim::Rows))
      value = sumOver(b, value, grid, axes);
    mapping.map(old, value);
  }
  builder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
  return success();
}

void varlen::registerShardingInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, VarlenDialect *, shard::ShardDialect *) {
        AttnOp::attachInterface<AttentionSharding<AttnOp>>(*context);
        AttnGradOp::attachInterface<AttentionSharding<AttnGradOp>>(*context);
        // What local cu_seqlens are made of.
        context->loadDialect<affine::AffineDialect, arith::ArithDialect,
                             linalg::LinalgDialect, tensor::TensorDialect>();
      });
}

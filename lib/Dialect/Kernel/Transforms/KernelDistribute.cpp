//===- KernelDistribute.cpp - Tiles to fragments --------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The GPU's counterpart of vectorising a tile. Every tile becomes each thread's
// part of it, one operation becomes one operation, and the only communication
// is that of the four lanes that share a row: its reduction, and what they add
// to a row of a table.
//
//===----------------------------------------------------------------------===//

#include "FragmentLayout.h"
#include "TableRows.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Dialect/Kernel/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/DialectConversion.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELDISTRIBUTE
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

//===----------------------------------------------------------------------===//
// What can be distributed
//===----------------------------------------------------------------------===//

static bool hasTensors(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTensor) ||
         llvm::any_of(op->getResultTypes(), isTensor);
}

/// What the yield of a reduction takes: the combiner.
static Operation *getCombined(linalg::GenericOp generic) {
  return generic.getBody()->getTerminator()->getOperand(0).getDefiningOp();
}

/// What a reduction combines the accumulator and one more value with. None if
/// it is not one of those that fragments reduce with.
static std::optional<gpu::AllReduceOperation>
getCombiner(linalg::GenericOp generic) {
  BlockArgument acc = generic.getBody()->getArguments().back();
  Operation *op = getCombined(generic);
  if (!op || op->getNumOperands() != 2 || !acc.hasOneUse() ||
      *acc.user_begin() != op)
    return std::nullopt;
  if (isa<arith::AddFOp>(op))
    return gpu::AllReduceOperation::ADD;
  if (isa<arith::MaxNumFOp>(op))
    return gpu::AllReduceOperation::MAXNUMF;
  return std::nullopt;
}

/// Whether an operand of a loop nest over `loops` is read (or written) at the
/// point of the loops, or at its projection where its extent is 1.
static bool isProjection(AffineMap map, ArrayRef<int64_t> loops,
                         ArrayRef<int64_t> shape) {
  if (map.getNumResults() != 2)
    return false;
  for (unsigned dim = 0; dim < 2; ++dim) {
    AffineExpr expr = map.getResult(dim);
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    bool projected = constant && constant.getValue() == 0 && shape[dim] == 1;
    if (!projected && (expr != getAffineDimExpr(dim, map.getContext()) ||
                       shape[dim] != loops[dim]))
      return false;
  }
  return true;
}

/// The type of the fragment of a loop nest.
static VectorType getFragmentType(linalg::GenericOp op, int64_t warps) {
  auto element = Float32Type::get(op.getContext());
  return kernel::getFragmentType(
      RankedTensorType::get(op.getStaticLoopRanges(), element), warps);
}

static LogicalResult checkGeneric(linalg::GenericOp op, int64_t warps) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  if (loops.size() != 2)
    return op.emitOpError("expected two loops, rows and columns, got ")
           << loops.size();
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (!isa<ShapedType>(type))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!isProjection(map, loops, cast<ShapedType>(type).getShape()))
      return op.emitOpError("expected operands with the maps (m, n) -> (m, n), "
                            "(m, 0) or (0, n), got ")
             << AffineMapAttr::get(map) << " for " << type;
  }
  if (!getFragmentType(op, warps))
    return op.emitOpError("expected loops over numbers that a thread's "
                          "registers have room for, got ")
           << loops[0] << " x " << loops[1];
  if (op.getNumReductionLoops() != 0) {
    if (op.getNumResults() != 1 || op.getNumReductionLoops() != 1 ||
        op.getIteratorTypesArray()[1] != utils::IteratorType::reduction ||
        !getCombiner(op))
      return op.emitOpError("expected a reduction of columns with addf or "
                            "maxnumf");
  }
  for (Operation &nested : op.getBody()->without_terminator())
    if (!isa<linalg::IndexOp, arith::ConstantOp>(nested) &&
        !OpTrait::hasElementwiseMappableTraits(&nested))
      return nested.emitOpError("cannot be distributed: expected elementwise "
                                "operations on scalars in a tile's loops");
  return success();
}

static LogicalResult checkContract(linalg::ContractOp op) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  auto isSharedTile = [](Value value) {
    return value.getDefiningOp<TileOp>() != nullptr;
  };
  if (loops.size() != 3 ||
      llvm::any_of(maps,
                   [](AffineMap map) {
                     return map.getNumResults() != 2 ||
                            !map.isProjectedPermutation();
                   }) ||
      op.getNumReductionLoops() != 1)
    return op.emitOpError("expected a contraction of two rank-2 tiles");
  unsigned m = maps[2].getDimPosition(0), n = maps[2].getDimPosition(1);
  if (!maps[0].isFunctionOfDim(m) || !maps[1].isFunctionOfDim(n))
    return op.emitOpError("expected the rows of the result to come from the "
                          "first factor and its columns from the second");
  int64_t k = loops[3 - m - n];
  if (k % 16 != 0)
    return op.emitOpError("expected to contract over a multiple of 16, got ")
           << k;
  if (!isSharedTile(op.getInputs()[1]))
    return op.emitOpError(
        "expected the second factor to be a kernel.tile, in shared memory");
  if (!isSharedTile(op.getInputs()[0]) && maps[0].getDimPosition(0) != m)
    return op.emitOpError("expected the first factor to be a kernel.tile, or "
                          "to have the rows of the result");
  Type element = getElementTypeOrSelf(op.getInputs()[1].getType());
  if (!element.isF16() && !element.isBF16())
    return op.emitOpError("expected factors of f16 or bf16, got ")
           << element
           << (element.isF32() ? "; kernel-split-f32 takes these apart" : "");
  return success();
}

static LogicalResult checkTile(TileOp op) {
  for (Operation *user : op->getUsers())
    if (!isa<linalg::ContractOp>(user))
      return op.emitOpError("expected only contractions to read a shared "
                            "tile, got ")
             << user->getName();
  return success();
}

static LogicalResult checkScatterAdd(ScatterAddOp op, int64_t warps) {
  auto values = cast<RankedTensorType>(op.getValues().getType());
  VectorType fragment = getFragmentType(values, warps);
  if (fragment && !isStatistic(fragment) &&
      op.getRows().getType().getDimSize(1) == 1)
    return success();
  return op.emitOpError("expected values of a tile, and a row for each of its "
                        "rows, got ")
         << values << " and " << op.getRows().getType();
}

/// The row that all queries of the values have; null if it may differ.
static Value getOneRow(AddKeysOp op) {
  auto fill = op.getRows().getDefiningOp<linalg::FillOp>();
  return fill ? fill.getInputs()[0] : Value();
}

static LogicalResult checkAddKeys(AddKeysOp op, int64_t warps) {
  auto values = cast<RankedTensorType>(op.getValues().getType());
  VectorType fragment = getFragmentType(values, warps);
  if (fragment && !isStatistic(fragment) &&
      op.getRows().getType().getDimSize(0) == 1 && getOneRow(op))
    return success();
  return op.emitOpError(
             "expected values of a tile, keys x queries, and one row "
             "for all of them, a linalg.fill of 1 x C, got ")
         << values << " and " << op.getRows().getType();
}

/// Says why an operation with tiles cannot be distributed.
static LogicalResult check(Operation *op, int64_t warps) {
  for (Type type :
       llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (isa<TensorType>(type) && !isa<TileOp>(op)) {
      auto tile = dyn_cast<RankedTensorType>(type);
      if (!tile ||
          (!getFragmentType(tile, warps) && !isa<linalg::ContractOp>(op)))
        return op->emitOpError("expected tiles of R x C, R 1 or a multiple of "
                               "16 rows for each of ")
               << warps
               << " warps, C 1 or a multiple of 8, of numbers that a thread's "
                  "registers have room for, got "
               << type;
    }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](linalg::GenericOp generic) {
        return checkGeneric(generic, warps);
      })
      .Case([](linalg::ContractOp contract) { return checkContract(contract); })
      .Case([](TileOp tile) { return checkTile(tile); })
      .Case([&](ScatterAddOp add) { return checkScatterAdd(add, warps); })
      .Case([&](AddKeysOp add) { return checkAddKeys(add, warps); })
      .Default([&](Operation *op) -> LogicalResult {
        if (!hasTensors(op) ||
            isa<linalg::FillOp, tensor::EmptyOp, arith::ConstantOp,
                arith::SelectOp, LoadOp, StoreOp>(op) ||
            isa<scf::SCFDialect>(op->getDialect()))
          return success();
        return op->emitOpError(
            "cannot be distributed: expected linalg.generic, "
            "linalg.fill, linalg.contract, tensor.empty, scf, "
            "varlen.scatter_add, varlen.add_keys or kernel operations on "
            "tiles");
      });
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

namespace {
/// Emits the scalar region of a loop nest on fragments. Every value keeps the
/// smallest shape it needs (scalar, row, column, full): what a row does is done
/// once for the row, with no pass that hoists it.
class RegionEmitter {
public:
  RegionEmitter(ThreadBuilder &b, ArrayRef<int64_t> shape, int64_t warps)
      : b(b), shape(shape), warps(warps) {}

  void map(Value scalar, Value fragment) { mapping.map(scalar, fragment); }
  Value lookup(Value scalar) { return mapping.lookupOrDefault(scalar); }
  void emit(Operation &op);
  /// What `scalar` became, broadcast to `shape`.
  Value get(Value scalar, ArrayRef<int64_t> shape) {
    return stretch(mapping.lookupOrDefault(scalar), shape);
  }

private:
  Value stretch(Value value, ArrayRef<int64_t> shape);

  ThreadBuilder &b;
  ArrayRef<int64_t> shape;
  int64_t warps;
  IRMapping mapping;
};
} // namespace

Value RegionEmitter::stretch(Value value, ArrayRef<int64_t> shape) {
  auto type = dyn_cast<VectorType>(value.getType());
  if (shape.empty() || (type && type.getShape() == shape))
    return value;
  return vector::BroadcastOp::create(
      b, VectorType::get(shape, getElementTypeOrSelf(value.getType())), value);
}

void RegionEmitter::emit(Operation &op) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    Value position = b.coordinates(index.getDim(), shape, warps);
    auto type = cast<VectorType>(position.getType()).clone(b.getIndexType());
    map(index.getResult(), arith::IndexCastOp::create(b, type, position));
    return;
  }
  SmallVector<int64_t> common;
  for (Value operand : op.getOperands()) {
    auto type =
        dyn_cast<VectorType>(mapping.lookupOrDefault(operand).getType());
    if (!type)
      continue;
    common.resize(type.getRank(), 1);
    for (int64_t i = 0; i < type.getRank(); ++i)
      common[i] = std::max(common[i], type.getDimSize(i));
  }
  IRMapping operands;
  for (Value operand : op.getOperands())
    if (!isa<MemRefType>(operand.getType()))
      operands.map(operand, get(operand, common));
  Operation *emitted = b.clone(op, operands);
  for (auto [scalar, result] :
       llvm::zip_equal(op.getResults(), emitted->getResults())) {
    if (!common.empty())
      result.setType(VectorType::get(common, scalar.getType()));
    map(scalar, result);
  }
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Whether a reduction starts from the value that changes nothing.
static bool startsFromIdentity(linalg::GenericOp op,
                               gpu::AllReduceOperation combiner) {
  auto fill = op.getOutputs()[0].getDefiningOp<linalg::FillOp>();
  if (!fill)
    return false;
  Value value = fill.getInputs()[0];
  return combiner == gpu::AllReduceOperation::ADD
             ? matchPattern(value, m_AnyZeroFloat())
             : matchPattern(value, m_NegInfFloat());
}

namespace {

template <typename Op> class Pattern : public OpConversionPattern<Op> {
public:
  Pattern(const TypeConverter &converter, MLIRContext *context, int64_t warps)
      : OpConversionPattern<Op>(converter, context), warps(warps) {}

protected:
  VectorType fragmentType(Value tile) const {
    return getFragmentType(cast<RankedTensorType>(tile.getType()), warps);
  }
  int64_t warps;
};

struct GenericPattern : Pattern<linalg::GenericOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(linalg::GenericOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter);
    VectorType full = ::getFragmentType(op, warps);
    Block *body = op.getBody();
    RegionEmitter region(b, full.getShape(), warps);
    for (auto [argument, operand] :
         llvm::zip_equal(body->getArguments(), adaptor.getOperands()))
      region.map(argument, operand);
    std::optional<gpu::AllReduceOperation> combiner;
    if (op.getNumReductionLoops() != 0)
      combiner = getCombiner(op);
    // On a whole fragment a function would want many registers for each of its
    // numbers at once.
    else if (computesFunctions(body) &&
             llvm::all_of(op.getResults(), [&](Value result) {
               return fragmentType(result).getShape() == full.getShape();
             })) {
      rewriter.replaceOp(op, emitParts(b, op, full, region));
      return success();
    }
    Operation *last = combiner ? getCombined(op) : nullptr;
    for (Operation &nested : body->without_terminator())
      if (&nested != last)
        region.emit(nested);

    if (!combiner) {
      SmallVector<Value> results;
      for (auto [yielded, result] : llvm::zip_equal(
               body->getTerminator()->getOperands(), op.getResults()))
        results.push_back(region.get(yielded, fragmentType(result).getShape()));
      rewriter.replaceOp(op, results);
      return success();
    }

    VectorType type = fragmentType(op.getResult(0));
    BlockArgument acc = body->getArguments().back();
    Value scalar = last->getOperand(last->getOperand(0) == acc ? 1 : 0);
    Value total = reduceRows(b, region.get(scalar, full.getShape()), *combiner);
    if (!startsFromIdentity(op, *combiner)) {
      IRMapping operands;
      operands.map(acc, adaptor.getOutputs()[0]);
      operands.map(scalar, total);
      Operation *combined = b.clone(*last, operands);
      combined->getResult(0).setType(type);
      total = combined->getResult(0);
    }
    rewriter.replaceOp(op, total);
    return success();
  }

private:
  /// Emits the body for one part of a fragment after the other, of the rows and
  /// columns that a thread has side by side.
  SmallVector<Value> emitParts(ThreadBuilder &b, linalg::GenericOp op,
                               VectorType full, RegionEmitter &whole) const {
    Block *body = op.getBody();
    SmallVector<Value> shared(body->getArguments());
    for (auto index : body->getOps<linalg::IndexOp>()) {
      whole.emit(*index);
      shared.push_back(index);
    }
    SmallVector<Value> results;
    for (Value result : op.getResults())
      results.push_back(
          arith::ConstantOp::create(b, b.getZeroAttr(fragmentType(result))));
    for (int64_t i = 0; i < full.getDimSize(0); ++i)
      for (int64_t j = 0; j < full.getDimSize(1); ++j) {
        RegionEmitter part(b, full.getShape().drop_front(2), warps);
        for (Value scalar : shared) {
          Value fragment = whole.lookup(scalar);
          auto type = cast<VectorType>(fragment.getType());
          int64_t at[] = {std::min(i, type.getDimSize(0) - 1),
                          std::min(j, type.getDimSize(1) - 1)};
          part.map(scalar, vector::ExtractOp::create(b, fragment, at));
        }
        for (Operation &nested : body->without_terminator())
          if (!isa<linalg::IndexOp>(nested))
            part.emit(nested);
        for (auto [yielded, result] :
             llvm::zip_equal(body->getTerminator()->getOperands(), results))
          result = vector::InsertOp::create(
              b, part.get(yielded, full.getShape().drop_front(2)), result,
              ArrayRef<int64_t>{i, j});
      }
    return results;
  }
};

struct ContractPattern : Pattern<linalg::ContractOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(linalg::ContractOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    unsigned m = maps[2].getDimPosition(0), n = maps[2].getDimPosition(1);
    Value acc = adaptor.getOutputs()[0];
    rewriter.replaceOpWithNewOp<kernel::ContractOp>(
        op, acc.getType(), adaptor.getInputs()[0], adaptor.getInputs()[1], acc,
        op.getStaticLoopRanges()[3 - m - n],
        /*a_t=*/maps[0].getDimPosition(0) != m,
        /*b_t=*/maps[1].getDimPosition(0) != n);
    return success();
  }
};

struct FillPattern : Pattern<linalg::FillOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(linalg::FillOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<vector::BroadcastOp>(
        op, fragmentType(op.getResult(0)), adaptor.getInputs()[0]);
    return success();
  }
};

struct EmptyPattern : Pattern<tensor::EmptyOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(tensor::EmptyOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<ub::PoisonOp>(
        op, fragmentType(op.getResult()), ub::PoisonAttr::get(getContext()));
    return success();
  }
};

struct ConstantPattern : Pattern<arith::ConstantOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat)
      return rewriter.notifyMatchFailure(op, "not the same in every element");
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, splat.resizeSplat(fragmentType(op.getResult())));
    return success();
  }
};

struct SelectPattern : Pattern<arith::SelectOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    VectorType type = fragmentType(op.getResult());
    Value condition = adaptor.getCondition();
    if (!isa<VectorType>(condition.getType()))
      condition = vector::BroadcastOp::create(
          rewriter, op.getLoc(), type.clone(rewriter.getI1Type()), condition);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(
        op, condition, adaptor.getTrueValue(), adaptor.getFalseValue());
    return success();
  }
};

/// A tile stays in memory; contractions read it there.
struct TilePattern : Pattern<TileOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(TileOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getMem());
    return success();
  }
};

/// Has fragments for tiles, and is the same otherwise.
template <typename Op> struct AccessPattern : Pattern<Op> {
  using Pattern<Op>::Pattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FailureOr<Operation *> converted = convertOpResultTypes(
        op, adaptor.getOperands(), *this->getTypeConverter(), rewriter);
    if (failed(converted))
      return failure();
    rewriter.replaceOp(op, *converted);
    return success();
  }
};

struct ScatterAddPattern : Pattern<ScatterAddOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(ScatterAddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter);
    emitScatterAdd(b, adaptor.getValues(), adaptor.getIndex(), op.getMemory(),
                   adaptor.getRows());
    rewriter.eraseOp(op);
    return success();
  }
};

struct AddKeysPattern : Pattern<AddKeysOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(AddKeysOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter);
    emitAddKeys(b, adaptor.getValues(), op.getMemory(), getOneRow(op),
                op.getFirstKey(), warps);
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct KernelDistribute : kernel::impl::KernelDistributeBase<KernelDistribute> {
  void runOnOperation() override {
    gpu::GPUFuncOp func = getOperation();
    bool hasTiles = false;
    func->walk([&](Operation *op) {
      hasTiles |= llvm::any_of(op->getResultTypes(),
                               [](Type type) { return isa<TensorType>(type); });
    });
    if (!hasTiles)
      return;
    FailureOr<int64_t> warps = getWarps(func);
    if (failed(warps))
      return signalPassFailure();
    // All complaints at once: a conversion would stop at the first, and not say
    // what is wrong.
    bool failed = false;
    func->walk<WalkOrder::PreOrder>([&](Operation *op) {
      failed |= mlir::failed(check(op, *warps));
      numOps += isa<linalg::LinalgOp>(op);
      return isa<linalg::LinalgOp>(op) ? WalkResult::skip()
                                       : WalkResult::advance();
    });
    if (failed || mlir::failed(convert(func, *warps)))
      signalPassFailure();
  }

private:
  static LogicalResult convert(gpu::GPUFuncOp func, int64_t warps) {
    MLIRContext *context = func.getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    ConversionTarget target(*context);
    RewritePatternSet patterns(context);
    populateDistributePatternsAndLegality(converter, patterns, target, warps);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    return applyPartialConversion(func, target, std::move(patterns));
  }
};

} // namespace

void kernel::populateDistributePatternsAndLegality(TypeConverter &converter,
                                                   RewritePatternSet &patterns,
                                                   ConversionTarget &target,
                                                   int64_t warps) {
  converter.addConversion(
      [warps](RankedTensorType type) -> std::optional<Type> {
        return getFragmentType(type, warps);
      });
  // A shared tile is its memory, whatever its type.
  converter.addConversion([](Value value) -> std::optional<Type> {
    if (auto tile = value.getDefiningOp<TileOp>())
      return tile.getMem().front().getType();
    return std::nullopt;
  });
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  patterns
      .add<GenericPattern, ContractPattern, FillPattern, EmptyPattern,
           ConstantPattern, SelectPattern, TilePattern, AccessPattern<LoadOp>,
           AccessPattern<StoreOp>, ScatterAddPattern, AddKeysPattern>(
          converter, patterns.getContext(), warps);
  target.addIllegalDialect<linalg::LinalgDialect, tensor::TensorDialect>();
  target.addIllegalOp<TileOp, ScatterAddOp, AddKeysOp>();
  target.addDynamicallyLegalOp<LoadOp, StoreOp, arith::ConstantOp,
                               arith::SelectOp>(
      [](Operation *op) { return !hasTensors(op); });
}

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

#include "DistributableOps.h"
#include "FragmentLayout.h"
#include "HiddenColumns.h"
#include "TableRows.h"
#include "varlen/Dialect/Kernel/IR/Kernel.h"
#include "varlen/Dialect/Kernel/Transforms/Passes.h"
#include "varlen/Dialect/Kernel/Transforms/Transforms.h"
#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::varlen::kernel {
#define GEN_PASS_DEF_KERNELDISTRIBUTE
#include "varlen/Dialect/Kernel/Transforms/Passes.h.inc"
} // namespace mlir::varlen::kernel

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::kernel;

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
  void emit(HideOp op);
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

void RegionEmitter::emit(HideOp op) {
  ColumnLimits limits;
  if (op.hasLower())
    limits.lo = lookup(op.getLo());
  limits.hi = lookup(op.getHi());
  limits.k0 = lookup(op.getK0());
  if (op.getWhole())
    limits.whole = lookup(op.getWhole());
  map(op.getResult(), emitHiddenColumns(b, get(op.getScore(), shape),
                                        lookup(op.getHidden()), limits));
}

void RegionEmitter::emit(Operation &op) {
  if (auto hide = dyn_cast<HideOp>(op))
    return emit(hide);
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
    VectorType full = getFragmentType(op, warps);
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
    Value a = adaptor.getInputs()[0], other = adaptor.getInputs()[1];
    bool isTransposed = maps[0].getDimPosition(0) != m;
    bool isOtherTransposed = maps[1].getDimPosition(0) != n;
    // The rows of a fragment are those of its warps.
    if (isTransposed && isa<VectorType>(a.getType()))
      a = StageOp::create(rewriter, op.getLoc(),
                          getSharedTileTypes(cast<RankedTensorType>(
                              op.getInputs()[0].getType()))[0],
                          a);
    // The transpose of a product is that of the transposed factors.
    if (isSharedByColumns(cast<RankedTensorType>(op.getResult(0).getType()),
                          warps)) {
      std::swap(a, other);
      std::swap(isTransposed, isOtherTransposed);
    }
    rewriter.replaceOpWithNewOp<kernel::ContractOp>(
        op, acc.getType(), a, other, acc, op.getStaticLoopRanges()[3 - m - n],
        /*a_t=*/isTransposed, /*b_t=*/isOtherTransposed);
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

/// The same of rows that may be columns of the fragment.
struct StorePattern : AccessPattern<StoreOp> {
  using AccessPattern::AccessPattern;

  LogicalResult
  matchAndRewrite(StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto tile = cast<RankedTensorType>(op.getValues().front().getType());
    if (isSharedByColumns(tile, warps))
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperands(adaptor.getOperands());
        op.setTransposed(true);
      });
    else
      return AccessPattern::matchAndRewrite(op, adaptor, rewriter);
    return success();
  }
};

/// A branch of the warp around the product, for lanes whose rows all have a
/// factor of 1.
struct RescalePattern : Pattern<RescaleOp> {
  using Pattern::Pattern;

  LogicalResult
  matchAndRewrite(RescaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder b(op.getLoc(), rewriter);
    Value tile = adaptor.getTile(), factor = adaptor.getFactor();
    auto factors = cast<VectorType>(factor.getType());
    Value one = arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               factors, rewriter.getFloatAttr(factors.getElementType(), 1.0)));
    Value changes =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor, one);
    Value any = changesAny(b, changes);
    auto branch = scf::IfOp::create(b, tile.getType(), any,
                                    /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    Value stretched = vector::BroadcastOp::create(b, tile.getType(), factor);
    scf::YieldOp::create(b,
                         arith::MulFOp::create(b, tile, stretched).getResult());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, tile);
    rewriter.replaceOp(op, branch);
    return success();
  }

private:
  /// Whether one of these is true in a lane of the warp.
  static Value changesAny(ThreadBuilder &b, Value flags) {
    auto elements = vector::ToElementsOp::create(b, flags).getResults();
    Value any = elements.front();
    for (Value flag : elements.drop_front())
      any = arith::OrIOp::create(b, any, flag);
    return NVVM::VoteSyncOp::create(b, b.getI1Type(), b.constant(-1), any,
                                    NVVM::VoteSyncKind::any);
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
  void getDependentDialects(DialectRegistry &registry) const override {
    KernelDistributeBase::getDependentDialects(registry);
    // Of indices that are frozen.
    registry.insert<LLVM::LLVMDialect>();
  }
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
      failed |= mlir::failed(checkDistributable(op, *warps));
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
           StorePattern, AccessPattern<kernel::AddInOrderOp>, RescalePattern,
           ScatterAddPattern, AddKeysPattern>(converter, patterns.getContext(),
                                              warps);
  target.addIllegalDialect<linalg::LinalgDialect, tensor::TensorDialect>();
  target.addIllegalOp<TileOp, RescaleOp, ScatterAddOp, AddKeysOp>();
  target.addDynamicallyLegalOp<LoadOp, StoreOp, kernel::AddInOrderOp,
                               arith::ConstantOp, arith::SelectOp>(
      [](Operation *op) { return !hasTensors(op); });
}

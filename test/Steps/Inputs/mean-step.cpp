//===- mean-step.cpp - A step that another project adds -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An opt with the dialect of MeanStep.td and the pass that writes its
// operations as those of Varlen and as linalg. No pass of Varlen knows of them:
// a tile loop is converted by the interfaces of what is in it.
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/InitAll.h"
#include "varlen/Support/Body.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

// clang-format off: the operations are of the dialect.
#include "MeanStepDialect.h.inc"
#define GET_OP_CLASSES
#include "MeanStep.h.inc"
// clang-format on

#include "MeanStepDialect.cpp.inc"
#define GET_OP_CLASSES
#include "MeanStep.cpp.inc"

using namespace mlir;
using namespace mean;
using varlen::Orientation;
using varlen::StepFactor;
using varlen::StepInputs;

static FloatType elementOf(Value tile) {
  return cast<FloatType>(getElementTypeOrSelf(tile.getType()));
}

void MeanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "MeanStep.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// What conversions of tile loops ask
//===----------------------------------------------------------------------===//

/// The beginning of acc, m and l.
static varlen::OnlineInitOp createInit(OpBuilder &b, InitOp op) {
  return varlen::OnlineInitOp::create(
      b, op.getLoc(),
      TypeRange{op.getAcc().getType(), op.getM().getType(),
                op.getL().getType()},
      op.getScaleAttr(),
      varlen::OrientationAttr::get(op.getContext(), Orientation::KQ));
}

SmallVector<double> InitOp::getNumbers() {
  OpBuilder b(getContext());
  varlen::OnlineInitOp init = createInit(b, *this);
  SmallVector<double> numbers = init.getNumbers();
  init->erase();
  numbers.append({0.0, 0.0});
  return numbers;
}

LogicalResult StepOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       StepOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  llvm::append_range(types, TypeRange(adaptor.getOperands().take_back(5)));
  return success();
}

MutableOperandRange StepOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 5);
}

SmallVector<StepFactor> StepOp::getFactors() {
  return {{"q", &getQMutable(), true, /*alongColumns=*/true, false},
          {"k", &getKMutable(), false, /*alongColumns=*/true, false},
          {"v", &getVMutable(), false, /*alongColumns=*/false, true}};
}

FloatType StepOp::getComputeType() { return elementOf(getM()); }

Block *StepOp::getScoreBody() { return nullptr; }

std::optional<unsigned> StepOp::getDimOfQueries(OpOperand &) {
  return getOrientation() == Orientation::KQ ? 1 : 0;
}

// Without a score region nothing is captured.
OperandRange StepOp::getCaptures() {
  return getOperation()->getOperands().take_front(0);
}
OperandRange StepOp::getTables() { return getCaptures(); }

Operation *StepOp::createMerge(OpBuilder &b, ValueRange state,
                               ValueRange more) {
  SmallVector<Value> operands(state);
  llvm::append_range(operands, more);
  bool isRounded = elementOf(getV()) != elementOf(getM());
  return MergeOp::create(
      b, getLoc(), state.getTypes(), operands,
      MergeOp::Properties{getOrientationAttr(),
                          isRounded ? b.getUnitAttr() : UnitAttr(),
                          getScaleAttr()});
}

void StepOp::setInputs(const StepInputs &inputs) {
  auto assign = [](MutableOperandRange operand, Value value) {
    operand.assign(value ? ValueRange(value) : ValueRange());
  };
  assign(getQueriesMutable(), {});
  assign(getKeysMutable(), {});
  assign(getLoMutable(), inputs.lo);
  assign(getHiMutable(), inputs.hi);
  assign(getK0Mutable(), inputs.k0);
}

unsigned MergeOp::getQueriesDim(Value) {
  return getOrientation() == Orientation::KQ ? 1 : 0;
}
unsigned FinishOp::getQueriesDim(Value tile) {
  return tile != getOut() && getOrientation() == Orientation::KQ ? 1 : 0;
}

//===----------------------------------------------------------------------===//
// What the operations compute
//===----------------------------------------------------------------------===//

static Value emitConstant(ImplicitLocOpBuilder &b, FloatType type,
                          double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

template <typename Op>
static Value emitSum(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  return varlen::emitElementwise(
             b, {lhs, rhs}, lhs,
             [](ImplicitLocOpBuilder &inner, ValueRange args) {
               return varlen::Values{Op::create(inner, args[0], args[1])};
             })
      .getResult(0);
}

/// The scores of a block without the scale: keys x queries, or the other way
/// round.
static Value emitScores(ImplicitLocOpBuilder &b, StepOp step) {
  bool kq = step.getOrientation() == Orientation::KQ;
  Value rows = kq ? step.getK() : step.getQ();
  Value columns = kq ? step.getQ() : step.getK();
  SmallVector<OpFoldResult> sizes = {
      tensor::getMixedSize(b, b.getLoc(), rows, 0),
      tensor::getMixedSize(b, b.getLoc(), columns, 0)};
  FloatType compute = step.getComputeType();
  Value init = linalg::FillOp::create(
                   b, emitConstant(b, compute, 0.0),
                   tensor::EmptyOp::create(b, sizes, compute).getResult())
                   .getResult(0);
  auto map = [&](ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(3, dims, b.getContext());
  };
  return linalg::ContractOp::create(
             b, TypeRange{init.getType()}, ValueRange{rows, columns},
             ValueRange{init},
             b.getAffineMapArrayAttr({map({0, 2}), map({1, 2}), map({0, 1})}))
      .getResult(0);
}

/// `sum`, and of each key that a query sees its score, or 1.
static Value emitVisibleSum(ImplicitLocOpBuilder &b, StepOp step, Value scores,
                            Value sum, bool counts) {
  bool kq = step.getOrientation() == Orientation::KQ;
  AffineMap all = b.getMultiDimIdentityMap(2);
  AffineMap ofQuery = all;
  FloatType compute = step.getComputeType();
  AffineExpr zero = b.getAffineConstantExpr(0);
  ofQuery =
      kq ? AffineMap::get(2, 0, {zero, b.getAffineDimExpr(1)}, b.getContext())
         : AffineMap::get(2, 0, {b.getAffineDimExpr(0), zero}, b.getContext());
  SmallVector<Value> inputs = {scores};
  SmallVector<AffineMap> maps = {all};
  if (step.getLo()) {
    inputs.append({step.getLo(), step.getHi()});
    maps.append(2, ofQuery);
  }
  maps.push_back(ofQuery);
  return varlen::emitGeneric(
      b, inputs, sum, maps,
      [&](ImplicitLocOpBuilder &inner, ValueRange args) -> Value {
        Value term = counts ? emitConstant(inner, compute, 1.0) : args[0];
        if (step.getLo())
          term = varlen::HideOp::create(
              inner, term, emitConstant(inner, compute, 0.0),
              linalg::IndexOp::create(inner, kq ? 0 : 1), args[1], args[2],
              step.getK0(), /*whole=*/Value());
        return arith::AddFOp::create(inner, args.back(), term);
      });
}

static SmallVector<Value> write(StepOp step, ImplicitLocOpBuilder &b) {
  Value scores = emitScores(b, step);
  Value total = emitVisibleSum(b, step, scores, step.getTotal(), false);
  Value count = emitVisibleSum(b, step, scores, step.getCount(), true);
  auto attn = varlen::OnlineAttnOp::create(
      b, step.getQ(), step.getK(), step.getV(), /*kScale=*/Value(),
      /*vScale=*/Value(), step.getLo(), step.getHi(), step.getK0(),
      /*seenBegin=*/Value(), /*seenEnd=*/Value(),
      /*queries=*/Value(), /*keys=*/Value(), /*position=*/Value(),
      /*firstKey=*/Value(), /*captures=*/ValueRange(), /*tables=*/ValueRange(),
      /*rows=*/ValueRange(), step.getAcc(), step.getM(), step.getL(),
      step.getScaleAttr(), step.getOrientationAttr(), b.getI64IntegerAttr(0),
      /*scoreCount=*/0);
  return {attn.getAccOut(), attn.getMOut(), attn.getLOut(), total, count};
}

static SmallVector<Value> write(MergeOp merge, ImplicitLocOpBuilder &b) {
  auto state = varlen::OnlineMergeOp::create(
      b, merge.getAcc(), merge.getM(), merge.getL(), /*tangents=*/ValueRange(),
      merge.getMoreAcc(), merge.getMoreM(), merge.getMoreL(),
      /*moreTangents=*/ValueRange(), merge.getScaleAttr(),
      merge.getOrientationAttr(), merge.getRoundedAttr());
  return {state.getAccOut(), state.getMOut(), state.getLOut(),
          emitSum<arith::AddFOp>(b, merge.getTotal(), merge.getMoreTotal()),
          emitSum<arith::AddFOp>(b, merge.getCount(), merge.getMoreCount())};
}

static SmallVector<Value> write(FinishOp end, ImplicitLocOpBuilder &b) {
  auto finish = varlen::OnlineFinishOp::create(
      b, end.getAcc(), end.getM(), end.getL(), /*tangents=*/ValueRange(),
      /*sink=*/Value(), /*tsink=*/Value(), end.getScaleAttr(),
      end.getOrientationAttr(), end.getRoundedAttr());
  FloatType compute = elementOf(end.getM());
  Value empty = tensor::EmptyOp::create(
      b, tensor::getMixedSizes(b, b.getLoc(), end.getM()), compute);
  Value mean = varlen::emitElementwise(
                   b, {end.getTotal(), end.getCount()}, empty,
                   [&](ImplicitLocOpBuilder &inner, ValueRange args) {
                     // 0 without a key.
                     Value count = arith::MaximumFOp::create(
                         inner, args[1], emitConstant(inner, compute, 1.0));
                     Value mean = arith::DivFOp::create(inner, args[0], count);
                     return varlen::Values{arith::MulFOp::create(
                         inner, mean,
                         emitConstant(inner, compute,
                                      end.getScale().convertToDouble()))};
                   })
                   .getResult(0);
  return {finish.getOut(), finish.getLse(), mean};
}

namespace {
template <typename Op> struct WritePattern : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, write(op, b));
    return success();
  }
};

struct WriteMeanSteps : PassWrapper<WriteMeanSteps, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WriteMeanSteps)
  StringRef getArgument() const override { return "write-mean-steps"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, linalg::LinalgDialect,
                    tensor::TensorDialect, varlen::VarlenDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<WritePattern<StepOp>, WritePattern<MergeOp>,
                 WritePattern<FinishOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  varlen::registerUpstream(registry);
  varlen::registerAllDialects(registry);
  varlen::registerAllExtensions(registry);
  varlen::registerAllPasses();
  registry.insert<MeanDialect>();
  PassRegistration<WriteMeanSteps>();
  return asMainReturnCode(MlirOptMain(argc, argv,
                                      "varlen-opt with a step of "
                                      "its own\n",
                                      registry));
}

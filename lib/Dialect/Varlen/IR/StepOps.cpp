//===- StepOps.cpp - Steps on a block of queries and one of keys ----------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepVerifier.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::detail;

//===----------------------------------------------------------------------===//
// StepOpInterface
//===----------------------------------------------------------------------===//

StepOpInterface StepOpInterface::cloneOnTiles(OpBuilder &b, ValueRange operands,
                                              const StepInputs &inputs) {
  auto copy = cast<StepOpInterface>(b.clone(*getOperation()));
  copy->setOperands(operands);
  for (auto [result, init] :
       llvm::zip_equal(copy->getResults(), copy.getDpsInits()))
    result.setType(init.getType());
  copy.setInputs(inputs);
  return copy;
}

//===----------------------------------------------------------------------===//
// HideOp
//===----------------------------------------------------------------------===//

bool HideOp::hasLower() {
  APInt lo;
  return !matchPattern(getLo(), m_ConstantInt(&lo)) || lo.isStrictlyPositive();
}

//===----------------------------------------------------------------------===//
// OnlineAttnOp
//===----------------------------------------------------------------------===//

/// Whether products convert these keys or values.
static bool isQuantised(Value rows) {
  return isQuantisedElement(elementOf(rows));
}

/// The rows, the state and the score of a step that has a state.
template <typename Step> static LogicalResult verifyStateStep(Step op) {
  Value q = op.getQ(), k = op.getK(), v = op.getV();
  Value acc = op.getAcc(), m = op.getM(), l = op.getL();
  SmallVector<NamedValue> rows = {{"q", q}};
  for (NamedValue ofKeys : {NamedValue{"k", k}, NamedValue{"v", v}})
    if (!isQuantised(ofKeys.value))
      rows.push_back(ofKeys);
  if (failed(verifyLimits(op)) ||
      failed(verifyElements(op, "acc, m and l",
                            {{"acc", acc}, {"m", m}, {"l", l}}, rows)) ||
      (!isQuantised(k) && failed(verifySameElement(op, {"q", q}, {"k", k}))))
    return failure();

  Orientation orientation = op.getOrientation();
  unsigned dim = getQueriesDim(orientation);
  int64_t queries = getCommonExtentAt({{q, 0}, {acc, dim}, {m, dim}, {l, dim}});
  int64_t keys = getCommonExtentAt({{k, 0}, {v, 0}});
  int64_t headDim = getCommonExtentAt({{k, 1}, {q, 1}});
  int64_t valueHeadDim = getCommonExtentAt({{v, 1}, {acc, 1 - dim}});
  auto check = [&](NamedValue tile, StringRef meaning,
                   ArrayRef<int64_t> shape) {
    return verifyTile(op, orientation, tile, meaning, shape);
  };
  if (failed(check({"q", q}, "queries x head_dim", {queries, headDim})) ||
      failed(check({"k", k}, "keys x head_dim", {keys, headDim})) ||
      failed(check({"v", v}, "keys x value head_dim", {keys, valueHeadDim})) ||
      failed(
          check({"acc", acc},
                dim ? "value head_dim x queries" : "queries x value head_dim",
                getAccTileShape(orientation, queries, valueHeadDim))) ||
      failed(verifyRowStats(
          op, orientation,
          {{"m", m}, {"l", l}, {"lo", op.getLo()}, {"hi", op.getHi()}},
          queries)) ||
      failed(verifyScoreOf(op, queries)))
    return failure();
  return verifyScale(op, op.getScale());
}

LogicalResult OnlineAttnOp::verify() {
  if (failed(verifyStateStep(*this)))
    return failure();
  for (NamedValue scale : {NamedValue{"k_scale", getKScale()},
                           NamedValue{"v_scale", getVScale()}}) {
    if (!scale.value)
      continue;
    if (elementOf(scale.value) != getComputeType())
      return emitOpError("expected ")
             << scale.name << " of " << getComputeType() << ", got "
             << elementOf(scale.value);
    // A statistic of keys is that of queries in the other orientation.
    bool isRow = getOrientation() == Orientation::QK;
    int64_t keys = getCommonExtentAt({{getK(), 0}, {getV(), 0}});
    if (failed(verifyTile(*this, getOrientation(), scale,
                          isRow ? "1 x keys" : "keys x 1",
                          isRow ? SmallVector<int64_t>{1, keys}
                                : SmallVector<int64_t>{keys, 1})))
      return failure();
  }
  return success();
}

LogicalResult OnlineAttnOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location>,
                                             OnlineAttnOp::Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  for (Value init : {adaptor.getAcc(), adaptor.getM(), adaptor.getL()})
    types.push_back(init.getType());
  return success();
}

MutableOperandRange OnlineAttnOp::getDpsInitsMutable() {
  // acc, m and l are the last operands.
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 3);
}

double OnlineAttnOp::getCoarseFactor(double scale) {
  return std::exp2(std::ceil(std::log2(scale * M_LOG2E)));
}

SmallVector<StepFactor> OnlineAttnOp::getFactors() {
  return {{"q", &getQMutable(), true, /*alongColumns=*/true, false},
          {"k", &getKMutable(), false, /*alongColumns=*/true, false},
          {"v", &getVMutable(), false, /*alongColumns=*/false, true}};
}

SmallVector<OpOperand *> OnlineAttnOp::getKeyNumbers() {
  SmallVector<OpOperand *> numbers;
  for (MutableOperandRange scale : {getKScaleMutable(), getVScaleMutable()})
    for (OpOperand &number : scale)
      numbers.push_back(&number);
  return numbers;
}

FloatType OnlineAttnOp::getComputeType() {
  return cast<FloatType>(elementOf(getM()));
}

std::optional<unsigned> OnlineAttnOp::getDimOfQueries(OpOperand &) {
  return varlen::getQueriesDim(getOrientation());
}

void OnlineAttnOp::setInputs(const StepInputs &inputs) {
  setInputsOf(*this, inputs);
}

Operation *OnlineAttnOp::createMerge(OpBuilder &b, ValueRange state,
                                     ValueRange more) {
  bool isRounded =
      !isQuantised(getV()) && elementOf(getV()) != elementOf(getM());
  return OnlineMergeOp::create(b, getLoc(), state[0], state[1], state[2],
                               /*tangents=*/ValueRange(), more[0], more[1],
                               more[2], /*more_tangents=*/ValueRange(),
                               getScaleAttr(), getOrientationAttr(),
                               isRounded ? b.getUnitAttr() : UnitAttr());
}

void OnlineAttnOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAccOut(), "acc");
  setName(getMOut(), "m");
  setName(getLOut(), "l");
}

//===----------------------------------------------------------------------===//
// OnlineAttnJVPOp
//===----------------------------------------------------------------------===//

LogicalResult OnlineAttnJVPOp::verify() {
  if (failed(verifyStateStep(*this)) ||
      failed(
          verifyTangentTypes(*this, {{{"tq", getTq()}, {"q", getQ()}},
                                     {{"tk", getTk()}, {"k", getK()}},
                                     {{"tv", getTv()}, {"v", getV()}},
                                     {{"tacc", getTacc()}, {"acc", getAcc()}},
                                     {{"tl", getTl()}, {"l", getL()}}})))
    return failure();
  Value rounded = getTlRounded();
  if (!rounded && elementOf(getV()) != elementOf(getL()))
    return emitOpError("expected tl_rounded beside v of ")
           << elementOf(getV()) << " and l of " << elementOf(getL())
           << ", got none";
  if (rounded && failed(verifyTangentTypes(
                     *this, {{{"tl_rounded", rounded}, {"l", getL()}}})))
    return failure();
  return verifyTangentsOfCaptures(*this, {"m", getM()});
}

LogicalResult
OnlineAttnJVPOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                  OnlineAttnJVPOp::Adaptor adaptor,
                                  SmallVectorImpl<Type> &types) {
  for (Value init : {adaptor.getAcc(), adaptor.getM(), adaptor.getL(),
                     adaptor.getTacc(), adaptor.getTl()})
    types.push_back(init.getType());
  if (Value rounded = adaptor.getTlRounded())
    types.push_back(rounded.getType());
  return success();
}

MutableOperandRange OnlineAttnJVPOp::getDpsInitsMutable() {
  // acc, m, l and the tangents are the last operands.
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(),
                             getNumResults());
}

SmallVector<StepFactor> OnlineAttnJVPOp::getFactors() {
  return {{"q", &getQMutable(), true, /*alongColumns=*/true, false},
          {"tq", &getTqMutable(), true, /*alongColumns=*/true, false},
          {"k", &getKMutable(), false, /*alongColumns=*/true, false},
          {"tk", &getTkMutable(), false, /*alongColumns=*/true, false},
          {"v", &getVMutable(), false, /*alongColumns=*/false, true},
          {"tv", &getTvMutable(), false, /*alongColumns=*/false, true}};
}

FloatType OnlineAttnJVPOp::getComputeType() {
  return cast<FloatType>(elementOf(getM()));
}

std::optional<unsigned> OnlineAttnJVPOp::getDimOfQueries(OpOperand &) {
  return varlen::getQueriesDim(getOrientation());
}

SmallVector<BlockArgument> OnlineAttnJVPOp::getTableArguments() {
  return getTablesAndTangents(*this);
}

void OnlineAttnJVPOp::setInputs(const StepInputs &inputs) {
  setInputsOf(*this, inputs);
}

Operation *OnlineAttnJVPOp::createMerge(OpBuilder &b, ValueRange state,
                                        ValueRange more) {
  return OnlineMergeOp::create(
      b, getLoc(), state[0], state[1], state[2], state.drop_front(3), more[0],
      more[1], more[2], more.drop_front(3), getScaleAttr(),
      getOrientationAttr(),
      elementOf(getV()) != elementOf(getM()) ? b.getUnitAttr() : UnitAttr());
}

void OnlineAttnJVPOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAccOut(), "acc");
  setName(getMOut(), "m");
  setName(getLOut(), "l");
  setName(getTaccOut(), "tacc");
  setName(getTlOut(), "tl");
  if (getTlRoundedOut())
    setName(getTlRoundedOut(), "tl_rounded");
}

//===- StateOps.cpp - The state of rows before and after steps ------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileVerifier.h"

#include "mlir/IR/OpImplementation.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::detail;

//===----------------------------------------------------------------------===//
// OnlineInitOp
//===----------------------------------------------------------------------===//

/// That a state has no tangents, or those of acc and l, and maybe tl_rounded.
template <typename Op>
static LogicalResult verifyTangents(Op op, ValueRange tangents) {
  Type acc = op.getAcc().getType(), l = op.getL().getType();
  Type wanted[] = {acc, l, l};
  TypeRange types = tangents.getTypes();
  if (types.empty() || types == TypeRange(wanted) ||
      types == TypeRange(wanted).drop_back())
    return success();
  return op.emitOpError("expected no tangents, or those of acc and l, of (")
         << acc << ", " << l << "), and maybe tl_rounded of " << l << ", got ("
         << types << ')';
}

/// That acc, m and l are the state of queries.
template <typename Op> static LogicalResult verifyState(Op op) {
  if (failed(verifyElements(
          op, "acc, m and l",
          {{"acc", op.getAcc()}, {"m", op.getM()}, {"l", op.getL()}}, {})))
    return failure();
  Orientation orientation = op.getOrientation();
  unsigned dim = getQueriesDim(orientation);
  int64_t queries = getCommonExtent(
      {shaped(op.getAcc()).getDimSize(dim), shaped(op.getM()).getDimSize(dim)});
  int64_t valueHeadDim = shaped(op.getAcc()).getDimSize(1 - dim);
  if (failed(verifyTile(op, orientation, {"acc", op.getAcc()},
                        dim ? "value head_dim x queries"
                            : "queries x value head_dim",
                        getAccTileShape(orientation, queries, valueHeadDim))) ||
      failed(verifyRowStats(op, orientation, {{"m", op.getM()}}, queries)))
    return failure();
  return verifyScale(op, op.getScale());
}

LogicalResult OnlineInitOp::verify() {
  for (Value tile : getResults())
    if (!shaped(tile).hasStaticShape())
      return emitOpError("expected static extents, got ") << tile.getType();
  if (failed(verifyTangents(*this, getTangents())))
    return failure();
  return verifyState(*this);
}

std::array<double, 3> OnlineInitOp::getNumbers(double scale,
                                               FloatType compute) {
  // Neither m nor its product with the factor of large scores overflows.
  int most = APFloat::semanticsMaxExponent(compute.getFloatSemantics());
  double m = std::max(std::ldexp(-1.0, most - 1) /
                          OnlineAttnOp::getCoarseFactor(scale),
                      std::ldexp(-1.0, most));
  return {0.0, m, 0.0};
}

SmallVector<double> OnlineInitOp::getNumbers() {
  SmallVector<double> numbers = llvm::to_vector(getNumbers(
      getScale().convertToDouble(), cast<FloatType>(elementOf(getM()))));
  numbers.append(getTangents().size(), 0.0);
  return numbers;
}

/// Names the tangents of a state, which may have none.
static void nameTangents(ValueRange tangents, OpAsmSetValueNameFn setName) {
  StringRef names[] = {"tacc", "tl", "tl_rounded"};
  for (auto [tangent, name] : llvm::zip(tangents, names))
    setName(tangent, name);
}

void OnlineInitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAcc(), "acc");
  setName(getM(), "m");
  setName(getL(), "l");
  nameTangents(getTangents(), setName);
}

//===----------------------------------------------------------------------===//
// OnlineFinishOp
//===----------------------------------------------------------------------===//

unsigned OnlineFinishOp::getQueriesDim(Value tile) {
  // Rows of out and of its tangent are queries in either orientation.
  bool isOut = tile == getOut() ||
               (!getTangentsOut().empty() && tile == getTangentsOut().front());
  return isOut ? 0 : varlen::getQueriesDim(getOrientation());
}

LogicalResult OnlineFinishOp::verify() {
  if (failed(verifyState(*this)) ||
      failed(verifyTangents(*this, getTangents())))
    return failure();
  for (NamedValue tile :
       {NamedValue{"a sink", getSink()}, NamedValue{"a tsink", getTsink()}})
    if (tile.value && tile.value.getType() != getM().getType())
      return emitOpError("expected ")
             << tile.name << " of the type of m, " << getM().getType()
             << ", got " << tile.value.getType();
  if (getTsink() && (!getSink() || getTangents().empty()))
    return emitOpError("expected a sink and tangents beside a tsink");
  return success();
}

LogicalResult OnlineFinishOp::inferReturnTypes(MLIRContext *,
                                               std::optional<Location>,
                                               OnlineFinishOp::Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto acc = cast<RankedTensorType>(adaptor.getAcc().getType());
  SmallVector<int64_t> shape(acc.getShape());
  if (adaptor.getOrientation() == Orientation::KQ)
    std::swap(shape[0], shape[1]);
  SmallVector<Type> results = {
      RankedTensorType::get(shape, acc.getElementType()),
      adaptor.getM().getType()};
  llvm::append_range(types, results);
  if (!adaptor.getTangents().empty())
    llvm::append_range(types, results);
  return success();
}

void OnlineFinishOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOut(), "out");
  setName(getLse(), "lse");
  StringRef names[] = {"tout", "tlse"};
  for (auto [tangent, name] : llvm::zip(getTangentsOut(), names))
    setName(tangent, name);
}

//===----------------------------------------------------------------------===//
// RescaleOp
//===----------------------------------------------------------------------===//

LogicalResult RescaleOp::verify() {
  RankedTensorType tile = getTile().getType(), factor = getFactor().getType();
  if (tile.getElementType() == factor.getElementType() &&
      succeeded(verifyCompatibleShape({tile.getDimSize(0), int64_t(1)},
                                      factor.getShape())))
    return success();
  return emitOpError("expected a factor for each row of ")
         << tile << ", got " << factor;
}

//===----------------------------------------------------------------------===//
// OnlineMergeOp
//===----------------------------------------------------------------------===//

unsigned OnlineMergeOp::getQueriesDim(Value) {
  return varlen::getQueriesDim(getOrientation());
}

LogicalResult OnlineMergeOp::verify() {
  if (failed(verifyState(*this)) ||
      failed(verifyTangents(*this, getTangents())))
    return failure();
  if (getTangents().getTypes() == getMoreTangents().getTypes())
    return success();
  return emitOpError("expected tangents of both states, or of none, got ")
         << getTangents().size() << " and " << getMoreTangents().size();
}

LogicalResult OnlineMergeOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location>,
                                              OnlineMergeOp::Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  for (Value state : {adaptor.getAcc(), adaptor.getM(), adaptor.getL()})
    types.push_back(state.getType());
  llvm::append_range(types, adaptor.getTangents().getTypes());
  return success();
}

void OnlineMergeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAccOut(), "acc");
  setName(getMOut(), "m");
  setName(getLOut(), "l");
  nameTangents(getTangentsOut(), setName);
}

//===----------------------------------------------------------------------===//
// RowDotOp, OnlineStatisticsOp, OnlineTangentStatisticsOp
//===----------------------------------------------------------------------===//

LogicalResult RowDotOp::verify() {
  if (failed(verifyElements(*this, "the result", {{"the result", getResult()}},
                            {{"lhs", getLhs()}})))
    return failure();
  int64_t rows = shaped(getLhs()).getDimSize(0);
  if (shaped(getResult()).getShape() == ArrayRef<int64_t>{rows, 1})
    return success();
  return emitOpError("expected a result of ")
         << toString({rows, 1}) << ", a number for each row, got "
         << getResult().getType();
}

/// That lse, and what there is of `others`, are numbers of queries of one type.
template <typename Op>
static LogicalResult verifyStatistics(Op op, ArrayRef<NamedValue> others) {
  Type type = op.getLse().getType();
  if (failed(verifyElements(op, "lse", {{"lse", op.getLse()}}, {})))
    return failure();
  for (NamedValue tile : others)
    if (tile.value && tile.value.getType() != type)
      return op.emitOpError("expected ")
             << tile.name << " of the type of lse, " << type << ", got "
             << tile.value.getType();
  if (llvm::is_contained(shaped(op.getLse()).getShape(), 1))
    return success();
  return op.emitOpError(
             "expected a number for each query, R x 1 or 1 x R, got ")
         << type;
}

unsigned OnlineStatisticsOp::getQueriesDim(Value tile) {
  return shaped(tile).getDimSize(0) == 1 ? 1 : 0;
}

LogicalResult OnlineStatisticsOp::verify() {
  return verifyStatistics(*this, {{"dlse", getDlse()}, {"a sink", getSink()}});
}

LogicalResult
OnlineStatisticsOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                     OnlineStatisticsOp::Adaptor adaptor,
                                     SmallVectorImpl<Type> &types) {
  types.append(adaptor.getSink() ? 3 : 2, adaptor.getLse().getType());
  return success();
}

void OnlineStatisticsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getRowLse(), "lse");
  setName(getDelta(), "delta");
  if (getSinkTerm())
    setName(getSinkTerm(), "term");
}

unsigned OnlineTangentStatisticsOp::getQueriesDim(Value tile) {
  return shaped(tile).getDimSize(0) == 1 ? 1 : 0;
}

LogicalResult OnlineTangentStatisticsOp::verify() {
  if (getDots().empty())
    return emitOpError("expected at least one of dots, got none");
  if (getTsink() && !getSink())
    return emitOpError("expected a sink beside a tsink");
  SmallVector<NamedValue> others = {
      {"dlse", getDlse()}, {"a sink", getSink()}, {"a tsink", getTsink()}};
  for (Value dot : getDots())
    others.push_back({"dots", dot});
  return verifyStatistics(*this, others);
}

LogicalResult OnlineTangentStatisticsOp::inferReturnTypes(
    MLIRContext *, std::optional<Location>,
    OnlineTangentStatisticsOp::Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.append(adaptor.getSink() ? 2 : 1, adaptor.getLse().getType());
  return success();
}

void OnlineTangentStatisticsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getTdelta(), "tdelta");
  if (getSinkTerm())
    setName(getSinkTerm(), "term");
}

//===- GradStepOps.cpp - Steps of gradients -------------------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepVerifier.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::detail;

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Results come in the order of the destinations that are there.
template <typename Adaptor>
static void inferGradients(Adaptor adaptor, SmallVectorImpl<Type> &types) {
  for (Value init : {adaptor.getDq(), adaptor.getDk(), adaptor.getDv()})
    if (init)
      types.push_back(init.getType());
  llvm::append_range(types, adaptor.getDcaptures().getTypes());
}

/// The destinations, which are the last operands.
template <typename Step>
static MutableOperandRange getDestinationsOf(Step step) {
  unsigned count = step->getNumResults();
  return MutableOperandRange(step, step->getNumOperands() - count, count);
}

template <typename Step>
static std::optional<unsigned> getDimOfQueriesIn(Step step, OpOperand &init) {
  auto isOf = [&](MutableOperandRange gradients) {
    return llvm::any_of(
        gradients, [&](OpOperand &gradient) { return &gradient == &init; });
  };
  if (isOf(step.getDkMutable()) || isOf(step.getDvMutable()))
    return std::nullopt;
  // Rows of dq are queries in either orientation.
  return isOf(step.getDqMutable()) ? 0 : getQueriesDim(step.getOrientation());
}

template <typename Step>
static void nameGradients(Step step, OpAsmSetValueNameFn setName) {
  for (auto [result, name] :
       {std::pair(step.getDqOut(), "dq"), std::pair(step.getDkOut(), "dk"),
        std::pair(step.getDvOut(), "dv")})
    if (result)
      setName(result, name);
  for (Value result : step.getDcapturesOut())
    setName(result, "dcapture");
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The gradients of the captures of `wrt_captures`: of tables, of which there
/// are `numTables`, memory, and rows of it beside, of numbers tiles like
/// `statistic`.
template <typename Step>
static LogicalResult verifyGradientsOfCaptures(Step op, NamedValue statistic,
                                               int64_t queries,
                                               size_t numTables) {
  if (failed(verifyCaptureNumbers(op, op.getWrtCaptures(),
                                  op.getCaptures().size() + numTables)) ||
      failed(
          verifyFactorCaptures(op, op.getScoreBody(), op.getWrtCaptures())) ||
      failed(verifyKeyLookups(op.getScoreBody(), op.getWrtCaptures())) ||
      failed(verifyTables(op, "dtables", op.getDtables(), op.getDrows())))
    return failure();
  for (Value ofTable : op.getDrows())
    if (failed(verifyRowStats(op, op.getOrientation(), {{"drows", ofTable}},
                              queries)))
      return failure();
  size_t tables = op.getGradientTables().size();
  if (op.getDtables().size() != tables)
    return op.emitOpError("expected dtables for each of the ")
           << tables << " tables of wrt_captures, got "
           << op.getDtables().size();
  size_t numbers = op.getWrtCaptures().size() - tables;
  if (op.getDcaptures().size() != numbers)
    return op.emitOpError("expected dcaptures for each of the ")
           << numbers << " wrt_captures, got " << op.getDcaptures().size();
  for (Value gradient : op.getDcaptures())
    if (gradient.getType() != statistic.value.getType())
      return op.emitOpError("expected dcaptures of the type of ")
             << statistic.name << ", " << statistic.value.getType() << ", got "
             << gradient.getType();
  return success();
}

/// The rows, statistics, gradients and score of a step of gradients for the
/// cotangent `dout`, and how many queries it has, or a failure.
template <typename Step>
static FailureOr<int64_t> verifyGradientStep(Step op, NamedValue dout,
                                             ArrayRef<NamedValue> statistics) {
  if (!op.getDq() && !op.getDk() && !op.getDv() && op.getDcaptures().empty() &&
      op.getDtables().empty())
    return op.emitOpError("expected at least one of dq, dk and dv, got none");
  SmallVector<NamedValue> computed(statistics);
  for (NamedValue tile :
       {NamedValue{"dq", op.getDq()}, NamedValue{"dk", op.getDk()},
        NamedValue{"dv", op.getDv()}})
    if (tile.value)
      computed.push_back(tile);
  std::string names;
  for (NamedValue statistic : statistics)
    names += statistic.name.str() +
             (statistic.name == statistics.back().name ? "" : ", ");
  if (failed(verifyLimits(op)) ||
      failed(verifyElements(
          op, names + " and the gradients", computed,
          {{"q", op.getQ()}, {"k", op.getK()}, {"v", op.getV()}, dout})) ||
      failed(verifySameElement(op, {"q", op.getQ()}, {"k", op.getK()})) ||
      failed(verifySameElement(op, {"v", op.getV()}, dout)))
    return failure();

  Orientation orientation = op.getOrientation();
  SmallVector<std::pair<Value, unsigned>> ofQueries = {
      {op.getQ(), 0}, {dout.value, 0}, {op.getDq(), 0}};
  for (NamedValue statistic : statistics)
    ofQueries.push_back({statistic.value, getQueriesDim(orientation)});
  int64_t queries = getCommonExtentAt(ofQueries);
  int64_t keys = getCommonExtentAt(
      {{op.getK(), 0}, {op.getV(), 0}, {op.getDk(), 0}, {op.getDv(), 0}});
  int64_t headDim = getCommonExtentAt(
      {{op.getK(), 1}, {op.getQ(), 1}, {op.getDq(), 1}, {op.getDk(), 1}});
  int64_t valueHeadDim =
      getCommonExtentAt({{op.getV(), 1}, {dout.value, 1}, {op.getDv(), 1}});
  auto check = [&](NamedValue tile, StringRef meaning,
                   ArrayRef<int64_t> shape) {
    return verifyTile(op, orientation, tile, meaning, shape);
  };
  for (NamedValue tile :
       {NamedValue{"q", op.getQ()}, NamedValue{"dq", op.getDq()}})
    if (failed(check(tile, "queries x head_dim", {queries, headDim})))
      return failure();
  for (NamedValue tile :
       {NamedValue{"k", op.getK()}, NamedValue{"dk", op.getDk()}})
    if (failed(check(tile, "keys x head_dim", {keys, headDim})))
      return failure();
  for (NamedValue tile :
       {NamedValue{"v", op.getV()}, NamedValue{"dv", op.getDv()}})
    if (failed(check(tile, "keys x value head_dim", {keys, valueHeadDim})))
      return failure();
  SmallVector<NamedValue> numbers(statistics);
  numbers.append({{"lo", op.getLo()}, {"hi", op.getHi()}});
  if (failed(
          check(dout, "queries x value head_dim", {queries, valueHeadDim})) ||
      failed(verifyRowStats(op, orientation, numbers, queries)) ||
      failed(verifyScoreOf(op, queries)) ||
      failed(verifyScale(op, op.getScale())))
    return failure();
  return queries;
}

//===----------------------------------------------------------------------===//
// OnlineAttnGradOp
//===----------------------------------------------------------------------===//

LogicalResult OnlineAttnGradOp::verify() {
  NamedValue lse{"lse", getLse()};
  FailureOr<int64_t> queries = verifyGradientStep(*this, {"dout", getDout()},
                                                  {lse, {"delta", getDelta()}});
  if (failed(queries))
    return failure();
  return verifyGradientsOfCaptures(*this, lse, *queries, getTables().size());
}

LogicalResult
OnlineAttnGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                   OnlineAttnGradOp::Adaptor adaptor,
                                   SmallVectorImpl<Type> &types) {
  inferGradients(adaptor, types);
  return success();
}

MutableOperandRange OnlineAttnGradOp::getDpsInitsMutable() {
  return getDestinationsOf(*this);
}

SmallVector<StepFactor> OnlineAttnGradOp::getFactors() {
  // Scores and dp sum over columns, the gradient of the other side over rows.
  return {{"q", &getQMutable(), true, /*alongColumns=*/true, bool(getDk())},
          {"dout", &getDoutMutable(), true, true, bool(getDv())},
          {"k", &getKMutable(), false, true, bool(getDq())},
          {"v", &getVMutable(), false, true, /*alongRows=*/false}};
}

FloatType OnlineAttnGradOp::getComputeType() {
  return cast<FloatType>(elementOf(getLse()));
}

std::optional<unsigned> OnlineAttnGradOp::getDimOfQueries(OpOperand &init) {
  return getDimOfQueriesIn(*this, init);
}

void OnlineAttnGradOp::setInputs(const StepInputs &inputs) {
  setInputsOf(*this, inputs);
  setGradientInputsOf(*this, inputs);
}

SmallVector<Value> OnlineAttnGradOp::getTableGradients() {
  return llvm::to_vector_of<Value>(getDtables());
}

SmallVector<BlockArgument> OnlineAttnGradOp::getGradientTables() {
  return getTablesAmong(*this, getWrtCaptures());
}

void OnlineAttnGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameGradients(*this, setName);
}

//===----------------------------------------------------------------------===//
// OnlineAttnJVPGradOp
//===----------------------------------------------------------------------===//

LogicalResult OnlineAttnJVPGradOp::verify() {
  NamedValue lse{"lse", getLse()}, dtout{"dtout", getDtout()};
  FailureOr<int64_t> queries = verifyGradientStep(*this, dtout,
                                                  {lse,
                                                   {"delta", getDelta()},
                                                   {"tlse", getTlse()},
                                                   {"tdelta", getTdelta()}});
  if (failed(queries))
    return failure();
  SmallVector<std::pair<NamedValue, NamedValue>> tangents = {
      {{"tq", getTq()}, {"q", getQ()}},
      {{"tk", getTk()}, {"k", getK()}},
      {{"tv", getTv()}, {"v", getV()}}};
  if (getDout())
    tangents.push_back({{"dout", getDout()}, dtout});
  if (failed(verifyTangentTypes(*this, tangents)) ||
      failed(verifyTangentsOfCaptures(*this, lse)))
    return failure();
  size_t tangentTables = getTablesAmong(*this, getTangentCaptures()).size();
  return verifyGradientsOfCaptures(*this, lse, *queries,
                                   getTables().size() - tangentTables);
}

LogicalResult
OnlineAttnJVPGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                      OnlineAttnJVPGradOp::Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  inferGradients(adaptor, types);
  return success();
}

MutableOperandRange OnlineAttnJVPGradOp::getDpsInitsMutable() {
  return getDestinationsOf(*this);
}

SmallVector<StepFactor> OnlineAttnJVPGradOp::getFactors() {
  // As in the step without tangents.
  bool hasDq(getDq()), hasDk(getDk()), hasDv(getDv());
  SmallVector<StepFactor> factors = {
      {"q", &getQMutable(), true, /*alongColumns=*/true, hasDk},
      {"tq", &getTqMutable(), true, true, hasDk},
      {"dtout", &getDtoutMutable(), true, true, hasDv}};
  if (getDout())
    factors.push_back({"dout", &getDoutMutable()[0], true, true, hasDv});
  factors.append({{"k", &getKMutable(), false, true, hasDq},
                  {"tk", &getTkMutable(), false, true, hasDq},
                  {"v", &getVMutable(), false, true, /*alongRows=*/false},
                  {"tv", &getTvMutable(), false, true, /*alongRows=*/false}});
  return factors;
}

FloatType OnlineAttnJVPGradOp::getComputeType() {
  return cast<FloatType>(elementOf(getLse()));
}

std::optional<unsigned> OnlineAttnJVPGradOp::getDimOfQueries(OpOperand &init) {
  return getDimOfQueriesIn(*this, init);
}

SmallVector<BlockArgument> OnlineAttnJVPGradOp::getTableArguments() {
  return getTablesAndTangents(*this);
}

void OnlineAttnJVPGradOp::setInputs(const StepInputs &inputs) {
  setInputsOf(*this, inputs);
  setGradientInputsOf(*this, inputs);
}

SmallVector<Value> OnlineAttnJVPGradOp::getTableGradients() {
  return llvm::to_vector_of<Value>(getDtables());
}

SmallVector<BlockArgument> OnlineAttnJVPGradOp::getGradientTables() {
  return getTablesAmong(*this, getWrtCaptures());
}

void OnlineAttnJVPGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameGradients(*this, setName);
}

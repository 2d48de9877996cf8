//===- TileOps.cpp - Steps on a block of queries and a block of keys ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "TileVerifier.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;
using namespace mlir::varlen::detail;

//===----------------------------------------------------------------------===//
// What both steps have
//===----------------------------------------------------------------------===//

template <typename Step>
static void setInputsOf(Step step, const StepInputs &inputs) {
  auto assign = [](MutableOperandRange operand, Value value) {
    operand.assign(value ? ValueRange(value) : ValueRange());
  };
  assign(step.getQueriesMutable(), {});
  assign(step.getKeysMutable(), {});
  assign(step.getLoMutable(), inputs.lo);
  assign(step.getHiMutable(), inputs.hi);
  assign(step.getK0Mutable(), inputs.k0);
  assign(step.getSeenBeginMutable(), inputs.seenBegin);
  assign(step.getSeenEndMutable(), inputs.seenEnd);
  assign(step.getPositionMutable(), inputs.position);
  assign(step.getFirstKeyMutable(), inputs.firstKey);
  step.getTablesMutable().assign(inputs.tables);
  step.getRowsMutable().assign(inputs.rows);
}

template <typename Step>
static void setGradientInputsOf(Step step, const StepInputs &inputs) {
  step.getDtablesMutable().assign(inputs.dtables);
  step.getDrowsMutable().assign(inputs.drows);
}

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

template <typename Step> static LogicalResult verifyLimits(Step op) {
  if (static_cast<bool>(op.getLo()) != static_cast<bool>(op.getHi()) ||
      static_cast<bool>(op.getLo()) != static_cast<bool>(op.getK0()))
    return op.emitOpError(
               "expected all of the limits lo, hi and k0 or none, got ")
           << (op.getLo() ? 1 : 0) + (op.getHi() ? 1 : 0) + (op.getK0() ? 1 : 0)
           << " of 3";
  if (static_cast<bool>(op.getSeenBegin()) !=
      static_cast<bool>(op.getSeenEnd()))
    return op.emitOpError("expected both ends of the keys that are seen, got 1 "
                          "of 2");
  if (op.getSeenBegin() && !op.getLo())
    return op.emitOpError("expected limits beside 'seen', got none");
  if (!op.getQueries())
    return success();
  if (op.getLo())
    return op.emitOpError("expected either limits or tiles, got both");
  Axis queries = op.getQueries().getType().getAxis(),
       keys = op.getKeys().getType().getAxis();
  if ((queries != Axis::Queries && queries != Axis::Sequences) ||
      keys != Axis::Keys)
    return op.emitOpError("expected tiles of queries and keys, got ")
           << stringifyAxis(queries) << " and " << stringifyAxis(keys);
  return success();
}

/// That tables of a step are memory of an attention, or views with rows beside.
template <typename Step>
static LogicalResult verifyTables(Step op, StringRef name, ValueRange tables,
                                  ValueRange rows) {
  size_t wanted = op.getQueries() ? 0 : tables.size();
  if (rows.size() != wanted)
    return op.emitOpError("expected rows of ")
           << wanted << " " << name << ", those of a step without tiles, got "
           << rows.size();
  for (Value table : tables) {
    auto type = cast<MemRefType>(table.getType());
    if (type.getElementType() != op.getComputeType())
      return op.emitOpError("expected ")
             << name << " of " << op.getComputeType() << ", got "
             << type.getElementType();
    if (!op.getQueries() && type.getRank() != 2)
      return op.emitOpError("expected ")
             << name << " of rank 2 beside rows, got " << type;
  }
  return success();
}

/// The score region, and the tiles that it reads.
template <typename Step>
static LogicalResult verifyScoreOf(Step op, int64_t queries) {
  FloatType compute = op.getComputeType();
  // Of tables there may be tangents, too.
  size_t numTables = op.getTables().size(),
         own = getTableArguments(op.getScoreBody()).size(),
         count = StepOpInterface(op).getTableArguments().size();
  size_t tangents = std::min(count - own, numTables);
  unsigned captures = op.getCaptures().size() + numTables - tangents;
  if (failed(verifyScore(op, op.getScoreBody(), compute, captures)))
    return failure();
  if (count != numTables)
    return op.emitOpError("expected ")
           << count << " tables, as many as the score region looks up in, got "
           << numTables;
  if (failed(verifyTables(op, "tables", op.getTables(), op.getRows())))
    return failure();
  if (op.getPosition() && (op.getQueries() || !op.getScoreBody()))
    return op.emitOpError("expected positions beside a score region of a step "
                          "without tiles");
  if (!op.getPosition() && !op.getQueries() &&
      readsPositions(op.getScoreBody()))
    return op.emitOpError("expected positions or tiles beside a score region "
                          "that reads positions");
  SmallVector<NamedValue> rows = {{"position", op.getPosition()}};
  for (Value capture : op.getCaptures()) {
    rows.push_back({"a capture", capture});
    if (elementOf(capture) != compute)
      return op.emitOpError("expected captures of ")
             << compute << ", got " << elementOf(capture);
  }
  for (Value ofTable : op.getRows())
    rows.push_back({"rows", ofTable});
  return verifyRowStats(op, op.getOrientation(), rows, queries);
}

/// The arguments of the score region that are tables among the captures of
/// `wrt_captures`.
template <typename Step>
static SmallVector<BlockArgument> getWrtTables(Step op) {
  SmallVector<BlockArgument> tables;
  Block *score = op.getScoreBody();
  for (int64_t number : op.getWrtCaptures())
    if (number >= 0 && isTable(score, number))
      tables.push_back(score->getArgument(Captures + number));
  return tables;
}

/// The tables that a score region looks up in, and those that have tangents.
template <typename Step>
static SmallVector<BlockArgument> getTablesAndTangents(Step op) {
  SmallVector<BlockArgument> tables = getTableArguments(op.getScoreBody());
  llvm::append_range(tables, getWrtTables(op));
  return tables;
}

/// The extent of dimensions of tiles, of those that there are, that must agree;
/// dynamic where none says more.
static int64_t getCommonExtentAt(ArrayRef<std::pair<Value, unsigned>> places) {
  SmallVector<int64_t> extents;
  for (auto [tile, dim] : places)
    if (tile)
      extents.push_back(shaped(tile).getDimSize(dim));
  return getCommonExtent(extents);
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

/// That each tangent, the first of a pair, has the type of what it is one of.
static LogicalResult
verifyTangentTypes(Operation *op,
                   ArrayRef<std::pair<NamedValue, NamedValue>> tangents) {
  for (auto [tangent, of] : tangents)
    if (tangent.value.getType() != of.value.getType())
      return op->emitOpError("expected ")
             << tangent.name << " of the type of " << of.name << ", "
             << of.value.getType() << ", got " << tangent.value.getType();
  return success();
}

/// The captures of `wrt_captures`, whose tangents are numbers like `statistic`
/// or further tables.
template <typename Step>
static LogicalResult verifyTangentsOfCaptures(Step op, NamedValue statistic) {
  size_t ofTables = getWrtTables(op).size();
  if (failed(verifyCaptureNumbers(op, op.getWrtCaptures(),
                                  op.getCaptures().size() +
                                      op.getTables().size() - ofTables)) ||
      failed(verifyFactorCaptures(op, op.getScoreBody(), op.getWrtCaptures())))
    return failure();
  size_t wanted = op.getWrtCaptures().size() - ofTables;
  if (op.getTcaptures().size() != wanted)
    return op.emitOpError("expected tcaptures for each of the ")
           << wanted << " wrt_captures that are no tables, got "
           << op.getTcaptures().size();
  for (Value tangent : op.getTcaptures())
    if (tangent.getType() != statistic.value.getType())
      return op.emitOpError("expected tcaptures of the type of ")
             << statistic.name << ", " << statistic.value.getType() << ", got "
             << tangent.getType();
  return success();
}

LogicalResult OnlineAttnJVPOp::verify() {
  if (failed(verifyStateStep(*this)) ||
      failed(
          verifyTangentTypes(*this, {{{"tq", getTq()}, {"q", getQ()}},
                                     {{"tk", getTk()}, {"k", getK()}},
                                     {{"tv", getTv()}, {"v", getV()}},
                                     {{"tacc", getTacc()}, {"acc", getAcc()}},
                                     {{"tl", getTl()}, {"l", getL()}}})))
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
  return success();
}

MutableOperandRange OnlineAttnJVPOp::getDpsInitsMutable() {
  // acc, m, l and the tangents are the last operands.
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 5);
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
  bool isRounded = elementOf(getV()) != elementOf(getM());
  return OnlineMergeOp::create(
      b, getLoc(), state[0], state[1], state[2], state.drop_front(3), more[0],
      more[1], more[2], more.drop_front(3), getScaleAttr(),
      getOrientationAttr(), isRounded ? b.getUnitAttr() : UnitAttr());
}

void OnlineAttnJVPOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAccOut(), "acc");
  setName(getMOut(), "m");
  setName(getLOut(), "l");
  setName(getTaccOut(), "tacc");
  setName(getTlOut(), "tl");
}

//===----------------------------------------------------------------------===//
// OnlineAttnGradOp
//===----------------------------------------------------------------------===//

/// The gradients of the captures of `wrt_captures`: of tables memory, and rows
/// of it beside, of numbers tiles like `statistic`.
template <typename Step>
static LogicalResult verifyGradientsOfCaptures(Step op, NamedValue statistic,
                                               int64_t queries) {
  if (failed(verifyKeyLookups(op.getScoreBody(), op.getWrtCaptures())) ||
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

LogicalResult OnlineAttnGradOp::verify() {
  if (!getDq() && !getDk() && !getDv() && getDcaptures().empty() &&
      getDtables().empty())
    return emitOpError("expected at least one of dq, dk and dv, got none");
  NamedValue lse{"lse", getLse()};
  FailureOr<int64_t> queries = verifyGradientStep(*this, {"dout", getDout()},
                                                  {lse, {"delta", getDelta()}});
  if (failed(queries) ||
      failed(verifyCaptureNumbers(*this, getWrtCaptures(),
                                  getCaptures().size() + getTables().size())) ||
      failed(verifyFactorCaptures(*this, getScoreBody(), getWrtCaptures())))
    return failure();
  return verifyGradientsOfCaptures(*this, lse, *queries);
}

LogicalResult
OnlineAttnGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                   OnlineAttnGradOp::Adaptor adaptor,
                                   SmallVectorImpl<Type> &types) {
  for (Value init : {adaptor.getDq(), adaptor.getDk(), adaptor.getDv()})
    if (init)
      types.push_back(init.getType());
  llvm::append_range(types, adaptor.getDcaptures().getTypes());
  return success();
}

MutableOperandRange OnlineAttnGradOp::getDpsInitsMutable() {
  // The gradients are the last operands.
  unsigned count = getNumResults();
  return MutableOperandRange(*this, getNumOperands() - count, count);
}

/// Results come in the order of the destinations that are there.
static Value getGradient(OnlineAttnGradOp op, bool isThere, unsigned before) {
  return isThere ? op.getResult(before) : Value();
}

Value OnlineAttnGradOp::getDqOut() {
  return getGradient(*this, static_cast<bool>(getDq()), 0);
}
Value OnlineAttnGradOp::getDkOut() {
  return getGradient(*this, static_cast<bool>(getDk()), getDq() ? 1 : 0);
}
Value OnlineAttnGradOp::getDvOut() {
  return getGradient(*this, static_cast<bool>(getDv()),
                     (getDq() ? 1 : 0) + (getDk() ? 1 : 0));
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
  auto isOf = [&](MutableOperandRange gradients) {
    return llvm::any_of(
        gradients, [&](OpOperand &gradient) { return &gradient == &init; });
  };
  if (isOf(getDkMutable()) || isOf(getDvMutable()))
    return std::nullopt;
  // Rows of dq are queries in either orientation.
  return isOf(getDqMutable()) ? 0 : varlen::getQueriesDim(getOrientation());
}

void OnlineAttnGradOp::setInputs(const StepInputs &inputs) {
  setInputsOf(*this, inputs);
  setGradientInputsOf(*this, inputs);
}

SmallVector<Value> OnlineAttnGradOp::getTableGradients() {
  return llvm::to_vector_of<Value>(getDtables());
}

SmallVector<BlockArgument> OnlineAttnGradOp::getGradientTables() {
  return getWrtTables(*this);
}

void OnlineAttnGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (auto [result, name] :
       {std::pair(getDqOut(), "dq"), std::pair(getDkOut(), "dk"),
        std::pair(getDvOut(), "dv")})
    if (result)
      setName(result, name);
  for (Value result : getDcapturesOut())
    setName(result, "dcapture");
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
  return verifyGradientsOfCaptures(*this, lse, *queries);
}

LogicalResult
OnlineAttnJVPGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                      OnlineAttnJVPGradOp::Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  for (Value init : {adaptor.getDq(), adaptor.getDk(), adaptor.getDv()})
    types.push_back(init.getType());
  llvm::append_range(types, adaptor.getDcaptures().getTypes());
  return success();
}

MutableOperandRange OnlineAttnJVPGradOp::getDpsInitsMutable() {
  // The gradients are the last operands.
  unsigned count = getNumResults();
  return MutableOperandRange(*this, getNumOperands() - count, count);
}

SmallVector<StepFactor> OnlineAttnJVPGradOp::getFactors() {
  // Each sums over columns, and all but the values over rows, too.
  SmallVector<StepFactor> factors = {
      {"q", &getQMutable(), true, true, true},
      {"tq", &getTqMutable(), true, true, true},
      {"dtout", &getDtoutMutable(), true, true, true}};
  if (getDout())
    factors.push_back({"dout", &getDoutMutable()[0], true, true, true});
  factors.append({{"k", &getKMutable(), false, true, true},
                  {"tk", &getTkMutable(), false, true, true},
                  {"v", &getVMutable(), false, true, /*alongRows=*/false},
                  {"tv", &getTvMutable(), false, true, /*alongRows=*/false}});
  return factors;
}

FloatType OnlineAttnJVPGradOp::getComputeType() {
  return cast<FloatType>(elementOf(getLse()));
}

std::optional<unsigned> OnlineAttnJVPGradOp::getDimOfQueries(OpOperand &init) {
  if (&init == &getDkMutable() || &init == &getDvMutable())
    return std::nullopt;
  // Rows of dq are queries in either orientation.
  return &init == &getDqMutable() ? 0 : varlen::getQueriesDim(getOrientation());
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
  return getWrtTables(*this);
}

void OnlineAttnJVPGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getDqOut(), "dq");
  setName(getDkOut(), "dk");
  setName(getDvOut(), "dv");
  for (Value result : getDcapturesOut())
    setName(result, "dcapture");
}

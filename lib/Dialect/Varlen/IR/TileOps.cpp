//===- TileOps.cpp - Steps on a block of queries and a block of keys ------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "varlen/Dialect/Varlen/IR/VarlenScore.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/SmallString.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;

static ShapedType shaped(Value value) {
  return cast<ShapedType>(value.getType());
}

static Type elementOf(Value value) { return shaped(value).getElementType(); }

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
  assign(step.getWholeMutable(), inputs.whole);
  assign(step.getPositionMutable(), inputs.position);
  assign(step.getFirstKeyMutable(), inputs.firstKey);
  step.getTablesMutable().assign(inputs.tables);
  step.getRowsMutable().assign(inputs.rows);
}

StepOpInterface varlen::detail::cloneOnTiles(Operation *step, OpBuilder &b,
                                             ValueRange operands,
                                             const StepInputs &inputs) {
  auto copy = cast<StepOpInterface>(b.clone(*step));
  copy->setOperands(operands);
  for (auto [result, init] :
       llvm::zip_equal(copy->getResults(), copy.getDpsInits()))
    result.setType(init.getType());
  copy.setInputs(inputs);
  return copy;
}

/// What most of several extents that must agree say, the first of them if they
/// are equally many: the odd one out is then the one to complain about.
static int64_t getCommonExtent(ArrayRef<int64_t> extents) {
  int64_t common = ShapedType::kDynamic, most = 0;
  for (int64_t extent : extents)
    if (int64_t count = llvm::count(extents, extent);
        ShapedType::isStatic(extent) && count > most) {
      common = extent;
      most = count;
    }
  return common;
}

/// "4 x ?".
static std::string toString(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      shape, stream,
      [&](int64_t extent) {
        if (ShapedType::isDynamic(extent))
          stream << '?';
        else
          stream << extent;
      },
      " x ");
  return text;
}

template <typename Step> static LogicalResult verifyLimits(Step op) {
  if (static_cast<bool>(op.getLo()) != static_cast<bool>(op.getHi()) ||
      static_cast<bool>(op.getLo()) != static_cast<bool>(op.getK0()))
    return op.emitOpError(
               "expected all of the limits lo, hi and k0 or none, got ")
           << (op.getLo() ? 1 : 0) + (op.getHi() ? 1 : 0) + (op.getK0() ? 1 : 0)
           << " of 3";
  if (op.getWhole() && !op.getLo())
    return op.emitOpError("expected limits beside 'unless', got none");
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

template <typename Step> static LogicalResult verifyScale(Step op) {
  APFloat scale = op.getScale();
  if (scale.isFinite() && !scale.isZero() && !scale.isNegative())
    return success();
  SmallString<16> text;
  scale.toString(text);
  return op.emitOpError("expected scale to be positive and finite, got ")
         << text;
}

/// That `states` have one compute type, and `inputs` types that accumulate in
/// it; `stateNames` lists the former for the message, as in "acc, m and l".
static LogicalResult verifyElements(Operation *op, StringRef stateNames,
                                    ArrayRef<NamedValue> states,
                                    ArrayRef<NamedValue> inputs) {
  auto [stateName, state] = states.front();
  Type compute = elementOf(state);
  for (auto [name, tile] : states)
    if (Type type = elementOf(tile);
        type != compute || !(type.isF32() || type.isF64()))
      return op->emitOpError("expected ")
             << stateNames << " of one type, f32 or f64, got " << type
             << " for " << name;
  for (auto [name, tile] : inputs)
    if (Type type = elementOf(tile);
        type != compute && getComputeType(type) != compute)
      return op->emitOpError("expected ")
             << name << " of a type that accumulates in " << compute
             << ", the type of " << stateName << ", got " << type;
  return success();
}

static LogicalResult verifySameElement(Operation *op, NamedValue a,
                                       NamedValue b) {
  if (elementOf(a.value) == elementOf(b.value))
    return success();
  return op->emitOpError("expected ")
         << a.name << " and " << b.name << " of one element type, got "
         << elementOf(a.value) << " and " << elementOf(b.value);
}

/// That `tile`, if there is one, has `shape`, whose extents mean `meaning`.
static LogicalResult verifyTile(Operation *op, Orientation orientation,
                                NamedValue tile, StringRef meaning,
                                ArrayRef<int64_t> shape) {
  auto [name, value] = tile;
  if (!value ||
      succeeded(verifyCompatibleShape(shaped(value).getShape(), shape)))
    return success();
  return op->emitOpError("expected ")
         << name << " to be " << meaning << " = " << toString(shape)
         << " in orientation " << stringifyOrientation(orientation) << ", got "
         << value.getType();
}

/// The same for what has one value per query.
static LogicalResult verifyRowStats(Operation *op, Orientation orientation,
                                    ArrayRef<NamedValue> tiles,
                                    const StepSizes &sizes) {
  StringRef meaning =
      orientation == Orientation::QK ? "queries x 1" : "1 x queries";
  for (NamedValue tile : tiles)
    if (failed(verifyTile(op, orientation, tile, meaning,
                          getRowStatShape(orientation, sizes))))
      return failure();
  return success();
}

/// How many of the captures of a score region are tables.
static int64_t countTables(Block *score, unsigned captures) {
  int64_t count = 0;
  for (unsigned capture = 0; capture < captures; ++capture)
    count += isTable(score, capture);
  return count;
}

/// That tables of a step are memory of an attention, or views with rows beside.
template <typename Step>
static LogicalResult verifyTables(Step op, StringRef name, ValueRange tables,
                                  ValueRange rows, FloatType compute) {
  size_t wanted = op.getQueries() ? 0 : tables.size();
  if (rows.size() != wanted)
    return op.emitOpError("expected rows of ")
           << wanted << " " << name << ", those of a step without tiles, got "
           << rows.size();
  for (Value table : tables) {
    auto type = cast<MemRefType>(table.getType());
    if (type.getElementType() != compute)
      return op.emitOpError("expected ")
             << name << " of " << compute << ", got " << type.getElementType();
    if (!op.getQueries() && type.getRank() != 2)
      return op.emitOpError("expected ")
             << name << " of rank 2 beside rows, got " << type;
  }
  return success();
}

/// What a step reads, and writes, in memory.
static void
getTableEffects(MutableOperandRange tables, bool isWritten,
                SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &table : tables) {
    effects.emplace_back(MemoryEffects::Read::get(), &table,
                         SideEffects::DefaultResource::get());
    if (isWritten)
      effects.emplace_back(MemoryEffects::Write::get(), &table,
                           SideEffects::DefaultResource::get());
  }
}

/// The score region, and the tiles that it reads.
template <typename Step>
static LogicalResult verifyScoreOf(Step op, Value statistic,
                                   const StepSizes &sizes) {
  auto compute = cast<FloatType>(elementOf(statistic));
  unsigned captures = op.getCaptures().size() + op.getTables().size();
  if (failed(verifyScore(op, op.getScoreBody(), compute, captures)))
    return failure();
  if (int64_t count = countTables(op.getScoreBody(), captures);
      count != static_cast<int64_t>(op.getTables().size()))
    return op.emitOpError("expected ")
           << count << " tables, as many as the score region looks up in, got "
           << op.getTables().size();
  if (failed(verifyTables(op, "tables", op.getTables(), op.getRows(), compute)))
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
  return verifyRowStats(op, op.getOrientation(), rows, sizes);
}

/// The extents of results, which are those of their destinations.
static void reifyDestinations(OpBuilder &builder,
                              DestinationStyleOpInterface op,
                              ReifiedRankedShapedTypeDims &shapes) {
  for (auto [result, init] :
       llvm::zip_equal(op->getResults(), op.getDpsInits())) {
    NamedValue source{"", init};
    shapes.push_back(varlen::detail::reifyShape(builder, result,
                                                {{source, 0}, {source, 1}}));
  }
}

//===----------------------------------------------------------------------===//
// OnlineAttnOp
//===----------------------------------------------------------------------===//

StepSizes OnlineAttnOp::getSizes() {
  auto extent = [](Value tile, unsigned dim) {
    return shaped(tile).getDimSize(dim);
  };
  // Where queries are in the state, and where they are not.
  unsigned queries = getOrientation() == Orientation::QK ? 0 : 1;
  unsigned other = 1 - queries;
  StepSizes sizes;
  sizes.queries =
      getCommonExtent({extent(getQ(), 0), extent(getAcc(), queries),
                       extent(getM(), queries), extent(getL(), queries)});
  sizes.keys = getCommonExtent({extent(getK(), 0), extent(getV(), 0)});
  sizes.headDim = getCommonExtent({extent(getK(), 1), extent(getQ(), 1)});
  sizes.valueHeadDim =
      getCommonExtent({extent(getV(), 1), extent(getAcc(), other)});
  return sizes;
}

LogicalResult OnlineAttnOp::verify() {
  if (failed(verifyLimits(*this)) ||
      failed(verifyElements(*this, "acc, m and l",
                            {{"acc", getAcc()}, {"m", getM()}, {"l", getL()}},
                            {{"q", getQ()}, {"k", getK()}, {"v", getV()}})) ||
      failed(verifySameElement(*this, {"q", getQ()}, {"k", getK()})))
    return failure();

  StepSizes sizes = getSizes();
  Orientation orientation = getOrientation();
  bool qk = orientation == Orientation::QK;
  auto check = [&](NamedValue tile, StringRef meaning,
                   ArrayRef<int64_t> shape) {
    return verifyTile(*this, orientation, tile, meaning, shape);
  };
  if (failed(check({"q", getQ()}, "queries x head_dim",
                   getQueryTileShape(sizes))) ||
      failed(check({"k", getK()}, "keys x head_dim", getKeyTileShape(sizes))) ||
      failed(check({"v", getV()}, "keys x value head_dim",
                   getValueTileShape(sizes))) ||
      failed(check({"acc", getAcc()},
                   qk ? "queries x value head_dim" : "value head_dim x queries",
                   getAccTileShape(orientation, sizes))) ||
      failed(verifyRowStats(
          *this, orientation,
          {{"m", getM()}, {"l", getL()}, {"lo", getLo()}, {"hi", getHi()}},
          sizes)) ||
      failed(verifyScoreOf(*this, getM(), sizes)))
    return failure();
  return verifyScale(*this);
}

LogicalResult OnlineAttnOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location>,
                                             OnlineAttnOp::Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  for (Value init : {adaptor.getAcc(), adaptor.getM(), adaptor.getL()})
    types.push_back(init.getType());
  return success();
}

LogicalResult
OnlineAttnOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  reifyDestinations(builder, *this, shapes);
  return success();
}

MutableOperandRange OnlineAttnOp::getDpsInitsMutable() {
  // acc, m and l are the last operands.
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 3);
}

void OnlineAttnOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getTableEffects(getTablesMutable(), /*isWritten=*/false, effects);
}

Speculation::Speculatability OnlineAttnOp::getSpeculatability() {
  return getTables().empty() ? Speculation::Speculatable
                             : Speculation::NotSpeculatable;
}

double OnlineAttnOp::getCoarseFactor(double scale) {
  return std::exp2(std::ceil(std::log2(scale * M_LOG2E)));
}

SmallVector<StepFactor> OnlineAttnOp::getFactors() {
  return {{"q", &getQMutable(), true, /*alongColumns=*/true, false},
          {"k", &getKMutable(), false, /*alongColumns=*/true, false},
          {"v", &getVMutable(), false, /*alongColumns=*/false, true}};
}

FloatType OnlineAttnOp::getComputeType() {
  return cast<FloatType>(elementOf(getM()));
}

void OnlineAttnOp::setInputs(const StepInputs &inputs) {
  setInputsOf(*this, inputs);
}

Operation *OnlineAttnOp::createMerge(OpBuilder &b, ValueRange state,
                                     ValueRange more) {
  bool isRounded = elementOf(getV()) != elementOf(getM());
  return OnlineMergeOp::create(b, getLoc(), state[0], state[1], state[2],
                               more[0], more[1], more[2], getScaleAttr(),
                               getOrientationAttr(),
                               isRounded ? b.getUnitAttr() : UnitAttr());
}

void OnlineAttnOp::getAsmBlockArgumentNames(Region &region,
                                            OpAsmSetValueNameFn setName) {
  setScoreArgumentNames(region, setName);
}

void OnlineAttnOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAccOut(), "acc");
  setName(getMOut(), "m");
  setName(getLOut(), "l");
}

//===----------------------------------------------------------------------===//
// OnlineAttnGradOp
//===----------------------------------------------------------------------===//

StepSizes OnlineAttnGradOp::getSizes() {
  auto common = [](std::initializer_list<std::pair<Value, unsigned>> places) {
    SmallVector<int64_t> extents;
    for (auto [tile, dim] : places)
      if (tile)
        extents.push_back(shaped(tile).getDimSize(dim));
    return getCommonExtent(extents);
  };
  unsigned queries = getOrientation() == Orientation::QK ? 0 : 1;
  StepSizes sizes;
  sizes.queries = common({{getQ(), 0},
                          {getDout(), 0},
                          {getDq(), 0},
                          {getLse(), queries},
                          {getDelta(), queries}});
  sizes.keys = common({{getK(), 0}, {getV(), 0}, {getDk(), 0}, {getDv(), 0}});
  sizes.headDim =
      common({{getK(), 1}, {getQ(), 1}, {getDq(), 1}, {getDk(), 1}});
  sizes.valueHeadDim = common({{getV(), 1}, {getDout(), 1}, {getDv(), 1}});
  return sizes;
}

LogicalResult OnlineAttnGradOp::verify() {
  if (!getDq() && !getDk() && !getDv() && getDcaptures().empty() &&
      getDtables().empty())
    return emitOpError("expected at least one of dq, dk and dv, got none");
  SmallVector<NamedValue> states = {{"lse", getLse()}, {"delta", getDelta()}};
  for (NamedValue tile : {NamedValue{"dq", getDq()}, NamedValue{"dk", getDk()},
                          NamedValue{"dv", getDv()}})
    if (tile.value)
      states.push_back(tile);
  if (failed(verifyLimits(*this)) ||
      failed(verifyElements(*this, "lse, delta and the gradients", states,
                            {{"q", getQ()},
                             {"k", getK()},
                             {"v", getV()},
                             {"dout", getDout()}})) ||
      failed(verifySameElement(*this, {"q", getQ()}, {"k", getK()})) ||
      failed(verifySameElement(*this, {"v", getV()}, {"dout", getDout()})))
    return failure();

  StepSizes sizes = getSizes();
  Orientation orientation = getOrientation();
  auto check = [&](NamedValue tile, StringRef meaning,
                   ArrayRef<int64_t> shape) {
    return verifyTile(*this, orientation, tile, meaning, shape);
  };
  for (NamedValue tile : {NamedValue{"q", getQ()}, NamedValue{"dq", getDq()}})
    if (failed(check(tile, "queries x head_dim", getQueryTileShape(sizes))))
      return failure();
  for (NamedValue tile : {NamedValue{"k", getK()}, NamedValue{"dk", getDk()}})
    if (failed(check(tile, "keys x head_dim", getKeyTileShape(sizes))))
      return failure();
  for (NamedValue tile : {NamedValue{"v", getV()}, NamedValue{"dv", getDv()}})
    if (failed(check(tile, "keys x value head_dim", getValueTileShape(sizes))))
      return failure();
  if (failed(check({"dout", getDout()}, "queries x value head_dim",
                   getAccTileShape(Orientation::QK, sizes))) ||
      failed(verifyRowStats(*this, orientation,
                            {{"lse", getLse()},
                             {"delta", getDelta()},
                             {"lo", getLo()},
                             {"hi", getHi()}},
                            sizes)) ||
      failed(verifyScoreOf(*this, getLse(), sizes)) ||
      failed(verifyCaptureNumbers(*this, getWrtCaptures(),
                                  getCaptures().size() + getTables().size())) ||
      failed(verifyKeyLookups(getScoreBody(), getWrtCaptures())) ||
      failed(verifyTables(*this, "dtables", getDtables(), getDrows(),
                          cast<FloatType>(elementOf(getLse())))))
    return failure();
  for (Value ofTable : getDrows())
    if (failed(verifyRowStats(*this, orientation, {{"drows", ofTable}}, sizes)))
      return failure();
  size_t tables = llvm::count_if(getWrtCaptures(), [&](int64_t number) {
    return isTable(getScoreBody(), number);
  });
  if (getDtables().size() != tables)
    return emitOpError("expected dtables for each of the ")
           << tables << " tables of wrt_captures, got " << getDtables().size();
  if (getDcaptures().size() != getWrtCaptures().size() - tables)
    return emitOpError("expected dcaptures for each of the ")
           << getWrtCaptures().size() - tables << " wrt_captures, got "
           << getDcaptures().size();
  for (Value gradient : getDcaptures())
    if (gradient.getType() != getLse().getType())
      return emitOpError("expected dcaptures of the type of lse, ")
             << getLse().getType() << ", got " << gradient.getType();
  return verifyScale(*this);
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

LogicalResult
OnlineAttnGradOp::reifyResultShapes(OpBuilder &builder,
                                    ReifiedRankedShapedTypeDims &shapes) {
  reifyDestinations(builder, *this, shapes);
  return success();
}

MutableOperandRange OnlineAttnGradOp::getDpsInitsMutable() {
  // The gradients are the last operands.
  unsigned count = getNumResults();
  return MutableOperandRange(*this, getNumOperands() - count, count);
}

void OnlineAttnGradOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  getTableEffects(getTablesMutable(), /*isWritten=*/false, effects);
  getTableEffects(getDtablesMutable(), /*isWritten=*/true, effects);
}

Speculation::Speculatability OnlineAttnGradOp::getSpeculatability() {
  return getTables().empty() ? Speculation::Speculatable
                             : Speculation::NotSpeculatable;
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

bool OnlineAttnGradOp::isOfKeys(OpOperand &init) {
  return llvm::any_of(llvm::concat<OpOperand>(getDkMutable(), getDvMutable()),
                      [&](OpOperand &keys) { return &keys == &init; });
}

void OnlineAttnGradOp::setInputs(const StepInputs &inputs) {
  setInputsOf(*this, inputs);
  getDtablesMutable().assign(inputs.dtables);
  getDrowsMutable().assign(inputs.drows);
}

SmallVector<Value> OnlineAttnGradOp::getTableGradients() {
  return llvm::to_vector_of<Value>(getDtables());
}

SmallVector<BlockArgument> OnlineAttnGradOp::getGradientTables() {
  SmallVector<BlockArgument> tables;
  Block *score = getScoreBody();
  for (int64_t number : getWrtCaptures())
    if (isTable(score, number))
      tables.push_back(score->getArgument(Captures + number));
  return tables;
}

void OnlineAttnGradOp::getAsmBlockArgumentNames(Region &region,
                                                OpAsmSetValueNameFn setName) {
  setScoreArgumentNames(region, setName);
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
// OnlineInitOp
//===----------------------------------------------------------------------===//

/// That acc, m and l are the state of queries.
template <typename Op> static LogicalResult verifyState(Op op) {
  if (failed(verifyElements(
          op, "acc, m and l",
          {{"acc", op.getAcc()}, {"m", op.getM()}, {"l", op.getL()}}, {})))
    return failure();
  Orientation orientation = op.getOrientation();
  unsigned queries = orientation == Orientation::QK ? 0 : 1;
  StepSizes sizes{};
  sizes.queries = getCommonExtent({shaped(op.getAcc()).getDimSize(queries),
                                   shaped(op.getM()).getDimSize(queries)});
  sizes.valueHeadDim = shaped(op.getAcc()).getDimSize(1 - queries);
  if (failed(verifyTile(op, orientation, {"acc", op.getAcc()},
                        queries ? "value head_dim x queries"
                                : "queries x value head_dim",
                        getAccTileShape(orientation, sizes))) ||
      failed(verifyRowStats(op, orientation, {{"m", op.getM()}}, sizes)))
    return failure();
  return verifyScale(op);
}

LogicalResult OnlineInitOp::verify() {
  for (Value tile : getResults())
    if (!shaped(tile).hasStaticShape())
      return emitOpError("expected static extents, got ") << tile.getType();
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

std::array<double, 3> OnlineInitOp::getNumbers() {
  return getNumbers(getScale().convertToDouble(),
                    cast<FloatType>(elementOf(getM())));
}

void OnlineInitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAcc(), "acc");
  setName(getM(), "m");
  setName(getL(), "l");
}

//===----------------------------------------------------------------------===//
// OnlineFinishOp
//===----------------------------------------------------------------------===//

unsigned OnlineFinishOp::getQueriesDim(Value tile) {
  // Rows of out are queries in either orientation.
  return tile == getOut() || getOrientation() == Orientation::QK ? 0 : 1;
}

LogicalResult OnlineFinishOp::verify() {
  if (failed(verifyState(*this)))
    return failure();
  if (getSink() && getSink().getType() != getM().getType())
    return emitOpError("expected a sink of the type of m, ")
           << getM().getType() << ", got " << getSink().getType();
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
  types.push_back(RankedTensorType::get(shape, acc.getElementType()));
  types.push_back(adaptor.getM().getType());
  return success();
}

void OnlineFinishOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOut(), "out");
  setName(getLse(), "lse");
}

//===----------------------------------------------------------------------===//
// OnlineMergeOp
//===----------------------------------------------------------------------===//

unsigned OnlineMergeOp::getQueriesDim(Value) {
  return getOrientation() == Orientation::QK ? 0 : 1;
}

LogicalResult OnlineMergeOp::verify() { return verifyState(*this); }

LogicalResult OnlineMergeOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location>,
                                              OnlineMergeOp::Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  for (Value state : {adaptor.getAcc(), adaptor.getM(), adaptor.getL()})
    types.push_back(state.getType());
  return success();
}

void OnlineMergeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAccOut(), "acc");
  setName(getMOut(), "m");
  setName(getLOut(), "l");
}

//===----------------------------------------------------------------------===//
// RowDotOp, OnlineStatisticsOp, OnlineSinkGradOp
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

unsigned OnlineStatisticsOp::getQueriesDim(Value tile) {
  return shaped(tile).getDimSize(0) == 1 ? 1 : 0;
}

LogicalResult OnlineStatisticsOp::verify() {
  if (failed(verifyElements(*this, "lse", {{"lse", getLse()}}, {})))
    return failure();
  for (NamedValue tile :
       {NamedValue{"dlse", getDlse()}, NamedValue{"a sink", getSink()}})
    if (tile.value && tile.value.getType() != getLse().getType())
      return emitOpError("expected ")
             << tile.name << " of the type of lse, " << getLse().getType()
             << ", got " << tile.value.getType();
  if (llvm::is_contained(shaped(getLse()).getShape(), 1))
    return success();
  return emitOpError("expected a number for each query, R x 1 or 1 x R, got ")
         << getLse().getType();
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

LogicalResult OnlineSinkGradOp::verify() {
  if (failed(verifyElements(*this, "terms", {{"terms", getTerms()}}, {})))
    return failure();
  if (shaped(getTerms()).getDimSize(0) != 1)
    return emitOpError("expected terms to have one row, got ")
           << getTerms().getType();
  return success();
}

LogicalResult
OnlineSinkGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                   OnlineSinkGradOp::Adaptor adaptor,
                                   SmallVectorImpl<Type> &types) {
  auto terms = cast<RankedTensorType>(adaptor.getTerms().getType());
  types.push_back(RankedTensorType::get({1, 1}, terms.getElementType()));
  return success();
}

void OnlineSinkGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getDsink(), "dsink");
}

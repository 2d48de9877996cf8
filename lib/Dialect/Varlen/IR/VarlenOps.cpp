//===- VarlenOps.cpp - Operations of the varlen dialect -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace mlir::varlen;

#define GET_OP_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenOps.cpp.inc"

static ShapedType shaped(Value value) {
  return cast<ShapedType>(value.getType());
}

//===----------------------------------------------------------------------===//
// AttnOp
//===----------------------------------------------------------------------===//

void AttnOp::build(OpBuilder &builder, OperationState &state, Value q, Value k,
                   Value v, Value cuQ, Value cuK, MaskAttr mask,
                   FloatAttr scale) {
  if (!mask)
    mask = MaskAttr::getFull(builder.getContext());
  Type results[] = {inferOutType(shaped(q), shaped(v)),
                    inferLseType(shaped(q))};
  build(builder, state, results[0], results[1], q, k, v, cuQ, cuK,
        /*seqused_q=*/Value(), /*seqused_k=*/Value(), /*q_offset=*/Value(),
        /*sink=*/Value(), /*out_buffer=*/Value(), /*lse_buffer=*/Value(), mask,
        scale);
}

LogicalResult AttnOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       AttnOp::Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  // Into buffers: no results.
  if (isa<BaseMemRefType>(adaptor.getQ().getType()))
    return success();
  ShapedType q = shaped(adaptor.getQ());
  types.push_back(inferOutType(q, shaped(adaptor.getV())));
  types.push_back(inferLseType(q));
  return success();
}

bool AttnOp::isCompatibleReturnTypes(TypeRange l, TypeRange r) {
  return varlen::detail::areCompatibleTypes(l, r);
}

SmallVector<NamedValue> AttnOp::getInputs() {
  return varlen::detail::getAttentionInputs(*this);
}

SmallVector<ShapedByInputs> AttnOp::getShapedInputs() { return {}; }

SmallVector<ShapedByInputs> AttnOp::getShapedResults() {
  Value out = isBufferized() ? Value(getOutBuffer()) : Value(getOut());
  Value lse = isBufferized() ? Value(getLseBuffer()) : Value(getLse());
  return {varlen::detail::shapeOfOut("out", out, *this),
          varlen::detail::shapeOfLse("lse", lse, *this)};
}

SmallVector<Value> AttnOp::getOutBuffers() {
  SmallVector<Value> buffers;
  for (Value buffer : {Value(getOutBuffer()), Value(getLseBuffer())})
    if (buffer)
      buffers.push_back(buffer);
  return buffers;
}

LogicalResult AttnOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return varlen::detail::reifyShapes(*this, builder, shapes);
}

void AttnOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  varlen::detail::setResultNames(*this, setName);
}

void AttnOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  varlen::detail::getBufferEffects(*this, effects);
}

Speculation::Speculatability AttnOp::getSpeculatability() {
  return varlen::detail::getSpeculatability(*this);
}

//===----------------------------------------------------------------------===//
// AttnGradOp
//===----------------------------------------------------------------------===//

Value AttnGradOp::getGradient(unsigned number) {
  ValueRange gradients = isBufferized() ? ValueRange(getGradientBuffers())
                                        : ValueRange(getGradients());
  return number < gradients.size() ? gradients[number] : Value();
}

void AttnGradOp::build(OpBuilder &builder, OperationState &state, AttnOp attn,
                       Value dout, Value dlse) {
  assert(!attn.isBufferized() && "buffers have no gradients");
  SmallVector<Type> types = llvm::to_vector_of<Type>(
      inferGradientTypes(shaped(attn.getQ()), shaped(attn.getK()),
                         shaped(attn.getV()), attn.getSink() != Value()));
  build(builder, state, types, dout, attn.getQ(), attn.getK(), attn.getV(),
        attn.getOut(), attn.getLse(), attn.getCuQ(), attn.getCuK(), dlse,
        attn.getSequsedQ(), attn.getSequsedK(), attn.getQOffset(),
        attn.getSink(), /*gradient_buffers=*/ValueRange(), attn.getMaskAttr(),
        attn.getScaleAttr());
}

LogicalResult AttnGradOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location>,
                                           AttnGradOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  // Into buffers: no results.
  if (isa<BaseMemRefType>(adaptor.getQ().getType()))
    return success();
  llvm::append_range(types, inferGradientTypes(shaped(adaptor.getQ()),
                                               shaped(adaptor.getK()),
                                               shaped(adaptor.getV()),
                                               adaptor.getSink() != Value()));
  return success();
}

bool AttnGradOp::isCompatibleReturnTypes(TypeRange l, TypeRange r) {
  return varlen::detail::areCompatibleTypes(l, r);
}

SmallVector<NamedValue> AttnGradOp::getInputs() {
  SmallVector<NamedValue> inputs = varlen::detail::getAttentionInputs(*this);
  llvm::append_range(inputs, getShapedInputs());
  return inputs;
}

SmallVector<ShapedByInputs> AttnGradOp::getShapedInputs() {
  SmallVector<ShapedByInputs> inputs = {
      varlen::detail::shapeOfOut("dout", getDout(), *this),
      varlen::detail::shapeOfOut("out", getOut(), *this),
      varlen::detail::shapeOfLse("lse", getLse(), *this)};
  if (getDlse())
    inputs.push_back(varlen::detail::shapeOfLse("dlse", getDlse(), *this));
  return inputs;
}

SmallVector<ShapedByInputs> AttnGradOp::getShapedResults() {
  SmallVector<ShapedByInputs> gradients = {
      varlen::detail::shapeLike("dq", getDq(), {"q", getQ()}),
      varlen::detail::shapeLike("dk", getDk(), {"k", getK()}),
      varlen::detail::shapeLike("dv", getDv(), {"v", getV()})};
  if (getSink())
    gradients.push_back(
        {{"dsink", getDsink()}, getComputeType(), {{{"q", getQ()}, 1}}});
  return gradients;
}

SmallVector<Value> AttnGradOp::getOutBuffers() {
  return SmallVector<Value>(getGradientBuffers());
}

LogicalResult
AttnGradOp::reifyResultShapes(OpBuilder &builder,
                              ReifiedRankedShapedTypeDims &shapes) {
  return varlen::detail::reifyShapes(*this, builder, shapes);
}

void AttnGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  varlen::detail::setResultNames(*this, setName);
}

void AttnGradOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  varlen::detail::getBufferEffects(*this, effects);
}

Speculation::Speculatability AttnGradOp::getSpeculatability() {
  return varlen::detail::getSpeculatability(*this);
}

//===----------------------------------------------------------------------===//
// WorkTilesOp
//===----------------------------------------------------------------------===//

LogicalResult WorkTilesOp::verify() {
  std::pair<StringRef, Value> perSequences[] = {{"seqused_q", getSequsedQ()},
                                                {"seqused_k", getSequsedK()},
                                                {"q_offset", getQOffset()}};
  Type integer = getCuQ().getType().getElementType();
  int64_t entries = getCuQ().getType().getDimSize(0);
  int64_t keyEntries = getCuK().getType().getDimSize(0);
  if (getCuK().getType().getElementType() != integer)
    return emitOpError("expected cu_q and cu_k of one integer type, got ")
           << integer << " and " << getCuK().getType().getElementType();
  for (int64_t size : {entries, keyEntries})
    if (size == 0)
      return emitOpError("expected at least one entry in cu_q and cu_k, got ")
             << entries << " and " << keyEntries;
  if (failed(verifyCompatibleShape(entries, keyEntries)))
    return emitOpError(
               "expected cu_q and cu_k to have the same number of entries, "
               "got ")
           << entries << " and " << keyEntries;
  if (ShapedType::isDynamic(entries))
    entries = keyEntries;
  for (auto [name, value] : perSequences) {
    if (!value)
      continue;
    if (shaped(value).getElementType() != integer)
      return emitOpError("expected ")
             << name << " of the integer type of cu_q, " << integer << ", got "
             << shaped(value).getElementType();
    int64_t size = shaped(value).getDimSize(0);
    if (ShapedType::isStatic(entries) &&
        failed(verifyCompatibleShape(size, entries - 1)))
      return emitOpError("expected ")
             << name << " to have one entry for each of the " << entries - 1
             << " sequences, got " << size;
  }
  if (static_cast<int64_t>(getBlockM()) < 1)
    return emitOpError("expected a positive block_m, got ")
           << static_cast<int64_t>(getBlockM());
  int64_t columns = getTiles().getType().getDimSize(1);
  if (failed(verifyCompatibleShape(columns, NumColumns)))
    return emitOpError("expected a list of ")
           << static_cast<int64_t>(NumColumns) << " columns, got "
           << getTiles().getType();
  return success();
}

void WorkTilesOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getTiles(), "tiles");
}

//===----------------------------------------------------------------------===//
// OnlineAttnOp
//===----------------------------------------------------------------------===//

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

StepSizes OnlineAttnOp::getSizes() {
  auto extent = [](Value tile, unsigned dim) {
    return shaped(tile).getDimSize(dim);
  };
  // Where queries are in tiles that hold them, and where they are not.
  unsigned queries = getOrientation() == Orientation::QK ? 0 : 1;
  unsigned other = 1 - queries;
  StepSizes sizes;
  sizes.queries =
      getCommonExtent({extent(getQ(), queries), extent(getAcc(), queries),
                       extent(getM(), queries), extent(getL(), queries)});
  sizes.keys = getCommonExtent({extent(getK(), 0), extent(getV(), 0)});
  sizes.headDim = getCommonExtent({extent(getK(), 1), extent(getQ(), other)});
  sizes.valueHeadDim =
      getCommonExtent({extent(getV(), 1), extent(getAcc(), other)});
  return sizes;
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

LogicalResult OnlineAttnOp::verify() {
  if (static_cast<bool>(getLo()) != static_cast<bool>(getHi()) ||
      static_cast<bool>(getLo()) != static_cast<bool>(getK0()))
    return emitOpError("expected all of the limits lo, hi and k0 or none, got ")
           << (getLo() ? 1 : 0) + (getHi() ? 1 : 0) + (getK0() ? 1 : 0)
           << " of 3";
  if (getWhole() && !getLo())
    return emitOpError("expected limits beside 'unless', got none");

  // Element types.
  Type compute = shaped(getAcc()).getElementType();
  for (auto [name, state] : {std::pair("acc", getAcc()), std::pair("m", getM()),
                             std::pair("l", getL())})
    if (Type type = shaped(state).getElementType();
        type != compute || !(type.isF32() || type.isF64()))
      return emitOpError("expected acc, m and l of one type, f32 or f64, got ")
             << type << " for " << name;
  for (auto [name, input] :
       {std::pair("q", getQ()), std::pair("k", getK()), std::pair("v", getV())})
    if (Type type = shaped(input).getElementType();
        type != compute && getComputeType(type) != compute)
      return emitOpError("expected ")
             << name << " of a type that accumulates in " << compute
             << ", the type of acc, got " << type;
  if (shaped(getQ()).getElementType() != shaped(getK()).getElementType())
    return emitOpError("expected q and k of one element type, got ")
           << shaped(getQ()).getElementType() << " and "
           << shaped(getK()).getElementType();

  // Shapes.
  StepSizes sizes = getSizes();
  bool qk = getOrientation() == Orientation::QK;
  auto check = [&](StringRef name, Value tile, StringRef meaning,
                   ArrayRef<int64_t> shape) -> LogicalResult {
    if (!tile ||
        succeeded(verifyCompatibleShape(shaped(tile).getShape(), shape)))
      return success();
    return emitOpError("expected ")
           << name << " to be " << meaning << " = " << toString(shape)
           << " in orientation " << stringifyOrientation(getOrientation())
           << ", got " << tile.getType();
  };
  StringRef rowStat = qk ? "queries x 1" : "1 x queries";
  SmallVector<int64_t> rowStatShape = getRowStatShape(getOrientation(), sizes);
  if (failed(check("q", getQ(),
                   qk ? "queries x head_dim" : "head_dim x queries",
                   getQueryTileShape(getOrientation(), sizes))) ||
      failed(check("k", getK(), "keys x head_dim", getKeyTileShape(sizes))) ||
      failed(check("v", getV(), "keys x value head_dim",
                   getValueTileShape(sizes))) ||
      failed(check("acc", getAcc(),
                   qk ? "queries x value head_dim" : "value head_dim x queries",
                   getAccTileShape(getOrientation(), sizes))) ||
      failed(check("m", getM(), rowStat, rowStatShape)) ||
      failed(check("l", getL(), rowStat, rowStatShape)) ||
      failed(check("lo", getLo(), rowStat, rowStatShape)) ||
      failed(check("hi", getHi(), rowStat, rowStatShape)))
    return failure();

  APFloat scale = getScale();
  if (!scale.isFinite() || scale.isZero() || scale.isNegative()) {
    SmallString<16> text;
    scale.toString(text);
    return emitOpError("expected scale to be positive and finite, got ")
           << text;
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

LogicalResult
OnlineAttnOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  for (auto [result, init] : llvm::zip_equal(getResults(), getDpsInits())) {
    NamedValue source{"", init};
    shapes.push_back(varlen::detail::reifyShape(builder, result,
                                                {{source, 0}, {source, 1}}));
  }
  return success();
}

MutableOperandRange OnlineAttnOp::getDpsInitsMutable() {
  // acc, m and l are the last operands.
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 3);
}

void OnlineAttnOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getAccOut(), "acc");
  setName(getMOut(), "m");
  setName(getLOut(), "l");
}

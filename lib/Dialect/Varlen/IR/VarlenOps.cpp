//===- VarlenOps.cpp - Operations of the varlen dialect -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"
#include "Batch.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::varlen;

//===----------------------------------------------------------------------===//
// Directives of assembly formats
//===----------------------------------------------------------------------===//

/// "(inf, 0.0)": what an array attribute prints of an infinity it cannot parse.
static ParseResult parseNumbers(OpAsmParser &parser,
                                DenseF64ArrayAttr &numbers) {
  SmallVector<double> values;
  auto parseNumber = [&]() -> ParseResult {
    bool isNegative = succeeded(parser.parseOptionalMinus());
    double value = std::numeric_limits<double>::infinity();
    if (failed(parser.parseOptionalKeyword("inf")) && parser.parseFloat(value))
      return failure();
    values.push_back(isNegative ? -value : value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseNumber))
    return failure();
  numbers = DenseF64ArrayAttr::get(parser.getContext(), values);
  return success();
}

static void printNumbers(OpAsmPrinter &p, Operation *,
                         DenseF64ArrayAttr numbers) {
  p << '(';
  llvm::interleaveComma(numbers.asArrayRef(), p, [&](double value) {
    if (std::isinf(value))
      p << (value < 0 ? "-inf" : "inf");
    else
      p.printFloat(APFloat(value));
  });
  p << ')';
}

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
  if (failed(verifyBatch(*this)))
    return failure();
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

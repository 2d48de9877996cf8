//===- VarlenOps.cpp - Operations of the varlen dialect -------------------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "varlen/Dialect/Varlen/IR/Varlen.h"
#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;

#define GET_OP_CLASSES
#include "varlen/Dialect/Varlen/IR/VarlenOps.cpp.inc"

//===----------------------------------------------------------------------===//
// AttnOp
//===----------------------------------------------------------------------===//

static ShapedType shaped(Value value) {
  return cast<ShapedType>(value.getType());
}

int64_t AttnOp::getQueryHeads() { return shaped(getQ()).getDimSize(1); }
int64_t AttnOp::getKvHeads() { return shaped(getK()).getDimSize(1); }
int64_t AttnOp::getHeadDim() {
  int64_t dim = shaped(getQ()).getDimSize(2);
  return ShapedType::isDynamic(dim) ? shaped(getK()).getDimSize(2) : dim;
}
int64_t AttnOp::getValueHeadDim() { return shaped(getV()).getDimSize(2); }
FloatType AttnOp::getElementType() {
  return cast<FloatType>(shaped(getQ()).getElementType());
}
FloatType AttnOp::getComputeType() {
  return varlen::getComputeType(getElementType());
}

std::optional<double> AttnOp::getScaleValue() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToFloat();
  int64_t dim = getHeadDim();
  if (ShapedType::isDynamic(dim) || dim == 0)
    return std::nullopt;
  return 1.0 / std::sqrt(static_cast<double>(dim));
}

LogicalResult AttnOp::verify() {
  if (isBufferized() != static_cast<bool>(getOutBuffer()))
    return emitOpError("expected either two results or two outs");
  return success();
}

void AttnOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (isBufferized())
    return;
  setName(getOut(), "out");
  setName(getLse(), "lse");
}

void AttnOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool written =
        operand.get() == getOutBuffer() || operand.get() == getLseBuffer();
    if (written)
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

//===----------------------------------------------------------------------===//
// OnlineAttnOp
//===----------------------------------------------------------------------===//

LogicalResult
OnlineAttnOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                               OnlineAttnOp::Adaptor adaptor,
                               SmallVectorImpl<Type> &types) {
  for (Value init : {adaptor.getAcc(), adaptor.getM(), adaptor.getL()})
    types.push_back(init.getType());
  return success();
}

LogicalResult OnlineAttnOp::verify() { return success(); }

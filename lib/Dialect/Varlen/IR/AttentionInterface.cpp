//===- AttentionInterface.cpp - What attention ops have in common ---------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionInterface.h"

#include "varlen/Dialect/Varlen/IR/VarlenShape.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::varlen;

#include "varlen/Dialect/Varlen/IR/VarlenInterfaces.cpp.inc"

static ShapedType shaped(Value value) {
  return cast<ShapedType>(value.getType());
}

SmallVector<int64_t> ShapedByInputs::inferShape() const {
  return llvm::map_to_vector(extents, [](const ExtentOf &from) {
    return from.source.extent(from.dim);
  });
}

//===----------------------------------------------------------------------===//
// Methods of the interface
//===----------------------------------------------------------------------===//

int64_t varlen::detail::getQueryHeads(AttentionOpInterface op) {
  return shaped(op.getQ()).getDimSize(1);
}

int64_t varlen::detail::getKvHeads(AttentionOpInterface op) {
  int64_t heads = shaped(op.getK()).getDimSize(1);
  return ShapedType::isDynamic(heads) ? shaped(op.getV()).getDimSize(1) : heads;
}

int64_t varlen::detail::getHeadDim(AttentionOpInterface op) {
  int64_t dim = shaped(op.getQ()).getDimSize(2);
  return ShapedType::isDynamic(dim) ? shaped(op.getK()).getDimSize(2) : dim;
}

int64_t varlen::detail::getValueHeadDim(AttentionOpInterface op) {
  return shaped(op.getV()).getDimSize(2);
}

bool varlen::detail::hasDynamicHeadDim(AttentionOpInterface op) {
  SmallVector<Value> values = {op.getQ(), op.getK(), op.getV()};
  for (const ShapedByInputs &input : op.getShapedInputs())
    values.push_back(input.value);
  llvm::append_range(values, op.getOutBuffers());
  return llvm::any_of(values, [](Value value) {
    ShapedType type = shaped(value);
    return type.getRank() == 3 && type.isDynamicDim(2);
  });
}

FloatType varlen::detail::getElementType(AttentionOpInterface op) {
  return cast<FloatType>(shaped(op.getQ()).getElementType());
}

FloatType varlen::detail::getComputeType(AttentionOpInterface op) {
  return varlen::getComputeType(getElementType(op));
}

std::optional<double> varlen::detail::getScaleValue(AttentionOpInterface op) {
  if (std::optional<APFloat> scale = op.getScale())
    return scale->convertToDouble();
  int64_t dim = getHeadDim(op);
  if (ShapedType::isDynamic(dim) || dim == 0)
    return std::nullopt;
  return 1.0 / std::sqrt(static_cast<double>(dim));
}

GPUTileNeeds varlen::detail::getGPUTileNeeds(AttentionOpInterface op,
                                             GPUTileOwner owner) {
  MaskAttr mask = op.getMask();
  return {owner, op.getHeadDim(), op.getValueHeadDim(),
          (mask.getLeft() >= 0) + (mask.getRight() >= 0),
          op.getElementType().isF32()};
}

//===----------------------------------------------------------------------===//
// Methods of other interfaces
//===----------------------------------------------------------------------===//

SmallVector<NamedValue>
varlen::detail::getAttentionInputs(AttentionOpInterface op) {
  SmallVector<NamedValue> inputs = {{"q", op.getQ()},
                                    {"k", op.getK()},
                                    {"v", op.getV()},
                                    {"cu_q", op.getCuQ()},
                                    {"cu_k", op.getCuK()}};
  for (NamedValue optional : {NamedValue{"seqused_q", op.getSequsedQ()},
                              NamedValue{"seqused_k", op.getSequsedK()},
                              NamedValue{"q_offset", op.getQOffset()},
                              NamedValue{"sink", op.getSink()}})
    if (optional.value)
      inputs.push_back(optional);
  return inputs;
}

ShapedByInputs varlen::detail::shapeOfOut(StringRef name, Value value,
                                          AttentionOpInterface op) {
  NamedValue q{"q", op.getQ()}, v{"v", op.getV()};
  return {{name, value}, op.getElementType(), {{q, 0}, {q, 1}, {v, 2}}};
}

ShapedByInputs varlen::detail::shapeOfLse(StringRef name, Value value,
                                          AttentionOpInterface op) {
  NamedValue q{"q", op.getQ()};
  return {{name, value}, op.getComputeType(), {{q, 1}, {q, 0}}};
}

ShapedByInputs varlen::detail::shapeLike(StringRef name, Value value,
                                         NamedValue other) {
  ShapedByInputs result{{name, value}, other.type().getElementType(), {}};
  for (unsigned dim = 0; dim < other.type().getRank(); ++dim)
    result.extents.push_back({other, dim});
  return result;
}

bool varlen::detail::areCompatibleTypes(TypeRange l, TypeRange r) {
  return l.size() == r.size() &&
         llvm::all_of(llvm::zip_equal(l, r), [](auto types) {
           auto [a, b] = types;
           return getElementTypeOrSelf(a) == getElementTypeOrSelf(b) &&
                  succeeded(verifyCompatibleShape(a, b));
         });
}

SmallVector<OpFoldResult>
varlen::detail::reifyShape(OpBuilder &builder, Value result,
                           ArrayRef<ExtentOf> sources) {
  Location loc = result.getLoc();
  SmallVector<OpFoldResult> shape;
  for (const auto &[extent, from] :
       llvm::zip_equal(shaped(result).getShape(), sources))
    if (ShapedType::isStatic(extent))
      shape.push_back(builder.getIndexAttr(extent));
    else
      shape.push_back(getValueOrCreateConstantIndexOp(
          builder, loc,
          tensor::getMixedSize(builder, loc, from.source.value, from.dim)));
  return shape;
}

LogicalResult varlen::detail::reifyShapes(AttentionOpInterface op,
                                          OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  if (op.isBufferized())
    return failure();
  for (const ShapedByInputs &result : op.getShapedResults())
    shapes.push_back(reifyShape(builder, result.value, result.extents));
  return success();
}

void varlen::detail::setResultNames(AttentionOpInterface op,
                                    OpAsmSetValueNameFn setName) {
  if (op.isBufferized())
    return;
  // An op that does not verify may have fewer results.
  for (const ShapedByInputs &result : op.getShapedResults())
    if (result.value)
      setName(result.value, result.name);
}

void varlen::detail::getBufferEffects(
    AttentionOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  SmallVector<Value> written = op.getOutBuffers();
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (llvm::is_contained(written, operand.get()))
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

Speculation::Speculatability
varlen::detail::getSpeculatability(AttentionOpInterface op) {
  return op.isBufferized() ? Speculation::NotSpeculatable
                           : Speculation::Speculatable;
}
